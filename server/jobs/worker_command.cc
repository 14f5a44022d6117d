#include "server/jobs/worker_command.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/status.h"
#include "server/store/project_name.h"

namespace mendel::server {
namespace {

/// Relative, without "", "." and ".." parts, backslashes kept: it is a path of this system.
bool StaysBelow(const std::string& path) {
  if (path.empty() || path.size() > 1024 || path.front() == '/' ||
      path.find('\0') != std::string::npos)
    return false;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

bool IsOffline(const std::string& device, const RunnerOptions& options) {
  return std::any_of(options.devices.begin(), options.devices.end(),
                     [&](const WorkerDevice& one) { return one.offline && one.name == device; });
}

class CommandMaker {
 public:
  CommandMaker(const RunnerOptions& options, JobStore& jobs, BlobStore& blobs)
      : options_(options), jobs_(jobs), blobs_(blobs) {}

  absl::Status Optimize(const v1::OptimizeSpec& spec) {
    Word("optimize");
    MENDEL_RETURN_IF_ERROR(Model(spec.model(), "model", ""));
    DeliversPlan(spec.model());
    command_.searches = true;
    Word("--cache=cache/profiles.sqlite");
    Word(Cat("--budget=",
             SecondsOr(spec.budget().time(), static_cast<double>(options_.default_budget_seconds)),
             "s"));
    Word(Cat("--seed=", spec.seed()));
    if (!spec.numerics().empty()) Word(Cat("--numerics=", spec.numerics()));
    // A server's plans may take other weights.
    Word(Cat("--weights=", spec.weights().empty() ? "symbolic" : spec.weights()));
    if (!spec.device().empty()) Word(Cat("--backend=", spec.device()));
    if (IsOffline(spec.device(), options_)) Word("--offline");
    if (spec.threads() > 0) Word(Cat("--threads=", spec.threads()));
    if (spec.budget().candidates() > 0) Word(Cat("--max-candidates=", spec.budget().candidates()));
    if (spec.target_bound_log2() != 0) Word(Cat("--target-bound=", spec.target_bound_log2()));
    if (spec.max_weight_growth_bytes() > 0)
      Word(Cat("--max-weight-growth=", spec.max_weight_growth_bytes()));
    if (spec.disabled_rules_size() > 0)
      Word(Cat("--disable=", absl::StrJoin(spec.disabled_rules(), ",")));
    Shapes(spec.shapes());
    return absl::OkStatus();
  }

  absl::Status Compare(const v1::ComparePairSpec& spec) {
    Word("verify");
    MENDEL_RETURN_IF_ERROR(Model(spec.model_a(), "a", ""));
    MENDEL_RETURN_IF_ERROR(Model(spec.model_b(), "b", ""));
    if (!spec.weights().empty()) Word(Cat("--weights=", spec.weights()));
    if (spec.tests() > 0) Word(Cat("--tests=", spec.tests()));
    if (spec.seed() > 0) Word(Cat("--seed=", spec.seed()));
    Word(Cat("--time-limit=",
             SecondsOr(spec.time_limit(), static_cast<double>(options_.max_budget_seconds)), "s"));
    Word(spec.regions() ? "--regions" : "--no-regions");
    if (spec.memory_limit_bytes() > 0) Word(Cat("--memory-limit=", spec.memory_limit_bytes()));
    if (spec.fold_tolerance_ulps() > 0) Word(Cat("--fold-tolerance=", spec.fold_tolerance_ulps()));
    Shapes(spec.shapes());
    return absl::OkStatus();
  }

  absl::Status VerifyPlan(const v1::VerifyPlanSpec& spec) {
    Word("verify");
    MENDEL_RETURN_IF_ERROR(Plan(spec.plan()));
    return Model(spec.model(), "model", "--model=");
  }

  absl::Status Rebind(const v1::RefitPlanSpec& spec) {
    Word("rebind");
    MENDEL_RETURN_IF_ERROR(Plan(spec.plan()));
    MENDEL_RETURN_IF_ERROR(Model(spec.model(), "model", "--model="));
    DeliversPlan(spec.model());
    return absl::OkStatus();
  }

  WorkerCommand Finish() && {
    Word("--json");
    Word("--progress-fd=3");
    return std::move(command_);
  }

 private:
  void Word(std::string_view word) { command_.arguments.emplace_back(word); }

  /// An option follows, so that it cannot take what stands behind it.
  void Shapes(const std::string& shapes) {
    if (!shapes.empty()) Word(Cat("--shapes=", shapes));
  }

  void DeliversPlan(const std::string& model) {
    Word(Cat("--output=out/", kPlanFile));
    command_.makes_plan = true;
    command_.model = model;
  }

  /// The model's files below in/`folder`, and `prefix` with the main file's path as a word.
  absl::Status Model(const std::string& name, const std::string& folder,
                     const std::string& prefix) {
    MENDEL_ASSIGN_OR_RETURN(const v1::Model model, jobs_.GetModel(name));
    for (const v1::ModelFile& file : model.files()) {
      if (!StaysBelow(file.path()))
        return InvalidInput("a path of ", name, " leaves the model's folder");
      MENDEL_ASSIGN_OR_RETURN(
          std::string source,
          blobs_.Path({file.digest().sha256(), file.digest().size_bytes(), ProjectOf(name)}));
      command_.views.push_back({std::move(source), Cat(folder, "/", file.path())});
    }
    if (!StaysBelow(model.main_file())) return InvalidInput(name, " names no main file");
    Word(Cat(prefix, "in/", folder, "/", model.main_file()));
    return absl::OkStatus();
  }

  absl::Status Plan(const std::string& name) {
    MENDEL_ASSIGN_OR_RETURN(const v1::Plan plan, jobs_.GetPlan(name));
    MENDEL_ASSIGN_OR_RETURN(const BlobId blob, ParseBlobName(plan.blob()));
    MENDEL_ASSIGN_OR_RETURN(std::string source, blobs_.Path(blob));
    command_.views.push_back({std::move(source), "plan/old.plan"});
    Word("in/plan/old.plan");
    return absl::OkStatus();
  }

  const RunnerOptions& options_;
  JobStore& jobs_;
  BlobStore& blobs_;
  WorkerCommand command_;
};

}  // namespace

double SecondsOr(const google::protobuf::Duration& duration, double absent) {
  const double seconds = static_cast<double>(duration.seconds()) + duration.nanos() * 1e-9;
  return seconds == 0 ? absent : seconds;
}

absl::StatusOr<WorkerCommand> MakeWorkerCommand(const v1::JobSpec& spec,
                                                const RunnerOptions& options, JobStore& jobs,
                                                BlobStore& blobs) {
  CommandMaker maker(options, jobs, blobs);
  switch (spec.work_case()) {
    case v1::JobSpec::kOptimize:
      MENDEL_RETURN_IF_ERROR(maker.Optimize(spec.optimize()));
      break;
    case v1::JobSpec::kVerifyPlan:
      MENDEL_RETURN_IF_ERROR(maker.VerifyPlan(spec.verify_plan()));
      break;
    case v1::JobSpec::kComparePair:
      MENDEL_RETURN_IF_ERROR(maker.Compare(spec.compare_pair()));
      break;
    case v1::JobSpec::kRefitPlan:
      MENDEL_RETURN_IF_ERROR(maker.Rebind(spec.refit_plan()));
      break;
    case v1::JobSpec::WORK_NOT_SET:
      return InvalidInput("spec: no work is set");
  }
  return std::move(maker).Finish();
}

}  // namespace mendel::server
