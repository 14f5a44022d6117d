#include "optimizer/profile/profile_cache.h"

#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/hash.h"
#include "base/status.h"

namespace mendel {
namespace {

constexpr int kSchemaVersion = 1;

/// A prepared statement with text bindings; finalized on destruction.
class Statement {
 public:
  Statement(sqlite3* db, const char* sql) : db_(db) {
    if (sqlite3_prepare_v2(db, sql, -1, &statement_, nullptr) != SQLITE_OK) statement_ = nullptr;
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& Bind(int index, std::string_view text) {
    if (statement_ != nullptr)
      sqlite3_bind_blob(statement_, index, text.data(), static_cast<int>(text.size()),
                        SQLITE_TRANSIENT);
    return *this;
  }
  Statement& Bind(int index, double value) {
    if (statement_ != nullptr) sqlite3_bind_double(statement_, index, value);
    return *this;
  }
  /// SQLITE_ROW, SQLITE_DONE or an error.
  int Step() { return statement_ == nullptr ? SQLITE_ERROR : sqlite3_step(statement_); }
  std::string Text(int column) {
    const char* data = static_cast<const char*>(sqlite3_column_blob(statement_, column));
    return data == nullptr
               ? std::string()
               : std::string(data, static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
  }
  int64_t Int(int column) { return sqlite3_column_int64(statement_, column); }
  absl::Status Error() const {
    return absl::UnavailableError(Cat("profile cache: ", std::string(sqlite3_errmsg(db_))));
  }

 private:
  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
};

/// An open statement would keep a transaction open, so the version is read in a scope of its own.
absl::Status CheckVersion(sqlite3* db, const std::string& path) {
  Statement version(db, "PRAGMA user_version");
  if (version.Step() != SQLITE_ROW)
    return InvalidInput(path, " is not a profile cache: ", std::string(sqlite3_errmsg(db)));
  const int64_t found = version.Int(0);
  if (found == 0 || found == kSchemaVersion) return absl::OkStatus();
  return InvalidInput(path, " is a profile cache of version ", found, ", not ", kSchemaVersion);
}

}  // namespace

std::string DefaultCachePath() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg != nullptr && *xdg != '\0') return std::string(xdg) + "/mendel/profiles.sqlite";
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : "/tmp") + "/.cache/mendel/profiles.sqlite";
}

absl::StatusOr<std::unique_ptr<ProfileCache>> ProfileCache::Open(const std::string& path) {
  if (path != ":memory:") {
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    if (!folder.empty()) std::filesystem::create_directories(folder, error);
    if (error)
      return absl::PermissionDeniedError(
          Cat("cannot create ", folder.string(), ": ", error.message()));
  }
  sqlite3* db = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
  if (sqlite3_open_v2(path.c_str(), &db, flags, nullptr) != SQLITE_OK) {
    const std::string message = sqlite3_errmsg(db);
    sqlite3_close(db);
    return absl::PermissionDeniedError(Cat("cannot open the profile cache ", path, ": ", message));
  }
  std::unique_ptr<ProfileCache> cache(new ProfileCache(db));
  sqlite3_busy_timeout(db, 10000);
  MENDEL_RETURN_IF_ERROR(CheckVersion(db, path));
  MENDEL_RETURN_IF_ERROR(cache->Execute("PRAGMA journal_mode = WAL"));
  MENDEL_RETURN_IF_ERROR(cache->Execute("PRAGMA synchronous = NORMAL"));
  MENDEL_RETURN_IF_ERROR(cache->Execute(
      "CREATE TABLE IF NOT EXISTS entry (kind BLOB, key BLOB, value BLOB, hash BLOB, written REAL, "
      "PRIMARY KEY (kind, key)) WITHOUT ROWID"));
  MENDEL_RETURN_IF_ERROR(cache->Execute(Cat("PRAGMA user_version = ", kSchemaVersion).c_str()));
  return cache;
}

