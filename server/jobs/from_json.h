// Output of `mendel --json` and `--progress-fd`, as messages of the API. No other code parses a
// worker's JSON.
//
// The text comes from a worker that executed a stranger's model: members may be absent, of any type
// and any size. Unusable members are left out. Texts are cut, and numbers that are not finite
// become 0.
#ifndef MENDEL_SERVER_JOBS_FROM_JSON_H_
#define MENDEL_SERVER_JOBS_FROM_JSON_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "mendel/v1/jobs.pb.h"
#include "mendel/v1/plans.pb.h"
#include "mendel/v1/verifier.pb.h"

namespace mendel::server {

/// Limits of a verdict: its number of boxes, and the bytes of its JSON report. A job travels in one
/// message, so both are bounded.
inline constexpr int kMostBoxes = 10'000;
inline constexpr size_t kMostReportBytes = 1 << 20;

struct ProgressLine {
  v1::Progress progress;
  std::vector<std::string> warnings;
};

/// InvalidArgument when the line is no JSON object.
absl::StatusOr<ProgressLine> ProgressFromJson(std::string_view line);

/// The "error" member of facts: an absl::Status with the code and message of the command's error;
/// OK where there is none.
absl::Status ErrorFromJson(std::string_view facts);

/// Facts of `optimize` and `rebind`. The caller sets name, blob, size_bytes, model, job and
/// create_time. InvalidArgument when the text is no JSON object.
absl::StatusOr<v1::Plan> PlanFromJson(std::string_view facts);

/// Facts of `verify`, for two models or a plan. InvalidArgument if there is neither a verdict nor
/// an error that stands for one. FailedPrecondition stands for different, Aborted and
/// DeadlineExceeded for unproven.
absl::StatusOr<v1::Verdict> VerdictFromJson(std::string_view facts);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_JOBS_FROM_JSON_H_
