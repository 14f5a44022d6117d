// Threads that run what may block (stores, disks), so that gRPC's own few threads never do.
#ifndef MENDEL_SERVER_RPC_THREAD_POOL_H_
#define MENDEL_SERVER_RPC_THREAD_POOL_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace mendel::server {

/// Thread-safe. The destructor runs what is queued, then joins.
class ThreadPool {
 public:
  ThreadPool(int threads, size_t max_queued);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// False when `max_queued` tasks wait already.
  bool TryPost(std::function<void()> task);
  /// Queues the task without a limit. For steps of streams, whose number is limited elsewhere.
  void Post(std::function<void()> task);

 private:
  void Run();

  const size_t max_queued_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_THREAD_POOL_H_
