// The reproduction bundle: what a bug report needs, written when a command ends with an internal
// error.
#ifndef MENDEL_CLIENT_BUNDLE_H_
#define MENDEL_CLIENT_BUNDLE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mendel {

/// Makes a new folder mendel-bundle-<process id> in `parent` with report.txt (version, command
/// line, error) and copies of the input files of at most 64 MiB; of larger ones report.txt holds
/// size and name. Returns the folder.
absl::StatusOr<std::string> WriteBundle(const std::string& parent,
                                        const std::vector<std::string>& command_line,
                                        const std::vector<std::string>& inputs,
                                        const absl::Status& error);

}  // namespace mendel

#endif  // MENDEL_CLIENT_BUNDLE_H_
