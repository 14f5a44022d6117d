#include "kernels/cuda/tiled/product_chain_case.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "base/status.h"
#include "graph/emitter.h"
#include "graph/text.h"

namespace mendel::cuda {
namespace {

class ProductChainMaker : public CaseMaker {
 public:
  ProductChainMaker(uint64_t seed, ChainValues values) : CaseMaker(seed, values) {}

  DeviceCase Matrices() {
    DrawBatch();
    const int64_t rows = Extent(), depth = Extent(), inner = Extent(), columns = Extent();
    const bool shared = rng_.Flip();
    const ValueId left = Source(With(rows, depth));
    ValueId value =
        e_.MatMul(rng_.Below(3) == 0 ? Function(left) : left, Right(depth, inner, shared));
    switch (rng_.Below(4)) {
      case 0:
        break;
      case 1:
        value = Gated(Follower(value));
        break;
      default:
        value = Attention(value);
    }
    value = Followed(e_.MatMul(value, Right(inner, columns, shared)));
    return Finished(value);
  }

  DeviceCase Convolutions() {
    Shape shape = {rng_.Between(1, 3), 2 * rng_.Between(1, 4)};
    for (int64_t d = rng_.Between(1, 3); d > 0; --d)
      shape.push_back(rng_.Between(3, shape.size() > 3 ? 5 : 9));
    const ValueId first = Convolution(Source(shape), rng_.Flip(0.15));
    return Finished(Followed(Convolution(Followed(first), false)));
  }

 private:
  ValueId Right(int64_t depth, int64_t columns, bool shared) {
    const bool transposed = !rng_.Flip();
    return CaseMaker::Right(depth, columns, !shared, transposed);
  }
  ValueId Gated(ValueId value) {
    return rng_.Flip() ? value : e_.Op("Mul", {value, e_.Op("Sigmoid", {value})});
  }

  /// softmax(scores * scale + mask), or a normalization of the rows, what follows it included.
  ValueId Attention(ValueId scores) {
    const Shape shape = e_.shape(scores);
    const auto last = static_cast<int64_t>(shape.size()) - 1;
    if (rng_.Flip())
      scores = e_.Op("Mul", {scores, e_.Constant(Tensor::FromDoubles({dtype_, {}}, {{0.25}}))});
    if (rng_.Flip()) scores = e_.Add(scores, Source(rng_.Flip() ? shape : Shape{shape.back()}));
    if (rng_.Below(4) == 0) {
      const ValueId squares = e_.Op("ReduceMean", {e_.Op("Mul", {scores, scores})},
                                    {{"axes", Ints{last}}, {"keepdims", int64_t{1}}});
      const ValueId epsilon = e_.Constant(Tensor::FromDoubles({dtype_, {}}, {{0.125}}));
      return e_.Op("Div", {scores, e_.Op("Sqrt", {e_.Add(squares, epsilon)})});
    }
    const ValueId rows = e_.Op("Softmax", {scores}, {{"axis", last}});
    return rng_.Below(3) == 0 ? e_.Op("Mul", {rows, Source({shape.back()})}) : rows;
  }

  ValueId Convolution(ValueId x, bool transposed) {
    const Shape shape = e_.shape(x);
    const int64_t group = rng_.Flip(0.2) ? shape[1] : (shape[1] % 2 == 0 && rng_.Flip(0.3) ? 2 : 1);
    const int64_t out = group * (rng_.Flip(0.1) ? rng_.Between(5, 9) : rng_.Between(1, 4));
    Shape w = transposed ? Shape{shape[1], out / group} : Shape{out, shape[1] / group};
    Ints strides, dilations, begin, end, extra;
    for (size_t d = 2; d < shape.size(); ++d) {
      const int64_t taps[] = {1, 1, 2, 3};
      w.push_back(std::min<int64_t>(taps[rng_.Below(4)], shape[d]));
      strides.push_back(rng_.Between(1, 3));
      dilations.push_back(2 * w.back() <= shape[d] ? rng_.Between(1, 2) : 1);
      begin.push_back(rng_.Between(0, w.back() - (rng_.Below(6) == 0 ? 0 : 1)));
      end.push_back(rng_.Between(0, w.back() - 1));
      extra.push_back(0);
    }
    if (transposed) end = begin = Ints(shape.size() - 2, 0);
    begin.insert(begin.end(), end.begin(), end.end());
    Attributes attrs{
        {"strides", strides}, {"dilations", dilations}, {"pads", begin}, {"group", group}};
    if (transposed) attrs.Set("output_padding", extra);
    std::vector<ValueId> operands = {x, Source(w, rng_.Flip(0.7))};
    if (rng_.Flip()) operands.push_back(Source({out}, rng_.Flip(0.7)));
    return e_.Op(transposed ? "ConvTranspose" : "Conv", std::move(operands), std::move(attrs));
  }

  ValueId Followed(ValueId value) {
    for (int64_t more = rng_.Between(0, 2); more > 0; --more) value = Follower(value);
    return value;
  }
};

}  // namespace

DeviceCase RandomMatrixChain(uint64_t seed, ChainValues values) {
  return ProductChainMaker(seed, values).Matrices();
}
DeviceCase RandomConvolutionChain(uint64_t seed, ChainValues values) {
  return ProductChainMaker(seed, values).Convolutions();
}

}  // namespace mendel::cuda
