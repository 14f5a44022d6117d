// Guarded memory for tests: a forbidden page lies before its start or behind its end. A read or
// write outside ends the process, even one by vectorized or foreign code that no sanitizer sees.
#ifndef MENDEL_KERNELS_CPU_TESTING_GUARDED_H_
#define MENDEL_KERNELS_CPU_TESTING_GUARDED_H_

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <utility>

#include "base/random.h"
#include "gtest/gtest.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace mendel::cpu {

/// Guard says which end of the memory lies next to a forbidden page. kCrooked leaves one element
/// between the end and the page, so that data that kEnd aligns to vectors starts one element off.
/// The unused rest of the first and the last page may not change.
enum class Guard : uint8_t { kEnd, kCrooked, kBegin };
inline constexpr Guard kGuards[] = {Guard::kEnd, Guard::kCrooked, Guard::kBegin};
inline Guard RandomGuard(Rng& rng) { return kGuards[rng.Below(3)]; }

/// `count` zeros of type T. Pages take memory when they are first written. The destructor reports a
/// failed expectation when the bytes around them have changed. `alignment` is a power of two, at
/// most a page. Fewer bytes than this may lie between the end and the forbidden page.
template <class T>
class Guarded {
 public:
  Guarded() = default;
  Guarded(int64_t count, Guard guard, int64_t alignment = sizeof(T))
      : size_(static_cast<size_t>(count)), page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    const size_t bytes = size_ * sizeof(T), align = static_cast<size_t>(alignment);
    mapped_ = (bytes + sizeof(T) + align + page_ - 1) / page_ * page_ + 2 * page_;
    void* memory =
        mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    map_ = static_cast<std::byte*>(memory);
    if (mprotect(map_ + page_, mapped_ - 2 * page_, PROT_READ | PROT_WRITE) != 0)
      throw std::bad_alloc();
    madvise(map_, mapped_,
            MADV_NOHUGEPAGE);  // a tensor with huge strides touches a page here and there
    const size_t slack = guard == Guard::kCrooked ? sizeof(T) : 0;
    const size_t at =
        guard == Guard::kBegin ? page_ : (mapped_ - page_ - bytes - slack) / align * align;
    data_ = reinterpret_cast<T*>(map_ + at);
    for (const std::span<std::byte>& around : Around()) {
      std::fill(around.begin(), around.end(), kUntouched);
#if defined(__SANITIZE_ADDRESS__)
      __asan_poison_memory_region(around.data(), around.size());
#endif
    }
  }
  Guarded(Guarded&& other) noexcept { Swap(other); }
  Guarded& operator=(Guarded&& other) noexcept {
    Swap(other);
    return *this;
  }
  ~Guarded() {
    if (map_ == nullptr) return;
    for (const std::span<std::byte>& around : Around()) {
#if defined(__SANITIZE_ADDRESS__)
      __asan_unpoison_memory_region(around.data(), around.size());
#endif
      EXPECT_EQ(std::count(around.begin(), around.end(), kUntouched),
                static_cast<int64_t>(around.size()))
          << "written outside of " << size_ << " elements of " << sizeof(T) << " bytes";
    }
    munmap(map_, mapped_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }

 private:
  static constexpr std::byte kUntouched{0xa5};

  /// Returns the accessible bytes before and behind the data. They must keep their value.
  std::array<std::span<std::byte>, 2> Around() const {
    std::byte* begin = reinterpret_cast<std::byte*>(data_);
    std::byte* end = reinterpret_cast<std::byte*>(data_ + size_);
    return {std::span(map_ + page_, begin), std::span(end, map_ + mapped_ - page_)};
  }
  void Swap(Guarded& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(map_, other.map_);
    std::swap(mapped_, other.mapped_);
    std::swap(page_, other.page_);
  }

  T* data_ = nullptr;
  size_t size_ = 0;
  std::byte* map_ = nullptr;
  size_t mapped_ = 0;
  size_t page_ = 0;
};

using GuardedFloats = Guarded<float>;

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_TESTING_GUARDED_H_
