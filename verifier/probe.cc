#include "verifier/probe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/prime_field.h"
#include "base/status.h"
#include "graph/restrict.h"
#include "graph/rewrite.h"
#include "verifier/bounds.h"
#include "verifier/field_evaluator.h"
#include "verifier/probe_evaluation.h"

namespace mendel {
namespace {

constexpr int kMaxRedraws = 3;
/// Values of one evaluation; probes that need more are evaluated in parts.
constexpr int64_t kMaxBytes = int64_t{256} << 20;

/// Appends the nodes of `graph`; returns its outputs.
absl::StatusOr<std::vector<ValueId>> Append(const Graph& graph, const std::vector<ValueId>& inputs, WeightMode weights,
                                            GraphBuilder& builder) {
  std::vector<int32_t> where(graph.nodes().size(), -1);
  for (size_t k = 0; k < inputs.size(); ++k) where[static_cast<size_t>(graph.inputs()[k])] = inputs[k].node;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (IsInput(node)) continue;
    if (IsConstant(node)) {
      const std::string& symbol = SymbolName(node);
      const bool named = weights == WeightMode::kSymbolic && !symbol.empty();
      where[i] = builder.Constant(ConstantValue(node), named ? Cat(symbol, " ", TypeString(node.outputs[0])) : "").node;
      continue;
    }
    std::vector<ValueId> operands;
    for (ValueId value : node.inputs) operands.push_back({where[static_cast<size_t>(value.node)], value.output});
    MENDEL_ASSIGN_OR_RETURN(where[i], builder.CopyNode(node, std::move(operands)));
  }
  std::vector<ValueId> outputs;
  for (const GraphOutput& output : graph.outputs()) {
    outputs.push_back({where[static_cast<size_t>(output.value.node)], output.value.output});
  }
  return outputs;
}

absl::Status SameTypes(const Graph& f, const Graph& g) {
  if (f.inputs().size() != g.inputs().size() || f.outputs().size() != g.outputs().size()) {
    return InvalidInput("the programs have ", f.inputs().size(), " and ", g.inputs().size(), " inputs, ", f.outputs().size(),
                        " and ", g.outputs().size(), " outputs");
  }
  for (size_t k = 0; k < f.inputs().size(); ++k) {
    const TensorType& a = f.type({f.inputs()[k], 0});
    const TensorType& b = g.type({g.inputs()[k], 0});
    if (a != b) return InvalidInput("input ", k, " is ", TypeString(a), " and ", TypeString(b));
  }
  for (size_t k = 0; k < f.outputs().size(); ++k) {
    const TensorType& a = f.type(f.outputs()[k].value);
    const TensorType& b = g.type(g.outputs()[k].value);
    if (a != b) return InvalidInput("output ", k, " is ", TypeString(a), " and ", TypeString(b));
  }
  return absl::OkStatus();
}

/// log2 of the probability that one test overlooks one difference, with everything in the graph as one segment; outputs come in
/// pairs that are compared.
absl::StatusOr<double> Log2Miss(const Graph& graph, WeightMode weights) {
  std::vector<std::vector<Bound>> bounds(graph.nodes().size());
  std::vector<std::vector<FieldValue>> exact(graph.nodes().size());  // elements of values that are known integers
  Rng any(1);
  const FieldEvaluator evaluator(SeededDraw(any), weights);
  SegmentBound segment;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (IsInput(node)) {
      bounds[i] = {Bound::Symbol()};
      exact[i].resize(1);
      continue;
    }
    if (IsConstant(node)) {
      const ValueBound bound = BoundOfConstant(node, weights);
      segment.AddToCone(bound);
      bounds[i] = {bound.element};
      exact[i].resize(1);
      if (IsIntegral(node.outputs[0].dtype)) exact[i] = {evaluator.Constant(node)};
      continue;
    }
    std::vector<Bound> inputs;
    std::vector<const FieldValue*> known;
    std::vector<bool> concrete;
    for (ValueId value : node.inputs) {
      inputs.push_back(bounds[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)]);
      const FieldValue& elements = exact[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)];
      concrete.push_back(elements.concrete);
      known.push_back(elements.concrete ? &elements : nullptr);
    }
    exact[i].resize(node.outputs.size());
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const auto bound = WithView(graph, static_cast<int32_t>(i), [&](const NodeView& view) -> absl::StatusOr<ValueBound> {
        if (!IsConcrete(view, concrete)) return BoundOfNode(*node.op, view, inputs, known, static_cast<int>(k));
        exact[i][k] = evaluator.Apply(*node.op, view, known, static_cast<int>(k));
        return BoundOfIntegers(exact[i][k].integers);
      });
      if (!bound.ok()) return bound.status();
      segment.AddToCone(*bound);
      bounds[i].push_back(bound->element);
    }
  }
  const auto at = [&](size_t k) {
    const ValueId value = graph.outputs()[k].value;
    return bounds[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)];
  };
  for (size_t k = 0; k + 1 < graph.outputs().size(); k += 2) segment.Compare(at(k), at(k + 1));
  return segment.Log2Miss(uint64_t{1} << 59);
}

