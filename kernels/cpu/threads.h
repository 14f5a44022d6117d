// The one team of threads of a process: libgomp's, which oneDNN uses. Own kernels run on it too, so that no second team
// competes for the cores. (No OpenMP pragmas: the library is called, with atomics that ThreadSanitizer understands.)
#ifndef MENDEL_KERNELS_CPU_THREADS_H_
#define MENDEL_KERNELS_CPU_THREADS_H_

#include <cstdint>
#include <type_traits>

namespace mendel::cpu {

/// Sets the number of threads of oneDNN and ParallelRange calls made by this thread while in scope.
class ThreadScope {
 public:
  explicit ThreadScope(int threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_;
};

namespace internal {
void ParallelRange(int64_t count, int64_t grain, void (*body)(const void*, int64_t, int64_t), const void* context);
}  // namespace internal

/// Calls body(begin, end) for disjoint ranges that cover [0, count), each of at least `grain` but the last; at once from all
/// threads of the scope. No allocation.
template <class Body>
void ParallelRange(int64_t count, int64_t grain, const Body& body) {
  internal::ParallelRange(
      count, grain, [](const void* context, int64_t begin, int64_t end) { (*static_cast<const Body*>(context))(begin, end); },
      &body);
}

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_THREADS_H_
