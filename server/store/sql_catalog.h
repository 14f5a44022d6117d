// Rows of models and plans, as the parts of the SQL store share them.
#ifndef MENDEL_SERVER_STORE_SQL_CATALOG_H_
#define MENDEL_SERVER_STORE_SQL_CATALOG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/job_store.h"
#include "server/store/sql.h"

namespace mendel::server {

/// The plan of this name, or NotFound.
absl::StatusOr<v1::Plan> LoadPlan(SqlConnection& sql, const std::string& name);
/// Stores a plan, or returns the one of this name.
absl::StatusOr<v1::Plan> PutPlan(SqlConnection& sql, v1::Plan plan, int64_t now_micros);
/// JobStore::RememberPlan.
absl::Status RememberWork(SqlConnection& sql, const std::string& work_key, const std::string& plan);
/// Parses a message of a row; DataLoss names what is damaged.
template <class Message>
absl::StatusOr<Message> ParseBody(const std::string& bytes, const std::string& what) {
  Message message;
  if (!message.ParseFromString(bytes)) return absl::DataLossError(what + " cannot be read");
  return message;
}

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_SQL_CATALOG_H_
