#include "client/compare_at_sizes.h"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "client/partial_tables.h"
#include "client/size_looks.h"

namespace mendel {
namespace {

/// The first sizes do not depend on the programs; positions in them give the others.
constexpr size_t kFixedTrials = 4;
/// The size of the other dimensions while one is searched for turning sizes.
constexpr int64_t kOtherSize = 3;
/// Turning sizes of several dimensions are compared together up to here.
constexpr int64_t kLargestJoint = 1024;
/// Large sizes of a dimension that are looked at, of each kind.
constexpr int kMostLooks = 2;
/// The size of the other dimensions in a second search.
constexpr int64_t kLargerOther = 64;
constexpr uint64_t kLookSeed = 1;
/// Sizes compared do not stand for all where this size, or a smaller one, is not supported.
constexpr int64_t kLeastToRefuse = 4096;

class Comparison {
 public:
  Comparison(const SizedComparison& by, Pair& pair, PairVerdict& verdict)
      : by_(by), open_(pair.open), pair_(pair), verdict_(verdict) {}

  absl::Status Run() {
    MENDEL_RETURN_IF_ERROR(Compare());
    verdict_.notes.insert(verdict_.notes.end(), notes_.begin(), notes_.end());
    return absl::OkStatus();
  }

 private:
  absl::Status Compare() {
    verdict_.sizes = {AllOpen(1)};
    if (const auto& relations = RelationsAt(AllOpen(1)); relations.ok())
      alike_in_shape_ = relations->SameOutputs();
    std::vector<Sizes> trials = TellingSizes(open_, {pair_.a, pair_.b});
    const std::vector<Graph> smallest = {pair_.a, pair_.b};
    for (size_t k = 0; k < trials.size() && IsEquivalent(verdict_); ++k) {
      MENDEL_RETURN_IF_ERROR(Try(trials[k]));
      if (k + 1 == kFixedTrials)
        trials = TellingSizes(open_, {smallest[0], smallest[1], pair_.a, pair_.b});
    }
    search_ = by_.search();
    for (const std::string& dimension : open_) {
      if (IsEquivalent(verdict_)) MENDEL_RETURN_IF_ERROR(TryTurningSizes(dimension));
    }
    if (IsEquivalent(verdict_)) MENDEL_RETURN_IF_ERROR(TryJointSizes());
    if (IsEquivalent(verdict_)) MENDEL_RETURN_IF_ERROR(Look());
    if (IsEquivalent(verdict_) && !refused_.empty()) Doubt(refused_);
    if (IsEquivalent(verdict_) && !SameTables(tables_a_.Unread(), tables_b_.Unread())) {
      Doubt("sizes index stored tables that differ, and no compared size reads all of their rows");
    }
    if (looks_ended_)
      notes_.push_back("time ended before both programs were evaluated at all sizes chosen for it");
    if (!IsEquivalent(verdict_) || larger_ == open_) return absl::OkStatus();
    Doubt("symbolic dimensions could only be taken as 1; give --shapes for others");
    return absl::OkStatus();
  }

  Sizes AllOpen(int64_t size) const {
    Sizes sizes;
    for (const std::string& dimension : open_) sizes[dimension] = size;
    return sizes;
  }

  Sizes SizesWith(const std::string& dimension, int64_t size, int64_t other = kOtherSize) const {
    Sizes sizes = AllOpen(other);
    sizes[dimension] = size;
    return sizes;
  }

  /// Takes back an `equivalent`.
  void Doubt(std::string reason) {
    verdict_.refit.reset();
    verdict_.report.verdict = Verdict::kUnproven;
    verdict_.report.reason = std::move(reason);
  }

