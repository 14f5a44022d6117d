#include "kernels/cpu/threads.h"

#include <algorithm>
#include <atomic>

// libgomp's own interface, as compilers call it.
extern "C" {
int omp_get_max_threads(void);
int omp_get_thread_num(void);
int omp_get_num_threads(void);
void omp_set_num_threads(int threads);
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
}

namespace mendel::cpu {
namespace {

struct Job {
  int64_t count;
  int64_t grain;
  void (*body)(const void*, int64_t, int64_t);
  const void* context;
  // Order the caller's writes before the workers' reads and theirs before the caller's: libgomp does, but invisibly.
  std::atomic<int> started{0};
  std::atomic<int> finished{0};
};

void RunShare(void* data) {
  Job& job = *static_cast<Job*>(data);
  job.started.load(std::memory_order_acquire);
  const int64_t threads = omp_get_num_threads();
  const int64_t me = omp_get_thread_num();
  const int64_t grains = (job.count + job.grain - 1) / job.grain;
  const int64_t begin = std::min(job.count, grains * me / threads * job.grain);
  const int64_t end = std::min(job.count, grains * (me + 1) / threads * job.grain);
  if (begin < end) job.body(job.context, begin, end);
  job.finished.fetch_add(1, std::memory_order_release);
}

}  // namespace

ThreadScope::ThreadScope(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(std::max(1, threads)); }
ThreadScope::~ThreadScope() { omp_set_num_threads(before_); }

void internal::ParallelRange(int64_t count, int64_t grain, void (*body)(const void*, int64_t, int64_t), const void* context) {
  const int64_t grains = (count + grain - 1) / grain;
  const int64_t threads = std::min<int64_t>(omp_get_max_threads(), grains);
  if (threads <= 1) {
    if (count > 0) body(context, 0, count);
    return;
  }
  Job job{count, grain, body, context, {}, {}};
  job.started.store(1, std::memory_order_release);
  GOMP_parallel(&RunShare, &job, static_cast<unsigned>(threads), 0);
  job.finished.load(std::memory_order_acquire);
}

}  // namespace mendel::cpu
