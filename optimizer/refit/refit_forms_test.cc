// Forms that simplifiers give to what they fold: rows in one matrix, views in other orders, sums
// multiplied out.

#include <gtest/gtest.h>

#include <limits>

#include "optimizer/refit/refit_cases.h"

namespace mendel {
namespace {

/// A norm and a gated product of matrices on a sequence; folded: on a matrix of its rows, the
/// norm's factors in the weights.
TEST(RefitForms, RowsOfASequenceInOneMatrix) {
  Rng rng(31);
  const Tensor scale = Random(rng, {4}, 0.5, 1.5);
  const Tensor shift = Random(rng, {4});
  const Tensor w = Random(rng, {4, 6});
  const Tensor b = Random(rng, {6});
  const Tensor v = Random(rng, {6, 2});
  const Tensor factor = Random(rng, {2}, 0.5, 1.5);
  const auto head = [&](Emitter& e, ValueId x) {
    return e.Add(e.Mul(e.Op("Tanh", {x}), e.Constant(scale, "scale")), e.Constant(shift, "shift"));
  };
  const auto gate = [](Emitter& e, ValueId x) { return e.Mul(x, e.Op("Sigmoid", {x})); };
  const Graph a = Program({1, 3, 4}, [&](Emitter& e, ValueId x) {
    const ValueId hidden = e.Add(e.MatMul(head(e, x), e.Constant(w, "w")), e.Constant(b, "b"));
    return e.Mul(e.MatMul(gate(e, hidden), e.Constant(v, "v")), e.Constant(factor, "factor"));
  });
  const Tensor folded =
      Folded([&](Emitter& e) { return e.Mul(e.Constant(v), e.Constant(factor)); });
  const auto rows = [&](const Tensor& last) {
    return Program({1, 3, 4}, [&](Emitter& e, ValueId x) {
      const ValueId matrix = e.Reshape(head(e, x), {3, 4});
      const ValueId hidden = e.Add(e.MatMul(matrix, e.Constant(w, "w")), e.Constant(b, "b"));
      return e.Reshape(e.MatMul(gate(e, hidden), e.Constant(last, "folded")), {1, 3, 2});
    });
  };
  const RefitReport report = Verify(a, rows(folded));
  EXPECT_TRUE(report.applies) << report.reason;
  EXPECT_FALSE(Verify(a, rows(Nudged(folded, 3, 100))).applies);
}

/// Dimensions of one element that come and go between transpositions and slices.
TEST(RefitForms, ViewsWithOnesBetweenThem) {
  Rng rng(32);
  const Tensor w = Random(rng, {4, 12});
  const Tensor factor = Random(rng, {12}, 0.5, 1.5);
  const Tensor folded =
      Folded([&](Emitter& e) { return e.Mul(e.Constant(w), e.Constant(factor)); });
  const auto slice = [](Emitter& e, ValueId x, Ints starts, Ints ends) {
    return e.Op("Slice", {x},
                {{"starts", starts}, {"ends", ends}, {"steps", Ints(starts.size(), 1)}});
  };
  const auto transpose = [](Emitter& e, ValueId x, const Ints& perm) {
    return e.Op("Transpose", {x}, {{"perm", perm}});
  };
  const Graph a = Program({1, 5, 4}, [&](Emitter& e, ValueId x) {
    const ValueId all = e.Mul(e.MatMul(x, e.Constant(w, "w")), e.Constant(factor, "factor"));
    const ValueId heads = transpose(e, e.Reshape(all, {1, 5, 2, 2, 3}), {2, 0, 3, 1, 4});
    const ValueId keys = e.Reshape(slice(e, heads, {1, 0, 0, 0, 0}, {2, 1, 2, 5, 3}), {1, 2, 5, 3});
    return transpose(e, keys, {0, 1, 3, 2});
  });
  const auto other = [&](const Tensor& weight) {
    return Program({1, 5, 4}, [&](Emitter& e, ValueId x) {
      const ValueId all = e.MatMul(x, e.Constant(weight, "folded"));
      const ValueId keys =
          slice(e, e.Reshape(all, {1, 5, 2, 2, 3}), {0, 0, 1, 0, 0}, {1, 5, 2, 2, 3});
      return transpose(e, e.Reshape(keys, {1, 5, 2, 3}), {0, 2, 3, 1});
    });
  };
  const RefitReport report = Verify(a, other(folded));
  EXPECT_TRUE(report.applies) << report.reason;
  EXPECT_FALSE(Verify(a, other(Nudged(folded, 7, 100))).applies);
}

/// A shift that goes through a convolution and is then scaled by one number: (conv(t) + b) c stands
/// in two folded constants.
TEST(RefitForms, SumsOfWeightsAreMultipliedOut) {
  Rng rng(33);
  const Tensor w = Random(rng, {3, 2, 1, 1});
  const Tensor b = Random(rng, {3});
  const Tensor c = Random(rng, {1}, 1.5, 2);
  const Tensor t = Random(rng, {1}, 0.5, 1);
  const Attributes attrs{{"strides", Ints{1, 1}},
                         {"dilations", Ints{1, 1}},
                         {"pads", Ints{0, 0, 0, 0}},
                         {"group", int64_t{1}}};
  const auto shifted = [&](Emitter& e, ValueId x) {
    return e.Add(e.Op("Relu", {x}), e.Constant(t, "t"));
  };
  const Graph a = Program({1, 2, 4, 4}, [&](Emitter& e, ValueId x) {
    const ValueId y = e.Op("Conv", {shifted(e, x), e.Constant(w, "w"), e.Constant(b, "b")}, attrs);
    return e.Mul(y, e.Constant(c, "c"));
  });
  const Tensor folded_w = Folded([&](Emitter& e) { return e.Mul(e.Constant(w), e.Constant(c)); });
  const Tensor folded_b = Folded([&](Emitter& e) { return e.Mul(e.Constant(b), e.Constant(c)); });
  const auto folded = [&](const Tensor& bias) {
    return Program({1, 2, 4, 4}, [&](Emitter& e, ValueId x) {
      return e.Op("Conv", {shifted(e, x), e.Constant(folded_w, "fw"), e.Constant(bias, "fb")},
                  attrs);
    });
  };
  const RefitReport report = Verify(a, folded(folded_b));
  EXPECT_TRUE(report.applies) << report.reason;
  EXPECT_FALSE(Verify(a, folded(Nudged(folded_b, 1, 100))).applies);
}

/// The canonical form turns products with zero and signs into constants that no program stores.
TEST(RefitForms, ConstantsOfTheFormAreNotStored) {
  const Tensor zero = Tensor::Scalar(DType::kF32, 0);
  const Tensor infinite =
      Tensor::Filled({DType::kF32, {1}}, std::numeric_limits<double>::infinity());
  const Graph a = Program({1}, [&](Emitter& e, ValueId x) { return e.Mul(x, e.Constant(zero)); });
  const Graph b = Program({1}, [&](Emitter& e, ValueId x) {
    const ValueId one = e.Op("Pow", {e.Constant(infinite), e.Constant(zero)});
    return e.Mul(x, e.Op("Div", {e.Constant(zero), one}));
  });
  EXPECT_TRUE(Verify(a, a).applies);
  EXPECT_TRUE(Verify(b, b).applies);
  for (const RefitReport& report : {Verify(a, b), Verify(b, a)}) {
    for (const RefitTensor& tensor : report.tensors) EXPECT_FALSE(tensor.name.empty());
  }

  const Tensor scale = Tensor::Scalar(DType::kF32, 2);
  const Graph scaled =
      Program({1}, [&](Emitter& e, ValueId x) { return e.Mul(x, e.Constant(scale, "scale")); });
  const Graph negative = Program({1}, [&](Emitter& e, ValueId x) { return e.Op("Neg", {x}); });
  EXPECT_FALSE(Verify(scaled, negative).applies);
  EXPECT_FALSE(Verify(negative, scaled).applies);
}

}  // namespace
}  // namespace mendel
