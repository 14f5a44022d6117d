#include "server/store/project_name.h"

#include <algorithm>

#include "base/status.h"

namespace mendel::server {
namespace {

constexpr std::string_view kPrefix = "projects/";
constexpr size_t kMostBytes = 63;

bool IsLetter(char c) { return c >= 'a' && c <= 'z'; }

}  // namespace

bool IsProject(std::string_view text) {
  return !text.empty() && text.size() <= kMostBytes && IsLetter(text.front()) &&
         text.back() != '-' && std::all_of(text.begin(), text.end(), [](char c) {
           return IsLetter(c) || (c >= '0' && c <= '9') || c == '-';
         });
}

std::string_view ProjectTitle(std::string_view project) {
  return project.empty() ? kDefaultProject : project;
}

NameInProject SplitName(std::string_view name) {
  NameInProject whole{"", std::string(name)};
  if (!name.starts_with(kPrefix)) return whole;
  const std::string_view tail = name.substr(kPrefix.size());
  const size_t slash = tail.find('/');
  const std::string_view project = tail.substr(0, slash);
  if (slash == std::string_view::npos || !IsProject(project)) return whole;
  return {std::string(project == kDefaultProject ? "" : project),
          std::string(tail.substr(slash + 1))};
}

std::string JoinName(std::string_view project, std::string_view rest) {
  if (project.empty() || project == kDefaultProject) return std::string(rest);
  return Cat(kPrefix, project, "/", rest);
}

std::string ProjectOf(std::string_view name) { return SplitName(name).project; }

}  // namespace mendel::server
