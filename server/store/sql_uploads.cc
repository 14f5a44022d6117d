// Bytes of uploaded files by client, for the quota of stored bytes.
#include "absl/strings/cord.h"
#include "base/status.h"
#include "server/store/sql_store.h"

namespace mendel::server {
namespace {

absl::Status QuotaFull(int64_t stored, int64_t bytes, int64_t limit) {
  const std::string message =
      Cat("this client's files have ", stored, " bytes, and ", bytes, " more exceed its quota of ",
          limit, "; delete models that are not needed, and wait until their files go");
  absl::Status status = absl::ResourceExhaustedError(message);
  status.SetPayload(kQuotaFull, absl::Cord(message));
  return status;
}

}  // namespace

absl::Status SqlStore::ChargeUpload(const std::string& client, const std::string& file,
                                    int64_t bytes, int64_t limit) {
  return database_->Write([&](SqlConnection& sql) -> absl::Status {
    // Bytes are summed: two concurrent uploads must not both be the last that fits.
    MENDEL_RETURN_IF_ERROR(sql.Serialize());
    MENDEL_ASSIGN_OR_RETURN(
        const SqlRows known,
        sql.Run("SELECT 1 FROM upload WHERE client = ?1 AND sha256 = ?2", {client, file}));
    if (!known.empty()) return absl::OkStatus();
    MENDEL_ASSIGN_OR_RETURN(
        const SqlRows sum,
        sql.Run("SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM upload WHERE client = ?1",
                {client}));
    const int64_t stored = sum.front().Int(0);
    if (bytes > limit - stored) return QuotaFull(stored, bytes, limit);
    return sql
        .Run("INSERT INTO upload (client, sha256, bytes, charged) VALUES (?1, ?2, ?3, ?4)",
             {client, file, bytes, clock_.WallMicros()})
        .status();
  });
}

absl::Status SqlStore::ForgetUpload(const std::string& client, const std::string& file) {
  return database_->Write([&](SqlConnection& sql) {
    return sql.Run("DELETE FROM upload WHERE client = ?1 AND sha256 = ?2", {client, file}).status();
  });
}

absl::Status SqlStore::ForgetUploadsBefore(int64_t wall_micros,
                                           const std::set<std::string>& stored) {
  return database_->Write([&](SqlConnection& sql) -> absl::Status {
    MENDEL_ASSIGN_OR_RETURN(
        const SqlRows rows,
        sql.Run("SELECT client, sha256 FROM upload WHERE charged < ?1", {wall_micros}));
    for (const SqlRow& row : rows) {
      if (stored.contains(row.Bytes(1))) continue;
      MENDEL_RETURN_IF_ERROR(sql.Run("DELETE FROM upload WHERE client = ?1 AND sha256 = ?2",
                                     {row.Bytes(0), row.Bytes(1)})
                                 .status());
    }
    return absl::OkStatus();
  });
}

}  // namespace mendel::server