/// Some of the probes, or parts of them, as one restricted program: output 2k and 2k + 1 are part k of both programs.
struct Batch {
  struct Part {
    size_t probe = 0;
    Box box;
  };
  std::vector<Part> parts;
  Graph graph;
  double elements = 0;
};

absl::StatusOr<Graph> RestrictTo(const Graph& joint, const std::vector<Probe>& probes, const std::vector<Batch::Part>& parts) {
  const int outputs = static_cast<int>(joint.outputs().size() / 2);
  std::vector<OutputBox> boxes;
  for (const Batch::Part& part : parts) {
    boxes.push_back({probes[part.probe].output, part.box});
    boxes.push_back({probes[part.probe].output + outputs, part.box});
  }
  return RestrictToBoxes(joint, boxes);
}

/// Two halves of about the same number of elements; a single part is cut along its longest dimension.
std::pair<std::vector<Batch::Part>, std::vector<Batch::Part>> Halve(const std::vector<Batch::Part>& parts) {
  if (parts.size() > 1) {
    const auto middle = parts.begin() + static_cast<int64_t>(parts.size() / 2);
    return {{parts.begin(), middle}, {middle, parts.end()}};
  }
  const Shape extents = parts[0].box.Extents();
  const size_t longest = static_cast<size_t>(std::max_element(extents.begin(), extents.end()) - extents.begin());
  std::vector<Batch::Part> low = parts, high = parts;
  low[0].box.end[longest] = high[0].box.begin[longest] = parts[0].box.begin[longest] + extents[longest] / 2;
  return {low, high};
}

/// Batches whose values fit into memory at once, as far as cutting helps: what a part reads does not shrink with it for ever.
absl::Status CutToFit(const Graph& joint, const std::vector<Probe>& probes, std::vector<Batch::Part> parts, int64_t worthwhile,
                      std::vector<Batch>& batches) {
  Batch batch;
  for (const Batch::Part& part : parts) batch.elements += static_cast<double>(part.box.Volume());
  MENDEL_ASSIGN_OR_RETURN(batch.graph, RestrictTo(joint, probes, parts));
  const int64_t peak = ProbeSchedule(batch.graph).PeakBytes();
  if (peak > kMaxBytes && peak <= worthwhile && batch.elements > 1) {
    const auto [low, high] = Halve(parts);
    MENDEL_RETURN_IF_ERROR(CutToFit(joint, probes, low, peak / 4 * 3, batches));
    return CutToFit(joint, probes, high, peak / 4 * 3, batches);
  }
  batch.parts = std::move(parts);
  batches.push_back(std::move(batch));
  return absl::OkStatus();
}

