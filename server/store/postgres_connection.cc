#include "server/store/postgres_connection.h"

#include <poll.h>

#include <array>
#include <string_view>

#include "base/status.h"

namespace mendel::server {
namespace {

constexpr SqlDialect kDialect = {"$", "BYTEA", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
                                 " FOR UPDATE", " FOR UPDATE OF job SKIP LOCKED"};
// pg_type.dat
constexpr Oid kBytes = 17;
constexpr Oid kInt8 = 20;
constexpr Oid kInt4 = 23;
constexpr int kBinary = 1;

/// Integers are sent most significant byte first.
std::string Encode(const SqlValue& value) {
  if (const auto* bytes = std::get_if<std::string>(&value)) return *bytes;
  std::string encoded;
  for (int shift = 56; shift >= 0; shift -= 8) {
    encoded.push_back(static_cast<char>(static_cast<uint64_t>(std::get<int64_t>(value)) >>
                                        static_cast<unsigned>(shift)));
  }
  return encoded;
}

SqlValue Decode(const PGresult* result, int row, int column) {
  const Oid type = PQftype(result, column);
  const std::string bytes(PQgetvalue(result, row, column),
                          static_cast<size_t>(PQgetlength(result, row, column)));
  if (type != kInt8 && type != kInt4) return bytes;
  uint64_t number = 0;
  for (const char byte : bytes) number = number << 8U | static_cast<unsigned char>(byte);
  return type == kInt4 ? int64_t{static_cast<int32_t>(static_cast<uint32_t>(number))}
                       : static_cast<int64_t>(number);
}

std::string_view SqlState(const PGresult* result) {
  const char* state = result == nullptr ? nullptr : PQresultErrorField(result, PG_DIAG_SQLSTATE);
  return state == nullptr ? std::string_view() : std::string_view(state);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PostgresConnection>> PostgresConnection::Open(
    const std::string& url) {
  // Settings in the URL come later and override these.
  constexpr size_t kSettings = 8;
  const std::array<const char*, kSettings> names = {
      "connect_timeout",  "tcp_user_timeout", "keepalives_idle", "keepalives_interval",
      "keepalives_count", "application_name", "dbname",          nullptr};
  const std::array<const char*, kSettings> values = {"10", "15000",  "10",        "5",
                                                     "2",  "mendel", url.c_str(), nullptr};
  std::unique_ptr<PostgresConnection> connection(
      new PostgresConnection(PQconnectdbParams(names.data(), values.data(), 1)));
  // The message may name hosts and users, but never the password.
  if (connection->broken())
    return absl::UnavailableError(
        Cat(kJobStorePrefix, PQerrorMessage(connection->connection_.get())));
  PQsetNoticeProcessor(
      connection->connection_.get(), [](void*, const char*) {}, nullptr);
  // A disconnected server must not lock its rows in an open transaction until the database's system
  // notices, hours later.
  MENDEL_RETURN_IF_ERROR(
      connection
          ->Run("SELECT set_config('synchronous_commit', 'on', false), "
                "set_config('idle_in_transaction_session_timeout', '15s', false), "
                "set_config('tcp_keepalives_idle', '10', false), "
                "set_config('tcp_keepalives_interval', '5', false), "
                "set_config('tcp_keepalives_count', '2', false)",
                {})
          .status());
  return connection;
}

absl::Status PostgresConnection::Error(const PGresult* result) {
  const std::string_view state = SqlState(result);
  conflict_ = state == "40001" || state == "40P01";
  const std::string text = Cat(kJobStorePrefix, PQerrorMessage(connection_.get()));
  const std::string_view family = state.substr(0, 2);
  // 25006: the database is a standby now, or its disk is read-only.
  if (broken() || conflict_ || family == "08" || family == "57" || family == "55" ||
      state == "53300" || state == "25006") {
    return absl::UnavailableError(text);
  }
  if (family == "53") return absl::ResourceExhaustedError(text);
  if (state == "42501") return absl::PermissionDeniedError(text);
  if (state == "XX001" || state == "XX002") return absl::DataLossError(text);
  return InternalError(text);
}

absl::StatusOr<std::string> PostgresConnection::Prepare(const std::string& sql,
                                                        const std::vector<SqlValue>& values) {
  const auto found = statements_.find(sql);
  if (found != statements_.end()) return found->second;
  std::vector<Oid> types;
  for (const SqlValue& value : values)
    types.push_back(std::holds_alternative<int64_t>(value) ? kInt8 : kBytes);
  const std::string name = Cat("s", statements_.size());
  const std::string text = Translate(sql, kDialect);
  const Result result(PQprepare(connection_.get(), name.c_str(), text.c_str(),
                                static_cast<int>(types.size()), types.data()));
  if (PQresultStatus(result.get()) != PGRES_COMMAND_OK) return Error(result.get());
  statements_[sql] = name;
  return name;
}

absl::StatusOr<SqlRows> PostgresConnection::Run(const std::string& sql,
                                                const std::vector<SqlValue>& values) {
  MENDEL_ASSIGN_OR_RETURN(const std::string name, Prepare(sql, values));
  std::vector<std::string> encoded;
  for (const SqlValue& value : values) encoded.push_back(Encode(value));
  std::vector<const char*> pointers;
  std::vector<int> lengths;
  for (const std::string& value : encoded) {
    pointers.push_back(value.data());
    lengths.push_back(static_cast<int>(value.size()));
  }
  const std::vector<int> formats(values.size(), kBinary);
  const Result result(PQexecPrepared(connection_.get(), name.c_str(),
                                     static_cast<int>(values.size()), pointers.data(),
                                     lengths.data(), formats.data(), kBinary));
  const ExecStatusType status = PQresultStatus(result.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) return Error(result.get());
  SqlRows rows;
  for (int row = 0; row < PQntuples(result.get()); ++row) {
    std::vector<SqlValue> columns;
    for (int column = 0; column < PQnfields(result.get()); ++column)
      columns.push_back(Decode(result.get(), row, column));
    rows.emplace_back(std::move(columns));
  }
  return rows;
}

absl::Status PostgresConnection::Serialize() {
  // Any number that no other program on this database uses: "mendel" in ASCII.
  return Run("SELECT pg_advisory_xact_lock(120282411197804)", {}).status();
}

absl::Status PostgresConnection::Transaction(const char* begin, const SqlDatabase::Body& body) {
  conflict_ = false;
  MENDEL_RETURN_IF_ERROR(Run(begin, {}).status());
  absl::Status status = body(*this);
  if (status.ok()) status = Run("COMMIT", {}).status();
  if (!status.ok() && PQtransactionStatus(connection_.get()) != PQTRANS_IDLE) {
    const bool conflict = conflict_;
    Run("ROLLBACK", {}).IgnoreError();
    conflict_ = conflict;
  }
  return status;
}

bool PostgresConnection::WaitForNotification(int wake, int timeout_milliseconds, bool& notified) {
  std::array<pollfd, 2> waits = {{{PQsocket(connection_.get()), POLLIN, 0}, {wake, POLLIN, 0}}};
  poll(waits.data(), waits.size(), timeout_milliseconds);
  if (PQconsumeInput(connection_.get()) == 0) return false;
  const auto free_notification = [](PGnotify* notification) { PQfreemem(notification); };
  while (true) {
    const std::unique_ptr<PGnotify, decltype(free_notification)> notification(
        PQnotifies(connection_.get()), free_notification);
    if (notification == nullptr) return true;
    notified = true;
  }
}

}  // namespace mendel::server
