#include "mutator/factored_conv.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "graph/emitter.h"
#include "mutator/conv_chain.h"
#include "mutator/parallel.h"
#include "mutator/row_basis.h"

namespace mendel {
namespace {

constexpr double kHighestRank = 128;

/// Strides of weights [O, C/g, K..].
struct Places {
  int64_t volume = 1;               ///< taps
  Shape around = {0}, along = {0};  ///< offsets of the taps around (the others at 0), and along

  Places(const Shape& weights, const std::vector<bool>& is_along) {
    for (size_t d = weights.size(); d-- > 2;) {
      Shape& offsets = is_along[d - 2] ? along : around;
      Shape grown;
      for (int64_t k = 0; k < weights[d]; ++k) {
        for (int64_t offset : offsets) grown.push_back(k * volume + offset);
      }
      offsets = std::move(grown);
      volume *= weights[d];
    }
  }
  int64_t Rows(const ConvFactoring& f) const {
    return f.block_inputs * static_cast<int64_t>(around.size());
  }
  int64_t Columns(const ConvFactoring& f) const {
    return f.block_outputs * static_cast<int64_t>(along.size());
  }
};

/// Blocks of one output channel: of different input channels. They meet in the second convolution.
int64_t InputBlocks(const ConvFactoring& f) { return f.inputs / f.block_inputs; }

/// The first output channel of block `b`.
int64_t FirstOutput(const ConvFactoring& f, int64_t b) {
  return b / InputBlocks(f) * f.block_outputs;
}

/// Elements of the blocks, by row and column.
class Blocks {
 public:
  Blocks(const Tensor& weights, const ConvFactoring& f)
      : values_(weights.As<float>()), f_(f), places_(weights.shape(), f.along) {}

  size_t rows() const { return static_cast<size_t>(places_.Rows(f_)); }
  size_t columns() const { return static_cast<size_t>(places_.Columns(f_)); }
  double At(int64_t b, size_t row, size_t column) const {
    const size_t around = places_.around.size(), along = places_.along.size();
    const int64_t c = b % InputBlocks(f_) * f_.block_inputs + static_cast<int64_t>(row / around);
    const int64_t o = FirstOutput(f_, b) + static_cast<int64_t>(column / along);
    const int64_t tap = places_.around[row % around] + places_.along[column % along];
    return values_[static_cast<size_t>((o * f_.inputs + c) * places_.volume + tap)];
  }
  StoredMatrix Matrix(int64_t b) const {
    StoredMatrix block{rows(), columns(), {}};
    block.values.reserve(rows() * columns());
    for (size_t i = 0; i < rows(); ++i) {
      for (size_t j = 0; j < columns(); ++j) block.values.push_back(At(b, i, j));
    }
    return block;
  }

 private:
  std::span<const float> values_;
  const ConvFactoring& f_;
  Places places_;
};

/// `weights` with one tap in the dimensions for which `gone` holds.
Shape WindowWithout(Shape weights, const std::vector<bool>& is_along, bool gone) {
  for (size_t d = 0; d < is_along.size(); ++d)
    weights[d + 2] = is_along[d] == gone ? 1 : weights[d + 2];
  return weights;
}

/// [count * rank, block_inputs, taps around].
Tensor FirstKernel(const Shape& weights, const ConvFactoring& f,
                   const std::vector<MatrixFactors>& factors) {
  std::vector<double> u;
  Shape shape = WindowWithout(weights, f.along, true);
  const size_t rank = factors.front().left.columns;
  shape[0] = f.count * static_cast<int64_t>(rank);
  shape[1] = f.block_inputs;
  for (const MatrixFactors& block : factors) {
    for (size_t t = 0; t < rank; ++t) {
      for (size_t i = 0; i < block.left.rows; ++i) u.push_back(block.left.values[i * rank + t]);
    }
  }
  return Tensor::FromDoubles({DType::kF32, shape}, u);
}

/// [O, blocks beside * rank, taps along].
Tensor SecondKernel(const Shape& weights, const ConvFactoring& f,
                    const std::vector<MatrixFactors>& factors) {
  Shape shape = WindowWithout(weights, f.along, false);
  const int64_t rank = static_cast<int64_t>(factors.front().left.columns),
                taps = NumElements(shape) / (shape[0] * shape[1]);
  shape[1] = InputBlocks(f) * rank;
  std::vector<double> v(static_cast<size_t>(NumElements(shape)));
  for (int64_t b = 0; b < f.count; ++b) {
    const StoredMatrix& right = factors[static_cast<size_t>(b)].right;
    const int64_t columns = static_cast<int64_t>(right.columns);
    for (int64_t t = 0; t < rank; ++t) {
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t o = FirstOutput(f, b) + j / taps, channel = b % InputBlocks(f) * rank + t;
        v[static_cast<size_t>((o * shape[1] + channel) * taps + j % taps)] =
            right.values[static_cast<size_t>(t * columns + j)];
      }
    }
  }
  return Tensor::FromDoubles({DType::kF32, shape}, v);
}

/// The window's attributes along (around), neutral in the other dimensions.
Attributes Part(const Attributes& whole, const ConvFactoring& f, bool along, int64_t group) {
  Attributes part = whole;
  const size_t rank = f.along.size();
  for (const std::string_view name : {"strides", "dilations", "pads"}) {
    Ints list = whole.IntList(name);
    for (size_t k = 0; k < list.size(); ++k) {
      if (f.along[k % rank] != along) list[k] = name == "pads" ? 0 : 1;
    }
    part.Set(std::string(name), list);
  }
  part.Set("group", group);
  return part;
}

}  // namespace

