// LayerNormalization(x, scale, bias?): x normalized over the dimensions from `axis` on, times
// scale, plus bias; both broadcast into x. Only the first of ONNX's outputs.

#include "base/status.h"
#include "graph/normalization.h"
#include "graph/whole_access.h"

namespace mendel::ops::layer_normalization {
namespace {

struct LayerNormalizationMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    const Shape& shape = in.shape(0);
    const int64_t rows = RowCount(shape, node.attrs.Int("axis"));
    const int64_t count = static_cast<int64_t>(out.size()) / std::max<int64_t>(1, rows);
    const Divisor<S> divide(in, count);
    const S epsilon = in.Literal(node.attrs.Float("epsilon"));
    ForRanges<S>(rows, 3 * count, [&](int64_t begin, int64_t end) {
      std::array<int64_t, kMaxRank> storage{};
      const std::span<int64_t> index(storage.data(), shape.size());
      for (int64_t rest = begin * count, d = static_cast<int64_t>(shape.size()) - 1; d >= 0; --d) {
        index[static_cast<size_t>(d)] = rest % shape[static_cast<size_t>(d)];
        rest /= shape[static_cast<size_t>(d)];
      }
      for (int64_t row = begin; row < end; ++row) {
        const Moments<S> moments = MomentsOf(in, row * count, count, epsilon, divide);
        for (int64_t k = row * count; k < (row + 1) * count; ++k) {
          S value = Times(Times(Minus(in.Flat(0, k), moments.mean), moments.rsqrt),
                          in.Broadcast(1, index));
          if (in.size() > 2) value = Plus(value, in.Broadcast(2, index));
          out[static_cast<size_t>(k)] = value;
          NextIndex(shape, index);
        }
      }
    });
  }

  static int64_t RowCount(const Shape& shape, int64_t axis) {
    return NumElements(Shape(shape.begin(), shape.begin() + axis));
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const Shape& x = inputs[0].shape;
  const int64_t axis = attrs.Int("axis");
  if (!IsFloat(inputs[0].dtype))
    return InvalidInput("expected a float tensor, not ", TypeString(inputs[0]));
  if (axis < 0 || axis >= static_cast<int64_t>(x.size()))
    return InvalidInput("axis ", axis, " is outside the rank");
  MENDEL_RETURN_IF_ERROR(CheckEpsilon(attrs));
  for (const TensorType& parameter : inputs.subspan(1)) {
    if (parameter.dtype != inputs[0].dtype || BroadcastShapes(x, parameter.shape) != x) {
      return InvalidInput("parameter ", TypeString(parameter), " does not broadcast into ",
                          TypeString(inputs[0]));
    }
  }
  return std::vector<TensorType>{inputs[0]};
}

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  const Shape& x = node.inputs[0].shape;
  const double count =
      static_cast<double>(NumElements(Shape(x.begin() + node.attrs.Int("axis"), x.end())));
  const Bound scaled =
      BoundOfNormalized(count, inputs[0], node.attrs.Float("epsilon"), arithmetic) * inputs[1];
  return inputs.size() > 2 ? scaled + inputs[2] : scaled;
}

/// Boxes that are whole in the normalized dimensions.
std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  const Shape& x = node.inputs[0].shape;
  for (size_t d = static_cast<size_t>(node.attrs.Int("axis")); d < x.size(); ++d) {
    if (out.begin[d] != 0 || out.end[d] != x[d]) return std::nullopt;
  }
  return RestrictElementwise(node, out);
}

/// The rows, jointly, times scale, plus bias.
std::optional<AccessPattern> Access(const NodeView& node) {
  const size_t rank = node.inputs[0].shape.size();
  AccessPattern pattern = WholeAlong(node, static_cast<size_t>(node.attrs.Int("axis")), rank);
  pattern.combine = AccessPattern::Combine::kProduct;
  pattern.divided_inputs = 1;
  for (const TensorType& parameter : node.inputs.subspan(1))
    pattern.inputs.push_back(BroadcastAccess(parameter.shape, rank));
  pattern.terms = {{0, 1}};
  if (node.inputs.size() > 2) pattern.terms.push_back({2});
  return pattern;
}

OpSample Sample(Rng& rng) {
  const Shape shape = SampleShape(rng, 1, 4, 5);
  const int64_t axis = rng.Between(0, static_cast<int64_t>(shape.size()) - 1);
  const Shape normalized(shape.begin() + axis, shape.end());
  OpSample sample{{{DType::kF32, shape},
                   {DType::kF32, rng.Flip(0.7) ? normalized : SampleBroadcastable(rng, shape)}},
                  {{"axis", axis}, {"epsilon", rng.Flip() ? 1e-5 : 0.125}},
                  {}};
  if (rng.Flip())
    sample.inputs.push_back(
        {DType::kF32, rng.Flip(0.7) ? normalized : SampleBroadcastable(rng, shape)});
  return sample;
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "LayerNormalization";
  op.min_inputs = 2;
  op.max_inputs = 3;
  op.attributes = {{"axis", int64_t{0}, true}, {"epsilon", 1e-5}};
  op.infer = &Infer;
  op.meaning = MeaningOf<LayerNormalizationMeaning>();
  op.bound = &BoundOf;
  op.cost = &CostOfNormalization;
  op.restrict = &Restrict;
  op.access = &Access;
  op.sample = &Sample;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::layer_normalization
