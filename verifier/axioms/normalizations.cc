// The normalizations by mean, variance, root and division.

#include <array>
#include <vector>

#include "verifier/axioms/rules.h"

namespace mendel {
namespace {

constexpr std::array<AxiomDescription, 4> kNormalizationsAxioms = {{
    {"batch normalization by division",
     "batch-norm(x) = (x - mean) / sqrt(variance + e) scale + bias",
     "The definition; both sides demand variance + e > 0. The literal for e is reported where it "
     "is rounded."},
    {"local response normalization by a pool", "lrn(x) = x / (mean(x x) a + b)^c",
     "The definition; the mean is over a window of channels, which zeros pad."},
    {"normalization by division",
     "(x - m) / sqrt(mean((x - m)^2) + e) scale + bias, m = mean(x), for layer, group and instance",
     "The definitions. The literal for e is reported where it is rounded."},
    {"variance by squares", "mean(x x) - mean(x) mean(x) = mean((x - mean(x))^2)",
     "The binomial formula; the right side is never negative."},
}};

/// x normalized over `axes`.
ValueId Normalized(Terms& t, ValueId x, const Ints& axes, ValueId epsilon) {
  const ValueId centered = t.Sub(x, t.Reduce("ReduceMean", x, axes, true));
  const ValueId variance = t.Reduce("ReduceMean", t.Mul(centered, centered), axes, true);
  return t.Div(centered, t.Unary("Sqrt", t.Add(variance, epsilon)));
}

Ints AxesFrom(size_t first, size_t rank) {
  Ints axes;
  for (size_t d = first; d < rank; ++d) axes.push_back(static_cast<int64_t>(d));
  return axes;
}

/// A parameter [C] as [C, 1, ...] against x[N, C, ...].
ValueId PerChannel(Terms& t, ValueId parameter, size_t rank) {
  Shape shape(rank - 1, 1);
  shape[0] = t.shape(parameter)[0];
  return t.Reshape(parameter, shape);
}

std::optional<ValueId> Layer(Terms& t, ValueId v) {
  const std::vector<ValueId> inputs = t.node(v).inputs;
  const size_t axis = static_cast<size_t>(t.node(v).attrs.Int("axis"));
  const std::optional<ValueId> epsilon = t.Attribute(v, "epsilon");
  if (NumElements(t.shape(v)) == 0 || !epsilon.has_value()) return std::nullopt;
  const ValueId scaled = t.Mul(
      Normalized(t, inputs[0], AxesFrom(axis, t.shape(inputs[0]).size()), *epsilon), inputs[1]);
  return inputs.size() > 2 ? t.Add(scaled, inputs[2]) : scaled;
}

ValueId Affine(Terms& t, ValueId x, ValueId scale, ValueId bias) {
  const size_t rank = t.shape(x).size();
  return t.Add(t.Mul(x, PerChannel(t, scale, rank)), PerChannel(t, bias, rank));
}

std::optional<ValueId> Instance(Terms& t, ValueId v) {
  const std::vector<ValueId> inputs = t.node(v).inputs;
  const std::optional<ValueId> epsilon = t.Attribute(v, "epsilon");
  if (NumElements(t.shape(v)) == 0 || !epsilon.has_value()) return std::nullopt;
  return Affine(t, Normalized(t, inputs[0], AxesFrom(2, t.shape(v).size()), *epsilon), inputs[1],
                inputs[2]);
}

std::optional<ValueId> Group(Terms& t, ValueId v) {
  const std::vector<ValueId> inputs = t.node(v).inputs;
  const Shape shape = t.shape(v);
  const std::optional<ValueId> epsilon = t.Attribute(v, "epsilon");
  if (NumElements(shape) == 0 || !epsilon.has_value()) return std::nullopt;
  const int64_t groups = t.node(v).attrs.Int("num_groups");
  const ValueId grouped =
      t.Reshape(inputs[0], {shape[0], groups, NumElements(shape) / (shape[0] * groups)});
  return Affine(t, t.Reshape(Normalized(t, grouped, {2}, *epsilon), shape), inputs[1], inputs[2]);
}

std::optional<ValueId> Batch(Terms& t, ValueId v) {
  const std::vector<ValueId> inputs = t.node(v).inputs;
  const size_t rank = t.shape(v).size();
  const std::optional<ValueId> epsilon = t.Attribute(v, "epsilon");
  if (!epsilon.has_value()) return std::nullopt;
  const ValueId deviation = t.Unary("Sqrt", t.Add(inputs[4], *epsilon));
  const ValueId centered = t.Sub(inputs[0], PerChannel(t, inputs[3], rank));
  // The factor is one number a channel: cheaper to know than to apply twice.
  const ValueId factor = t.Div(inputs[1], deviation);
  return t.Add(t.Mul(centered, PerChannel(t, factor, rank)), PerChannel(t, inputs[2], rank));
}

std::optional<ValueId> LocalResponse(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  const Shape shape = t.shape(v);
  const int64_t size = t.node(v).attrs.Int("size");
  const std::optional<ValueId> alpha = t.Attribute(v, "alpha"), bias = t.Attribute(v, "bias"),
                               beta = t.Attribute(v, "beta");
  if (NumElements(shape) == 0 || !alpha.has_value() || !bias.has_value() || !beta.has_value())
    return std::nullopt;
  const int64_t plane = NumElements(shape) / (shape[0] * shape[1]);
  const ValueId squares = t.Reshape(t.Mul(x, x), {shape[0], 1, shape[1], plane});
  const ValueId mean = t.Op("AveragePool", {squares},
                            {{"kernel_shape", Ints{size, 1}},
                             {"strides", Ints{1, 1}},
                             {"dilations", Ints{1, 1}},
                             {"pads", Ints{(size - 1) / 2, 0, size / 2, 0}},
                             {"count_include_pad", int64_t{1}}});
  const ValueId base = t.Add(t.Mul(t.Reshape(mean, shape), *alpha), *bias);
  return t.Div(x, t.Op("Pow", {base, *beta}));
}

/// mean(x x) - mean(x) mean(x).
std::optional<ValueId> Variance(Terms& t, ValueId v) {
  const ValueId squares = t.in(v, 0), square = t.in(v, 1);
  if (!t.Is(squares, "ReduceMean") || !t.Is(square, "Mul") || t.in(square, 0) != t.in(square, 1))
    return std::nullopt;
  const ValueId mean = t.in(square, 0), product = t.in(squares, 0);
  if (!t.Is(mean, "ReduceMean") || !(t.node(mean).attrs == t.node(squares).attrs))
    return std::nullopt;
  const ValueId x = t.in(mean, 0);
  if (!t.Is(product, "Mul") || t.in(product, 0) != x || t.in(product, 1) != x ||
      NumElements(t.shape(x)) == 0)
    return std::nullopt;
  const Attributes attrs = t.node(mean).attrs;
  const ValueId centered = t.Sub(x, t.Reduce("ReduceMean", x, attrs.IntList("axes"), true));
  return t.Op("ReduceMean", {t.Mul(centered, centered)}, attrs);
}

constexpr std::array<AxiomRule, 6> kNormalizationsRules = {{
    {"batch normalization by division", "BatchNormalization", &Batch},
    {"normalization by division", "GroupNormalization", &Group},
    {"normalization by division", "InstanceNormalization", &Instance},
    {"local response normalization by a pool", "LRN", &LocalResponse},
    {"normalization by division", "LayerNormalization", &Layer},
    {"variance by squares", "Sub", &Variance},
}};

}  // namespace

AxiomGroup NormalizationAxioms() { return {kNormalizationsAxioms, kNormalizationsRules}; }

}  // namespace mendel
