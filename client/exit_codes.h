// Exit codes of `mendel`, and the one place where a status becomes one.
#ifndef MENDEL_CLIENT_EXIT_CODES_H_
#define MENDEL_CLIENT_EXIT_CODES_H_

#include "absl/status/status.h"

namespace mendel {

enum ExitCode : int {
  kExitGood = 0,
  kExitNo = 1,             ///< the answer is "no": not equivalent
  kExitBadInput = 2,       ///< malformed, mismatched or unsupported input, wrong usage
  kExitUndecided = 3,      ///< out of time, or beyond what the verifier can decide
  kExitInternal = 4,       ///< a bug of ours; a reproduction bundle was written
  kExitInputOutput = 5,    ///< a file, the disk or a server failed
  kExitInterrupted = 130,  ///< interrupted with nothing saved
};

/// FailedPrecondition: no. InvalidArgument, Unimplemented, OutOfRange, AlreadyExists: bad input.
/// DeadlineExceeded, Aborted: undecided. NotFound, PermissionDenied, Unauthenticated,
/// ResourceExhausted, Unavailable, DataLoss: input/output. Cancelled: interrupted. Everything else:
/// internal.
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace mendel

#endif  // MENDEL_CLIENT_EXIT_CODES_H_
