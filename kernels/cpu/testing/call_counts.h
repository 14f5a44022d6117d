// Counts the calls of this process that a run should not make. A test program with
// call_counts_test.cc has its own malloc and related functions, mmap, pthread_mutex_lock and
// pthread_create. They count and call the C library's.
#ifndef MENDEL_KERNELS_CPU_TESTING_CALL_COUNTS_H_
#define MENDEL_KERNELS_CPU_TESTING_CALL_COUNTS_H_

#include <cstdint>
#include <ostream>

namespace mendel::cpu {

struct CallCounts {
  /// malloc, calloc, realloc, aligned_alloc, posix_memalign; operator new ends in malloc.
  int64_t allocations = 0;
  int64_t frees = 0;
  int64_t mappings = 0;  ///< mmap and munmap, but for the C library's own inside malloc
  int64_t locks = 0;     ///< pthread_mutex_lock
  int64_t threads = 0;   ///< pthread_create
  bool operator==(const CallCounts&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const CallCounts& counts) {
  return out << counts.allocations << " allocations, " << counts.frees << " frees, "
             << counts.mappings << " mappings, " << counts.locks << " locks, " << counts.threads
             << " threads made";
}

/// WatchedCalls counts the calls of all threads of the process while one of them ran something:
/// inside oneDNN's dnnl_primitive_execute, and elsewhere.
struct WatchedCalls {
  CallCounts own;
  CallCounts onednn;
  int64_t primitives = 0;  ///< calls of dnnl_primitive_execute
};

struct CallWatch {
  void (*start)();
  WatchedCalls (*stop)();
};
/// Null in programs without call_counts_test.cc: those of the sanitizers, whose malloc is their
/// own.
inline const CallWatch* call_watch = nullptr;

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_TESTING_CALL_COUNTS_H_