  absl::Status Try(const Sizes& sizes) {
    if (!tried_.insert(sizes).second) return absl::OkStatus();
    absl::StatusOr<Pair> loaded = by_.load(sizes);
    if (absl::IsInvalidArgument(loaded.status()) || absl::IsUnimplemented(loaded.status())) {
      DoubtUnloaded(sizes, loaded.status());
      return absl::OkStatus();
    }
    MENDEL_RETURN_IF_ERROR(loaded.status());
    std::vector<Sizes> proven = std::move(verdict_.sizes);
    const bool refitted = VerdictWord(verdict_) != "equivalent";
    MENDEL_ASSIGN_OR_RETURN(PairVerdict next, by_.compare(sizes, *loaded));
    pair_ = *std::move(loaded);
    if (refitted && VerdictWord(next) == "equivalent") {
      next = std::move(verdict_);  // the weaker of two good answers
    }
    const bool equivalent = IsEquivalent(next);
    const bool undecided = next.report.verdict == Verdict::kUnproven && !equivalent;
    verdict_ = std::move(next);
    verdict_.sizes = equivalent || undecided ? std::move(proven) : std::vector<Sizes>();
    if (undecided) {
      verdict_.report.reason += Cat("; at the sizes ", SizesText(sizes));
      return absl::OkStatus();
    }
    verdict_.sizes.push_back(sizes);
    for (const auto& [dimension, size] : sizes) larger_.insert(dimension);
    if (const auto& relations = RelationsAt(sizes); relations.ok()) {
      tables_a_.Add(relations->tables_a);
      tables_b_.Add(relations->tables_b);
    }
    return absl::OkStatus();
  }

  /// Both models are imported for them: those of the last sizes are kept. Valid until the next call
  /// with other sizes.
  const absl::StatusOr<PairRelations>& RelationsAt(const Sizes& sizes) {
    if (!last_relations_.has_value() || last_relations_->first != sizes)
      last_relations_.emplace(sizes, by_.relations(sizes));
    return last_relations_->second;
  }

  /// The sizes at which one of the programs changes.
  absl::Status TryTurningSizes(const std::string& dimension) {
    const auto at = [&](int64_t size) { return SizesWith(dimension, size); };
    const TurningSearch found = TurningSizes([&](int64_t size) -> absl::StatusOr<PairRelations> {
      if (search_->Passed()) return absl::DeadlineExceededError("out of time");
      absl::StatusOr<PairRelations> relations = by_.relations(at(size));
      if (absl::IsUnimplemented(relations.status()))
        NoteRefused(dimension, size, relations.status());
      if (relations.ok() && alike_in_shape_ && relations->valid_a && relations->valid_b &&
          !relations->SameOutputs() && refused_.empty())
        refused_ = Cat("the outputs have other shapes at the sizes ", SizesText(at(size)));
      return relations;
    });
    if (!found.complete) {
      notes_.push_back(
          Cat("sizes of '", dimension,
              "' at which the programs change were not all searched; the verdict holds "
              "for the sizes that it names"));
    }
    turning_[dimension] = found.sizes;
    for (const int64_t size : found.sizes) {
      if (!IsEquivalent(verdict_)) return absl::OkStatus();
      const absl::StatusOr<PairRelations>& relations = RelationsAt(at(size));
      if (absl::IsDeadlineExceeded(relations.status())) {
        Doubt(Cat("out of time at the sizes ", SizesText(at(size))));
        return absl::OkStatus();
      }
      MENDEL_RETURN_IF_ERROR(relations.status());
      if (DoubtOneProgram(at(size), *relations)) return absl::OkStatus();
      MENDEL_RETURN_IF_ERROR(Try(at(size)));
      if (relations->valid_a && size <= kLargestJoint) joint_[dimension] = size;
    }
    return absl::OkStatus();
  }

  /// Two sizes may read together what neither reads beside a small one: a table's last corner.
  absl::Status TryJointSizes() {
    if (joint_.size() < 2) return absl::OkStatus();
    Sizes sizes = AllOpen(kOtherSize);
    for (const auto& [dimension, size] : joint_) sizes[dimension] = size;
    return Try(sizes);
  }

  /// True: sizes of one program alone take back the verdict.
  bool DoubtOneProgram(const Sizes& sizes, const PairRelations& relations) {
    if (relations.valid_a == relations.valid_b) return false;
    Doubt(Cat("only ", relations.valid_a ? "A" : "B", " is a program of the sizes ",
              SizesText(sizes)));
    return true;
  }

  /// The pair cannot be loaded: takes back the verdict unless no program has these sizes.
  void DoubtUnloaded(const Sizes& sizes, const absl::Status& why) {
    const absl::StatusOr<PairRelations>& relations = RelationsAt(sizes);
    if (!relations.ok() || DoubtOneProgram(sizes, *relations) || !relations->valid_a) return;
    Doubt(Cat("at the sizes ", SizesText(sizes), ": ", std::string(why.message())));
  }

