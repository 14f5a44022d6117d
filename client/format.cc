#include "client/format.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_join.h"
#include "base/status.h"
#include "runtime/measure.h"
#include "runtime/measuring_device.h"

namespace mendel {

absl::StatusOr<double> ParseDuration(std::string_view text, bool zero_allowed) {
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(result.ptr,
                              static_cast<size_t>(text.data() + text.size() - result.ptr));
  double scale = 0;
  if (unit.empty() || unit == "s") scale = 1;
  if (unit == "ms") scale = 1e-3;
  if (unit == "m" || unit == "min") scale = 60;
  if (unit == "h") scale = 3600;
  if (result.ec != std::errc() || scale == 0 || !std::isfinite(value) || value < 0 ||
      (value == 0 && !zero_allowed)) {
    return InvalidInput("'", text, "' is not a duration (3s, 500ms, 2m)");
  }
  return value * scale;
}

absl::StatusOr<std::pair<std::string, std::string>> ParseAssignment(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return InvalidInput("'", text, "' is not of the form NAME=FILE");
  return std::pair(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
}

std::string FileNameOf(std::string_view name) {
  std::string file(name);
  for (char& c : file) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-') c = '_';
  }
  return file.empty() || file[0] == '.' ? "_" + file : file;
}

std::string Decimals(double value, int digits) {
  std::array<char, 64> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                    std::chars_format::fixed, digits);
  if (result.ec != std::errc()) return Cat(value);
  return {buffer.data(), result.ptr};
}

std::string ByteText(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < kUnits.size(); ++unit) bytes /= 1000;
  return Cat(Decimals(bytes, unit == 0 ? 0 : 1), " ", kUnits[unit]);
}

std::string IndexText(const Shape& index, const char* separator) {
  return Cat("[", absl::StrJoin(index, separator), "]");
}

std::vector<std::string> TableLines(const std::vector<std::vector<std::string>>& rows,
                                    const std::set<size_t>& numbers) {
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const std::vector<std::string>& row : rows) {
    for (size_t k = 0; k < widths.size(); ++k) widths[k] = std::max(widths[k], row[k].size());
  }
  std::vector<std::string> lines;
  for (const std::vector<std::string>& row : rows) {
    std::string& line = lines.emplace_back();
    for (size_t k = 0; k < widths.size(); ++k) {
      const std::string gap(widths[k] - row[k].size(), ' ');
      const bool number = numbers.count(k) > 0, last = k + 1 == widths.size();
      line += Cat(k == 0 ? "" : "  ", number ? gap : "", row[k], number || last ? "" : gap);
    }
  }
  return lines;
}

std::string AxiomsText(const std::vector<std::string>& axioms) {
  return axioms.empty() ? "" : Cat(", by ", absl::StrJoin(axioms, ", "));
}

nlohmann::ordered_json TimingJson(const Timing& timing) {
  return {{"median_ms", timing.median_ms},
          {"min_ms", timing.min_ms},
          {"p90_ms", timing.p90_ms},
          {"spread", timing.spread},
          {"runs", timing.runs}};
}

nlohmann::ordered_json ConditionsJson(const DeviceConditions& conditions) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  const auto add = [&json](const char* name, const auto& value) {
    if (value.has_value()) json[name] = *value;
  };
  add("clock_mhz", conditions.clock_mhz);
  add("max_clock_mhz", conditions.max_clock_mhz);
  add("memory_mhz", conditions.memory_mhz);
  add("watts", conditions.watts);
  add("limit_watts", conditions.limit_watts);
  add("celsius", conditions.celsius);
  add("held_by", conditions.held_by);
  return json;
}

}  // namespace mendel
