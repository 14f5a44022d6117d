// Data parallelism for the reference evaluator and the verifier (fast kernels have their own pool).
#ifndef MENDEL_BASE_PARALLEL_H_
#define MENDEL_BASE_PARALLEL_H_

#include <cstdint>
#include <functional>

namespace mendel {

/// Threads that ParallelFor uses, the caller included. Process-wide; at least 1. The default is the
/// number of CPUs that the process may run on.
void SetParallelism(int threads);
int Parallelism();

/// Calls body(i) once for every i in [0, count), on several threads, and returns when all have
/// finished. The result must not depend on the order. Calls made inside a body run inline.
/// Thread-safe.
void ParallelFor(int64_t count, const std::function<void(int64_t)>& body);

/// Calls body(i) once for every i in [0, count) and returns when all have finished.
using ParallelRunner = void (*)(int64_t count, const std::function<void(int64_t)>& body);

/// While in scope, ParallelFor calls of this thread go to `runner`: to a team of threads that is
/// there already and would compete for the CPUs with threads started beside it.
class ParallelRunnerScope {
 public:
  explicit ParallelRunnerScope(ParallelRunner runner);
  ~ParallelRunnerScope();
  ParallelRunnerScope(const ParallelRunnerScope&) = delete;
  ParallelRunnerScope& operator=(const ParallelRunnerScope&) = delete;

 private:
  ParallelRunner before_;
};

/// Calls body(begin, end) for disjoint ranges of `grain` or fewer items that cover [0, count), as
/// ParallelFor does.
void ParallelChunks(int64_t count, int64_t grain,
                    const std::function<void(int64_t, int64_t)>& body);

}  // namespace mendel

#endif  // MENDEL_BASE_PARALLEL_H_
