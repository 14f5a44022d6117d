#include "kernels/cuda/testing/emulator/memory.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/status.h"

namespace mendel::cuda {
namespace {

constexpr uint32_t kMany = std::numeric_limits<uint32_t>::max();  // readers

std::string Threads(uint32_t a, uint32_t b) {
  return b == kMany ? Cat("thread ", a, " and several others") : Cat("threads ", a, " and ", b);
}

}  // namespace

MemoryChecker::MemoryChecker(unsigned char* shared, size_t shared_bytes,
                             std::span<const GlobalBuffer> buffers)
    : shared_(shared), words_((shared_bytes + 3) / 4) {
  for (const GlobalBuffer& buffer : buffers) {
    globals_.push_back(
        {buffer,
         std::vector<Shadow>(
             buffer.writable ? (buffer.bytes.size() + buffer.granule - 1) / buffer.granule : 0)});
  }
}

std::string MemoryChecker::Barrier() {
  ++epoch_;
  return std::exchange(suspicion_, "");
}

void MemoryChecker::Suspect(std::string fault) {
  if (suspicion_.empty()) suspicion_ = std::move(fault);
}

void MemoryChecker::BeginBlock() {
  block_epoch_ = ++epoch_;
  for (Word& word : words_) word.copied = false;
  kept_ = words_.size();
  std::memset(shared_, 0xff, words_.size() * 4);  // not a number, so that use also shows in results
}

void MemoryChecker::MarkCopy(uintptr_t address, size_t size, bool under_way) {
  const size_t begin = address - reinterpret_cast<uintptr_t>(shared_);
  for (size_t k = begin / 4; k <= (begin + size - 1) / 4; ++k) words_[k].copied = under_way;
  std::memset(shared_ + begin, 0xff, size);
}

void MemoryChecker::Keep(uintptr_t address) {
  kept_ = (address - reinterpret_cast<uintptr_t>(shared_)) / 4;
}

std::string MemoryChecker::Access(uintptr_t address, size_t size, bool write, bool aligned,
                                  uint32_t thread) {
  if (aligned && address % size != 0)
    return Cat("misaligned: ", size, " bytes at an address that is ", address % size,
               " beyond a multiple");
  const uintptr_t in_shared = address - reinterpret_cast<uintptr_t>(shared_);
  if (in_shared < words_.size() * 4) return AccessShared(in_shared, size, write, thread);
  for (Global& global : globals_) {
    const uintptr_t at = address - reinterpret_cast<uintptr_t>(global.buffer.bytes.data());
    if (at < global.buffer.bytes.size()) return AccessGlobal(global, at, size, write, thread);
  }
  return Cat("out of bounds: thread ", thread, write ? " writes " : " reads ", size,
             " bytes that belong to no buffer");
}

std::string MemoryChecker::AccessShared(size_t begin, size_t size, bool write, uint32_t thread) {
  if (begin + size > words_.size() * 4)
    return Cat("out of bounds: ", size, " bytes at the end of shared memory");
  for (size_t k = begin / 4; k <= (begin + size - 1) / 4; ++k) {
    Word& word = words_[k];
    if (word.written == epoch_ && word.writer != thread) {
      return Cat("race: ", Threads(thread, word.writer), " use shared word ", k,
                 ", which one wrote, without a barrier between");
    }
    if (word.copied) {
      return Cat("copy under way: thread ", thread, " uses shared word ", k,
                 " before the copy there is awaited");
    }
    if (write) {
      if (word.read == epoch_ && word.reader != thread) {
        return Cat("race: ", Threads(thread, word.reader), " use shared word ", k,
                   ", which the first writes, without a barrier between");
      }
      word.written = epoch_;
      word.writer = thread;
      continue;
    }
    // Another thread may yet write the word before the next barrier: then it is a race, and called
    // so.
    if (word.written < block_epoch_) {
      Suspect(Cat("uninitialized shared memory: thread ", thread, " reads word ", k));
    } else if (k < kept_ && word.written + 1 < epoch_) {
      Suspect(Cat("stale shared memory: thread ", thread, " reads word ", k, ", written ",
                  epoch_ - word.written, " barriers ago"));
    }
    word.reader = word.read == epoch_ && word.reader != thread ? kMany : thread;
    word.read = epoch_;
  }
  return "";
}

std::string MemoryChecker::AccessGlobal(Global& global, size_t begin, size_t size, bool write,
                                        uint32_t thread) {
  if (begin + size > global.buffer.bytes.size()) {
    return Cat("out of bounds: thread ", thread, " uses ", size, " bytes at the end of ",
               global.buffer.name);
  }
  if (write && !global.buffer.writable)
    return Cat("out of bounds: thread ", thread, " writes into ", global.buffer.name);
  if (!global.buffer.writable) return "";
  const uint32_t user = thread + 1;
  const size_t granule = global.buffer.granule;
  for (size_t k = begin / granule; k <= (begin + size - 1) / granule; ++k) {
    Shadow& shadow = global.shadow[k];
    const auto where = [&] { return Cat(" byte ", granule * k, " of ", global.buffer.name); };
    if (write && shadow.writer != 0 && shadow.writer != user)
      return Cat("written twice:", where(), " by ", Threads(thread, shadow.writer - 1));
    const uint32_t other = write ? shadow.reader : shadow.writer;
    if (other != 0 && other != user)
      return Cat("read and written:", where(), " by ",
                 Threads(thread, other == kMany ? kMany : other - 1));
    if (write) {
      shadow.writer = user;
    } else {
      shadow.reader = shadow.reader != 0 && shadow.reader != user ? kMany : user;
    }
  }
  return "";
}

}  // namespace mendel::cuda
