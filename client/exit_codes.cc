#include "client/exit_codes.h"

namespace mendel {

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitGood;
    case absl::StatusCode::kFailedPrecondition:
      return kExitNo;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kAlreadyExists:
      return kExitBadInput;
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
      return kExitUndecided;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss:
      return kExitInputOutput;
    case absl::StatusCode::kCancelled:
      return kExitInterrupted;
    default:
      return kExitInternal;
  }
}

}  // namespace mendel
