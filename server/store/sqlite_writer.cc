#include "server/store/sqlite_writer.h"

#include <algorithm>

#include "base/status.h"

namespace mendel::server {
namespace {

/// Bounds how long one caller works for the others.
constexpr size_t kMostTogether = 64;

}  // namespace

absl::Status SqliteWriter::Write(const SqlDatabase::Body& body) {
  Request own{&body, absl::OkStatus()};
  std::unique_lock lock(mutex_);
  waiting_.push_back(&own);
  while (true) {
    changed_.wait(lock, [&] { return own.done || !leading_; });
    if (own.done) return own.status;
    leading_ = true;
    const auto end =
        waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kMostTogether));
    const std::vector<Request*> group(waiting_.begin(), end);
    waiting_.erase(waiting_.begin(), end);
    lock.unlock();
    RunGroup(group);
    lock.lock();
    for (Request* request : group) request->done = true;
    leading_ = false;
    changed_.notify_all();
  }
}

void SqliteWriter::RunGroup(const std::vector<Request*>& group) {
  if (group.size() > 1 && RunTogether(group)) return;
  for (Request* request : group)
    request->status = connection_->Transaction("BEGIN IMMEDIATE", *request->body);
}

bool SqliteWriter::RunTogether(const std::vector<Request*>& group) {
  bool begun = false;
  const absl::Status status =
      connection_->Transaction("BEGIN IMMEDIATE", [&](SqlConnection& sql) -> absl::Status {
        begun = true;
        for (Request* request : group) {
          MENDEL_RETURN_IF_ERROR(sql.Run("SAVEPOINT body", {}).status());
          request->status = (*request->body)(sql);
          // After a full disk SQLite has rolled back everything: there is no savepoint any more,
          // and this fails.
          if (!request->status.ok())
            MENDEL_RETURN_IF_ERROR(sql.Run("ROLLBACK TO body", {}).status());
          MENDEL_RETURN_IF_ERROR(sql.Run("RELEASE body", {}).status());
        }
        return absl::OkStatus();
      });
  if (status.ok()) return true;
  if (begun) return false;
  // Nobody would get further alone.
  for (Request* request : group) request->status = status;
  return true;
}

}  // namespace mendel::server
