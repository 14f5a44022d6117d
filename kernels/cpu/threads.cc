#include "kernels/cpu/threads.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>

#include "base/status.h"

// libgomp's own interface, as compilers call it.
extern "C" {
int omp_get_max_threads(void);
int omp_in_parallel(void);
int omp_get_thread_num(void);
int omp_get_num_threads(void);
void omp_set_num_threads(int threads);
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
}

namespace mendel::cpu {
namespace {

/// One call of all members of the team. libgomp orders the caller's writes before the members'
/// reads, and theirs before the caller's. ThreadSanitizer does not see that order.
class TeamCall {
 public:
  template <class Job>
  static void Run(Job& job) {
    const int threads = omp_get_max_threads();
    if (threads == 1 ||
        omp_in_parallel() != 0) {  // no team is made, and none that is there is ended
      job.Member(0, 1);
      return;
    }
    job.call.started_.store(1, std::memory_order_release);
    GOMP_parallel(
        [](void* data) {
          Job& mine = *static_cast<Job*>(data);
          mine.call.started_.load(std::memory_order_acquire);
          mine.Member(omp_get_thread_num(), omp_get_num_threads());
          mine.call.finished_.fetch_add(1, std::memory_order_release);
        },
        &job, static_cast<unsigned>(threads), 0);
    job.call.finished_.load(std::memory_order_acquire);
  }

 private:
  std::atomic<int> started_{0};
  std::atomic<int> finished_{0};
};

struct RangeJob {
  int64_t count;
  int64_t grain;
  void (*body)(const void*, int64_t, int64_t);
  const void* context;
  TeamCall call = {};

  /// The team is always whole: members beyond the grains have nothing to do.
  void Member(int64_t me, int64_t threads) const {
    const int64_t grains = (count + grain - 1) / grain;
    const int64_t sharers = std::min(threads, grains);
    if (me >= sharers) return;
    const int64_t begin = std::min(count, grains * me / sharers * grain);
    const int64_t end = std::min(count, grains * (me + 1) / sharers * grain);
    if (begin < end) body(context, begin, end);
  }
};

struct TaskJob {
  int64_t count;
  void (*body)(const void*, int64_t);
  const void* context;
  std::atomic<int64_t> next{0};
  TeamCall call = {};

  void Member(int64_t, int64_t) {
    for (int64_t number = next++; number < count; number = next++) body(context, number);
  }
};

/// A pinned thread's own mask.
struct OwnMask {
  bool kept = false;
  cpu_set_t mask;
};
thread_local OwnMask own_mask;

struct PinJob {
  std::span<const int> cpus;
  std::atomic<int> error{0};
  TeamCall call = {};

  void Member(size_t me, int) {
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET(static_cast<size_t>(cpus[me]), &cpu);
    own_mask.kept = sched_getaffinity(0, sizeof(own_mask.mask), &own_mask.mask) == 0;
    if (!own_mask.kept || sched_setaffinity(0, sizeof(cpu), &cpu) != 0)
      error.store(errno, std::memory_order_relaxed);
  }
};

struct UnpinJob {
  cpu_set_t
      callers;  ///< for a thread that was made by its pinned caller, which it took the mask of
  TeamCall call = {};

  void Member(int, int) const {
    const cpu_set_t& mask = own_mask.kept ? own_mask.mask : callers;
    sched_setaffinity(0, sizeof(mask), &mask);
    own_mask.kept = false;
  }
};

void RunOnTeam(int64_t count, const std::function<void(int64_t)>& body) {
  ParallelTasks(count, body);
}

}  // namespace

int TeamThreads() { return omp_in_parallel() != 0 ? 1 : omp_get_max_threads(); }

ThreadScope::ThreadScope(int threads) : before_(omp_get_max_threads()), runner_(&RunOnTeam) {
  omp_set_num_threads(std::max(1, threads));
}
ThreadScope::~ThreadScope() { omp_set_num_threads(before_); }

PinScope::PinScope(std::span<const int> cpus) : cpus_(cpus) {
  if (cpus_.empty()) return;
  PinJob job{.cpus = cpus_};
  TeamCall::Run(job);
  if (job.error != 0)
    status_ = InternalError("a thread cannot be put on its CPU: ", std::strerror(job.error));
}

PinScope::~PinScope() {
  if (cpus_.empty() || !own_mask.kept) return;
  UnpinJob job{.callers = own_mask.mask};
  TeamCall::Run(job);
}

void internal::ParallelRange(int64_t count, int64_t grain,
                             void (*body)(const void*, int64_t, int64_t), const void* context) {
  if (count <= 0) return;
  if (count <= grain) {
    body(context, 0, count);
    return;
  }
  RangeJob job{count, grain, body, context};
  TeamCall::Run(job);
}

void internal::ParallelTasks(int64_t count, void (*body)(const void*, int64_t),
                             const void* context) {
  TaskJob job{.count = count, .body = body, .context = context};
  if (count > 1) {
    TeamCall::Run(job);
  } else {
    job.Member(0, 1);
  }
}

}  // namespace mendel::cpu
