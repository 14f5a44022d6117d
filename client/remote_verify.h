// `mendel verify --server`: the verifier on a server, for files of this machine.
#ifndef MENDEL_CLIENT_REMOTE_VERIFY_H_
#define MENDEL_CLIENT_REMOTE_VERIFY_H_

#include <string>

#include "absl/status/status.h"
#include "client/command.h"
#include "client/remote.h"
#include "client/verify_pair.h"

namespace mendel {

/// Uploads both models, compares them there and reports the verdict. InvalidArgument for options
/// that the service does not have.
absl::Status VerifyPairRemotely(const ServerOptions& server, const PairOptions& options,
                                Context& context);

/// Replays the certificate of a plan that the server holds (found by the hash of the file `plan`,
/// or a name "plans/...") against `model`. NotFound when it does not hold it.
absl::Status VerifyPlanRemotely(const ServerOptions& server, const std::string& plan,
                                const std::string& model, Context& context);

}  // namespace mendel

#endif  // MENDEL_CLIENT_REMOTE_VERIFY_H_
