#include "kernels/cuda/testing/product_case.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "base/status.h"
#include "graph/emitter.h"
#include "graph/text.h"

namespace mendel::cuda {
namespace {

/// A case of one dtype, with what is given in it.
class OneDTypeMaker {
 protected:
  OneDTypeMaker(uint64_t seed, Numerics numerics)
      : rng_(seed), rounds_(OperandRounding(numerics) > 0) {
    case_.numerics = numerics;
    constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
    dtype_ = kTypes[rng_.Below(3)];
  }

  /// Numbers from -`eighths` / 8 to that, of more bits than a format where f32 is rounded.
  ValueId Source(const Shape& shape, int64_t eighths, bool stored) {
    std::vector<double> values;
    const int64_t steps = rounds_ && dtype_ == DType::kF32 ? int64_t{1} << 20 : 1;
    for (int64_t left = NumElements(shape); left > 0; --left) {
      values.push_back(static_cast<double>(rng_.Between(-eighths * steps, eighths * steps)) /
                       static_cast<double>(8 * steps));
    }
    const Tensor tensor = Tensor::FromDoubles({dtype_, shape}, values);
    const std::string name = Cat("v", sources_++);
    if (stored) return e_.Constant(tensor, name);
    case_.inputs.push_back(HostValue::FromTensor(tensor));
    return e_.Input(name, tensor.type());
  }

  DeviceCase Finished() {
    auto graph = e_.Finish();
    MENDEL_CHECK(graph.ok());
    case_.graph = *std::move(graph);
    return std::move(case_);
  }

  Rng rng_;
  const bool rounds_;
  DType dtype_;
  Emitter e_;
  DeviceCase case_ = {};
  int sources_ = 0;
};

class ProductMaker : OneDTypeMaker {
 public:
  ProductMaker(uint64_t seed, Numerics numerics) : OneDTypeMaker(seed, numerics) {}

  DeviceCase Make() {
    Shape batch;
    for (int64_t rank = rng_.Between(0, 2); rank > 0; --rank) batch.push_back(rng_.Between(1, 3));
    const int64_t m = Extent(), n = Extent(), k = Extent();
    // One side has the whole batch.
    const bool whole_left = rng_.Flip();
    const ValueId left = Operand(whole_left ? batch : Part(batch), m, k, false);
    const ValueId right = Operand(whole_left ? Part(batch) : batch, k, n, rng_.Flip());
    result_ = e_.MatMul(left, right);
    Epilogue();
    e_.Output("y", result_);
    // A node that an operand is read through may have a second reader.
    if (!seen_.empty() && rng_.Flip())
      e_.Output("z", e_.Op("Sin", {seen_[rng_.Below(seen_.size())]}));
    return Finished();
  }

 private:
  int64_t Extent() { return rng_.Below(5) == 0 ? 1 : rng_.Between(2, 19); }

  /// A shape that broadcasts to `batch`.
  Shape Part(const Shape& batch) {
    Shape part = batch;
    for (int64_t& extent : part) extent = rng_.Below(3) == 0 ? 1 : extent;
    while (!part.empty() && part[0] == 1 && rng_.Flip()) part.erase(part.begin());
    return rng_.Below(3) == 0 ? Shape() : part;
  }

  ValueId Source(const Shape& shape, bool stored) {
    return OneDTypeMaker::Source(shape, 16, stored);
  }

  /// A source, a part of one, or two of them side by side: a kernel that reads it can compute it
  /// where it is read.
  ValueId Viewed(const Shape& shape, bool stored) {
    const uint64_t kind = rng_.Below(4);
    if (kind > 1) return Source(shape, stored);
    const size_t axis = rng_.Below(shape.size());
    if (kind == 1 && shape[axis] > 1) {
      Shape first = shape, second = shape;
      first[axis] = rng_.Between(1, shape[axis] - 1);
      second[axis] -= first[axis];
      const ValueId left = Source(first, stored);
      return e_.Op("Concat", {left, Source(second, stored)},
                   {{"axis", static_cast<int64_t>(axis)}});
    }
    Shape larger = shape;
    larger[axis] += rng_.Between(1, 3);
    Ints starts(shape.size(), 0), ends = shape;
    starts[axis] = rng_.Between(0, larger[axis] - shape[axis]);
    ends[axis] += starts[axis];
    const Ints steps(shape.size(), 1);
    return e_.Op("Slice", {Source(larger, stored)},
                 {{"starts", starts}, {"ends", ends}, {"steps", steps}});
  }

