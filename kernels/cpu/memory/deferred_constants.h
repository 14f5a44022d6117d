// Deferred constants are packed weights of a program. They are written when all of them are known:
// every thread packs the next one that is left.
//
// One layer's weights seldom divide evenly among threads, and a library's conversion may start its
// team thousands of times for them. Whole layers side by side keep all threads busy and start the
// team once.
#ifndef MENDEL_KERNELS_CPU_MEMORY_DEFERRED_CONSTANTS_H_
#define MENDEL_KERNELS_CPU_MEMORY_DEFERRED_CONSTANTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cpu/program.h"

namespace mendel::cpu {

/// Divides says whether the whole team may pack one constant. Large constants are divided if they
/// can be: alone they would keep one thread busy last.
enum class Divides { kYes, kNo };

/// DeferredConstants fills buffers of weights when all of them are known. Not thread-safe.
class DeferredConstants {
 public:
  /// Writes all bytes of a constant; it may throw dnnl::error. Any thread calls it once. It owns
  /// the data that it refers to, or that data lives until FillAll has returned.
  using Fill = std::function<void(std::byte*)>;

  /// `buffer`: number of the program's buffer, which has no address until FillAll.
  void Add(int buffer, std::shared_ptr<std::byte> memory, int64_t bytes, Divides divides,
           Fill fill);
  /// Fills the buffers in the ThreadScope of the plan. A buffer shares the bytes of an equal
  /// constant of the process where there is one.
  absl::Status FillAll(std::vector<Buffer>& buffers);

 private:
  struct Constant {
    int buffer;
    std::shared_ptr<std::byte> memory;
    int64_t bytes;
    Divides divides;
    Fill fill;
    absl::Status status;
  };
  std::vector<Constant> constants_;
};

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_MEMORY_DEFERRED_CONSTANTS_H_
