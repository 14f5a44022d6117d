// Wakes calls that wait for something to happen to a job: watchers and WaitOperation.
#ifndef MENDEL_SERVER_RPC_CHANGE_HUB_H_
#define MENDEL_SERVER_RPC_CHANGE_HUB_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "server/clock.h"
#include "server/rpc/thread_pool.h"
#include "server/store/job_store.h"

namespace mendel::server {

/// One thread queries the store for changes and pokes all who registered: at each change, at least
/// every second, once at the given time, and when the server begins to drain. Thread-safe.
class ChangeHub {
 public:
  ChangeHub(JobStore& jobs, const Clock& clock);
  ~ChangeHub();
  ChangeHub(const ChangeHub&) = delete;
  ChangeHub& operator=(const ChangeHub&) = delete;

  uint64_t NewId() { return ++last_id_; }
  /// `poke` runs on the hub's thread and under its lock: it must be quick and not call the hub.
  /// `due_micros`: SteadyMicros of an extra poke; 0: none.
  void Add(uint64_t id, std::function<void()> poke, int64_t due_micros = 0);
  /// Removes a poke. It does not run any more once Remove has returned.
  void Remove(uint64_t id);
  /// Pokes everybody now.
  void PokeAll();
  int64_t size() const;

 private:
  struct Entry {
    std::function<void()> poke;
    int64_t due_micros = 0;
  };
  void Run();
  void Poke(bool all, int64_t now_micros);

  JobStore& jobs_;
  const Clock& clock_;
  std::atomic<uint64_t> last_id_ = 0;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;
  std::map<uint64_t, Entry> entries_;
  std::thread thread_;
};

/// Runs one call's steps on the pool, never two at a time, whenever the hub pokes it.
class Stepper {
 public:
  enum class Next {
    kIdle,  ///< wait for a poke
    kBusy,  ///< something asynchronous is under way; Resume() reports its end
    kDone,  ///< the call has been finished; the step called Close() before that, and the stepper
            ///< may be gone already
  };
  Stepper(ChangeHub& hub, ThreadPool& pool, std::function<Next()> step);
  /// Registers at the hub and takes the first step.
  void Start(int64_t due_micros = 0);
  void Poke();
  void Resume();
  /// From within a step: no more pokes.
  void Close();

 private:
  void Run();

  ChangeHub& hub_;
  ThreadPool& pool_;
  const std::function<Next()> step_;
  const uint64_t id_;
  std::mutex mutex_;
  bool busy_ = false;
  bool poked_ = false;
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_CHANGE_HUB_H_
