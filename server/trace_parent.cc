#include "server/trace_parent.h"

namespace mendel::server {
namespace {

// 00-(32 digits)-(16 digits)-(2 digits)
constexpr size_t kTraceAt = 3, kTraceDigits = 32;
constexpr size_t kParentAt = 36, kParentDigits = 16;
constexpr size_t kLength = 55;

bool IsDigit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

bool AllZero(std::string_view digits) {
  return digits.find_first_not_of('0') == std::string_view::npos;
}

}  // namespace

std::string ValidTraceParent(std::string_view header) {
  if (header.size() != kLength || header.substr(0, kTraceAt) != "00-") return "";
  for (size_t i = 0; i < header.size(); ++i) {
    const bool dash = i == kTraceAt - 1 || i == kParentAt - 1 || i == kParentAt + kParentDigits;
    if (dash ? header[i] != '-' : !IsDigit(header[i])) return "";
  }
  if (AllZero(header.substr(kTraceAt, kTraceDigits)) ||
      AllZero(header.substr(kParentAt, kParentDigits)))
    return "";
  return std::string(header);
}

std::string TraceIdOf(std::string_view trace_parent) {
  return trace_parent.empty() ? "" : std::string(trace_parent.substr(kTraceAt, kTraceDigits));
}

std::string SpanIdOf(std::string_view trace_parent) {
  return trace_parent.empty() ? "" : std::string(trace_parent.substr(kParentAt, kParentDigits));
}

bool IsSampled(std::string_view trace_parent) {
  constexpr std::string_view kOdd = "13579bdf";
  return !trace_parent.empty() && kOdd.find(trace_parent.back()) != std::string_view::npos;
}

}  // namespace mendel::server
