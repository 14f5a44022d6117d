// LRN(x[N, C, ...]): x / (bias + alpha / size * s)^beta with s the sum of squares over channels c -
// floor((size - 1) / 2) up to c + ceil((size - 1) / 2). In GF(p) the power is the oracle "Pow".

#include <cmath>

#include "base/status.h"
#include "graph/elementwise.h"
#include "graph/fill.h"
#include "graph/functions.h"
#include "graph/whole_access.h"

namespace mendel::ops::lrn {
namespace {

struct LrnMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    const int64_t channels = in.shape(0)[1];
    const int64_t images = in.shape(0)[0];
    const int64_t plane =
        channels * images == 0 ? 0 : NumElements(in.shape(0)) / (channels * images);
    const int64_t size = node.attrs.Int("size");
    const Divisor<S> divide(in, size);
    const S alpha = divide(in.Literal(node.attrs.Float("alpha")));
    const S bias = in.Literal(node.attrs.Float("bias"));
    const S exponent = in.Literal(-node.attrs.Float("beta"));
    ForRanges<S>(images * channels, size * plane, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t c = row % channels;
        const int64_t first = std::max<int64_t>(0, c - (size - 1) / 2);
        const int64_t last = std::min(channels - 1, c + size / 2);
        for (int64_t k = 0; k < plane; ++k) {
          S squares{};
          for (int64_t other = first; other <= last; ++other) {
            const S v = in.Flat(0, (row - c + other) * plane + k);
            squares = Plus(squares, Times(v, v));
          }
          out[static_cast<size_t>(row * plane + k)] = Times(
              in.Flat(0, row * plane + k), Power(in, Plus(bias, Times(alpha, squares)), exponent));
        }
      }
    });
  }

  template <class S>
  static S Power(const Reader<S>& in, const S& base, const S& exponent) {
    if constexpr (std::is_same_v<S, int64_t>) {
      return base;  // never: inference takes floats only
    } else {
      return in.Call(functions::kPow, {base, exponent});
    }
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  if (inputs[0].shape.size() < 2)
    return InvalidInput("input ", TypeString(inputs[0]), " must have a rank of at least 2");
  if (attrs.Int("size") < 1) return InvalidInput("size must be positive, not ", attrs.Int("size"));
  // The base of the power is then positive; otherwise the operator would be a partial function.
  const double bias = attrs.Float("bias"), alpha = attrs.Float("alpha");
  if (!(bias > 0) || !(alpha >= 0) || std::isinf(bias) || std::isinf(alpha)) {
    return InvalidInput("bias must be finite and positive and alpha finite and not negative, not ",
                        bias, " and ", alpha);
  }
  return InferSameFloat(inputs, attrs);
}

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  const double size = static_cast<double>(node.attrs.Int("size"));
  const Bound factor = arithmetic.Literal(node.attrs.Float("alpha")) / arithmetic.Literal(size);
  arithmetic.CountOperands(1, arithmetic.Literal(node.attrs.Float("bias")) +
                                  factor * SumOf(size, inputs[0] * inputs[0]));
  arithmetic.CountOperands(1, arithmetic.Literal(node.attrs.Float("beta")));
  return inputs[0] * Bound::Symbol();
}

Cost CostOfLrn(const NodeView& node) {
  const double elements = static_cast<double>(NumElements(node.outputs[0]));
  return {elements * (2.0 * static_cast<double>(node.attrs.Int("size")) + 20),
          2.0 * static_cast<double>(ByteSize(node.outputs[0]))};
}

/// Boxes of whole channels.
std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  if (out.begin[1] != 0 || out.end[1] != node.inputs[0].shape[1]) return std::nullopt;
  return Restriction{{out}, node.attrs};
}

std::optional<AccessPattern> Access(const NodeView& node) {
  AccessPattern pattern = WholeAlong(node, 0, 0);
  const int64_t size = node.attrs.Int("size");
  pattern.inputs[0].dims[1].offset = -((size - 1) / 2);
  pattern.inputs[0].dims[1].count = size;
  return pattern;
}

OpSample Sample(Rng& rng) {
  Shape shape = SampleShape(rng, 2, 5, 4);
  shape[1] = rng.Between(1, 7);
  return {{{DType::kF32, shape}},
          {{"alpha", rng.Flip() ? 1e-4 : 0.5},
           {"beta", rng.Flip() ? 0.75 : 0.5},
           {"bias", rng.Flip() ? 1.0 : 2.0},
           {"size", rng.Between(1, 6)}},
          {}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "LRN";
  op.min_inputs = op.max_inputs = 1;
  op.attributes = {{"alpha", 1e-4}, {"beta", 0.75}, {"bias", 1.0}, {"size", int64_t{1}, true}};
  op.infer = &Infer;
  op.meaning = MeaningOf<LrnMeaning>();
  op.bound = &BoundOf;
  op.cost = &CostOfLrn;
  op.restrict = &Restrict;
  op.access = &Access;
  op.sample = &Sample;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::lrn