const Tensor* LiteralKernel(const Graph& graph, int32_t id) {
  const Node& conv = graph.node(id);
  if (conv.op->name != "Conv" || IsWeight(graph, conv.inputs[0])) return nullptr;
  if (HasRunTimeBias(graph, conv)) return nullptr;
  return StoredKernelOf(graph, conv.inputs[1]).values;
}

ConvFactoring FactoringOf(const Graph& graph, int32_t conv, FactorBlocks blocks,
                          const std::vector<bool>& along) {
  const ConvShape shape = ShapeOf(graph, conv);
  ConvFactoring f;
  f.blocks = blocks;
  f.along = along;
  f.group = shape.group;
  f.outputs = shape.out_channels / shape.group;
  f.inputs = shape.channels / shape.group;
  f.block_outputs = blocks == FactorBlocks::kOutputs ? 1 : f.outputs;
  f.block_inputs = blocks == FactorBlocks::kInputs ? 1 : f.inputs;
  f.count = shape.group * (f.outputs / f.block_outputs) * (f.inputs / f.block_inputs);
  double taps_around = 1, taps_along = 1, wider = 1;
  for (size_t d = 0; d < along.size(); ++d) {
    (along[d] ? taps_along : taps_around) *= static_cast<double>(shape.windows[d].kernel);
    if (along[d])
      wider *= static_cast<double>(shape.windows[d].input) /
               static_cast<double>(std::max<int64_t>(1, shape.out_spatial[d]));
  }
  f.before = static_cast<double>(shape.out_channels * f.inputs) * taps_around * taps_along;
  f.after_one = static_cast<double>(f.count * f.block_inputs) * taps_around * wider +
                static_cast<double>(shape.out_channels * InputBlocks(f)) * taps_along;
  return f;
}

std::optional<std::vector<MatrixFactors>> FactorKernel(const Tensor& weights,
                                                       const ConvFactoring& factoring,
                                                       double worthwhile) {
  const Blocks blocks(weights, factoring);
  const double highest =
      std::min(kHighestRank, worthwhile * factoring.before / factoring.after_one);
  const size_t max_rank = static_cast<size_t>(highest);
  const auto first = [&](size_t i, size_t j) { return blocks.At(0, i, j); };
  if (HasHigherRank(blocks.rows(), blocks.columns(), first, max_rank)) return std::nullopt;
  std::vector<StoredMatrix> matrices;
  for (int64_t b = 0; b < factoring.count; ++b) matrices.push_back(blocks.Matrix(b));
  return FactorAllExactly(matrices, max_rank);
}

absl::StatusOr<Graph> EmitFactored(const Graph& subprogram, const ConvFactoring& f,
                                   const std::vector<MatrixFactors>& factors) {
  const int32_t id = subprogram.outputs()[0].value.node;
  const Node& conv = subprogram.node(id);
  const Shape& weights = subprogram.type(conv.inputs[1]).shape;
  const int64_t first_group = f.blocks == FactorBlocks::kInputs ? f.group * f.inputs : f.group;
  const int64_t second_group = f.blocks == FactorBlocks::kOutputs ? f.group * f.outputs : f.group;
  Emitter e;
  const ValueId u = e.Constant(FirstKernel(weights, f, factors));
  ValueId v = e.Constant(SecondKernel(weights, f, factors));
  const std::optional<ValueId> scale = StoredKernelOf(subprogram, conv.inputs[1]).scale;
  if (scale.has_value()) v = e.Mul(v, e.CopyConstantExpression(subprogram, *scale));
  std::vector<ValueId> inputs = {e.Op("Conv", {e.InputsOf(subprogram)[0], u},
                                      Part(conv.attrs, f, false, first_group), conv.name),
                                 v};
  if (conv.inputs.size() > 2)
    inputs.push_back(e.CopyConstantExpression(subprogram, conv.inputs[2]));
  e.Output("out0", e.Op("Conv", inputs, Part(conv.attrs, f, true, second_group), conv.name));
  return e.Finish();
}

}  // namespace mendel
