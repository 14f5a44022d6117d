// BatchNormalization(x[N, C, ...], scale[C], bias[C], mean[C], variance[C]) for inference:
// y = (x - mean) * scale / sqrt(variance + epsilon) + bias.

#include "base/status.h"
#include "graph/normalization.h"

namespace mendel::ops::batch_normalization {
namespace {

struct BatchNormalizationMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    const int64_t channels = in.shape(0)[1];
    const int64_t rows = in.shape(0)[0] * channels;
    const int64_t count = static_cast<int64_t>(out.size()) / std::max<int64_t>(1, rows);
    const S epsilon = in.Literal(node.attrs.Float("epsilon"));
    std::vector<S> factors;
    for (int64_t c = 0; c < channels; ++c) factors.push_back(Factor(in, c, epsilon));
    std::vector<S> loaded;
    [[maybe_unused]] const S* const data =
        std::is_same_v<S, Ball> ? AllElements(in, 0, loaded) : nullptr;
    ForRanges<S>(rows, count, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t c = row % channels;
        const S factor = factors[static_cast<size_t>(c)];
        const S mean = in.Flat(3, c);
        const S bias = in.Flat(2, c);
        if constexpr (std::is_same_v<S, Ball>) {  // operations cost more than their number here
          const S shift = bias - mean * factor;
          for (int64_t k = row * count; k < (row + 1) * count; ++k)
            out[static_cast<size_t>(k)] = data[k] * factor + shift;
        } else {
          for (int64_t k = row * count; k < (row + 1) * count; ++k)
            out[static_cast<size_t>(k)] = Plus(Times(Minus(in.Flat(0, k), mean), factor), bias);
        }
      }
    });
  }

  template <class S>
  static S Factor(const Reader<S>& in, int64_t c, const S& epsilon) {
    if constexpr (std::is_same_v<S, int64_t>) {
      return in.Flat(1, c);  // never: inference takes floats only
    } else {
      return in.Flat(1, c) * in.Call(functions::kRsqrt, {in.Flat(4, c) + epsilon});
    }
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const Shape& x = inputs[0].shape;
  if (x.size() < 2)
    return InvalidInput("input ", ShapeString(x), " must have a rank of at least 2");
  MENDEL_RETURN_IF_ERROR(CheckChannelParameters(inputs, x[1]));
  MENDEL_RETURN_IF_ERROR(CheckEpsilonOfVariance(attrs));
  return std::vector<TensorType>{inputs[0]};
}

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  arithmetic.CountOperands(1, inputs[4] + arithmetic.Literal(node.attrs.Float("epsilon")));
  return (inputs[0] - inputs[3]) * inputs[1] * Bound::Symbol() + inputs[2];
}

std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  Restriction restriction{{out}, node.attrs};
  restriction.inputs.resize(5, Box{{out.begin[1]}, {out.end[1]}});
  return restriction;
}

/// x scale / sqrt(variance + epsilon) - mean scale / sqrt(variance + epsilon) + bias.
std::optional<AccessPattern> Access(const NodeView& node) {
  const size_t rank = node.inputs[0].shape.size();
  AccessPattern pattern;
  pattern.combine = AccessPattern::Combine::kProduct;
  pattern.breaks.resize(rank);
  DimAccess channel;
  channel.coefficients.assign(rank, 0);
  channel.coefficients[1] = 1;
  pattern.inputs.assign(5, InputAccess{{channel}});
  pattern.inputs[0] = BroadcastAccess(node.inputs[0].shape, rank);
  pattern.terms = {{0, 1, 4}, {3, 1, 4}, {2}};
  pattern.divided_inputs = 1u << 4;
  return pattern;
}

OpSample Sample(Rng& rng) {
  const Shape shape = SampleShape(rng, 2, 5, 4);
  const TensorType parameter{DType::kF32, {shape[1]}};
  return {{{DType::kF32, shape}, parameter, parameter, parameter, parameter},
          {{"epsilon", rng.Flip() ? 1e-5 : 0.25}},
          {{4, {0.25, 4}}}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "BatchNormalization";
  op.min_inputs = op.max_inputs = 5;
  op.attributes = {{"epsilon", 1e-5}};
  op.infer = &Infer;
  op.meaning = MeaningOf<BatchNormalizationMeaning>();
  op.bound = &BoundOf;
  op.cost = &CostOfNormalization;
  op.restrict = &Restrict;
  op.access = &Access;
  op.sample = &Sample;
  op.domain = {{.input = 4, .demand = Demand::kPositive, .group = "variance"}};
  // A channel's factor is one call, however many elements it scales.
  op.shared_operands = [](const NodeView& node) {
    return static_cast<double>(NumElements(node.inputs[4]));
  };
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::batch_normalization
