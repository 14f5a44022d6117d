// Packed weights of a program, written when all of them are known: by all threads, each packing what it takes next.
//
// One layer's weights seldom divide evenly among threads, and a library's conversion may start its team thousands of times for
// them; whole layers side by side keep all threads busy and start it once.
#ifndef MENDEL_KERNELS_CPU_DEFERRED_CONSTANTS_H_
#define MENDEL_KERNELS_CPU_DEFERRED_CONSTANTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cpu/program.h"

namespace mendel::cpu {

/// Whether a constant may be packed by the whole team. Large ones are, if they can be: alone they would keep one thread busy last.
enum class Divides { kYes, kNo };

/// Not thread-safe.
class DeferredConstants {
 public:
  /// Writes all bytes of a constant; it may throw dnnl::error. Called once, by any thread: what it refers to is its own or lives
  /// until FillAll has returned.
  using Fill = std::function<void(std::byte*)>;

  /// `buffer`: number of the program's buffer, which has no address until FillAll.
  void Add(int buffer, std::shared_ptr<std::byte> memory, int64_t bytes, Divides divides, Fill fill);
  /// In the ThreadScope of the plan. Gives the buffers their bytes, those of an equal constant of the process where there is one.
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

#endif  // MENDEL_KERNELS_CPU_DEFERRED_CONSTANTS_H_
