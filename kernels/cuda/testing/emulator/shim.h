// The shim lets a host compiler take emitted CUDA text unchanged. It is force-included before the
// text (-include shim.h).
//
// Threads are fibers of one operating system thread (launch.h), barriers yield, shared memory is
// one array. The text is compiled with the instrumentation of ThreadSanitizer but without its
// library: the functions below receive every load and store, which the emulator checks for bounds,
// alignment and races. They must not be instrumented themselves.
#ifndef MENDEL_KERNELS_CUDA_TESTING_EMULATOR_SHIM_H_
#define MENDEL_KERNELS_CUDA_TESTING_EMULATOR_SHIM_H_

#define __global__
#define __device__
#define __constant__
#define __shared__
#define __align__(n) __attribute__((aligned(n)))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#ifdef __clang__
#define MENDEL_UNSEEN __attribute__((disable_sanitizer_instrumentation))
#else
#define MENDEL_UNSEEN __attribute__((no_sanitize("thread")))
#endif

struct mendel_dim3 {
  unsigned x, y, z;
};

/// Shared between the compiled text and the emulator, which fills it in: keep in step with
/// launch.cc.
struct mendel_emulator_state {
  mendel_dim3 thread, block, block_dim, grid_dim;
  unsigned long stack_low, stack_bytes;  ///< of the running fiber
  void (*barrier)(int line);
  /// `aligned`: the type promises natural alignment.
  void (*access)(unsigned long address, unsigned long size, bool write, bool aligned);
  void (*keep)(unsigned long address);
  /// Copies `mine` of all 32 threads of the warp, `size` bytes each, to `all`. The whole warp must
  /// call it. It orders no memory.
  void (*exchange)(const void* mine, unsigned long size, void* all);
  /// Copies `size` bytes, or zeros if they are not `there`, to shared memory; not before `await`.
  void (*copy)(unsigned long to, unsigned long from, unsigned long size, bool there);
  void (*await)();
};

extern "C" {
__attribute__((visibility("default"))) mendel_emulator_state mendel_emulator;
/// The array has the size that an H100 gives to a block.
__attribute__((visibility("default"), aligned(128))) unsigned char mendel_shared[227 * 1024];

#define MENDEL_MATH(name) \
  float name##f(float);   \
  double name(double);
MENDEL_MATH(acos)
MENDEL_MATH(acosh)
MENDEL_MATH(asin)
MENDEL_MATH(asinh)
MENDEL_MATH(atan)
MENDEL_MATH(atanh)
MENDEL_MATH(ceil)
MENDEL_MATH(cos)
MENDEL_MATH(cosh)
MENDEL_MATH(erf)
MENDEL_MATH(erfc)
MENDEL_MATH(exp)
MENDEL_MATH(expm1)
MENDEL_MATH(fabs)
MENDEL_MATH(floor)
MENDEL_MATH(log)
MENDEL_MATH(log1p)
MENDEL_MATH(rint)
MENDEL_MATH(sin)
MENDEL_MATH(sinh)
MENDEL_MATH(sqrt)
MENDEL_MATH(tan)
MENDEL_MATH(tanh)
#undef MENDEL_MATH
float powf(float, float);
double pow(double, double);
float fmodf(float, float);
double fmod(double, double);

#define MENDEL_SEEN(name, size, write, aligned)                                  \
  __attribute__((visibility("hidden"))) MENDEL_UNSEEN void name(void* address) { \
    const unsigned long at = reinterpret_cast<unsigned long>(address);           \
    if (at - mendel_emulator.stack_low < mendel_emulator.stack_bytes) return;    \
    mendel_emulator.access(at, size, write, aligned);                            \
  }
MENDEL_SEEN(__tsan_read1, 1, false, true)
MENDEL_SEEN(__tsan_read2, 2, false, true)
MENDEL_SEEN(__tsan_read4, 4, false, true)
MENDEL_SEEN(__tsan_read8, 8, false, true)
MENDEL_SEEN(__tsan_read16, 16, false, true)
MENDEL_SEEN(__tsan_write1, 1, true, true)
MENDEL_SEEN(__tsan_write2, 2, true, true)
MENDEL_SEEN(__tsan_write4, 4, true, true)
MENDEL_SEEN(__tsan_write8, 8, true, true)
MENDEL_SEEN(__tsan_write16, 16, true, true)
MENDEL_SEEN(__tsan_unaligned_read2, 2, false, false)
MENDEL_SEEN(__tsan_unaligned_read4, 4, false, false)
MENDEL_SEEN(__tsan_unaligned_read8, 8, false, false)
MENDEL_SEEN(__tsan_unaligned_read16, 16, false, false)
MENDEL_SEEN(__tsan_unaligned_write2, 2, true, false)
MENDEL_SEEN(__tsan_unaligned_write4, 4, true, false)
MENDEL_SEEN(__tsan_unaligned_write8, 8, true, false)
MENDEL_SEEN(__tsan_unaligned_write16, 16, true, false)
#undef MENDEL_SEEN

#define MENDEL_SEEN_RANGE(name, write)                                                \
  __attribute__((visibility("hidden"))) MENDEL_UNSEEN void name(void* address,        \
                                                                unsigned long size) { \
    const unsigned long at = reinterpret_cast<unsigned long>(address);                \
    if (at - mendel_emulator.stack_low < mendel_emulator.stack_bytes) return;         \
    mendel_emulator.access(at, size, write, false);                                   \
  }
MENDEL_SEEN_RANGE(__tsan_read_range, false)
MENDEL_SEEN_RANGE(__tsan_write_range, true)
#undef MENDEL_SEEN_RANGE

// clang copies objects by these functions, without a report to the instrumentation. The pointers
// are volatile, so that the loops are not compiled to calls of themselves.
__attribute__((visibility("hidden"))) MENDEL_UNSEEN void* memmove(void* to, const void* from,
                                                                  unsigned long size) {
  __tsan_read_range(const_cast<void*>(from), size);
  __tsan_write_range(to, size);
  volatile char* out = static_cast<char*>(to);
  const volatile char* in = static_cast<const char*>(from);
  if (out <= in) {
    for (unsigned long k = 0; k < size; ++k) out[k] = in[k];
  } else {
    while (size-- > 0) out[size] = in[size];
  }
  return to;
}
__attribute__((visibility("hidden"))) MENDEL_UNSEEN void* memcpy(void* to, const void* from,
                                                                 unsigned long size) {
  return memmove(to, from, size);
}

__attribute__((visibility("hidden"))) MENDEL_UNSEEN void __tsan_init() {}
__attribute__((visibility("hidden"))) MENDEL_UNSEEN void __tsan_func_entry(void*) {}
__attribute__((visibility("hidden"))) MENDEL_UNSEEN void __tsan_func_exit(void*) {}
}

