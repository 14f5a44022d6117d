#include "base/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace mendel {
namespace {

int AvailableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

std::atomic<int>& ThreadCount() {
  static std::atomic<int> count{AvailableCpus()};
  return count;
}

thread_local bool inside_parallel_for = false;
thread_local ParallelRunner parallel_runner = nullptr;

/// While an object lives, this thread runs a body of ParallelFor.
class InsideScope {
 public:
  InsideScope() { inside_parallel_for = true; }
  ~InsideScope() { inside_parallel_for = false; }
  InsideScope(const InsideScope&) = delete;
  InsideScope& operator=(const InsideScope&) = delete;
};

}  // namespace

void SetParallelism(int threads) { ThreadCount() = std::max(1, threads); }

int Parallelism() { return ThreadCount(); }

ParallelRunnerScope::ParallelRunnerScope(ParallelRunner runner) : before_(parallel_runner) {
  parallel_runner = runner;
}
ParallelRunnerScope::~ParallelRunnerScope() { parallel_runner = before_; }

void ParallelFor(int64_t count, const std::function<void(int64_t)>& body) {
  const int64_t threads = std::min<int64_t>(Parallelism(), count);
  if (threads <= 1 || inside_parallel_for) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  if (parallel_runner != nullptr) {
    parallel_runner(count, [&](int64_t i) {
      const InsideScope inside;
      body(i);
    });
    return;
  }
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    const InsideScope inside;
    for (int64_t i = next++; i < count; i = next++) body(i);
  };
  // Threads are started per call: bodies here run for milliseconds, a start costs tens of
  // microseconds.
  std::vector<std::thread> helpers;
  for (int64_t t = 1; t < threads; ++t) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
}

void ParallelChunks(int64_t count, int64_t grain,
                    const std::function<void(int64_t, int64_t)>& body) {
  ParallelFor((count + grain - 1) / grain,
              [&](int64_t chunk) { body(chunk * grain, std::min(count, (chunk + 1) * grain)); });
}

}  // namespace mendel
