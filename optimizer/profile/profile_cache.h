// The store of measurements and verifications: one SQLite file that survives kill -9 and is shared
// by processes.
//
// Keys name everything a value depends on (graph text, algorithms, device identity, threads,
// numerics, verifier version), so a value is never stale: what changed has another key. Kinds:
// "timing", "algorithms", "nodes", "operators", "search", "candidates", "verdict", "certificate",
// "gate".
#ifndef MENDEL_OPTIMIZER_PROFILE_PROFILE_CACHE_H_
#define MENDEL_OPTIMIZER_PROFILE_PROFILE_CACHE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct sqlite3;

namespace mendel {

/// $XDG_CACHE_HOME/mendel/profiles.sqlite, or ~/.cache/mendel/profiles.sqlite.
std::string DefaultCachePath();

struct CacheStats {
  std::string kind;
  int64_t entries = 0;
  int64_t bytes = 0;
};

/// Thread-safe.
class ProfileCache {
 public:
  /// Opens or creates the file and its folders (WAL, busy timeout 10 s). ":memory:" keeps nothing.
  /// InvalidArgument when the file is no cache of a version that this program reads.
  static absl::StatusOr<std::unique_ptr<ProfileCache>> Open(const std::string& path);
  ~ProfileCache();

  std::optional<std::string> Get(std::string_view kind, std::string_view key);
  /// Values of all intact entries of a kind, in the order of their keys.
  absl::StatusOr<std::vector<std::string>> All(std::string_view kind);
  /// Errors (a full disk, a locked file) are returned; callers may go on without the entry.
  absl::Status Put(std::string_view kind, std::string_view key, std::string_view value);

  absl::StatusOr<std::vector<CacheStats>> Stats();
  /// Deletes entries that were not written in the last `days` days; returns how many.
  absl::StatusOr<int64_t> Prune(double days);
  /// SQLite's integrity check and a hash of every entry; DataLoss names the first bad one.
  absl::Status Verify();

 private:
  explicit ProfileCache(sqlite3* db) : db_(db) {}
  absl::Status Execute(const char* sql);

  std::mutex mutex_;
  sqlite3* db_;
};

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_PROFILE_PROFILE_CACHE_H_