ProfileCache::~ProfileCache() { sqlite3_close(db_); }

absl::Status ProfileCache::Execute(const char* sql) {
  char* message = nullptr;
  if (sqlite3_exec(db_, sql, nullptr, nullptr, &message) == SQLITE_OK) return absl::OkStatus();
  const std::string text = message != nullptr ? message : "unknown error";
  sqlite3_free(message);
  return absl::UnavailableError(Cat("profile cache: ", text));
}

std::optional<std::string> ProfileCache::Get(std::string_view kind, std::string_view key) {
  const std::scoped_lock lock(mutex_);
  Statement query(db_, "SELECT value, hash FROM entry WHERE kind = ?1 AND key = ?2");
  if (query.Bind(1, kind).Bind(2, key).Step() != SQLITE_ROW) return std::nullopt;
  std::string value = query.Text(0);
  if (Sha256Hex(value) != query.Text(1)) return std::nullopt;  // damaged: as if it were not there
  return value;
}

absl::StatusOr<std::vector<std::string>> ProfileCache::All(std::string_view kind) {
  const std::scoped_lock lock(mutex_);
  Statement query(db_, "SELECT value, hash FROM entry WHERE kind = ?1 ORDER BY key");
  query.Bind(1, kind);
  std::vector<std::string> values;
  int result = query.Step();
  for (; result == SQLITE_ROW; result = query.Step()) {
    std::string value = query.Text(0);
    if (Sha256Hex(value) == query.Text(1)) values.push_back(std::move(value));
  }
  if (result != SQLITE_DONE) return query.Error();
  return values;
}

absl::Status ProfileCache::Put(std::string_view kind, std::string_view key,
                               std::string_view value) {
  const std::scoped_lock lock(mutex_);
  Statement insert(db_,
                   "INSERT OR REPLACE INTO entry VALUES (?1, ?2, ?3, ?4, (julianday('now') - "
                   "2440587.5) * 86400.0)");
  const std::string hash = Sha256Hex(value);
  const int result = insert.Bind(1, kind).Bind(2, key).Bind(3, value).Bind(4, hash).Step();
  return result == SQLITE_DONE ? absl::OkStatus() : insert.Error();
}

absl::StatusOr<std::vector<CacheStats>> ProfileCache::Stats() {
  const std::scoped_lock lock(mutex_);
  Statement query(db_,
                  "SELECT kind, COUNT(*), SUM(LENGTH(key) + LENGTH(value)) FROM entry GROUP BY "
                  "kind ORDER BY kind");
  std::vector<CacheStats> stats;
  int result = query.Step();
  for (; result == SQLITE_ROW; result = query.Step())
    stats.push_back({query.Text(0), query.Int(1), query.Int(2)});
  if (result != SQLITE_DONE) return query.Error();
  return stats;
}

absl::StatusOr<int64_t> ProfileCache::Prune(double days) {
  const std::scoped_lock lock(mutex_);
  Statement remove(
      db_, "DELETE FROM entry WHERE written <= (julianday('now') - 2440587.5 - ?1) * 86400.0");
  if (remove.Bind(1, days).Step() != SQLITE_DONE) return remove.Error();
  return sqlite3_changes(db_);
}

absl::Status ProfileCache::Verify() {
  const std::scoped_lock lock(mutex_);
  Statement check(db_, "PRAGMA integrity_check");
  if (check.Step() != SQLITE_ROW || check.Text(0) != "ok")
    return absl::DataLossError("the profile cache is damaged");
  Statement query(db_, "SELECT kind, key, value, hash FROM entry");
  int result = query.Step();
  for (; result == SQLITE_ROW; result = query.Step()) {
    if (Sha256Hex(query.Text(2)) != query.Text(3))
      return absl::DataLossError(Cat("bad ", query.Text(0), " entry ", query.Text(1)));
  }
  return result == SQLITE_DONE ? absl::OkStatus() : query.Error();
}

}  // namespace mendel
