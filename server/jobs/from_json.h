// What `mendel --json` and `--progress-fd` print, as messages of the API. The one place where JSON is read.
//
// The text comes from a worker that executed a stranger's model: members may be absent, of any type and any size. What does not
// fit is left out; texts are cut and numbers that are not finite become 0.
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

/// A verdict holds at most so many boxes, and its report in JSON only up to so many bytes: a job is one message.
inline constexpr int kMostBoxes = 10'000;
inline constexpr size_t kMostReportBytes = 1 << 20;

struct ProgressLine {
  v1::Progress progress;
  std::vector<std::string> warnings;
};

/// InvalidArgument when the line is no JSON object.
absl::StatusOr<ProgressLine> ProgressFromJson(std::string_view line);

/// The "error" member of facts: an absl::Status of the code and message that the command ended with; OK where there is none.
absl::Status ErrorFromJson(std::string_view facts);

/// Facts of `optimize` and `refit`. name, blob, size_bytes, model, job and create_time are the caller's. InvalidArgument when the
/// text is no JSON object.
absl::StatusOr<v1::Plan> PlanFromJson(std::string_view facts);

/// Facts of `verify`, of two models or of a plan. InvalidArgument when they hold neither a verdict nor an error that is one
/// (FailedPrecondition: different; Aborted, DeadlineExceeded: unproven).
absl::StatusOr<v1::Verdict> VerdictFromJson(std::string_view facts);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_JOBS_FROM_JSON_H_