  /// Records a node that only moves elements, which others may read, too.
  ValueId Mover(ValueId value) {
    seen_.push_back(value);
    return value;
  }

  /// An operand of shape [batch..., rows, columns], behind a node that moves elements or none.
  ValueId Operand(const Shape& batch, int64_t rows, int64_t columns, bool stored) {
    Shape shape = batch;
    shape.insert(shape.end(), {rows, columns});
    const size_t rank = shape.size();
    Ints perm;
    for (size_t d = 0; d < rank; ++d) perm.push_back(static_cast<int64_t>(d));
    switch (rng_.Below(5)) {
      case 0:  // columns first
        std::swap(perm[rank - 1], perm[rank - 2]);
        break;
      case 1:  // heads beside positions
        if (rank > 2) std::swap(perm[rank - 2], perm[rank - 3]);
        break;
      case 2: {
        const ValueId flat = Viewed({NumElements(shape)}, stored);
        return Mover(e_.Reshape(flat, shape));
      }
      case 3: {
        Shape small = shape;
        for (int64_t& extent : small) extent = rng_.Below(3) == 0 ? 1 : extent;
        return Mover(e_.Op("Expand", {Viewed(small, stored)}, {{"shape", shape}}));
      }
      default:
        return Viewed(shape, stored);
    }
    Shape before(rank);
    for (size_t d = 0; d < rank; ++d) before[static_cast<size_t>(perm[d])] = shape[d];
    return Mover(e_.Transpose(Viewed(before, stored), perm));
  }

  void Epilogue() {
    const Shape shape = e_.shape(result_);
    for (int64_t additions = rng_.Between(0, 2); additions > 0; --additions) {
      const bool is_bias = rng_.Flip();
      const ValueId other = Source(is_bias ? Shape{shape.back()} : shape, is_bias && rng_.Flip());
      result_ = rng_.Flip() ? e_.Add(result_, other) : e_.Add(other, result_);
    }
    const uint64_t activation = rng_.Below(4);
    if (activation == 1) result_ = e_.Op("Relu", {result_});
    if (activation == 2) result_ = e_.Op("Gelu", {result_}, {{"approximate", std::string("tanh")}});
  }

  ValueId result_;
  std::vector<ValueId> seen_;  // by Mover
};

class AttentionMaker : OneDTypeMaker {
 public:
  AttentionMaker(uint64_t seed, Numerics numerics) : OneDTypeMaker(seed, numerics) {
    for (int64_t rank = rng_.Between(0, 2); rank > 0; --rank) batch_.push_back(rng_.Between(1, 3));
    columns_ = rng_.Below(8) == 0 ? 5 : 8 * rng_.Between(1, 3);
  }

  DeviceCase Make() {
    const int64_t rows = rng_.Between(1, 9), keys = rng_.Between(1, 9);
    const int64_t width = rng_.Flip() ? columns_ : 8 * rng_.Between(1, 2);
    const ValueId q = Operand(rows, columns_), k = Operand(keys, columns_);
    const bool values_last = rng_.Flip();
    ValueId v = values_last ? ValueId() : Operand(keys, width);
    const ValueId turned = e_.Transpose(k, Swapped(batch_.size(), batch_.size() + 1));
    const bool both = rng_.Below(3) == 0;
    ValueId scores = e_.MatMul(both ? Scaled(q) : q, both ? Scaled(turned) : turned);
    scores = Scaled(scores);
    if (rng_.Below(3) == 0) scores = Masked(scores);
    const ValueId weights =
        e_.Op("Softmax", {scores}, {{"axis", static_cast<int64_t>(batch_.size()) + 1}});
    if (values_last) v = e_.Op("Neg", {Operand(keys, width)});
    ValueId result = e_.MatMul(weights, v);
    if (!batch_.empty() && rng_.Flip())
      result = e_.Transpose(result, Swapped(batch_.size() - 1, batch_.size()));
    const uint64_t reader = rng_.Below(4);
    if (reader == 0) result = e_.Op("Neg", {result});
    if (reader == 1) result = Attended(result);
    if (reader == 2) result = e_.MatMul(result, Source({e_.shape(result).back(), columns_}));
    e_.Output("y", result);
    if (rng_.Below(10) == 0) e_.Output("z", rng_.Flip() ? weights : scores);
    return Finished();
  }

