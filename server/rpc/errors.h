// Errors for clients: google.rpc.Status with details. Handlers return absl::Status; details are its
// payloads, keyed by the type URL of the message. Only ToRpcStatus converts them to a
// google.rpc.Status.
#ifndef MENDEL_SERVER_RPC_ERRORS_H_
#define MENDEL_SERVER_RPC_ERRORS_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "google/rpc/status.pb.h"

namespace mendel::server {

/// InvalidArgument with a BadRequest violation of `field`, e.g. "files[2].path".
absl::Status FieldError(std::string_view field, std::string_view description);
/// FieldError of a status whose message begins with a field's path ("spec.optimize.isa: ...").
/// Another status is returned as it is.
absl::Status FieldErrorOf(const absl::Status& status);
/// Adds an ErrorInfo to the details. `reason` is UPPER_SNAKE_CASE and part of the API
/// (docs/service.md lists all reasons).
absl::Status WithReason(absl::Status status, std::string_view reason,
                        const std::map<std::string, std::string>& metadata = {});
/// Adds a RetryInfo to the details: a client should try again after `seconds`.
absl::Status WithRetry(absl::Status status, double seconds);
/// FailedPrecondition with one violation per subject.
absl::Status PreconditionError(std::string_view message, std::string_view type,
                               const std::vector<std::string>& subjects);

/// True for an error of the store's database. Its message may name hosts and users.
bool IsOfJobStore(const absl::Status& status);

/// The message with each path of the server's file system replaced by "(path)".
std::string WithoutPaths(std::string_view message);

/// The status that is sent. It always has ErrorInfo (domain "mendel"), and RetryInfo where a retry
/// can help. Internal and Unknown errors and those of the job store contain nothing but
/// `reference`, under which the log has the rest.
google::rpc::Status ToRpcStatus(const absl::Status& status, std::string_view reference);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_ERRORS_H_
