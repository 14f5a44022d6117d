// A compiled graph as data: buffers and kernel calls in order.
#ifndef MENDEL_KERNELS_CPU_PROGRAM_H_
#define MENDEL_KERNELS_CPU_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/cpu/kernels/kernel.h"
#include "runtime/backend.h"

namespace mendel::cpu {

/// Zero-initialized memory on 64-byte boundaries; large blocks request huge pages.
class AlignedBytes {
 public:
  explicit AlignedBytes(int64_t bytes);
  ~AlignedBytes();
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
  std::byte* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  std::byte* data_;
  int64_t size_;
  int64_t mapped_ = 0;
};

enum class BufferKind { kArena, kConstant, kInput, kOutput };

struct Buffer {
  BufferKind kind = BufferKind::kArena;
  int64_t bytes = 0;
  size_t external = 0;                  ///< number of the graph input or output
  const std::byte* constant = nullptr;  ///< kConstant
  std::shared_ptr<const void> owner;    ///< keeps `constant` alive
  bool packed = false;                  ///< the constant is a copy of ours
};

/// Buffers that a step reads and writes. Two such steps write no byte in common.
struct Accesses {
  std::vector<int> reads;
  std::vector<int> writes;
};

/// A part of a program that is only needed where a byte, computed before, is set or not set.
struct Branch {
  int condition = -1;  ///< buffer
  int64_t offset = 0;  ///< of the byte in it
  bool wanted = true;
  int parent = -1;  ///< number of the branch that this one is a part of; -1: none
};

struct ProgramStep {
  Step info;
  std::unique_ptr<Kernel> kernel;
  std::vector<int> buffers;  ///< all that it reads or writes
  /// Set where the step may run in one thread beside another such step.
  std::optional<Accesses> beside;
  int64_t scratch = 0;  ///< bytes of scratch memory it wants
  /// (output, input): the output buffer may be the input's when nothing needs the input afterwards.
  std::optional<std::pair<int, int>> in_place;
  /// Each of its elements depends on an element of each operand alone, and a Where among its nodes
  /// drops the element that it does not choose, whatever bits that has.
  bool elementwise = false;
  int branch = -1;  ///< number of the branch that needs it; -1: it is always needed
};

struct Program {
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;
  std::vector<Buffer> buffers;
  std::vector<ProgramStep> steps;
  std::vector<Branch> branches;
  int threads = 1;
  std::vector<int> cpus;  ///< cpus of each thread; empty: where the system puts them
};

/// Plans memory (in-place merging included), allocates it and prepares the kernels.
absl::StatusOr<std::unique_ptr<Executable>> MakeExecutable(Program program);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_PROGRAM_H_
