// A session of an ONNX model as it is: normalized, with default algorithms, without a certificate.
#ifndef MENDEL_CLIENT_MODEL_SESSION_H_
#define MENDEL_CLIENT_MODEL_SESSION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/command.h"
#include "client/model_options.h"
#include "runtime/bundle_session.h"

namespace mendel {

/// Imports the model (the errors of ImportModel) for the CPU. The session's threads are
/// `options.threads`, and its compilation happens at the first use.
absl::StatusOr<std::unique_ptr<BundleSession>> LoadModelSession(const std::string& path,
                                                                const ModelOptions& import,
                                                                SessionOptions options,
                                                                Context& context);

}  // namespace mendel

#endif  // MENDEL_CLIENT_MODEL_SESSION_H_
