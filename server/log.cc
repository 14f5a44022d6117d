#include "server/log.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/status.h"

namespace mendel::server {
namespace {

constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warning", "error"};

std::string TimeText(int64_t wall_micros) {
  const std::time_t seconds = wall_micros / 1'000'000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  const size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text.data() + length, text.size() - length, ".%06dZ",
                static_cast<int>(wall_micros % 1'000'000));
  return text.data();
}

std::string ValueJson(const LogValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return JsonString(*text);
  if (const auto* number = std::get_if<int64_t>(&value)) return Cat(*number);
  const double number = std::get<double>(value);
  return std::isfinite(number) ? Cat(number) : "null";
}

}  // namespace

LogLevel ParseLogLevel(std::string_view name) {
  for (size_t i = 0; i < kLevels.size(); ++i) {
    if (kLevels[i] == name) return static_cast<LogLevel>(i);
  }
  return LogLevel::kInfo;
}

Logger::Logger(LogLevel least, const Clock& clock, std::function<void(const std::string&)> sink)
    : least_(least), clock_(clock), sink_(std::move(sink)) {}

void Logger::Log(LogLevel level, std::string_view event, LogFields fields) {
  if (level < least_) return;
  std::string line = Cat("{\"time\":\"", TimeText(clock_.WallMicros()), "\",\"level\":\"",
                         kLevels[static_cast<size_t>(level)], "\",\"event\":", JsonString(event));
  for (const auto& [key, value] : fields) line += Cat(",", JsonString(key), ":", ValueJson(value));
  line += '}';
  const std::lock_guard<std::mutex> lock(mutex_);
  sink_(line);
}

void LogToStandardError(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

std::string JsonString(std::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace mendel::server
