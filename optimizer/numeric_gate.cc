#include "optimizer/numeric_gate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/deadline.h"
#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/rewrite.h"
#include "runtime/allowed_error.h"

namespace mendel {
namespace {

struct ErrorPair {
  double max = 0;
  double p999 = 0;
};

/// Errors of `got` relative to the largest finite reference magnitude. Equal infinities and NaN
/// against NaN are no error; any other mismatch of finiteness is an infinite one.
ErrorPair Errors(const HostValue& reference, const Tensor& got) {
  const int64_t count = got.size();
  double scale = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (std::isfinite(reference.At(i))) scale = std::max(scale, std::abs(reference.At(i)));
  }
  std::vector<double> errors(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const double want = reference.At(i);
    const double have = got.DoubleAt(i);
    double& error = errors[static_cast<size_t>(i)];
    if (std::isfinite(want) && std::isfinite(have)) {
      error = std::abs(want - have) / std::max(scale, kSmallestScale);
    } else {
      error = want == have || (std::isnan(want) && std::isnan(have))
                  ? 0
                  : std::numeric_limits<double>::infinity();
    }
  }
  ErrorPair pair;
  if (errors.empty()) return pair;
  pair.max = *std::max_element(errors.begin(), errors.end());
  const size_t rank =
      std::min(errors.size() - 1, static_cast<size_t>(0.999 * static_cast<double>(errors.size())));
  std::nth_element(errors.begin(), errors.begin() + static_cast<std::ptrdiff_t>(rank),
                   errors.end());
  pair.p999 = errors[rank];
  return pair;
}

/// Zeros, large magnitudes, denormals and one-hot in place of the float inputs; integer inputs
/// stay.
std::vector<std::vector<Tensor>> EdgeInputs(const std::vector<Tensor>& random) {
  std::vector<std::vector<Tensor>> cases(4, random);
  for (size_t k = 0; k < random.size(); ++k) {
    if (!IsFloat(random[k].dtype())) continue;
    std::vector<double> values = random[k].ToDoubles();
    cases[0][k] = Tensor::Filled(random[k].type(), 0);
    std::vector<double> large = values, denormal = values, one_hot(values.size(), 0.0);
    const double most = IsFloat8(random[k].dtype()) ? LargestFloat8(random[k].dtype())
                                                    : std::numeric_limits<double>::max();
    for (double& value : large) value = std::clamp(value * 1e4, -most, most);
    for (double& value : denormal) value *= 1e-40;
    if (!one_hot.empty()) one_hot[one_hot.size() / 2] = 1;
    cases[1][k] = Tensor::FromDoubles(random[k].type(), large);
    cases[2][k] = Tensor::FromDoubles(random[k].type(), denormal);
    cases[3][k] = Tensor::FromDoubles(random[k].type(), one_hot);
  }
  return cases;
}

absl::StatusOr<std::vector<std::vector<Tensor>>> MakeInputs(const Graph& graph,
                                                            const GateOptions& options) {
  std::vector<std::vector<Tensor>> cases;
  for (const auto& sample : options.samples) {
    std::vector<Tensor> inputs;
    for (int32_t id : graph.inputs()) {
      const std::string& name = InputName(graph.node(id));
      const auto it = sample.find(name);
      if (it == sample.end()) return InvalidInput("the sample data has no input '", name, "'");
      if (it->second.type() != graph.node(id).outputs[0]) {
        return InvalidInput("sample of '", name, "' is ", TypeString(it->second.type()), ", not ",
                            TypeString(graph.node(id).outputs[0]));
      }
      inputs.push_back(it->second);
    }
    cases.push_back(std::move(inputs));
  }
  if (!cases.empty()) return cases;
  cases.push_back(RandomInputs(graph, options.seed));
  const double flops = std::max(1.0, TotalFlops(graph));
  for (auto& edge : EdgeInputs(cases[0])) {
    if (flops * static_cast<double>(cases.size() + 1) <= options.edge_flops)
      cases.push_back(std::move(edge));
  }
  return cases;
}

void Worsen(plan::NumericResult& result, const ErrorPair& baseline, const ErrorPair& plan) {
  result.set_baseline_max(std::max(result.baseline_max(), baseline.max));
  result.set_baseline_p999(std::max(result.baseline_p999(), baseline.p999));
  result.set_plan_max(std::max(result.plan_max(), plan.max));
  result.set_plan_p999(std::max(result.plan_p999(), plan.p999));
}

/// True when input `number` is to be left out.
bool LeavesOut(const GateOptions& options, size_t number) {
  return options.limit.Passed() ||
         (number > 0 && options.limit.StoppedBy(options.interrupted).Passed());
}

/// The outputs of `original` in double, or nullopt past the limit.
absl::StatusOr<std::optional<std::vector<HostValue>>> ReferenceFor(const Graph& original,
                                                                   std::span<const Tensor> inputs,
                                                                   const Deadline& limit) {
  std::vector<HostValue> host;
  for (const Tensor& input : inputs) host.push_back(HostValue::FromTensor(input));
  bool over = false;  // what follows is computed no more, and nobody reads it
  const auto evaluate = [&](const OpDefinition& op, const NodeView& node,
                            std::span<const HostValue* const> operands) {
    over = over || limit.Passed();
    if (!over) return EvaluateNode(op, node, operands);
    std::vector<HostValue> zeros;
    for (const TensorType& type : node.outputs)
      zeros.push_back(HostValue::FromTensor(Tensor::Filled(type, 0)));
    return zeros;
  };
  MENDEL_ASSIGN_OR_RETURN(std::vector<HostValue> outputs, EvaluateWith(original, host, evaluate));
  if (over) return std::nullopt;
  return outputs;
}

/// Outputs of a compiled program for every case that is not left out.
absl::StatusOr<std::vector<std::vector<Tensor>>> RunCases(
    const Variant& variant, const std::vector<std::vector<Tensor>>& cases, const Profiler& profiler,
    Numerics numerics, const GateOptions& gate) {
  const ProfilerOptions& options = profiler.options();
  std::vector<std::vector<Tensor>> outputs;
  if (LeavesOut(gate, 0)) return outputs;
  MENDEL_ASSIGN_OR_RETURN(
      const auto program,
      profiler.backend().Compile(variant.graph, {.threads = options.threads,
                                                 .cpus = options.cpus,
                                                 .numerics = numerics,
                                                 .algorithms = variant.algorithms}));
  for (const std::vector<Tensor>& inputs : cases) {
    if (LeavesOut(gate, outputs.size())) break;
    MENDEL_ASSIGN_OR_RETURN(std::vector<Tensor> results,
                            RunOnTensors(*program, variant.graph, inputs));
    outputs.push_back(std::move(results));
  }
  return outputs;
}

}  // namespace

