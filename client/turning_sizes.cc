#include "client/turning_sizes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace mendel {
namespace {

constexpr int64_t kLeastSize = 4;
constexpr int64_t kLargestSize = int64_t{1} << 16;
constexpr int64_t kGrowth = 4;
constexpr int64_t kLargestFirst = 4096;
/// Programs that are imported.
constexpr size_t kMostImports = 300;

class Search {
 public:
  explicit Search(const std::function<absl::StatusOr<PairRelations>(int64_t size)>& relations_at)
      : relations_at_(relations_at) {}

  TurningSearch Run() {
    // Sizes that do not import are known before the search takes the time.
    for (int64_t size = kLeastSize; size <= kLargestFirst; size *= kGrowth) At(size);
    for (int64_t low = kLeastSize; low < kLargestSize; low *= kGrowth) Between(low, low * kGrowth);
    return std::move(found_);
  }

 private:
  /// Null where the importer refuses the size, and after the end of the search.
  const PairRelations* At(int64_t size) {
    const auto known = known_.find(size);
    if (known != known_.end()) return known->second.has_value() ? &*known->second : nullptr;
    found_.complete = found_.complete && known_.size() < kMostImports;
    if (!found_.complete) return nullptr;
    absl::StatusOr<PairRelations> relations = relations_at_(size);
    if (absl::IsDeadlineExceeded(relations.status())) {
      found_.complete = false;
      return nullptr;
    }
    std::optional<PairRelations>& kept = known_[size];
    if (relations.ok()) kept = *std::move(relations);
    return kept.has_value() ? &*kept : nullptr;
  }

  void Between(int64_t low, int64_t high) {
    const PairRelations* first = At(low);
    const PairRelations* last = At(high);
    if (!found_.complete || (first == nullptr && last == nullptr)) return;
    const bool both = first != nullptr && last != nullptr;
    if ((both && first->Alike(*last)) || (!both && high - low == 1)) return;
    if (high - low == 1) {
      // Equal numbers may belong to either side of a change.
      found_.sizes.insert({low, high, high + 1});
      return;
    }
    const int64_t middle = low + (high - low) / 2;
    Between(low, middle);
    Between(middle, high);
  }

  const std::function<absl::StatusOr<PairRelations>(int64_t size)>& relations_at_;
  std::map<int64_t, std::optional<PairRelations>> known_;
  TurningSearch found_;
};

}  // namespace

bool PairRelations::SameOutputs() const {
  std::vector<Shape> a = outputs_a, b = outputs_b;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return valid_a && valid_b && a == b;
}

TurningSearch TurningSizes(
    const std::function<absl::StatusOr<PairRelations>(int64_t size)>& relations_at) {
  return Search(relations_at).Run();
}

}  // namespace mendel
