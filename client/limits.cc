#include "client/limits.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <utility>

#include "base/status.h"

namespace mendel {
namespace {

using Clock = std::chrono::steady_clock;

/// The work ends by itself a little before it is stopped.
constexpr double kGrace = 1;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitsMemory = false;  // their shadow memory would count
#else
constexpr bool kLimitsMemory = true;
#endif

double Now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

/// Set while memory is limited; handlers of the process read it.
std::atomic<const StoppedAnswer*> out_of_memory = nullptr;
std::atomic_flag stopping = ATOMIC_FLAG_INIT;

void WriteAll(int descriptor, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = write(descriptor, text.data() + done, text.size() - done);
    if (written <= 0) return;
    done += static_cast<size_t>(written);
  }
}

/// Safe in a signal handler.
[[noreturn]] void Stop(const StoppedAnswer& answer) {
  if (stopping.test_and_set()) {
    while (true) pause();  // another thread is stopping already
  }
  WriteAll(STDOUT_FILENO, answer.text);
  if (!answer.file.empty()) {
    const int file = open(answer.file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file >= 0) WriteAll(file, answer.file_text);
  }
  _exit(answer.exit_code);
}

void OnNoMemory() {
  if (const StoppedAnswer* answer = out_of_memory; answer != nullptr) Stop(*answer);
  throw std::bad_alloc();
}

/// Libraries abort where there is no memory; so do our own checks, where there is.
void OnAbort(int signal) {
  constexpr size_t kProbe = size_t{256} << 20;
  void* probe = mmap(nullptr, kProbe, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const StoppedAnswer* answer = out_of_memory;
  if (probe == MAP_FAILED && answer != nullptr) Stop(*answer);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// A size that no allocation may have ends a thread without requesting memory.
void OnTerminate() {
  const StoppedAnswer* answer = out_of_memory;
  if (answer != nullptr && std::current_exception() != nullptr) {
    try {
      std::rethrow_exception(std::current_exception());
    } catch (const std::length_error&) {
      Stop(*answer);
    } catch (const std::bad_alloc&) {
      Stop(*answer);
    } catch (...) {
    }
  }
  std::abort();
}

void LimitMemory(rlim_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_DATA, &limit) != 0) return;
  limit.rlim_cur = std::min(bytes, limit.rlim_max);
  setrlimit(RLIMIT_DATA, &limit);
}

std::string Gigabytes(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g GB", static_cast<double>(bytes) / 1e9);
  return text;
}

}  // namespace

int64_t DefaultMemoryLimit() {
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE) / 2;
}

absl::StatusOr<int64_t> ParseBytes(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}};
  for (const auto& [name, size] : kUnits) {
    const double bytes = number * size;
    if (error == std::errc() && unit == name && bytes >= 1 && bytes < 0x1p62)
      return static_cast<int64_t>(bytes);
  }
  return InvalidInput("'", text, "' is no size; write e.g. 6GB, 512MB or a number of bytes");
}

LimitGuard::LimitGuard(const Limits& limits,
                       const std::function<StoppedAnswer(std::string_view)>& answer)
    : out_of_time_(answer("out of time")), stop_at_(Now() + limits.seconds + kGrace) {
  if (kLimitsMemory) {
    out_of_memory = new StoppedAnswer(
        answer(Cat("out of memory (limit ", Gigabytes(limits.memory_bytes), ")")));
    std::set_new_handler(&OnNoMemory);
    std::set_terminate(&OnTerminate);
    std::signal(SIGABRT, &OnAbort);
    LimitMemory(static_cast<rlim_t>(limits.memory_bytes));
  }
  watch_ = std::thread([this] { Watch(); });
}

LimitGuard::~LimitGuard() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  watch_.join();
  if (!kLimitsMemory) return;
  LimitMemory(RLIM_INFINITY);
  std::signal(SIGABRT, SIG_DFL);
  std::set_terminate(nullptr);
  std::set_new_handler(nullptr);
  delete out_of_memory.exchange(nullptr);
}

void LimitGuard::SetTime(double seconds) {
  const std::lock_guard lock(mutex_);
  stop_at_ = Now() + seconds + kGrace;
  changed_.notify_all();
}

void LimitGuard::Watch() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    const double left = stop_at_ - Now();
    if (left <= 0) Stop(out_of_time_);
    changed_.wait_for(lock, std::chrono::duration<double>(left));
  }
}

}  // namespace mendel
