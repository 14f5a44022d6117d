#include "kernels/cuda/tiled/chain_case.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "base/status.h"
#include "graph/emitter.h"
#include "graph/text.h"

namespace mendel::cuda {
namespace {

class ChainMaker {
 public:
  ChainMaker(uint64_t seed, ChainValues values) : rng_(seed), floats_(values == ChainValues::kFloats) {
    constexpr DType kTypes[] = {DType::kF32, DType::kF32, DType::kF16, DType::kBF16, DType::kF64};
    if (floats_) dtype_ = kTypes[rng_.Below(5)];
  }

  DeviceCase Make() {
    for (int64_t rank = rng_.Between(0, 2); rank > 0; --rank) batch_.push_back(rng_.Between(1, 3));
    rows_ = Extent();
    depth_ = Extent();
    columns_ = Extent();
    const ValueId left = rng_.Below(3) == 0 ? Function(Source(With(rows_, depth_))) : Source(With(rows_, depth_));
    const uint64_t kind = rng_.Below(floats_ ? 4 : 2);
    if (kind == 0) {
      result_ = Gated(left);
    } else if (kind == 1) {
      result_ = e_.MatMul(Scaled(left), Right());
    } else if (kind == 2) {
      result_ = e_.MatMul(Normalized(left), Right());
    } else {
      result_ = e_.MatMul(e_.Op("Softmax", {left}, {{"axis", static_cast<int64_t>(batch_.size() + 1)}}), Right());
    }
    for (int64_t more = rng_.Between(0, 3); more > 0; --more) result_ = Follower(result_);
    e_.Output("y", result_);
    auto graph = e_.Finish();
    MENDEL_CHECK(graph.ok());
    case_.graph = *std::move(graph);
    return std::move(case_);
  }

 private:
  int64_t Extent() { return rng_.Below(3) == 0 ? 4 * rng_.Between(1, 9) : rng_.Between(1, 37); }
  Shape With(int64_t rows, int64_t columns) const {
    Shape shape = batch_;
    shape.insert(shape.end(), {rows, columns});
    return shape;
  }

  ValueId Source(const Shape& shape, bool stored = false) {
    std::vector<double> values;
    for (int64_t left = NumElements(shape); left > 0; --left) values.push_back(static_cast<double>(rng_.Between(-16, 16)) / 16);
    const Tensor tensor = Tensor::FromDoubles({dtype_, shape}, values);
    const std::string name = Cat("v", sources_++);
    if (stored) return e_.Constant(tensor, name);
    case_.inputs.push_back(HostValue::FromTensor(tensor));
    return e_.Input(name, tensor.type());
  }

  /// [depth, columns], with the batch or without, transposed or not.
  ValueId Right() {
    if (transposed_ < 0) {
      transposed_ = rng_.Below(3) == 0 ? 1 : 0;
      batched_ = rng_.Flip();
    }
    Shape shape = batched_ ? batch_ : Shape();
    const size_t rank = shape.size() + 2;
    if (transposed_ == 0) {
      shape.insert(shape.end(), {depth_, columns_});
      return Source(shape, rng_.Flip());
    }
    shape.insert(shape.end(), {columns_, depth_});
    Ints perm;
    for (size_t d = 0; d < rank; ++d) perm.push_back(static_cast<int64_t>(d));
    std::swap(perm[rank - 1], perm[rank - 2]);
    return e_.Transpose(Source(shape), perm);
  }

  ValueId Function(ValueId value) {
    const char* const floats[] = {"Gelu", "Tanh", "Relu", "Abs"};
    const char* const oracles[] = {"Sigmoid", "Tanh", "Relu", "Neg"};
    return e_.Op((floats_ ? floats : oracles)[rng_.Below(4)], {value});
  }

  /// act(x W1) * (x W3), by SiLU or another function.
  ValueId Gated(ValueId left) {
    const ValueId gate = e_.MatMul(left, Right()), up = e_.MatMul(left, Right());
    const ValueId biased = rng_.Flip() ? e_.Add(gate, Source({columns_})) : gate;
    const ValueId active = rng_.Flip() ? e_.Op("Mul", {biased, e_.Op("Sigmoid", {biased})}) : Function(biased);
    return rng_.Flip() ? e_.Op("Mul", {active, up}) : e_.Op("Mul", {up, active});
  }

  /// x times a factor a row and one a column; the factor of the row an RMS where floats are allowed.
  ValueId Scaled(ValueId x) {
    ValueId factor;
    if (floats_) {
      const Ints axes = {static_cast<int64_t>(batch_.size() + 1)};
      const ValueId squares = e_.Op("ReduceMean", {e_.Op("Mul", {x, x})}, {{"axes", axes}, {"keepdims", int64_t{1}}});
      factor = e_.Op("Div", {x, e_.Op("Sqrt", {e_.Add(squares, Epsilon())})});
    } else {
      factor = e_.Op("Mul", {x, Source(With(rows_, 1))});
    }
    return e_.Op("Mul", {factor, Source({depth_})});
  }
  ValueId Epsilon() { return e_.Constant(Tensor::FromDoubles({dtype_, {}}, {{0.125}})); }

  ValueId Normalized(ValueId x) {
    std::vector<ValueId> operands = {x, Source({depth_}, rng_.Flip())};
    if (rng_.Flip()) operands.push_back(Source({depth_}, rng_.Flip()));
    const ValueId normalized = e_.Op("LayerNormalization", operands, {{"axis", static_cast<int64_t>(batch_.size() + 1)}});
    return rng_.Flip() ? normalized : e_.Add(normalized, Source({1}));
  }

  ValueId Follower(ValueId value) {
    if (rng_.Flip()) return Function(value);
    const ValueId other = Source(rng_.Flip() ? Shape{columns_} : e_.shape(value));
    return rng_.Flip() ? e_.Add(value, other) : e_.Op("Mul", {other, value});
  }

  Rng rng_;
  const bool floats_;
  DType dtype_ = DType::kF32;
  Shape batch_;
  int64_t rows_ = 1, depth_ = 1, columns_ = 1;
  int transposed_ = -1;  // of all right sides, so that they are alike; -1: not decided
  bool batched_ = false;
  Emitter e_;
  DeviceCase case_ = {};
  ValueId result_;
  int sources_ = 0;
};

}  // namespace

DeviceCase RandomChain(uint64_t seed, ChainValues values) {
  DeviceCase one = ChainMaker(seed, values).Make();
  one.told = Cat("seed ", seed, "\n", PrintGraph(one.graph));
  return one;
}

}  // namespace mendel::cuda
