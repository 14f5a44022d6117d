// Optimized programs of the C interface: made by a search or read, and their facts.
#ifndef MENDEL_CLIENT_C_API_PROGRAM_H_
#define MENDEL_CLIENT_C_API_PROGRAM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/c_api/mendel_optimizer.h"
#include "runtime/plan.h"

struct mendel_program {
  std::vector<mendel::Plan> plans;
  std::string report = "null";  // JSON
};

namespace mendel {

/// Optimizes the model; the caller owns the program. `given`: NULL for defaults.
absl::StatusOr<mendel_program*> OptimizeProgram(const mendel_model* model,
                                                const mendel_call* given);

/// {"members": one object a plan, "report": of the search}, as JSON.
absl::StatusOr<std::string> FactsOf(const mendel_program& program);

}  // namespace mendel

#endif  // MENDEL_CLIENT_C_API_PROGRAM_H_
