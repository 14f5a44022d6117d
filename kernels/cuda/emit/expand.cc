#include "kernels/cuda/emit/expand.h"

#include <cctype>

#include "base/check.h"

namespace mendel::cuda {
namespace {

bool IsNameChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

const std::string& Lookup(std::string_view name, const std::map<std::string, std::string>& values) {
  const auto found = values.find(std::string(name));
  MENDEL_CHECK(found != values.end());
  return found->second;
}

std::string ExpandLine(std::string_view line, const std::map<std::string, std::string>& values) {
  std::string out;
  for (size_t i = 0; i < line.size();) {
    if (line[i] != '$') {
      out += line[i++];
      continue;
    }
    size_t end = i + 1;
    while (end < line.size() && IsNameChar(line[end])) ++end;
    out += Lookup(line.substr(i + 1, end - i - 1), values);
    i = end;
  }
  return out;
}

std::string_view TakeLine(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

}  // namespace

std::string Expand(std::string_view text, const std::map<std::string, std::string>& values) {
  std::string out;
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    const size_t first = line.find_first_not_of(' ');
    const bool alone = first != std::string_view::npos && line[first] == '$' &&
                       line.find_first_of(" ;,()[]+*", first) == std::string_view::npos;
    if (!alone) {
      out += ExpandLine(line, values) + "\n";
      continue;
    }
    for (std::string_view rest = Lookup(line.substr(first + 1), values); !rest.empty();) {
      const std::string_view part = TakeLine(rest);
      out += (part.empty() ? "" : std::string(line.substr(0, first))) + std::string(part) + "\n";
    }
  }
  return out;
}

}  // namespace mendel::cuda
