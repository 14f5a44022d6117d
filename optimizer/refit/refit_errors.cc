#include "optimizer/refit/refit_errors.h"

#include <map>
#include <memory>
#include <string>

#include "base/status.h"
#include "graph/rewrite.h"
#include "optimizer/numeric_gate.h"
#include "optimizer/profile/profile_cache.h"
#include "optimizer/profile/profiler.h"

namespace mendel {
namespace {

/// `b` with inputs and outputs in the order of `a`.
absl::StatusOr<Graph> InOrderOf(const Graph& a, const Graph& b) {
  GraphBuilder builder(b.name());
  std::map<std::string, ValueId> inputs;
  for (int32_t id : a.inputs())
    inputs[InputName(a.node(id))] = builder.Input(InputName(a.node(id)), a.node(id).outputs[0]);
  std::vector<ValueId> ordered;
  for (int32_t id : b.inputs()) ordered.push_back(inputs.at(InputName(b.node(id))));
  MENDEL_ASSIGN_OR_RETURN(const std::vector<ValueId> values, Inline(b, ordered, builder));
  for (const GraphOutput& wanted : a.outputs()) {
    for (size_t k = 0; k < values.size(); ++k) {
      if (b.outputs()[k].name == wanted.name) builder.Output(wanted.name, values[k]);
    }
  }
  return builder.Build();
}

}  // namespace

absl::StatusOr<std::vector<RefitError>> MeasureRefitErrors(const Graph& a, const Graph& b,
                                                           const RefitOptions& options) {
  const Backend* backend = FindBackend(options.backend);
  if (backend == nullptr || !backend->Probe().ok()) backend = FindBackend("reference");
  if (backend == nullptr) return Unsupported("no backend to measure errors with");
  MENDEL_ASSIGN_OR_RETURN(const Graph ordered, InOrderOf(a, b));
  MENDEL_ASSIGN_OR_RETURN(const std::unique_ptr<ProfileCache> cache,
                          ProfileCache::Open(":memory:"));
  const Profiler profiler(*backend, *cache, {});
  GateOptions gate;
  gate.seed = options.seed;
  gate.edge_flops = options.edge_flops;
  MENDEL_ASSIGN_OR_RETURN(const GateResult result,
                          NumericGate(a, {a, {}}, {ordered, {}}, profiler, gate));
  std::vector<RefitError> errors;
  for (const plan::NumericResult& output : result.outputs) {
    errors.push_back({output.output(), output.baseline_max(), output.baseline_p999(),
                      output.plan_max(), output.plan_p999()});
  }
  return errors;
}

}  // namespace mendel
