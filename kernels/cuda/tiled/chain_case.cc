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

class ChainMaker : public CaseMaker {
 public:
  ChainMaker(uint64_t seed, ChainValues values) : CaseMaker(seed, values) {}

  DeviceCase Make() {
    DrawBatch();
    rows_ = Extent();
    depth_ = Extent();
    columns_ = Extent();
    const ValueId left =
        rng_.Below(3) == 0 ? Function(Source(With(rows_, depth_))) : Source(With(rows_, depth_));
    const uint64_t kind = rng_.Below(4);
    if (kind == 0) {
      result_ = Gated(left);
    } else if (kind == 1) {
      result_ = e_.MatMul(Scaled(left), Right());
    } else if (kind == 2) {
      result_ = e_.MatMul(Normalized(left), Right());
    } else {
      result_ = e_.MatMul(
          e_.Op("Softmax", {left}, {{"axis", static_cast<int64_t>(batch_.size() + 1)}}), Right());
    }
    for (int64_t more = rng_.Between(0, 3); more > 0; --more) result_ = Follower(result_);
    return Finished(result_);
  }

 private:
  /// [depth, columns], with the batch or without, transposed or not: as it is drawn for the first
  /// one.
  ValueId Right() {
    if (transposed_ < 0) {
      transposed_ = rng_.Below(3) == 0 ? 1 : 0;
      batched_ = rng_.Flip();
    }
    return CaseMaker::Right(depth_, columns_, batched_, transposed_ == 1);
  }

  /// act(x W1) * (x W3), by SiLU or another function.
  ValueId Gated(ValueId left) {
    const ValueId gate = e_.MatMul(left, Right()), up = e_.MatMul(left, Right());
    const ValueId biased = rng_.Flip() ? e_.Add(gate, Source({columns_})) : gate;
    const ValueId active =
        rng_.Flip() ? e_.Op("Mul", {biased, e_.Op("Sigmoid", {biased})}) : Function(biased);
    return rng_.Flip() ? e_.Op("Mul", {active, up}) : e_.Op("Mul", {up, active});
  }

  /// x times a factor a row and one a column; the factor of the row an RMS or given.
  ValueId Scaled(ValueId x) {
    ValueId factor;
    if (floats_ || rng_.Flip()) {
      const Ints axes = {static_cast<int64_t>(batch_.size() + 1)};
      const ValueId squares =
          e_.Op("ReduceMean", {e_.Op("Mul", {x, x})}, {{"axes", axes}, {"keepdims", int64_t{1}}});
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
    // In f32, as attributes are in files: the text's literal is this number then.
    const Attributes attrs{{"axis", static_cast<int64_t>(batch_.size() + 1)},
                           {"epsilon", double{1e-5f}}};
    const ValueId normalized = e_.Op("LayerNormalization", operands, attrs);
    return rng_.Flip() ? normalized : e_.Add(normalized, Source({1}));
  }

  int64_t rows_ = 1, depth_ = 1, columns_ = 1;
  int transposed_ = -1;  // of all right sides, so that they are alike; -1: not decided
  bool batched_ = false;
  ValueId result_;
};

}  // namespace

DeviceCase RandomChain(uint64_t seed, ChainValues values) {
  return ChainMaker(seed, values).Make();
}

}  // namespace mendel::cuda