#define threadIdx mendel_emulator.thread
#define blockIdx mendel_emulator.block
#define blockDim mendel_emulator.block_dim
#define gridDim mendel_emulator.grid_dim
#define MENDEL_KEPT(memory) mendel_emulator.keep(reinterpret_cast<unsigned long>(memory))
#define __syncthreads() mendel_emulator.barrier(__LINE__)

MENDEL_UNSEEN inline float __uint_as_float(unsigned bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
MENDEL_UNSEEN inline unsigned __float_as_uint(float value) {
  unsigned bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
MENDEL_UNSEEN inline double __longlong_as_double(long long bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/// The value of the thread of the warp whose number differs in these bits; the own one where there
/// is no such thread.
template <class T>
MENDEL_UNSEEN T __shfl_xor_sync(unsigned /*mask*/, T value, int bits) {
  T all[32];
  mendel_emulator.exchange(&value, sizeof value, all);
  const int other = (static_cast<int>(mendel_emulator.thread.x) % 32) ^ bits;
  return other < 32 ? all[other] : value;
}

namespace mendel_shim {

/// Parameter k. Not inlined: clang would instrument it as a part of its caller, and the memory of
/// parameters is no buffer.
template <class T>
__attribute__((noinline)) MENDEL_UNSEEN T* Parameter(void** arguments, int k) {
  return *static_cast<T**>(arguments[k]);
}
/// Number of a kernel's parameters.
template <class... T>
constexpr int Arity(void (*)(T*...)) {
  return sizeof...(T);
}
/// Calls a kernel with arguments as cuLaunchKernel takes them: the addresses of the parameters, all
/// of which are pointers. Instrumented like the kernel, which may be inlined here.
template <class... T>
void Call(void (*kernel)(T*...), void** arguments) {
  // Braces evaluate from left to right.
  struct Caller {
    Caller(void (*kernel)(T*...), T*... pointers) { kernel(pointers...); }
  };
  int next = 0;
  Caller{kernel, Parameter<T>(arguments, next++)...};
}

}  // namespace mendel_shim

#include "async_copies.h"
#include "tensor_cores.h"

#endif  // MENDEL_KERNELS_CUDA_TESTING_EMULATOR_SHIM_H_
