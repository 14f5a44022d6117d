#include "kernels/cpu/memory/deferred_constants.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/status.h"
#include "kernels/cpu/memory/shared_bytes.h"
#include "kernels/cpu/primitive.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

/// A PageToucher makes one thread touch each page that several small constants share. If two
/// threads touch a huge page first at once, both clear one.
class PageToucher {
 public:
  void Add(std::byte* begin, int64_t bytes) {
    constexpr uintptr_t kPage = uintptr_t{2} << 20;
    if (bytes == 0) return;
    for (std::byte* at : {begin, begin + bytes - 1})
      pages_.emplace(reinterpret_cast<uintptr_t>(at) / kPage, at);
  }
  void Touch() const {
    std::vector<volatile std::byte*> places;
    for (const auto& [page, at] : pages_) places.push_back(at);
    ParallelTasks(static_cast<int64_t>(places.size()),
                  [&](int64_t number) { *places[static_cast<size_t>(number)] = std::byte{0}; });
  }

 private:
  std::map<uintptr_t, std::byte*> pages_;
};

}  // namespace

void DeferredConstants::Add(int buffer, std::shared_ptr<std::byte> memory, int64_t bytes,
                            Divides divides, Fill fill) {
  constants_.push_back(
      {buffer, std::move(memory), bytes, divides, std::move(fill), absl::OkStatus()});
}

absl::Status DeferredConstants::FillAll(std::vector<Buffer>& buffers) {
  const auto fill = [](Constant& constant) {
    try {
      constant.fill(constant.memory.get());
    } catch (const dnnl::error& error) {
      constant.status =
          InternalError("oneDNN: packing weights: ", error.what(), " (", error.status, ")");
    }
    constant.fill = nullptr;  // with what it kept alive
  };
  int64_t all = 0;
  std::vector<Constant*> alone;
  PageToucher pages;
  for (Constant& constant : constants_) all += constant.bytes;
  for (Constant& constant : constants_) {
    const bool large = constant.bytes > all / (4 * TeamThreads());
    if (large && constant.divides == Divides::kYes) {
      fill(constant);
    } else {
      alone.push_back(&constant);
      pages.Add(constant.memory.get(), constant.bytes);
    }
  }
  pages.Touch();
  // The longest constants come first, so that only short ones remain at the end.
  std::stable_sort(alone.begin(), alone.end(),
                   [](const Constant* a, const Constant* b) { return a->bytes > b->bytes; });
  ParallelTasks(static_cast<int64_t>(alone.size()),
                [&](int64_t number) { fill(*alone[static_cast<size_t>(number)]); });
  for (Constant& constant : constants_) {
    MENDEL_RETURN_IF_ERROR(constant.status);
    std::shared_ptr<const std::byte> shared = Share(std::move(constant.memory), constant.bytes);
    Buffer& buffer = buffers[static_cast<size_t>(constant.buffer)];
    buffer.constant = shared.get();
    buffer.owner = std::move(shared);
  }
  constants_.clear();
  return absl::OkStatus();
}

}  // namespace mendel::cpu
