#include "client/remote_verify.h"

#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/status.h"
#include "client/format.h"
#include "client/limits.h"
#include "client/service/local_file.h"
#include "client/service/upload.h"
#include "runtime/plan_file.h"

namespace mendel {
namespace {

/// The option that `mendel verify` supports here only, by name; empty: none was given.
std::string LocalOnly(const PairOptions& options) {
  if (!options.import.bindings.empty()) return "--bind";
  if (!options.names.empty()) return "--map";
  if (!options.outputs.empty()) return "--outputs";
  if (!options.witness_folder.empty()) return "--witness";
  if (!options.junit.empty()) return "--junit";
  if (!options.cut_points) return "--no-cut-points";
  if (options.explain_regions) return "--explain-regions";
  return "";
}

absl::Status VerifyRemotely(ServiceClient& client, const v1::JobSpec& spec, bool refit_is_good,
                            Context& context) {
  const auto name = client.Submit(spec, {});
  if (!name.ok()) return FromServer(name.status());
  MENDEL_ASSIGN_OR_RETURN(const v1::Job job, FollowJob(client, *name, 0, context));
  return ReportVerdict(job.verdict(), refit_is_good, context);
}

/// "plans/{sha256}" of a file in the project, or the name itself.
absl::StatusOr<std::string> PlanName(const std::string& plan, const std::string& project) {
  if (plan.rfind("plans/", 0) == 0 || plan.rfind("projects/", 0) == 0) return plan;
  MENDEL_ASSIGN_OR_RETURN(const LocalFile file, LocalFile::Open(plan));
  MENDEL_ASSIGN_OR_RETURN(const int64_t size, file.Size());
  Sha256 hash;
  MENDEL_RETURN_IF_ERROR(file.Hash(size, hash));
  return NameIn(project, Cat("plans/", hash.HexDigest()));
}

}  // namespace

absl::Status VerifyPairRemotely(const ServerOptions& server, const PairOptions& options,
                                Context& context) {
  if (const std::string option = LocalOnly(options); !option.empty())
    return InvalidInput(option, " does not go with --server");
  if (IsPlanFile(options.a) || IsPlanFile(options.b))
    return InvalidInput("a server compares ONNX files (and a plan with --model)");
  v1::JobSpec spec;
  v1::ComparePairSpec& pair = *spec.mutable_compare_pair();
  if (!options.time_limit.empty()) {
    MENDEL_ASSIGN_OR_RETURN(const double seconds, ParseDuration(options.time_limit));
    *pair.mutable_time_limit() = DurationOf(seconds);
  }
  if (!options.memory_limit.empty()) {
    MENDEL_ASSIGN_OR_RETURN(const int64_t bytes, ParseBytes(options.memory_limit));
    pair.set_memory_limit_bytes(bytes);
  }
  for (const std::string& shape : options.import.shapes)
    *pair.mutable_shapes() += Cat(pair.shapes().empty() ? "" : ",", shape);
  pair.set_weights(options.weights == WeightMode::kExact ? "exact" : "symbolic");
  pair.set_tests(options.tests);
  pair.set_seed(options.seed);
  pair.set_regions(options.regions);
  pair.set_fold_tolerance_ulps(options.fold_tolerance.value_or(0));
  MENDEL_ASSIGN_OR_RETURN(const auto client, Connect(server, context));
  MENDEL_ASSIGN_OR_RETURN(const v1::Model a, UploadModel(*client, options.a, context));
  MENDEL_ASSIGN_OR_RETURN(const v1::Model b, UploadModel(*client, options.b, context));
  pair.set_model_a(a.name());
  pair.set_model_b(b.name());
  return VerifyRemotely(*client, spec, options.fold_tolerance.has_value(), context);
}

absl::Status VerifyPlanRemotely(const ServerOptions& server, const std::string& plan,
                                const std::string& model, Context& context) {
  v1::JobSpec spec;
  MENDEL_ASSIGN_OR_RETURN(*spec.mutable_verify_plan()->mutable_plan(),
                          PlanName(plan, server.service.project));
  MENDEL_ASSIGN_OR_RETURN(const auto client, Connect(server, context));
  MENDEL_ASSIGN_OR_RETURN(const v1::Model uploaded, UploadModel(*client, model, context));
  spec.mutable_verify_plan()->set_model(uploaded.name());
  return VerifyRemotely(*client, spec, false, context);
}

}  // namespace mendel
