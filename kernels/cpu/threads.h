// A thread team is the one team of a calling thread: libgomp's, which oneDNN uses. Native kernels
// run on it too, so that no second team competes for the cores. (There are no OpenMP pragmas: the
// library is called, with atomics that ThreadSanitizer understands.)
//
// libgomp keeps a team for each outermost calling thread, so that plans run by several threads side
// by side have separate teams. It ends threads when a smaller team is needed and makes new ones for
// the next larger one; a scope therefore has one size. libgomp decides how long idle members spin
// before they sleep (docs/cpu.md).
#ifndef MENDEL_KERNELS_CPU_THREADS_H_
#define MENDEL_KERNELS_CPU_THREADS_H_

#include <cstdint>
#include <span>
#include <type_traits>

#include "absl/status/status.h"
#include "base/parallel.h"

namespace mendel::cpu {

/// Sets the number of threads of oneDNN, ParallelRange and ParallelTasks calls made by this thread
/// while in scope, and has its ParallelFor calls (base/parallel.h: definitions, and weights folded
/// by them) run on the same team.
class ThreadScope {
 public:
  explicit ThreadScope(int threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_;
  ParallelRunnerScope runner_;
};

/// Threads that a ParallelRange called here runs on: the scope's, one inside a call of the team.
int TeamThreads();

/// Pins the team while in scope: member k runs on CPU cpus[k] only, this thread being member 0.
/// Afterwards each member has its earlier mask. Not nested; inside a ThreadScope of cpus.size()
/// threads. Nothing is done when `cpus` is empty. No allocation.
class PinScope {
 public:
  explicit PinScope(std::span<const int> cpus);
  ~PinScope();
  PinScope(const PinScope&) = delete;
  PinScope& operator=(const PinScope&) = delete;
  /// Internal, with the system's reason, when a member could not be pinned (its CPU went offline,
  /// say).
  const absl::Status& status() const { return status_; }

 private:
  std::span<const int> cpus_;
  absl::Status status_;
};

namespace internal {
void ParallelRange(int64_t count, int64_t grain, void (*body)(const void*, int64_t, int64_t),
                   const void* context);
void ParallelTasks(int64_t count, void (*body)(const void*, int64_t), const void* context);
}  // namespace internal

/// Calls body(begin, end) for disjoint ranges that cover [0, count), each of at least `grain` but
/// the last. All threads of the scope call at once, or as many as there are grains. Inside a call
/// of the team, the caller does all of it. No allocation, no lock.
template <class Body>
void ParallelRange(int64_t count, int64_t grain, const Body& body) {
  internal::ParallelRange(
      count, grain,
      [](const void* context, int64_t begin, int64_t end) {
        (*static_cast<const Body*>(context))(begin, end);
      },
      &body);
}

/// Calls body(number) once for each of [0, count) from all threads of the scope. Each thread takes
/// the next number when it has finished one. It suits few calls of unequal length, when a plan is
/// loaded. The bodies throw nothing.
template <class Body>
void ParallelTasks(int64_t count, const Body& body) {
  internal::ParallelTasks(
      count,
      [](const void* context, int64_t number) { (*static_cast<const Body*>(context))(number); },
      &body);
}

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_THREADS_H_
