// Wakes those who wait for a change of the store.
#ifndef MENDEL_SERVER_STORE_CHANGE_SIGNAL_H_
#define MENDEL_SERVER_STORE_CHANGE_SIGNAL_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace mendel::server {

/// A number that grows with every change. Thread-safe.
class ChangeSignal {
 public:
  /// `poll` reports whether something outside this process changed; one of the waiting threads
  /// calls it every 200 milliseconds.
  explicit ChangeSignal(std::function<bool()> poll) : poll_(std::move(poll)) {}

  void Notify();
  /// JobStore::WaitForChange.
  uint64_t Wait(uint64_t seen, int64_t timeout_micros);

 private:
  std::function<bool()> poll_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t number_ = 1;
  bool polling_ = false;
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_CHANGE_SIGNAL_H_
