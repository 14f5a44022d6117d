// Threads of a block as fibers: stacks that one operating system thread switches between.
#ifndef MENDEL_KERNELS_CUDA_TESTING_EMULATOR_FIBER_H_
#define MENDEL_KERNELS_CUDA_TESTING_EMULATOR_FIBER_H_

#include <cstddef>
#include <cstdint>

namespace mendel::cuda {

/// One fiber. Belongs to the thread that starts it. Restartable: Start may follow Start, whatever
/// the fiber was doing; objects on its stack are then dropped without destructors.
class Fiber {
 public:
  using Entry = void (*)(void* argument);

  /// `stack_bytes` of memory, taken from the operating system and touched only as far as they are
  /// used.
  explicit Fiber(size_t stack_bytes);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// The next Resume calls entry(argument), which must not return: its last act is Yield.
  void Start(Entry entry, void* argument);
  /// Runs the fiber until it yields.
  void Resume();
  /// From inside: back to the Resume that runs it.
  void Yield();

  uintptr_t stack_low() const { return reinterpret_cast<uintptr_t>(stack_); }
  size_t stack_bytes() const { return stack_bytes_; }

 private:
  struct Machine;  // registers of both sides
  std::byte* stack_;
  size_t stack_bytes_;
  Machine* machine_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_EMULATOR_FIBER_H_
