#include "verifier/certify/full_certify.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/status.h"
#include "verifier/bounds.h"
#include "verifier/certify/numbering.h"
#include "verifier/certify/redraw.h"
#include "verifier/definedness/definedness.h"
#include "verifier/field_evaluator.h"

namespace mendel {
namespace {

/// Adds all values of `graph` to `cone`; returns the bounds of its outputs.
absl::StatusOr<std::vector<Bound>> BoundGraph(const Graph& graph, WeightMode weights,
                                              SegmentBound& cone) {
  const FieldEvaluator evaluator({65537, {}},
                                 weights);  // for integers only, which do not depend on the draw
  std::vector<std::vector<ValueBound>> bounds(graph.nodes().size());
  std::vector<std::vector<FieldValue>> known(graph.nodes().size());
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    known[i].resize(node.outputs.size());
    if (IsInput(node)) {
      bounds[i] = {ValueBound{Bound::Symbol(), {}, {}, {}}};
    } else if (IsConstant(node)) {
      bounds[i] = {BoundOfConstant(node, weights)};
      if (IsIntegral(node.outputs[0].dtype)) known[i][0] = evaluator.Constant(node);
    }
    if (IsInput(node) || IsConstant(node)) continue;
    std::vector<Bound> inputs;
    std::vector<const FieldValue*> integers;
    std::vector<bool> concrete;
    for (ValueId input : node.inputs) {
      const FieldValue& value =
          known[static_cast<size_t>(input.node)][static_cast<size_t>(input.output)];
      inputs.push_back(
          bounds[static_cast<size_t>(input.node)][static_cast<size_t>(input.output)].element);
      integers.push_back(value.concrete ? &value : nullptr);
      concrete.push_back(value.concrete);
    }
    const std::vector<TensorType> types = graph.InputTypes(static_cast<int32_t>(i));
    const NodeView view{types, node.attrs, node.outputs};
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (IsConcrete(view, concrete)) {
        known[i][k] = evaluator.Apply(*node.op, view, integers, static_cast<int>(k));
        bounds[i].push_back(BoundOfIntegers(known[i][k].integers));
      } else {
        MENDEL_ASSIGN_OR_RETURN(ValueBound bound,
                                BoundOfNode(*node.op, view, inputs, integers, static_cast<int>(k)));
        bounds[i].push_back(bound);
      }
      cone.AddToCone(bounds[i][k]);
    }
  }
  std::vector<Bound> outputs;
  for (const GraphOutput& output : graph.outputs()) {
    outputs.push_back(
        bounds[static_cast<size_t>(output.value.node)][static_cast<size_t>(output.value.output)]
            .element);
  }
  return outputs;
}

absl::StatusOr<SegmentBound> BoundPrograms(const Graph& a, const Graph& b, WeightMode weights) {
  SegmentBound bound;
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Bound> of_a, BoundGraph(a, weights, bound));
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Bound> of_b, BoundGraph(b, weights, bound));
  for (size_t k = 0; k < of_a.size(); ++k) bound.Compare(of_a[k], of_b[k]);
  return bound;
}

/// FailedPrecondition when some element differs.
absl::Status TestOnce(const Graph& a, const Graph& b, const Draw& draw,
                      const VerifierOptions& options) {
  MENDEL_ASSIGN_OR_RETURN(const auto x, EvaluateOutputs(a, draw, options.weights,
                                                        InputNaming::kByName, options.deadline));
  MENDEL_ASSIGN_OR_RETURN(const auto y, EvaluateOutputs(b, draw, options.weights,
                                                        InputNaming::kByName, options.deadline));
  for (size_t k = 0; k < x.size(); ++k) {
    if (x[k] == y[k]) continue;
    return absl::FailedPreconditionError(Cat(
        "output '", a.outputs()[k].name, "' is not provably equal: the formal expressions differ"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Certificate> CertifyWithoutCuts(const Graph& a, const Graph& b,
                                               const VerifierOptions& options) {
  Certificate certificate;
  certificate.verifier_version = kVerifierVersion;
  certificate.weights = options.weights;
  std::optional<SegmentBound> bound;
  for (int tests = 0;
       tests < std::max(1, options.min_tests) || certificate.bound_log2 > options.target_log2;) {
    if (tests >= std::max(options.max_tests, options.min_tests)) {
      return Unsupported("unproven: the bound after ", tests, " tests is only 2^",
                         std::round(certificate.bound_log2));
    }
    Draw draw;
    const absl::Status tested = WithRedraws([&](int) {
      draw = FreshDraw();
      return TestOnce(a, b, draw, options);
    });
    if (absl::IsAborted(tested))
      return Unsupported("unproven: denominators stay zero after ", kMaxRedraws, " redraws");
    MENDEL_RETURN_IF_ERROR(tested);
    if (!bound.has_value()) {
      ConstantKeys constants(options.weights);
      if (options.definedness != DefinednessCheck::kNone) {
        MENDEL_RETURN_IF_ERROR(CheckDefinedness(
            {a, b, {}, constants, options.definedness == DefinednessCheck::kBoth}));
      }
      MENDEL_ASSIGN_OR_RETURN(bound, BoundPrograms(a, b, options.weights));
    }
    const double miss = bound->Log2Miss(draw.prime);
    if (miss > 0)
      return Unsupported("unproven: the degree bound of the whole programs exceeds the field");
    certificate.bound_log2 += miss;
    certificate.draws.push_back(draw);
    ++tests;
  }
  certificate.degree = bound->degree;
  certificate.log2_norm = bound->log2_norm;
  certificate.oracle_operands = bound->operands;
  certificate.segments = static_cast<int64_t>(a.outputs().size());
  for (const GraphOutput& output : a.outputs())
    certificate.elements += NumElements(a.type(output.value));
  return certificate;
}

}  // namespace mendel
