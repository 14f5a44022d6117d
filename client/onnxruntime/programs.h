// Mendel's C interface for parts: models, optimized programs and their files.
#ifndef MENDEL_CLIENT_ONNXRUNTIME_PROGRAMS_H_
#define MENDEL_CLIENT_ONNXRUNTIME_PROGRAMS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/c_api/mendel_optimizer.h"

namespace mendel::ort {

/// The error of a call of Mendel's C interface on this thread.
absl::Status Checked(mendel_status status);

/// `bytes` must outlive it.
mendel_model ModelOf(const std::string& bytes);

struct FreeProgram {
  void operator()(mendel_program* program) const { mendel_program_free(program); }
};
using Program = std::unique_ptr<mendel_program, FreeProgram>;

absl::StatusOr<Program> ReadProgram(const std::string& path);
/// The program of a plan file's bytes.
absl::StatusOr<Program> ReadProgramBytes(const std::string& plan);
/// The plan file's bytes.
absl::StatusOr<std::string> PlanBytes(const mendel_program* program);

/// The program that a search finds for `shapes` (empty: those that the model declares).
absl::StatusOr<Program> Optimize(const std::string& bytes, const std::string& shapes,
                                 double budget_s, int threads, mendel_stop* stop);

/// Writes the plan for later sessions; a failure costs them a search, and is no error of this one.
absl::Status Store(const mendel_program* program, const std::string& path);

}  // namespace mendel::ort

#endif  // MENDEL_CLIENT_ONNXRUNTIME_PROGRAMS_H_