/// Marks what differs under one draw with no zero denominator.
absl::Status TestOnce(const Batch& batch, const ProbeSchedule& schedule, const std::vector<Probe>& probes,
                      const JudgeOptions& options, Rng& rng, std::vector<std::vector<bool>>& differs) {
  auto values = schedule.Evaluate(SeededDraw(rng), options.weights, options.deadline);
  for (int attempt = 0; attempt < kMaxRedraws && absl::IsAborted(values.status()); ++attempt) {
    values = schedule.Evaluate(SeededDraw(rng), options.weights, options.deadline);
  }
  MENDEL_RETURN_IF_ERROR(values.status());
  for (size_t k = 0; k < batch.parts.size(); ++k) {
    const Batch::Part& part = batch.parts[k];
    const Box& whole = probes[part.probe].box;
    const Shape extents = part.box.Extents();
    std::vector<int64_t> at(extents.size(), 0);
    for (size_t i = 0; i < (*values)[2 * k].size(); ++i, NextIndex(extents, at)) {
      if ((*values)[2 * k][i] == (*values)[2 * k + 1][i]) continue;
      int64_t flat = 0;
      for (size_t d = 0; d < at.size(); ++d) {
        flat = flat * (whole.end[d] - whole.begin[d]) + part.box.begin[d] - whole.begin[d] + at[d];
      }
      differs[part.probe][static_cast<size_t>(flat)] = true;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Graph> JoinPrograms(const Graph& f, const Graph& g, WeightMode weights) {
  MENDEL_RETURN_IF_ERROR(SameTypes(f, g));
  GraphBuilder builder;
  std::vector<ValueId> inputs;
  for (int32_t id : f.inputs()) inputs.push_back(builder.Input(InputName(f.node(id)), f.node(id).outputs[0]));
  for (const Graph* side : {&f, &g}) {
    MENDEL_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, Append(*side, inputs, weights, builder));
    for (ValueId value : outputs) builder.Output("", value);
  }
  MENDEL_ASSIGN_OR_RETURN(const Graph both, builder.Build());
  return Deduplicate(both);
}

absl::StatusOr<ProbeResult> RunProbes(const Graph& joint, const std::vector<Probe>& probes, const JudgeOptions& options,
                                      double target_log2, Rng& rng) {
  ProbeResult result;
  result.bound_log2 = -std::numeric_limits<double>::infinity();
  if (probes.empty()) return result;
  std::vector<Batch::Part> parts;
  double elements = 0;
  for (const Probe& probe : probes) {
    parts.push_back({parts.size(), probe.box});
    result.differs.emplace_back(static_cast<size_t>(probe.box.Volume()), false);
    elements += static_cast<double>(probe.box.Volume());
  }
  std::vector<Batch> batches;
  MENDEL_RETURN_IF_ERROR(CutToFit(joint, probes, std::move(parts), std::numeric_limits<int64_t>::max(), batches));
  for (const Batch& batch : batches) {
    const auto miss = Log2Miss(batch.graph, options.weights);
    if (!miss.ok()) result.reason = std::string(miss.status().message());
    const double per_test = miss.ok() ? std::min(0.0, *miss) : 0;
    const double wanted = per_test < 0 ? std::ceil((target_log2 - std::log2(elements)) / per_test) : 1;
    const int tests = static_cast<int>(std::clamp<double>(wanted, 1, std::max(1, options.max_tests)));
    const ProbeSchedule schedule(batch.graph);
    for (int test = 0; test < tests; ++test) {
      if (options.deadline.Passed()) return absl::DeadlineExceededError("localising: out of time");
      MENDEL_RETURN_IF_ERROR(TestOnce(batch, schedule, probes, options, rng, result.differs));
    }
    result.tests = std::max(result.tests, tests);
    result.bound_log2 = Log2Sum(result.bound_log2, std::log2(batch.elements) + per_test * tests);
  }
  result.bound_log2 = std::min(0.0, result.bound_log2);
  if (result.reason.empty() && result.bound_log2 > target_log2) {
    result.reason = Cat(result.tests, " tests bound the error by 2^", result.bound_log2);
  }
  return result;
}

}  // namespace mendel
