#include "kernels/cuda/testing/corrected_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/status.h"
#include "graph/evaluate.h"
#include "kernels/cuda/backend/corrected_copy.h"
#include "kernels/cuda/backend/executable.h"
#include "kernels/cuda/fusion/preamble.h"
#include "kernels/cuda/testing/correction_case.h"
#include "kernels/cuda/testing/device_case.h"
#include "runtime/backend.h"

namespace mendel::cuda {
namespace {

void ReplaceAll(const std::string& from, const std::string& to, std::string& text) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

}  // namespace

absl::StatusOr<CorrectedPlan> MakeCorrectedPlan(const Graph& graph, const std::string& prefix,
                                                bool reuse_memory) {
  CorrectedPlan plan{"", graph, {}};
  MENDEL_ASSIGN_OR_RETURN(plan.program, LowerToDevice(graph, {.reuse_memory = reuse_memory}));
  for (DeviceLaunch& launch : plan.program.launches) {
    std::string name = launch.kernel;
    if (!name.starts_with("mend_")) continue;
    const std::string entry = name;
    if (name.ends_with(kCorrectedCopy)) name.resize(name.size() - kCorrectedCopy.size());
    for (std::string& text : plan.program.texts) {
      if (text.find(Cat("namespace ", name, "_text {")) != std::string::npos)
        ReplaceAll(name, prefix + name, text);
    }
    launch.kernel = prefix + entry;
    std::replace(plan.program.entries.begin(), plan.program.entries.end(), entry, launch.kernel);
  }
  return plan;
}

std::string ModuleOf(const std::vector<CorrectedPlan>& plans) {
  std::string text = PreambleText();
  std::set<std::string> seen;
  for (const CorrectedPlan& plan : plans) {
    for (const std::string& kernel : plan.program.texts) {
      if (seen.insert(kernel).second) text += kernel + "\n";
    }
  }
  return text;
}

std::vector<const DeviceLaunch*> LaunchesBy(const DeviceProgram& program,
                                            const std::string& kernel) {
  std::vector<const DeviceLaunch*> launches;
  for (const DeviceLaunch& launch : program.launches) {
    if (launch.info.kernel.starts_with(kernel)) launches.push_back(&launch);
  }
  return launches;
}

std::string FailureOf(const Driver& driver, const CorrectedPlan& plan) {
  const auto executable = MakeExecutable(driver, plan.program, &TextImage);
  if (!executable.ok()) return std::string(executable.status().message());
  for (const uint64_t seed : {1, 2, 1}) {
    const std::vector<HostValue> inputs = SmallInputs(plan.graph, seed);
    const auto expected = Evaluate(plan.graph, inputs);
    if (!expected.ok()) return std::string(expected.status().message());
    std::vector<Tensor> tensors;
    for (const HostValue& input : inputs) tensors.push_back(input.ToTensor());
    const auto results = RunOnTensors(**executable, plan.graph, tensors);
    if (!results.ok()) return std::string(results.status().message());
    for (size_t k = 0; k < results->size(); ++k) {
      const std::string difference = Difference((*expected)[k], (*results)[k], plan.tolerance);
      if (!difference.empty())
        return Cat("inputs of seed ", seed, ", output ", k, ": ", difference);
    }
  }
  return "";
}

}  // namespace mendel::cuda
