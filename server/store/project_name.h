// Projects keep tenants apart. A resource's name begins with its project:
// `projects/{project}/jobs/{uuid}`. Names without it (`jobs/{uuid}`) are of the project "default",
// which is "" in names, columns and BlobId; `projects/default/jobs/{uuid}` is another spelling of
// the same name.
#ifndef MENDEL_SERVER_STORE_PROJECT_NAME_H_
#define MENDEL_SERVER_STORE_PROJECT_NAME_H_

#include <string>
#include <string_view>

namespace mendel::server {

inline constexpr std::string_view kDefaultProject = "default";

/// 1 to 63 small letters, digits and hyphens; a letter first, no hyphen last.
bool IsProject(std::string_view text);
/// "default" for "".
std::string_view ProjectTitle(std::string_view project);

struct NameInProject {
  std::string project;  ///< empty: "default"
  std::string rest;     ///< the name within the project, e.g. "jobs/{uuid}"; not checked
};
/// Splits a resource's name. One whose project is none keeps it in `rest`, which is then no name.
NameInProject SplitName(std::string_view name);
/// The name in its only stored spelling.
std::string JoinName(std::string_view project, std::string_view rest);
/// SplitName(name).project.
std::string ProjectOf(std::string_view name);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_PROJECT_NAME_H_
