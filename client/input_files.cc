#include "client/input_files.h"

#include <utility>

#include "base/status.h"
#include "client/format.h"
#include "runtime/npy.h"

namespace mendel {

absl::StatusOr<std::map<std::string, Tensor>> ReadInputFiles(
    const std::vector<std::string>& assignments, Context& context) {
  std::map<std::string, Tensor> tensors;
  for (const std::string& input : assignments) {
    MENDEL_ASSIGN_OR_RETURN(const auto assignment, ParseAssignment(input));
    context.Input(assignment.second);
    MENDEL_ASSIGN_OR_RETURN(Tensor tensor, ReadNpy(assignment.second));
    if (!tensors.emplace(assignment.first, std::move(tensor)).second)
      return InvalidInput("input '", assignment.first, "' is given twice");
  }
  return tensors;
}

}  // namespace mendel