 private:
  /// The order of dimensions with these two swapped.
  Ints Swapped(size_t one, size_t other) const {
    Ints perm;
    for (size_t d = 0; d < batch_.size() + 2; ++d) perm.push_back(static_cast<int64_t>(d));
    std::swap(perm[one], perm[other]);
    return perm;
  }

  ValueId Source(const Shape& shape) { return OneDTypeMaker::Source(shape, 4, false); }

  /// [batch..., rows, columns].
  ValueId Operand(int64_t rows, int64_t columns) {
    Shape shape = batch_;
    shape.insert(shape.end(), {rows, columns});
    if (batch_.empty() || rng_.Flip()) return Source(shape);
    const size_t heads = batch_.size() - 1;
    std::swap(shape[heads], shape[heads + 1]);
    Shape flat = shape;
    if (rng_.Flip()) {
      flat.pop_back();
      flat.back() *= columns;
    }
    return e_.Transpose(e_.Reshape(Source(flat), shape), Swapped(heads, heads + 1));
  }

  /// An attention of the queries to keys that are the values, too.
  ValueId Attended(ValueId queries) {
    const ValueId keys = Source(e_.shape(queries));
    const ValueId scores =
        e_.MatMul(queries, e_.Transpose(keys, Swapped(batch_.size(), batch_.size() + 1)));
    return e_.MatMul(
        e_.Op("Softmax", {scores}, {{"axis", static_cast<int64_t>(batch_.size()) + 1}}), keys);
  }

  /// Each row has one small number at least; the others may be as large as masks have them.
  ValueId StoredMask(const Shape& shape) {
    const int64_t row = shape.back();
    const double large = dtype_ == DType::kF16 ? -65504 : -3.3895e38;
    std::vector<double> values;
    for (int64_t left = NumElements(shape) / row; left > 0; --left) {
      const int64_t kept = rng_.Between(0, row - 1);
      for (int64_t k = 0; k < row; ++k)
        values.push_back(
            k != kept && rng_.Below(3) == 0 ? large : static_cast<double>(rng_.Between(-4, 4)) / 8);
    }
    return e_.Constant(Tensor::FromDoubles({dtype_, shape}, values), Cat("mask", sources_++));
  }

  /// With a mask that is broadcast over some dimensions.
  ValueId Masked(ValueId scores) {
    Shape shape = e_.shape(scores);
    for (size_t d = 0; d + 1 < shape.size(); ++d) {
      if (rng_.Flip()) shape[d] = 1;
    }
    while (shape.size() > 1 && shape[0] == 1 && rng_.Flip()) shape.erase(shape.begin());
    const ValueId mask = rng_.Below(4) == 0 ? Source(shape) : StoredMask(shape);
    return rng_.Flip() ? e_.Add(scores, mask) : e_.Add(mask, scores);
  }

  ValueId Scaled(ValueId scores) {
    const uint64_t kind = rng_.Below(4);
    if (kind == 0) return scores;
    const ValueId factor = e_.Constant(
        Tensor::FromDoubles({dtype_, {}}, std::vector<double>{kind == 1 ? 4.0 : 0.25}), "scale");
    if (kind == 1) return e_.Op("Div", {scores, factor});
    return kind == 2 ? e_.Op("Mul", {scores, factor}) : e_.Op("Mul", {factor, scores});
  }

  Shape batch_;
  int64_t columns_;
};

DeviceCase Described(DeviceCase one, uint64_t seed) {
  one.description =
      Cat("seed ", seed, ", ", NumericsName(one.numerics), "\n", PrintGraph(one.graph));
  return one;
}

}  // namespace

DeviceCase RandomAttention(uint64_t seed, Numerics numerics) {
  return Described(AttentionMaker(seed, numerics).Make(), seed);
}

DeviceCase RandomProduct(uint64_t seed, Numerics numerics) {
  return Described(ProductMaker(seed, numerics).Make(), seed);
}

}  // namespace mendel::cuda
