#include "server/store/sqlite_database.h"

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <utility>
#include <vector>

#include "base/status.h"
#include "server/store/change_signal.h"
#include "server/store/disk_probe.h"
#include "server/store/sqlite_connection.h"
#include "server/store/sqlite_writer.h"

namespace mendel::server {
namespace {

class SqliteDatabase final : public SqlDatabase {
 public:
  SqliteDatabase(std::string path, std::unique_ptr<SqliteConnection> writer,
                 std::unique_ptr<SqliteConnection> watcher, std::unique_ptr<DiskProbe> probe)
      : path_(std::move(path)),
        writer_(std::move(writer)),
        probe_(std::move(probe)),
        watcher_(std::move(watcher)),
        version_(watcher_->DataVersion()) {}

  absl::Status Write(const Body& body) override {
    const DiskProbe::Unproven unproven(*probe_);
    const absl::Status status = writer_.Write(body);
    MENDEL_RETURN_IF_ERROR(probe_->Check());
    if (status.ok()) signal_.Notify();
    return status;
  }

  absl::Status Read(const Body& body) override {
    MENDEL_ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> reader, TakeReader());
    absl::Status status = reader->Transaction("BEGIN DEFERRED", body);
    // It may have seen a commit whose writer has not asked yet.
    if (const absl::Status disk = probe_->Vouch(); !disk.ok()) status = disk;
    const std::scoped_lock lock(readers_mutex_);
    free_readers_.push_back(std::move(reader));
    reader_free_.notify_one();
    return status;
  }

  uint64_t WaitForChange(uint64_t seen, int64_t timeout_micros) override {
    return signal_.Wait(seen, timeout_micros);
  }

 private:
  static constexpr int kMaxReaders = 4;

  absl::StatusOr<std::unique_ptr<SqliteConnection>> TakeReader() {
    std::unique_lock lock(readers_mutex_);
    reader_free_.wait(lock, [this] { return !free_readers_.empty() || readers_ < kMaxReaders; });
    if (!free_readers_.empty()) {
      std::unique_ptr<SqliteConnection> reader = std::move(free_readers_.back());
      free_readers_.pop_back();
      return reader;
    }
    auto reader = SqliteConnection::Open(path_);
    // The file could be written when the store was opened: the disk has changed since.
    if (absl::IsPermissionDenied(reader.status()))
      return absl::UnavailableError(Cat(kJobStorePrefix, reader.status().message()));
    MENDEL_RETURN_IF_ERROR(reader.status());
    ++readers_;
    return *std::move(reader);
  }

  /// Also true after a change of this process, which costs its watchers one look more.
  bool ChangedElsewhere() {
    const std::scoped_lock lock(watch_mutex_);
    const int64_t before = std::exchange(version_, watcher_->DataVersion());
    return before != version_;
  }

  const std::string path_;
  SqliteWriter writer_;
  const std::unique_ptr<DiskProbe> probe_;
  std::mutex readers_mutex_;
  std::condition_variable reader_free_;
  std::vector<std::unique_ptr<SqliteConnection>> free_readers_;
  int readers_ = 0;
  std::mutex watch_mutex_;
  std::unique_ptr<SqliteConnection> watcher_;
  int64_t version_;
  ChangeSignal signal_{[this] { return ChangedElsewhere(); }};
};

}  // namespace

absl::StatusOr<std::unique_ptr<SqlDatabase>> OpenSqliteDatabase(const std::string& path) {
  MENDEL_ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> writer, SqliteConnection::Open(path));
  MENDEL_ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> watcher, SqliteConnection::Open(path));
  MENDEL_ASSIGN_OR_RETURN(std::unique_ptr<DiskProbe> probe,
                          DiskProbe::Open(std::filesystem::path(path).parent_path()));
  return std::make_unique<SqliteDatabase>(path, std::move(writer), std::move(watcher),
                                          std::move(probe));
}

}  // namespace mendel::server
