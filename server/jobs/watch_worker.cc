#include "server/jobs/watch_worker.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

namespace mendel::server {
namespace {

constexpr int kPollMillis = 100;
constexpr int64_t kInspectMicros = 500'000;
constexpr size_t kKeptLog = 32 << 10;
constexpr size_t kLongestLine = 16 << 10;
// More than `mendel` ever writes; lines beyond are ignored.
constexpr int64_t kFirstLines = 200;
constexpr int64_t kLinesPerSecond = 50;

class Watch {
 public:
  Watch(ChildProcess& child, const JobFolder& folder, const WorkerLimitsWatched& limits,
        const WorkerCallbacks& callbacks, const Clock& clock)
      : child_(child),
        folder_(folder),
        limits_(limits),
        callbacks_(callbacks),
        clock_(clock),
        start_(clock.SteadyMicros()),
        inspected_(start_) {}

  WorkerResult Run() {
    std::optional<ExitState> state;
    while (!state.has_value()) {
      Wait();
      state = child_.Poll();
      Drain();
      if (!state.has_value() && !ended_) CheckLimits();
    }
    Drain();
    result_.state = *state;
    if (!ended_) Classify();
    return std::move(result_);
  }

 private:
  void Wait() {
    std::array<pollfd, 4> waiting = {
        pollfd{child_.out().get(), POLLIN, 0}, pollfd{child_.error().get(), POLLIN, 0},
        pollfd{child_.progress().get(), POLLIN, 0}, pollfd{child_.end().get(), POLLIN, 0}};
    // Closed pipes would make poll return at once; negative descriptors are left out.
    ::poll(waiting.data(), waiting.size(), kPollMillis);
  }

  void Drain() {
    Read(child_.out(), [&](std::string_view text) {
      out_bytes_ += static_cast<int64_t>(text.size());
      if (out_bytes_ > limits_.answer_bytes) return End(WorkerEnd::kOutput, "standard output");
      result_.answer += text;
    });
    Read(child_.error(), [&](std::string_view text) {
      log_bytes_ += static_cast<int64_t>(text.size());
      if (log_bytes_ > limits_.log_bytes) return End(WorkerEnd::kOutput, "standard error");
      result_.log += text;
      if (result_.log.size() > kKeptLog) result_.log.erase(0, result_.log.size() - kKeptLog);
    });
    Read(child_.progress(), [&](std::string_view text) { Progress(text); });
  }

  /// Reads a limited number of times, so that a flood cannot keep the watcher from its other
  /// duties.
  template <class Take>
  void Read(Descriptor& pipe, Take&& take) {
    std::array<char, 16384> buffer{};
    for (int reads = 0; reads < 64 && pipe && !ended_; ++reads) {
      const ssize_t count = ::read(pipe.get(), buffer.data(), buffer.size());
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (count <= 0) return pipe.Close();
      take(std::string_view(buffer.data(), static_cast<size_t>(count)));
    }
  }

  void Progress(std::string_view text) {
    progress_bytes_ += static_cast<int64_t>(text.size());
    const int64_t seconds = (clock_.SteadyMicros() - start_) / 1'000'000;
    if (progress_bytes_ > limits_.log_bytes + seconds * limits_.progress_bytes_per_second) {
      return End(WorkerEnd::kOutput, "progress");
    }
    line_ += text;
    size_t begin = 0;
    for (size_t end = line_.find('\n'); end != std::string::npos; end = line_.find('\n', begin)) {
      // Reading a flood line by line would keep the watcher from renewing its lease.
      if (++lines_ <= kFirstLines + seconds * kLinesPerSecond)
        callbacks_.progress(std::string_view(line_).substr(begin, end - begin));
      begin = end + 1;
    }
    line_.erase(0, begin);
    if (line_.size() > kLongestLine) End(WorkerEnd::kOutput, "progress");
  }

  /// Limits and orders.
  void CheckLimits() {
    const int64_t now = clock_.SteadyMicros();
    if (now - start_ > limits_.wall_micros) return End(WorkerEnd::kWallTime, "");
    if (now - inspected_ > kInspectMicros) {
      inspected_ = now;
      const int64_t memory = PrivateBytes(ProcessTree(child_.pid()));
      result_.memory_bytes = std::max(result_.memory_bytes, memory);
      if (memory > limits_.memory_bytes) return End(WorkerEnd::kMemory, "");
      const JobFolder::Usage usage = folder_.Used();
      if (usage.bytes > limits_.output_bytes || usage.files > limits_.files)
        return End(WorkerEnd::kOutput, "files");
    }
    switch (callbacks_.order()) {
      case Order::kGoOn:
        return;
      case Order::kTerminate:
        if (!std::exchange(result_.terminated, true)) child_.Signal(SIGTERM);
        return;
      case Order::kKill:
        return End(WorkerEnd::kStopped, "");
    }
  }

  void End(WorkerEnd end, const char* what) {
    ended_ = true;
    result_.end = end;
    result_.what = what;
    child_.Kill();
  }

  /// It ended by itself. A sandbox passes a signal on as a code above 128.
  void Classify() {
    if (result_.state.signal == 0 && result_.state.code > 128 && result_.state.code != 130) {
      result_.state.signal = result_.state.code - 128;
    }
    const int signal = result_.state.signal;
    const bool out_of_memory = result_.log.find("bad_alloc") != std::string::npos;
    const bool killed = signal == SIGKILL || (signal == SIGTERM && !result_.terminated);
    if (signal == 0) {
      result_.end = WorkerEnd::kExited;
    } else if (signal == SIGXCPU) {
      result_.end = WorkerEnd::kWallTime;
    } else if (signal == SIGXFSZ) {
      result_.end = WorkerEnd::kOutput;
      result_.what = "a file";
    } else {
      result_.end = out_of_memory ? WorkerEnd::kMemory
                    : killed      ? WorkerEnd::kKilled
                                  : WorkerEnd::kCrashed;
    }
  }

  ChildProcess& child_;
  const JobFolder& folder_;
  const WorkerLimitsWatched& limits_;
  const WorkerCallbacks& callbacks_;
  const Clock& clock_;
  const int64_t start_;
  int64_t inspected_;
  int64_t out_bytes_ = 0;
  int64_t log_bytes_ = 0;
  int64_t progress_bytes_ = 0;
  int64_t lines_ = 0;
  std::string line_;
  bool ended_ = false;
  WorkerResult result_;
};

}  // namespace

WorkerResult WatchWorker(ChildProcess& child, const JobFolder& folder,
                         const WorkerLimitsWatched& limits, const WorkerCallbacks& callbacks,
                         const Clock& clock) {
  return Watch(child, folder, limits, callbacks, clock).Run();
}

}  // namespace mendel::server
