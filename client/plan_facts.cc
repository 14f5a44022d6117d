#include "client/plan_facts.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/offline_device.h"

namespace mendel {
namespace {

using Json = nlohmann::ordered_json;

Json StoredTiming(const plan::TimingProto& timing) {
  return {{"median_ms", timing.median_ms()},
          {"min_ms", timing.min_ms()},
          {"p90_ms", timing.p90_ms()},
          {"spread", timing.spread()},
          {"runs", timing.runs()}};
}

}  // namespace

void ReportPlanInfo(const plan::PlanInfo& info, Context& context) {
  Json& facts = context.facts();
  const plan::Target& target = info.target();
  facts["target"] = {{"backend", target.backend()},
                     {"identity", target.identity()},
                     {"isa", target.isa()},
                     {"threads", target.threads()},
                     {"numerics", target.numerics()}};
  facts["weights"] = info.weights() == plan::WEIGHTS_MODE_SYMBOLIC ? "symbolic" : "exact";
  facts["unmeasured"] = IsUnmeasured(info);
  std::map<std::string, int> mutants;
  for (const plan::AppliedMutant& mutant : info.mutants()) ++mutants[mutant.rule()];
  facts["mutants"] = mutants;
  for (const plan::NumericResult& output : info.numeric()) {
    facts["numeric"].push_back({{"output", output.output()},
                                {"baseline_max", output.baseline_max()},
                                {"baseline_p999", output.baseline_p999()},
                                {"plan_max", output.plan_max()},
                                {"plan_p999", output.plan_p999()}});
  }
}

void ReportPlanTimes(const plan::PlanInfo& info, Context& context) {
  Json& facts = context.facts();
  facts["baseline"] = StoredTiming(info.baseline_ms());
  facts["plan"] = StoredTiming(info.plan_ms());
  facts["speedup"] = info.plan_ms().median_ms() > 0
                         ? info.baseline_ms().median_ms() / info.plan_ms().median_ms()
                         : 1;
}

}  // namespace mendel
