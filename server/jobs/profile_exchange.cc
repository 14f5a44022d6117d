#include "server/jobs/profile_exchange.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

#include "base/hash.h"
#include "base/status.h"
#include "optimizer/profile/profile_cache.h"

namespace mendel::server {
namespace {

constexpr std::array<std::string_view, 7> kShared = {"timing", "algorithms", "nodes",  "operators",
                                                     "search", "candidates", "verdict"};

struct CloseDatabase {
  void operator()(sqlite3* db) const { sqlite3_close(db); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
struct EndStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, EndStatement>;

absl::StatusOr<Database> OpenFile(const std::string& path, int flags) {
  sqlite3* raw = nullptr;
  const int result = sqlite3_open_v2(path.c_str(), &raw, flags | SQLITE_OPEN_NOFOLLOW, nullptr);
  Database db(raw);
  if (result != SQLITE_OK) return absl::UnavailableError("a profile cache cannot be opened");
  sqlite3_busy_timeout(raw, 10'000);
  return db;
}

/// Views, triggers and functions that a hostile file brings along do nothing.
void Distrust(sqlite3* db) {
  for (const int option : {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
                           SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION}) {
    sqlite3_db_config(db, option, 0, nullptr);
  }
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 64 << 20);
  sqlite3_exec(db, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0", nullptr, nullptr, nullptr);
}

std::string_view Blob(sqlite3_stmt* row, int column) {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(row, column));
  return data == nullptr
             ? std::string_view()
             : std::string_view(data, static_cast<size_t>(sqlite3_column_bytes(row, column)));
}

bool IsRegularFile(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 1;
}

}  // namespace

std::string ProfilesOf(const std::string& shared, const std::string& project) {
  if (project.empty()) return shared;
  const std::filesystem::path path(shared);
  return path.parent_path() / Cat(path.stem().string(), ".", project, path.extension().string());
}

absl::Status CopyProfiles(const std::string& shared, const std::string& copy) {
  std::error_code code;
  if (!std::filesystem::exists(shared, code) || std::filesystem::exists(copy, code))
    return absl::OkStatus();
  MENDEL_ASSIGN_OR_RETURN(const Database db, OpenFile(shared, SQLITE_OPEN_READWRITE));
  sqlite3_stmt* raw = nullptr;
  sqlite3_prepare_v2(db.get(), "VACUUM INTO ?1", -1, &raw, nullptr);
  const Statement statement(raw);
  if (raw == nullptr ||
      sqlite3_bind_text(raw, 1, copy.c_str(), -1, SQLITE_TRANSIENT) != SQLITE_OK ||
      sqlite3_step(raw) != SQLITE_DONE) {
    std::filesystem::remove(copy, code);
    return absl::UnavailableError("the profile cache cannot be copied");
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> MergeProfiles(const std::string& copy, const std::string& shared,
                                      const ExchangeLimits& limits) {
  if (!IsRegularFile(copy)) return 0;
  // A worker's write-ahead log belongs to its file, and is opened by name beside it.
  for (const char* suffix : {"-wal", "-shm", "-journal"}) {
    std::error_code code;
    if (std::filesystem::exists(std::filesystem::symlink_status(copy + suffix, code)) &&
        !IsRegularFile(copy + suffix))
      return 0;
  }
  MENDEL_ASSIGN_OR_RETURN(const Database db, OpenFile(copy, SQLITE_OPEN_READWRITE));
  Distrust(db.get());
  MENDEL_ASSIGN_OR_RETURN(const auto cache, ProfileCache::Open(shared));
  sqlite3_stmt* raw = nullptr;
  sqlite3_prepare_v2(db.get(), "SELECT kind, key, value, hash FROM entry", -1, &raw, nullptr);
  const Statement query(raw);
  if (raw == nullptr) return absl::DataLossError("a job's profile cache is damaged");
  int64_t added = 0;
  int64_t bytes = 0;
  while (added < limits.total_entries && bytes < limits.total_bytes &&
         sqlite3_step(raw) == SQLITE_ROW) {
    const std::string_view kind = Blob(raw, 0);
    const std::string key(Blob(raw, 1));
    const std::string_view value = Blob(raw, 2);
    const bool wanted = std::find(kShared.begin(), kShared.end(), kind) != kShared.end();
    if (!wanted || static_cast<int64_t>(key.size() + value.size()) > limits.value_bytes ||
        Sha256Hex(value) != Blob(raw, 3))
      continue;
    if (cache->Get(kind, key).has_value()) continue;
    MENDEL_RETURN_IF_ERROR(cache->Put(kind, key, value));
    ++added;
    bytes += static_cast<int64_t>(key.size() + value.size());
  }
  return added;
}

}  // namespace mendel::server
