#include "server/store/spec_names.h"

#include <utility>

#include "base/status.h"
#include "server/store/project_name.h"

namespace mendel::server {

std::vector<std::string> ModelsOf(const v1::JobSpec& spec) {
  switch (spec.work_case()) {
    case v1::JobSpec::kOptimize:
      return {spec.optimize().model()};
    case v1::JobSpec::kVerifyPlan:
      return {spec.verify_plan().model()};
    case v1::JobSpec::kComparePair:
      return {spec.compare_pair().model_a(), spec.compare_pair().model_b()};
    case v1::JobSpec::kRefitPlan:
      return {spec.refit_plan().model()};
    case v1::JobSpec::WORK_NOT_SET:
      return {};
  }
  return {};
}

std::string DeviceOf(const v1::JobSpec& spec) {
  const std::string& device = spec.optimize().device();
  return device == "cpu" ? "" : device;
}

std::string RebindDeviceOf(const v1::Plan& plan) {
  if (plan.unmeasured()) return Cat(plan.device(), ":", plan.isa());
  return plan.device() == "cpu" ? "" : plan.device();
}

std::vector<std::string> PlansOf(const v1::JobSpec& spec) {
  if (spec.has_verify_plan()) return {spec.verify_plan().plan()};
  if (spec.has_refit_plan()) return {spec.refit_plan().plan()};
  return {};
}

absl::StatusOr<std::string> ProjectOfSpec(const v1::JobSpec& spec) {
  std::vector<std::string> names = ModelsOf(spec);
  for (std::string& plan : PlansOf(spec)) names.push_back(std::move(plan));
  const std::string project = names.empty() ? "" : ProjectOf(names.front());
  for (const std::string& name : names) {
    if (ProjectOf(name) != project)
      return InvalidInput("spec: names resources of the projects '", ProjectTitle(project),
                          "' and '", ProjectTitle(ProjectOf(name)), "'; a job has one project");
  }
  return project;
}

}  // namespace mendel::server
