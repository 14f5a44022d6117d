// Sessions of an ONNX model as it is: normalized, with default algorithms, without a certificate.
#ifndef MENDEL_CLIENT_MODEL_SESSION_H_
#define MENDEL_CLIENT_MODEL_SESSION_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/command.h"
#include "client/model_options.h"
#include "runtime/bundle_session.h"
#include "runtime/dynamic_session.h"
#include "runtime/plan.h"

namespace mendel {

/// The model as it is for the CPU; one thread for each physical core.
absl::StatusOr<Plan> BaselinePlan(const ImportResult& model);

/// Imports the model (the errors of ImportModel) for the CPU. The session has `options.threads`
/// threads (0: one for each physical core), and its compilation happens at the first use.
absl::StatusOr<std::unique_ptr<BundleSession>> LoadModelSession(const std::string& path,
                                                                const ModelOptions& import,
                                                                const SessionOptions& options,
                                                                Context& context);

/// A model whose symbolic dimensions stay open until inputs arrive. It is parsed once. `bytes`, if
/// set, are the model; they are copied, and the folder of `path` has the external data. Threads as
/// for LoadModelSession.
absl::StatusOr<std::unique_ptr<DynamicSession>> OpenDynamicModel(
    const std::string& path, std::optional<std::string_view> bytes, SessionOptions options,
    DynamicLimits limits);

}  // namespace mendel

#endif  // MENDEL_CLIENT_MODEL_SESSION_H_
