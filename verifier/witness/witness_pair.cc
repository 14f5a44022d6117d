#include "verifier/witness/witness_pair.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/status.h"
#include "graph/rewrite.h"
#include "verifier/witness/ball_evaluator.h"

namespace mendel {
namespace {

/// Magnitudes below this share of the box's largest are cancellation, whose relative gaps say
/// little.
constexpr double kSmallShare = 1e-6;
/// A gap is visible from so many times the noise on. A few runs draw random signs, while weights
/// that another tool has rounded may all err in one direction.
constexpr double kVisibleMargin = 8;

absl::Status SameTypes(const Graph& f, const Graph& g) {
  if (f.inputs().size() != g.inputs().size() || f.outputs().size() != g.outputs().size()) {
    return InvalidInput("the programs have ", f.inputs().size(), " and ", g.inputs().size(),
                        " inputs, ", f.outputs().size(), " and ", g.outputs().size(), " outputs");
  }
  for (size_t k = 0; k < f.inputs().size(); ++k) {
    if (f.type({f.inputs()[k], 0}) != g.type({g.inputs()[k], 0}))
      return InvalidInput("input ", k, " has two types");
  }
  for (size_t k = 0; k < f.outputs().size(); ++k) {
    if (f.type(f.outputs()[k].value) != g.type(g.outputs()[k].value))
      return InvalidInput("output ", k, " has two types");
  }
  return absl::OkStatus();
}

/// Appends the nodes of `graph`, constants as literals, and its outputs.
absl::Status Append(const Graph& graph, const std::vector<ValueId>& inputs, GraphBuilder& builder) {
  std::vector<int32_t> where(graph.nodes().size(), -1);
  for (size_t k = 0; k < inputs.size(); ++k)
    where[static_cast<size_t>(graph.inputs()[k])] = inputs[k].node;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (IsInput(node)) continue;
    if (IsConstant(node)) {
      where[i] = builder.Constant(ConstantValue(node)).node;
      continue;
    }
    std::vector<ValueId> operands;
    for (ValueId value : node.inputs)
      operands.push_back({where[static_cast<size_t>(value.node)], value.output});
    MENDEL_ASSIGN_OR_RETURN(where[i], builder.CopyNode(node, std::move(operands)));
  }
  for (const GraphOutput& output : graph.outputs()) {
    builder.Output("", {where[static_cast<size_t>(output.value.node)], output.value.output});
  }
  return absl::OkStatus();
}

/// Radii grow as if all terms of a sum had one sign, values as random terms do: a product of
/// matrices loses log2(k) / 2 bits. Positive values, as between most convolutions, make it less: 3
/// to 4 bits in networks.
double BitsLostBy(const Graph& graph, int32_t id) {
  constexpr double kLeastFlops = 32;  // an element
  constexpr double kByConvolution = 3.5;
  const Node& node = graph.node(id);
  const double flops =
      WithView(graph, id, [&](const NodeView& view) { return CostOf(*node.op, view).flops; });
  const double each =
      flops / static_cast<double>(std::max<int64_t>(1, NumElements(node.outputs[0])));
  if (each < kLeastFlops) return 0;
  return node.op->name == "MatMul" ? std::log2(each / 2) / 2 : kByConvolution;
}

/// Both sides' values under each reading of constants: outputs 2k and 2k + 1 are pair k.
using Readings = std::vector<std::vector<BallValue>>;

Enclosure EncloseElement(const Readings& readings, size_t pair, int64_t element) {
  Enclosure enclosure{
      {}, {}, BallScope::Current().precision(), true, std::numeric_limits<double>::infinity(), 0};
  for (size_t r = 0; r < readings.size(); ++r) {
    const Ball f = readings[r][2 * pair].At(element);
    const Ball g = readings[r][2 * pair + 1].At(element);
    const auto [gap, difference] = (f - g).Magnitude();
    enclosure.parted = enclosure.parted && f.IsFinite() && g.IsFinite() && !MayBeEqual(f, g);
    enclosure.gap = std::min(enclosure.gap, gap);
    enclosure.difference = std::max(enclosure.difference, difference);
    enclosure.f = r == 0 ? f : Hull(enclosure.f, f);
    enclosure.g = r == 0 ? g : Hull(enclosure.g, g);
  }
  return enclosure;
}

std::pair<int64_t, Enclosure> BestElement(const Readings& readings, size_t pair) {
  std::pair<int64_t, Enclosure> best{0, {}};
  double best_separation = -1;
  for (int64_t i = 0; i < NumElements(readings[0][2 * pair].type); ++i) {
    Enclosure enclosure = EncloseElement(readings, pair, i);
    const double size = std::max(enclosure.f.Magnitude().second, enclosure.g.Magnitude().second);
    const double separation =
        enclosure.parted ? std::max(enclosure.gap / size, std::numeric_limits<double>::min()) : 0;
    if (separation <= best_separation) continue;
    best_separation = separation;
    best = {i, std::move(enclosure)};
  }
  return best;
}

}  // namespace

absl::StatusOr<Graph> JoinByValue(const Graph& f, const Graph& g) {
  MENDEL_RETURN_IF_ERROR(SameTypes(f, g));
  GraphBuilder builder;
  std::vector<ValueId> inputs;
  for (int32_t id : f.inputs())
    inputs.push_back(builder.Input(InputName(f.node(id)), f.node(id).outputs[0]));
  MENDEL_RETURN_IF_ERROR(Append(f, inputs, builder));
  MENDEL_RETURN_IF_ERROR(Append(g, inputs, builder));
  MENDEL_ASSIGN_OR_RETURN(const Graph both, builder.Build());
  return Deduplicate(both);
}

