#include "runtime/measuring_device.h"

#include <cmath>

#include "base/status.h"

namespace mendel {
namespace {

/// "VALUE of LIMIT UNIT", "VALUE UNIT" or nothing.
template <class Number>
void Add(std::string& text, const std::string& what, const std::optional<Number>& value,
         const std::optional<Number>& limit, const char* unit) {
  if (!value.has_value()) return;
  text += Cat(text.empty() ? "" : ", ", what, *value, limit.has_value() ? Cat(" of ", *limit) : "",
              " ", unit);
}

std::optional<int> Rounded(const std::optional<double>& value) {
  return value.has_value() ? std::optional<int>(static_cast<int>(std::lround(*value)))
                           : std::nullopt;
}

}  // namespace

std::string ConditionsText(const DeviceConditions& conditions) {
  std::string text;
  Add(text, "", conditions.clock_mhz, conditions.max_clock_mhz, "MHz");
  Add(text, "memory ", conditions.memory_mhz, std::optional<int>(), "MHz");
  Add(text, "", Rounded(conditions.watts), Rounded(conditions.limit_watts), "W");
  Add(text, "", conditions.celsius, std::optional<int>(), "C");
  if (conditions.held_by.has_value()) {
    std::string reasons;
    for (const std::string& reason : *conditions.held_by)
      reasons += Cat(reasons.empty() ? "throttled by " : " and ", reason);
    text += Cat(text.empty() ? "" : ", ", reasons.empty() ? "not throttled" : reasons);
  }
  return text.empty() ? "nothing reported" : text;
}

}  // namespace mendel
