// Seconds of every node in the chain.

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "optimizer/profile/node_seconds.h"
#include "optimizer/profile/operator_profiles.h"
#include "optimizer/profile/profiler.h"
#include "optimizer/profile/trial.h"

namespace mendel {

absl::StatusOr<std::vector<double>> Profiler::NodeSeconds(const Variant& variant,
                                                          double max_seconds) {
  const std::string key = Key(variant);
  const std::string short_key = Cat(key, " ", budget_);  // of fewer runs
  std::vector<double> seconds(variant.graph.nodes().size(), 0);
  for (const std::string& stored_key : {key, short_key}) {
    const auto stored = cache_.Get("nodes", stored_key);
    if (!stored.has_value()) continue;
    std::istringstream numbers(*stored);
    for (double& value : seconds) numbers >> value;
    if (numbers) return seconds;
  }
  if (options_.error_on_miss)
    return absl::NotFoundError("no stored measurement of this graph's nodes");
  if (options_.costs) {
    MENDEL_ASSIGN_OR_RETURN(seconds, options_.costs(variant.graph, OptionsFor(variant.algorithms)));
    std::vector<Step> steps;
    for (size_t id = 0; id < seconds.size(); ++id) {
      if (seconds[id] > 0)
        steps.push_back(
            {.name = "", .nodes = {static_cast<int32_t>(id)}, .kernel = "", .flops = 0});
    }
    MENDEL_RETURN_IF_ERROR(PutNodeSeconds(variant, key, seconds, steps));
    return seconds;
  }
  const Stopwatch first;
  MENDEL_ASSIGN_OR_RETURN(const auto executable, Compile(variant));
  Trial trial(variant.graph);
  const Stopwatch clock;
  MENDEL_RETURN_IF_ERROR(trial.Run(*executable).status());
  first_seconds_[key] = first.Seconds();
  const int runs = 3 * clock.Seconds() > max_seconds ? 1 : 3;
  Executable* const pointer = executable.get();
  MENDEL_ASSIGN_OR_RETURN(
      const auto medians,
      trial.StepMedians({&pointer, 1},
                        {.min_runs = runs, .seconds = max_seconds, .deadline = deadline_}));
  ++measured_;
  const std::vector<Step>& steps = executable->steps();
  seconds = SecondsByNode(steps, medians[0], seconds.size());
  MENDEL_RETURN_IF_ERROR(PutNodeSeconds(variant, runs < 3 ? short_key : key, seconds, steps));
  return seconds;
}

absl::Status Profiler::PutNodeSeconds(const Variant& variant, const std::string& key,
                                      const std::vector<double>& seconds,
                                      const std::vector<Step>& steps) {
  std::ostringstream text;
  text.precision(17);
  for (double value : seconds) text << value << "\n";
  MENDEL_RETURN_IF_ERROR(cache_.Put("nodes", key, text.str()));
  return cache_.Put("operators", key,
                    PrintOperatorProfiles(variant.graph, seconds, steps, Device()));
}

}  // namespace mendel
