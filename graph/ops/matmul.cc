// MatMul(a, b): NumPy's matmul. Ranks of at least 2; leading dimensions broadcast. (onnx/ turns
// vectors into matrices.)

#include <algorithm>

#include "base/parallel.h"
#include "base/status.h"
#include "graph/contraction.h"
#include "graph/fill.h"
#include "graph/op_helpers.h"

namespace mendel::ops::matmul {
namespace {

Shape Batch(const Shape& shape) { return Shape(shape.begin(), shape.end() - 2); }

constexpr int64_t kLeastStrip = 64;
constexpr int64_t kMostStrip = 512;

struct MatMulMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    const Shape& y = node.outputs[0].shape;
    const int64_t m = y[y.size() - 2];
    const int64_t n = y.back();
    const int64_t k = in.shape(0).back();
    const Shape batch = Batch(y);
    std::vector<S> loaded_left, loaded_right;
    const S* const left = AllElements(in, 0, loaded_left);
    // Weights stay numbers where the elements are balls.
    const double* const numbers = std::is_same_v<S, Ball> ? in.operand(1).exact : nullptr;
    const S* const right = numbers == nullptr ? AllElements(in, 1, loaded_right) : nullptr;
    // Offsets of each batch's matrices: output index (batch..., 0, 0) broadcast into the operands.
    std::vector<std::pair<int64_t, int64_t>> offsets;
    std::array<int64_t, kMaxRank> storage{};
    const std::span<int64_t> index(storage.data(), y.size());
    for (int64_t b = NumElements(batch); b > 0; --b) {
      offsets.emplace_back(LeadingOffset(in.shape(0), index), LeadingOffset(in.shape(1), index));
      NextIndex(batch, index.first(batch.size()));
    }
    // Enough strips for all threads, along the longer side: the operand that all strips of a batch
    // read is prepared once a strip.
    const int64_t batches = static_cast<int64_t>(offsets.size());
    const bool by_columns = n > m;
    const int64_t wanted = (2 * Parallelism() + batches - 1) / std::max<int64_t>(1, batches);
    const int64_t extent = by_columns ? n : m;
    const int64_t strip = std::clamp<int64_t>((extent + wanted - 1) / std::max<int64_t>(1, wanted),
                                              kLeastStrip, kMostStrip);
    const int64_t strips = (extent + strip - 1) / strip;
    auto* const context = ScalarScope<S>::Current();
    ParallelFor(batches * strips, [&](int64_t job) {
      const ScalarScope<S> scope(context);
      const size_t b = static_cast<size_t>(job / strips);
      const int64_t begin = job % strips * strip;
      const int64_t row = by_columns ? 0 : begin, column = by_columns ? begin : 0;
      const int64_t rows = by_columns ? m : std::min(strip, m - row);
      const int64_t columns = by_columns ? std::min(strip, n - column) : n;
      const S* const from = left + offsets[b].first + row * k;
      S* const to = out.data() + static_cast<int64_t>(b) * m * n + row * n + column;
      const int64_t at = offsets[b].second + column;
      if constexpr (std::is_same_v<S, Ball>) {
        if (numbers != nullptr)
          return Gemm(rows, columns, k, from, k, numbers + at, n, to, n, false);
      }
      Gemm(rows, columns, k, from, k, right + at, n, to, n, false);
    });
  }

  static int64_t LeadingOffset(const Shape& shape, Index output) {
    const Shape strides = RowMajorStrides(shape);
    const size_t skip = output.size() - shape.size();
    int64_t flat = 0;
    for (size_t d = 0; d + 2 < shape.size(); ++d)
      flat += shape[d] == 1 ? 0 : output[skip + d] * strides[d];
    return flat;
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes&) {
  const Shape& a = inputs[0].shape;
  const Shape& b = inputs[1].shape;
  if (a.size() < 2 || b.size() < 2) return InvalidInput("operands must have rank 2 or more");
  if (inputs[0].dtype != inputs[1].dtype) return InvalidInput("operands must have one dtype");
  const std::optional<Shape> batch = BroadcastShapes(Batch(a), Batch(b));
  if (a.back() != b[b.size() - 2] || !batch.has_value()) {
    return InvalidInput("cannot multiply ", ShapeString(a), " and ", ShapeString(b));
  }
  TensorType type{inputs[0].dtype, *batch};
  type.shape.push_back(a[a.size() - 2]);
  type.shape.push_back(b.back());
  return std::vector<TensorType>{type};
}

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int, const Arithmetic<Bound>&) {
  return SumOf(static_cast<double>(node.inputs[0].shape.back()), inputs[0] * inputs[1]);
}

Cost CostOfMatMul(const NodeView& node) {
  Cost cost;
  cost.flops = 2.0 * static_cast<double>(NumElements(node.outputs[0])) *
               static_cast<double>(node.inputs[0].shape.back());
  for (const TensorType& type : node.inputs) cost.bytes += static_cast<double>(ByteSize(type));
  cost.bytes += static_cast<double>(ByteSize(node.outputs[0]));
  return cost;
}

std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  const size_t rank = out.begin.size();
  Restriction result{{}, node.attrs};
  for (int side = 0; side < 2; ++side) {
    const Shape& shape = node.inputs[static_cast<size_t>(side)].shape;
    const size_t skip = rank - shape.size();
    Box box = Box::Whole(shape);
    for (size_t d = 0; d < shape.size(); ++d) {
      const bool reduced = d == (side == 0 ? shape.size() - 1 : shape.size() - 2);
      const bool broadcast = d + 2 < shape.size() && shape[d] == 1;
      if (reduced || broadcast) continue;
      box.begin[d] = out.begin[skip + d];
      box.end[d] = out.end[skip + d];
    }
    result.inputs.push_back(box);
  }
  return result;
}

std::optional<AccessPattern> Access(const NodeView& node) {
  const size_t rank = node.outputs[0].shape.size();
  AccessPattern pattern;
  pattern.combine = AccessPattern::Combine::kProduct;
  pattern.breaks.resize(rank);
  for (size_t side = 0; side < 2; ++side) {
    const Shape& shape = node.inputs[side].shape;
    InputAccess access = BroadcastAccess(shape, rank);
    const size_t row = shape.size() - 2;
    for (size_t d : {row, row + 1})
      access.dims[d].coefficients[d + rank - shape.size()] = 1;  // extent 1 is no broadcast here
    DimAccess& reduced = access.dims[side == 0 ? row + 1 : row];
    reduced.coefficients.assign(rank, 0);
    reduced.whole = true;
    pattern.inputs.push_back(access);
  }
  return pattern;
}

OpSample Sample(Rng& rng) {
  const Shape batch = SampleShape(rng, 0, 2, 3);
  Shape a = rng.Flip() ? batch : SampleBroadcastable(rng, batch);
  Shape b = a == batch ? SampleBroadcastable(rng, batch) : batch;
  const int64_t k = rng.Between(1, 9);
  a.insert(a.end(), {rng.Between(1, 9), k});
  b.insert(b.end(), {k, rng.Between(1, 9)});
  return {{{DType::kF32, a}, {DType::kF32, b}}, {}, {}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "MatMul";
  op.min_inputs = op.max_inputs = 2;
  op.infer = &Infer;
  op.meaning = MeaningOf<MatMulMeaning>();
  op.linear_inputs = &LinearInAll;
  op.bound = &BoundOf;
  op.cost = &CostOfMatMul;
  op.restrict = &Restrict;
  op.access = &Access;
  op.sample = &Sample;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::matmul
