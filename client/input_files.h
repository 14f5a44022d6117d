// Values of inputs from .npy files, as commands name them: NAME=FILE.npy.
#ifndef MENDEL_CLIENT_INPUT_FILES_H_
#define MENDEL_CLIENT_INPUT_FILES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/command.h"
#include "graph/tensor.h"

namespace mendel {

/// Reads the files. InvalidArgument names an assignment that is none, a file that cannot be read,
/// or an input that is given twice.
absl::StatusOr<std::map<std::string, Tensor>> ReadInputFiles(
    const std::vector<std::string>& assignments, Context& context);

}  // namespace mendel

#endif  // MENDEL_CLIENT_INPUT_FILES_H_