bool OnlyConstantsDiffer(const Graph& f, const Graph& g) {
  if (f.nodes().size() != g.nodes().size() || f.outputs().size() != g.outputs().size())
    return false;
  for (size_t i = 0; i < f.nodes().size(); ++i) {
    const Node& a = f.nodes()[i];
    const Node& b = g.nodes()[i];
    if (a.op != b.op || a.inputs != b.inputs || a.outputs != b.outputs) return false;
    if (!IsConstant(a) && !IsInput(a) && !(a.attrs == b.attrs)) return false;
  }
  for (size_t k = 0; k < f.outputs().size(); ++k) {
    if (f.outputs()[k].value != g.outputs()[k].value) return false;
  }
  return true;
}

absl::StatusOr<Graph> RestrictPair(const Graph& joint, const std::vector<OutputBox>& boxes) {
  const int outputs = static_cast<int>(joint.outputs().size() / 2);
  std::vector<OutputBox> both;
  for (const OutputBox& box : boxes) {
    if (box.output < 0 || box.output >= outputs)
      return InvalidInput("there is no output ", box.output);
    both.push_back(box);
    both.push_back({box.output + outputs, box.box});
  }
  return RestrictToBoxes(joint, both);
}

Shape IndexAt(const Box& box, int64_t flat) {
  const Shape extents = box.Extents();
  Shape index = box.begin;
  for (size_t d = extents.size(); d-- > 0; flat /= extents[d]) index[d] += flat % extents[d];
  return index;
}

Box ElementBox(const Shape& index) {
  Box box{index, index};
  for (int64_t& end : box.end) ++end;
  return box;
}

double BitsLost(const Graph& graph) {
  std::vector<double> lost;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    double bits = 0;
    for (ValueId input : node.inputs) bits = std::max(bits, lost[static_cast<size_t>(input.node)]);
    lost.push_back(bits + (IsInput(node) || IsConstant(node)
                               ? 0
                               : BitsLostBy(graph, static_cast<int32_t>(i))));
  }
  return lost.empty() ? 0 : *std::max_element(lost.begin(), lost.end());
}

Gap LargestGap(const HostValue& f, const HostValue& g) {
  Gap gap;
  const int64_t count = NumElements(f.type);
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    for (double value : {f.At(i), g.At(i)}) {
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    const double a = f.At(i);
    const double b = g.At(i);
    if (!std::isfinite(a) || !std::isfinite(b)) {
      gap.not_numbers = gap.not_numbers || !(a == b || (std::isnan(a) && std::isnan(b)));
      if (gap.undefined < 0 && std::isfinite(a) != std::isfinite(b)) gap.undefined = i;
      continue;
    }
    const double score =
        ElementDistance(f, g, i) / std::max({std::abs(a), std::abs(b), kSmallShare * largest});
    if (!(score > gap.score)) continue;  // neither 0 / 0
    gap.element = i;
    gap.score = score;
    gap.f = a;
    gap.g = b;
  }
  return gap;
}

bool IsVisible(double gap, double noise_f, double noise_g) {
  return gap > kVisibleMargin * (noise_f + noise_g);
}

VisibleGap LargestVisibleGap(const HostValue& f, const HostValue& g,
                             const std::vector<double>& noise_f,
                             const std::vector<double>& noise_g) {
  VisibleGap visible;
  for (int64_t i = 0; i < NumElements(f.type); ++i) {
    const size_t at = static_cast<size_t>(i);
    const double a = f.At(i), b = g.At(i);
    const double gap = ElementDistance(f, g, i);
    if (!(gap > 0) || !std::isfinite(gap)) continue;
    const double margin = gap / (noise_f[at] + noise_g[at]);  // infinite without noise
    if (!IsVisible(gap, noise_f[at], noise_g[at]) || margin <= visible.margin) continue;
    visible = {{i, gap / std::max(std::abs(a), std::abs(b)), a, b}, margin};
  }
  return visible;
}

std::optional<Witness> WitnessOf(const std::vector<HostValue>& inputs, Shape element,
                                 const Enclosure& enclosure) {
  Witness witness;
  witness.value_f = enclosure.f.Middle();
  witness.value_g = enclosure.g.Middle();
  if (!std::isfinite(witness.value_f) || !std::isfinite(witness.value_g)) return std::nullopt;
  for (const HostValue& input : inputs) witness.inputs.push_back(input.ToTensor());
  witness.element = std::move(element);
  witness.error_f = enclosure.f.ErrorOfMiddle();
  witness.error_g = enclosure.g.ErrorOfMiddle();
  witness.gap = enclosure.gap;
  witness.precision_bits = enclosure.precision_bits;
  return witness;
}

absl::StatusOr<std::vector<std::pair<int64_t, Enclosure>>> EnclosePairs(
    const Graph& pairs, const std::vector<HostValue>& inputs, int precision_bits,
    const Deadline& deadline) {
  Readings readings;
  bool ambiguous = true;
  for (ConstantReading reading :
       {ConstantReading::kReal, ConstantReading::kDouble, ConstantReading::kFloat}) {
    if (!ambiguous) break;
    const BallContext context(precision_bits, reading);
    MENDEL_ASSIGN_OR_RETURN(std::vector<BallValue> values,
                            EvaluateInBalls(pairs, inputs, context, deadline));
    readings.push_back(std::move(values));
    ambiguous = context.constant_read();
  }
  const BallContext context(precision_bits);
  const BallScope scope(context);
  std::vector<std::pair<int64_t, Enclosure>> best;
  for (size_t k = 0; k < pairs.outputs().size() / 2; ++k) best.push_back(BestElement(readings, k));
  return best;
}

}  // namespace mendel