  /// Evaluates both programs at further sizes where that costs little.
  absl::Status Look() {
    if (larger_ != open_) return absl::OkStatus();  // a dimension could only be taken as 1
    search_ = by_.search();
    if (open_.size() > 1) SearchTogether();
    for (const Sizes& sizes : SizesToLookAt(turning_, kLookSeed)) {
      MENDEL_RETURN_IF_ERROR(LookAt(sizes).status());
      if (!IsEquivalent(verdict_)) return absl::OkStatus();
    }
    for (const std::string& dimension : open_) {
      for (const auto& large : {kLargePrimes, kLargeMultiples}) {
        int looks = 0;
        for (const int64_t size : large) {
          if (looks == kMostLooks || !IsEquivalent(verdict_)) break;
          MENDEL_ASSIGN_OR_RETURN(const bool looked, LookAt(SizesWith(dimension, size)));
          looks += looked ? 1 : 0;
        }
      }
    }
    return absl::OkStatus();
  }

  /// Adds the sizes at which programs change beside larger other sizes.
  void SearchTogether() {
    const auto add = [&](const std::function<Sizes(int64_t)>& at, const std::set<std::string>& to) {
      const TurningSearch found = TurningSizes([&](int64_t size) -> absl::StatusOr<PairRelations> {
        if (search_->Passed()) return absl::DeadlineExceededError("out of time");
        return by_.relations(at(size));
      });
      for (const std::string& name : to)
        turning_[name].insert(found.sizes.begin(), found.sizes.end());
    };
    add([&](int64_t size) { return AllOpen(size); }, open_);
    for (const std::string& dimension : open_) {
      add([&](int64_t size) { return SizesWith(dimension, size, kLargerOther); }, {dimension});
      turning_[dimension].insert(kLargerOther);
    }
  }

  /// Evaluates both programs; false where they are no programs of these sizes, or cost much.
  absl::StatusOr<bool> LookAt(const Sizes& sizes) {
    if (tried_.contains(sizes) || !looked_.insert(sizes).second) return false;
    if (search_->Passed()) {
      looks_ended_ = true;
      return false;
    }
    for (const Sizes& costly : costly_) {
      if (IsAtLeast(sizes, costly)) return false;
    }
    const absl::StatusOr<Pair> pair = by_.load(sizes);
    if (absl::IsInvalidArgument(pair.status())) DoubtUnloaded(sizes, pair.status());
    if (!pair.ok()) return false;
    if (!IsCheapToEvaluate(*pair)) {
      costly_.push_back(sizes);
      return false;
    }
    const bool folded = VerdictWord(verdict_) != "equivalent";
    MENDEL_ASSIGN_OR_RETURN(const bool differ, by_.differ_at_once(*pair, folded));
    if (!differ) return true;
    MENDEL_RETURN_IF_ERROR(Try(sizes));
    if (IsEquivalent(verdict_)) Doubt(Cat("numbers differ at the sizes ", SizesText(sizes)));
    return true;
  }

  /// Sizes that both programs may have and that this importer refuses are not compared.
  void NoteRefused(const std::string& dimension, int64_t size, const absl::Status& status) {
    const std::string sentence = Cat("'", dimension, "' = ", size,
                                     " is not supported, and not compared: ", status.message());
    if (size <= kLeastToRefuse && refused_.empty()) refused_ = sentence;
    if (refused_dimensions_.insert(dimension).second) notes_.push_back(sentence);
  }

  const SizedComparison& by_;
  const std::set<std::string> open_;
  Pair& pair_;
  PairVerdict& verdict_;
  std::set<std::string> larger_;  ///< dimensions that were larger than 1 in some comparison
  std::set<Sizes> tried_;
  std::set<Sizes> looked_;
  std::vector<Sizes> costly_;  ///< sizes at which one evaluation costs much
  TurningSets turning_;
  bool looks_ended_ = false;
  std::vector<std::string> notes_;
  std::optional<std::pair<Sizes, absl::StatusOr<PairRelations>>> last_relations_;
  std::optional<Deadline> search_;
  PartialTables tables_a_, tables_b_;
  Sizes joint_;                  ///< the largest turning size of each dimension that programs have
  bool alike_in_shape_ = false;  ///< at size 1; not where some outputs are compared only
  std::string refused_;          ///< a reason for doubt; empty: none
  std::set<std::string> refused_dimensions_;
};

}  // namespace

bool IsEquivalent(const PairVerdict& verdict) {
  return VerdictWord(verdict) == "equivalent" || VerdictWord(verdict) == "equivalent-after-refit";
}

absl::Status CompareAtSizes(const SizedComparison& by, Pair& pair, PairVerdict& verdict) {
  return Comparison(by, pair, verdict).Run();
}

}  // namespace mendel
