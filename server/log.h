// The server's log: one JSON object a line, e.g.
// {"time":"2024-05-01T12:00:00.000000Z","level":"info","event":"job submitted", "job":"jobs/..."}.
// Never model content, tensor values, tokens or texts of requests; names that the server checked
// are fine.
#ifndef MENDEL_SERVER_LOG_H_
#define MENDEL_SERVER_LOG_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "server/clock.h"

namespace mendel::server {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

/// "debug", "info", "warning", "error"; info for others.
LogLevel ParseLogLevel(std::string_view name);

using LogValue = std::variant<std::string, int64_t, double>;
using LogFields = std::initializer_list<std::pair<std::string_view, LogValue>>;

/// Thread-safe.
class Logger {
 public:
  /// `sink` gets whole lines without the newline, one at a time. The clock outlives the logger.
  Logger(LogLevel least, const Clock& clock, std::function<void(const std::string&)> sink);
  void Log(LogLevel level, std::string_view event, LogFields fields = {});

 private:
  const LogLevel least_;
  const Clock& clock_;
  const std::function<void(const std::string&)> sink_;
  std::mutex mutex_;
};

/// Writes to standard error.
void LogToStandardError(const std::string& line);

/// `text` as a JSON string with its quotes; bytes that are not ASCII become "\ufffd" or stay when
/// they are UTF-8.
std::string JsonString(std::string_view text);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_LOG_H_
