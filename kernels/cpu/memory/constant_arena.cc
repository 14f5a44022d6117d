#include "kernels/cpu/memory/constant_arena.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace mendel::cpu {
namespace {

constexpr int64_t kLine = 64;
constexpr int64_t kLarge = int64_t{2} << 20;  // AlignedBytes requests huge pages itself
// Two huge pages: a constant that outlives its program keeps no more alive.
constexpr int64_t kChunk = int64_t{4} << 20;
constexpr int64_t kApart = int64_t{512} << 10;  // a quarter of a huge page

int64_t InLines(int64_t bytes) { return (std::max<int64_t>(bytes, 1) + kLine - 1) / kLine * kLine; }

}  // namespace

std::shared_ptr<std::byte> ConstantArena::Take(int64_t bytes) {
  const int64_t room = InLines(bytes);
  if (room >= kLarge || apart_ + room <= kApart) {
    if (room < kLarge) apart_ += room;
    const auto own = std::make_shared<AlignedBytes>(bytes);
    return {own, own->data()};
  }
  if (chunk_ == nullptr || used_ + room > chunk_->size()) {
    chunk_ = std::make_shared<AlignedBytes>(kChunk);
    used_ = 0;
  }
  std::shared_ptr<std::byte> taken(chunk_, chunk_->data() + used_);
  used_ += room;
  return taken;
}

void ConstantArena::GiveBack(std::shared_ptr<std::byte> last, int64_t bytes) {
  const int64_t room = InLines(bytes);
  if (chunk_ == nullptr || last.get() != chunk_->data() + used_ - room)
    return;  // it has memory of its own
  std::memset(last.get(), 0, static_cast<size_t>(room));
  used_ -= room;
}

}  // namespace mendel::cpu