absl::StatusOr<GateResult> NumericGate(const Graph& original, const Variant& baseline,
                                       const Variant& plan, const Profiler& profiler,
                                       const GateOptions& options) {
  MENDEL_ASSIGN_OR_RETURN(const auto cases, MakeInputs(original, options));
  // One program at a time: each contains its own packed weights, the reference holds them in double
  // precision.
  const Numerics numerics = profiler.options().numerics;
  // Integer kernels are held against those of f32.
  const Numerics held_against = numerics == Numerics::kInt8 ? Numerics::kDefault : numerics;
  MENDEL_ASSIGN_OR_RETURN(const auto by_baseline,
                          RunCases(baseline, cases, profiler, held_against, options));
  const bool same = numerics == held_against && &plan.graph.nodes() == &baseline.graph.nodes() &&
                    plan.algorithms == baseline.algorithms;
  auto by_plan = by_baseline;
  if (!same) {
    MENDEL_ASSIGN_OR_RETURN(by_plan, RunCases(plan, cases, profiler, numerics, options));
  }
  GateResult result;
  for (size_t i = 0; i < std::min(by_baseline.size(), by_plan.size()); ++i) {
    if (LeavesOut(options, i)) break;
    const Stopwatch clock;
    MENDEL_ASSIGN_OR_RETURN(const auto reference, ReferenceFor(original, cases[i], options.limit));
    result.reference_seconds += clock.Seconds();
    if (!reference.has_value()) break;
    result.outputs.resize(original.outputs().size());
    for (size_t k = 0; k < reference->size(); ++k) {
      result.outputs[k].set_output(original.outputs()[k].name);
      Worsen(result.outputs[k], Errors((*reference)[k], by_baseline[i][k]),
             Errors((*reference)[k], by_plan[i][k]));
    }
    ++result.inputs;
  }
  result.left_out = static_cast<int>(cases.size()) - result.inputs;
  for (const plan::NumericResult& output : result.outputs) {
    const double limit = std::max(AllowedError(numerics), options.factor * output.baseline_max());
    if (output.plan_max() <= limit || !result.passed) continue;
    result.passed = false;
    result.failure = Cat("output '", output.output(), "': error ", output.plan_max(),
                         " of the largest output exceeds ", limit);
  }
  return result;
}

}  // namespace mendel
