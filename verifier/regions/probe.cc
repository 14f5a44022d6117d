#include "verifier/regions/probe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/prime_field.h"
#include "base/status.h"
#include "graph/restrict.h"
#include "verifier/bounds.h"
#include "verifier/certify/redraw.h"
#include "verifier/field_evaluator.h"
#include "verifier/regions/probe_evaluation.h"

namespace mendel {
namespace {

/// Tests where no bound is requested: a certificate follows.
constexpr int kQuickTests = 2;

/// log2 of the probability that one test overlooks one difference, with everything in the graph as
/// one segment; outputs come in pairs that are compared.
absl::StatusOr<double> Log2Miss(const Graph& graph, WeightMode weights) {
  std::vector<std::vector<Bound>> bounds(graph.nodes().size());
  std::vector<std::vector<FieldValue>> exact(
      graph.nodes().size());  // elements of values that are known integers
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
      const FieldValue& elements =
          exact[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)];
      concrete.push_back(elements.concrete);
      known.push_back(elements.concrete ? &elements : nullptr);
    }
    exact[i].resize(node.outputs.size());
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const auto bound = WithView(
          graph, static_cast<int32_t>(i), [&](const NodeView& view) -> absl::StatusOr<ValueBound> {
            if (!IsConcrete(view, concrete))
              return BoundOfNode(*node.op, view, inputs, known, static_cast<int>(k));
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

/// Some of the probes, or parts of them, as one restricted program: output 2k and 2k + 1 are part k
/// of both programs.
struct Batch {
  struct Part {
    size_t probe = 0;
    Box box;
  };
  std::vector<Part> parts;
  Graph graph;
  double elements = 0;
};

absl::StatusOr<Graph> RestrictTo(const Graph& joint, const std::vector<Probe>& probes,
                                 const std::vector<Batch::Part>& parts) {
  const int outputs = static_cast<int>(joint.outputs().size() / 2);
  std::vector<OutputBox> boxes;
  for (const Batch::Part& part : parts) {
    boxes.push_back({probes[part.probe].output, part.box});
    boxes.push_back({probes[part.probe].output + outputs, part.box});
  }
  return RestrictToBoxes(joint, boxes);
}

/// Two halves of about the same number of elements; a single part is cut along its longest
/// dimension.
std::pair<std::vector<Batch::Part>, std::vector<Batch::Part>> Halve(
    const std::vector<Batch::Part>& parts) {
  if (parts.size() > 1) {
    const auto middle = parts.begin() + static_cast<int64_t>(parts.size() / 2);
    return {{parts.begin(), middle}, {middle, parts.end()}};
  }
  const Shape extents = parts[0].box.Extents();
  const size_t longest =
      static_cast<size_t>(std::max_element(extents.begin(), extents.end()) - extents.begin());
  std::vector<Batch::Part> low = parts, high = parts;
  low[0].box.end[longest] = high[0].box.begin[longest] =
      parts[0].box.begin[longest] + extents[longest] / 2;
  return {low, high};
}

/// Batches whose values fit into memory at once, as far as cutting helps: what a part reads does
/// not shrink with it for ever.
absl::Status CutToFit(const Graph& joint, const std::vector<Probe>& probes,
                      std::vector<Batch::Part> parts, int64_t max_bytes, int64_t worthwhile,
                      std::vector<Batch>& batches) {
  Batch batch;
  for (const Batch::Part& part : parts) batch.elements += static_cast<double>(part.box.Volume());
  MENDEL_ASSIGN_OR_RETURN(batch.graph, RestrictTo(joint, probes, parts));
  const int64_t peak = ProbeSchedule(batch.graph).PeakBytes();
  if (peak > max_bytes && peak <= worthwhile && batch.elements > 1) {
    const auto [low, high] = Halve(parts);
    MENDEL_RETURN_IF_ERROR(CutToFit(joint, probes, low, max_bytes, peak / 4 * 3, batches));
    return CutToFit(joint, probes, high, max_bytes, peak / 4 * 3, batches);
  }
  batch.parts = std::move(parts);
  batches.push_back(std::move(batch));
  return absl::OkStatus();
}

/// The probes of one call and what is known of them.
class ProbeRun {
 public:
  ProbeRun(const Graph& joint, const std::vector<Probe>& probes, const VerifierOptions& options,
           Rng& rng, int64_t max_bytes)
      : joint_(joint), probes_(probes), options_(options), rng_(rng), max_bytes_(max_bytes) {
    for (const Probe& probe : probes) {
      parts_.push_back({parts_.size(), probe.box});
      result_.differs.emplace_back(static_cast<size_t>(probe.box.Volume()), false);
    }
  }

  absl::StatusOr<ProbeResult> Run(double target_log2) {
    result_.bound_log2 = -std::numeric_limits<double>::infinity();
    if (probes_.empty()) return std::move(result_);
    MENDEL_RETURN_IF_ERROR(Cut());
    const bool bounded = target_log2 < 0;
    for (const Batch& batch : batches_)
      MENDEL_RETURN_IF_ERROR(Test(batch, bounded ? 1 : kQuickTests, true));
    if (!bounded) {
      result_.bound_log2 = 0;
      return std::move(result_);
    }
    const size_t before = parts_.size();
    std::erase_if(parts_, [&](const Batch::Part& part) {
      const std::vector<bool>& differs = result_.differs[part.probe];
      return std::find(differs.begin(), differs.end(), false) == differs.end();
    });
    if (parts_.empty()) return std::move(result_);  // that all differ needs no bound
    if (parts_.size() < before) MENDEL_RETURN_IF_ERROR(Cut());
    MENDEL_RETURN_IF_ERROR(TestToBound(target_log2));
    return std::move(result_);
  }

 private:
  absl::Status Cut() {
    batches_.clear();
    return CutToFit(joint_, probes_, parts_, max_bytes_, std::numeric_limits<int64_t>::max(),
                    batches_);
  }

  absl::Status TestToBound(double target_log2) {
    double elements = 0;
    for (const Batch& batch : batches_) elements += batch.elements;
    int most = 0;
    for (const Batch& batch : batches_) {
      const auto miss = Log2Miss(batch.graph, options_.weights);
      if (!miss.ok()) result_.reason = std::string(miss.status().message());
      const double per_test = miss.ok() ? std::min(0.0, *miss) : 0;
      const double wanted =
          per_test < 0 ? std::ceil((target_log2 - std::log2(elements)) / per_test) : 1;
      const int tests =
          static_cast<int>(std::clamp<double>(wanted, 1, std::max(1, options_.max_tests)));
      MENDEL_RETURN_IF_ERROR(Test(batch, tests, false));
      most = std::max(most, tests);
      result_.bound_log2 =
          Log2Sum(result_.bound_log2, std::log2(batch.elements) + per_test * tests);
    }
    result_.bound_log2 = std::min(0.0, result_.bound_log2);
    if (result_.reason.empty() && result_.bound_log2 > target_log2) {
      result_.reason = Cat(most, " tests bound the error by 2^", result_.bound_log2);
    }
    return absl::OkStatus();
  }

  /// `small`: under small primes, which are several times faster. What differs there differs; what
  /// agrees is only likely to.
  absl::Status Test(const Batch& batch, int tests, bool small) {
    const ProbeSchedule schedule(batch.graph);
    tests = std::min(tests, std::max(1, options_.max_tests));
    for (int test = 0; test < tests; ++test)
      MENDEL_RETURN_IF_ERROR(TestOnce(batch, schedule, small));
    result_.tests = std::max(result_.tests, tests);
    return absl::OkStatus();
  }

  /// Marks what differs under one draw with no zero denominator: small primes meet many, hence one
  /// attempt only.
  absl::Status TestOnce(const Batch& batch, const ProbeSchedule& schedule, bool small) {
    MENDEL_ASSIGN_OR_RETURN(const auto values, WithRedraws([&](int redraw) {
                              const Draw certifying = SeededDraw(rng_);
                              const Draw draw =
                                  small && redraw == 0 ? SelectionDraw(certifying.key) : certifying;
                              return schedule.Evaluate(draw, options_.weights, options_.deadline);
                            }));
    for (size_t k = 0; k < batch.parts.size(); ++k)
      Mark(batch.parts[k], values[2 * k], values[2 * k + 1]);
    return absl::OkStatus();
  }

  void Mark(const Batch::Part& part, const std::vector<Fp>& f, const std::vector<Fp>& g) {
    const Box& whole = probes_[part.probe].box;
    const Shape extents = part.box.Extents();
    std::vector<int64_t> at(extents.size(), 0);
    for (size_t i = 0; i < f.size(); ++i, NextIndex(extents, at)) {
      if (f[i] == g[i]) continue;
      int64_t flat = 0;
      for (size_t d = 0; d < at.size(); ++d) {
        flat = flat * (whole.end[d] - whole.begin[d]) + part.box.begin[d] - whole.begin[d] + at[d];
      }
      result_.differs[part.probe][static_cast<size_t>(flat)] = true;
    }
  }

  const Graph& joint_;
  const std::vector<Probe>& probes_;
  const VerifierOptions& options_;
  Rng& rng_;
  const int64_t max_bytes_;
  std::vector<Batch::Part> parts_;
  std::vector<Batch> batches_;
  ProbeResult result_;
};

}  // namespace

absl::StatusOr<ProbeResult> RunProbes(const Graph& joint, const std::vector<Probe>& probes,
                                      const VerifierOptions& options, double target_log2, Rng& rng,
                                      int64_t max_bytes) {
  return ProbeRun(joint, probes, options, rng, max_bytes).Run(target_log2);
}

}  // namespace mendel
