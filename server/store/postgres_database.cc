// PostgreSQL behind sql.h, and the entry point of the module that holds it.
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>

#include "base/status.h"
#include "server/store/change_signal.h"
#include "server/store/postgres_connection.h"
#include "server/store/postgres_module.h"

namespace mendel::server {
namespace {

constexpr char kListen[] = "LISTEN mendel_jobs";
constexpr char kNotify[] = "SELECT pg_notify('mendel_jobs', '')";
constexpr int kMaxConnections = 8;
constexpr int kMaxTries = 10;
constexpr int kPollMilliseconds = 1000;

class PostgresDatabase final : public SqlDatabase {
 public:
  PostgresDatabase(std::string url, std::unique_ptr<PostgresConnection> first)
      : url_(std::move(url)), wake_(eventfd(0, EFD_CLOEXEC)), listener_([this] { Listen(); }) {
    free_.push_back(std::move(first));
    connections_ = 1;
  }

  ~PostgresDatabase() override {
    stopping_ = true;
    const uint64_t one = 1;
    // An event counter always takes a one.
    if (write(wake_, &one, sizeof one) == sizeof one) listener_.join();
    close(wake_);
  }

  absl::Status Write(const Body& body) override {
    const absl::Status status = WithConnection("BEGIN", [&](SqlConnection& sql) -> absl::Status {
      MENDEL_RETURN_IF_ERROR(body(sql));
      return sql.Run(kNotify, {}).status();
    });
    if (status.ok()) signal_.Notify();
    return status;
  }

  absl::Status Read(const Body& body) override {
    return WithConnection("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", body);
  }

  uint64_t WaitForChange(uint64_t seen, int64_t timeout_micros) override {
    return signal_.Wait(seen, timeout_micros);
  }

 private:
  absl::Status WithConnection(const char* begin, const Body& body) {
    for (int tries = 1;; ++tries) {
      MENDEL_ASSIGN_OR_RETURN(std::unique_ptr<PostgresConnection> connection, Take());
      bool begun = false;
      const absl::Status status = connection->Transaction(begin, [&](SqlConnection& sql) {
        begun = true;
        return body(sql);
      });
      const bool broken = connection->broken();
      // One that broke while it lay in the pool (the server was restarted) has done nothing; a
      // later break may have committed.
      const bool again = connection->conflict() || (broken && !begun);
      GiveBack(broken ? nullptr : std::move(connection));
      if (status.ok() || !again || tries == kMaxTries) return status;
    }
  }

  absl::StatusOr<std::unique_ptr<PostgresConnection>> Take() {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [this] { return !free_.empty() || connections_ < kMaxConnections; });
    if (!free_.empty()) {
      std::unique_ptr<PostgresConnection> connection = std::move(free_.back());
      free_.pop_back();
      return connection;
    }
    ++connections_;
    lock.unlock();
    absl::StatusOr<std::unique_ptr<PostgresConnection>> connection = PostgresConnection::Open(url_);
    if (!connection.ok()) GiveBack(nullptr);
    return connection;
  }

  void GiveBack(std::unique_ptr<PostgresConnection> connection) {
    const std::scoped_lock lock(mutex_);
    if (connection == nullptr) {
      --connections_;
    } else {
      free_.push_back(std::move(connection));
    }
    freed_.notify_one();
  }

  /// The listener's thread: turns notifications into changes. While it has no connection, every
  /// second counts as a change, so that waiters look for themselves.
  void Listen() {
    std::unique_ptr<PostgresConnection> connection;
    while (!stopping_) {
      bool changed = false;
      if (connection == nullptr) {
        connection = StartListening();
        changed = true;  // what was missed meanwhile
      }
      if (connection == nullptr) {
        Sleep();
      } else if (!connection->WaitForNotification(wake_, kPollMilliseconds, changed)) {
        connection.reset();
      }
      if (changed) signal_.Notify();
    }
  }

  std::unique_ptr<PostgresConnection> StartListening() const {
    absl::StatusOr<std::unique_ptr<PostgresConnection>> connection = PostgresConnection::Open(url_);
    if (!connection.ok() || !(*connection)->Run(kListen, {}).ok()) return nullptr;
    return *std::move(connection);
  }

  void Sleep() const {
    pollfd wait = {wake_, POLLIN, 0};
    poll(&wait, 1, kPollMilliseconds);
  }

  const std::string url_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<std::unique_ptr<PostgresConnection>> free_;
  int connections_ = 0;
  ChangeSignal signal_{nullptr};
  std::atomic<bool> stopping_ = false;
  const int wake_;
  std::thread listener_;  // last: it uses the others
};

}  // namespace
}  // namespace mendel::server

const char* MendelPostgresVersion() { return MENDEL_MODULE_VERSION; }

mendel::server::SqlDatabase* MendelOpenPostgres(const char* url, absl::Status* status) {
  auto connection = mendel::server::PostgresConnection::Open(url);
  *status = connection.status();
  if (!connection.ok()) return nullptr;
  return new mendel::server::PostgresDatabase(url, *std::move(connection));
}
