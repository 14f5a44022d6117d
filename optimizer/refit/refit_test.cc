#include "optimizer/refit/refit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "optimizer/refit/refit_cases.h"

namespace mendel {
namespace {

using ::testing::HasSubstr;

/// Convolution, batch norm, relu; and the convolution with the batch norm folded in float32.
struct ConvCase {
  std::string op = "Conv";
  int64_t group = 1;
  bool bias = true;
};

struct ConvWithNorm {
  explicit ConvWithNorm(const ConvCase& wanted, uint64_t seed = 7) : c(wanted) {
    Rng rng(seed);
    const bool transposed = c.op == "ConvTranspose";
    w = Random(rng, transposed ? Shape{4, 6 / c.group, 3, 3} : Shape{6, 4 / c.group, 3, 3});
    b = Random(rng, {6});
    scale = Random(rng, {6}, 0.5, 1.5);
    shift = Random(rng, {6});
    mean = Random(rng, {6});
    var = Random(rng, {6}, 0.1, 2);
    attrs = {{"strides", Ints{1, 1}},
             {"dilations", Ints{1, 1}},
             {"pads", Ints{1, 1, 1, 1}},
             {"group", c.group}};
    if (transposed) attrs.Set("output_padding", Ints{0, 0});
    folded_w = Folded([&](Emitter& e) { return ScaledWeight(e, Factor(e)); });
    folded_b = Folded([&](Emitter& e) {
      const ValueId factor = Factor(e);
      const ValueId centered = e.Op(
          "Sub",
          {c.bias ? e.Constant(b) : e.Constant(Tensor::Filled(b.type(), 0)), e.Constant(mean)});
      return e.Add(e.Mul(centered, factor), e.Constant(shift));
    });
  }

  ValueId Factor(Emitter& e) const {
    return e.Op(
        "Div",
        {e.Constant(scale),
         e.Op("Sqrt", {e.Add(e.Constant(var), e.Constant(Tensor::Scalar(DType::kF32, 1e-5)))})});
  }
  ValueId ScaledWeight(Emitter& e, ValueId factor) const {
    if (c.op == "Conv") return e.Mul(e.Constant(w), e.Reshape(factor, {6, 1, 1, 1}));
    const Shape grouped = {c.group, 4 / c.group, 6 / c.group, 3, 3};
    return e.Reshape(e.Mul(e.Reshape(e.Constant(w), grouped),
                           e.Reshape(factor, {c.group, 1, 6 / c.group, 1, 1})),
                     w.shape());
  }
  Graph Unfolded() const {
    return Program({1, 4, 6, 6}, [&](Emitter& e, ValueId x) {
      std::vector<ValueId> inputs = {x, e.Constant(w, "w")};
      if (c.bias) inputs.push_back(e.Constant(b, "b"));
      const ValueId y = e.Op(c.op, inputs, attrs);
      return e.Op("Relu", {e.Op("BatchNormalization",
                                {y, e.Constant(scale, "scale"), e.Constant(shift, "shift"),
                                 e.Constant(mean, "mean"), e.Constant(var, "var")},
                                {{"epsilon", 1e-5}})});
    });
  }
  Graph FoldedProgram(const Tensor& weight, const Tensor& bias) const {
    return Program({1, 4, 6, 6}, [&](Emitter& e, ValueId x) {
      return e.Op(
          "Relu",
          {e.Op(c.op, {x, e.Constant(weight, "fused_w"), e.Constant(bias, "fused_b")}, attrs)});
    });
  }

  ConvCase c;
  Tensor w, b, scale, shift, mean, var, folded_w, folded_b;
  Attributes attrs;
};

/// Nothing between two convolutions with batch norms: the first one's shift stays its bias.
TEST(Refit, ConvolutionsInARow) {
  const ConvWithNorm first({"Conv", 1, false}, 7);
  Rng rng(12);
  const Tensor w = Random(rng, {5, 6, 1, 1}), scale = Random(rng, {5}, 0.5, 1.5),
               shift = Random(rng, {5});
  const Tensor folded = Folded([&](Emitter& e) {
    return e.Mul(e.Constant(w), e.Reshape(e.Constant(scale), {5, 1, 1, 1}));
  });
  const Attributes attrs{{"strides", Ints{1, 1}},
                         {"dilations", Ints{1, 1}},
                         {"pads", Ints{0, 0, 0, 0}},
                         {"group", int64_t{1}}};
  const Graph a = Program({1, 4, 6, 6}, [&](Emitter& e, ValueId x) {
    const ValueId norm = e.Op("BatchNormalization",
                              {e.Op("Conv", {x, e.Constant(first.w, "w")}, first.attrs),
                               e.Constant(first.scale, "scale"), e.Constant(first.shift, "shift"),
                               e.Constant(first.mean, "mean"), e.Constant(first.var, "var")},
                              {{"epsilon", 1e-5}});
    const ValueId y = e.Mul(e.Op("Conv", {norm, e.Constant(w, "w2")}, attrs),
                            e.Reshape(e.Constant(scale, "scale2"), {5, 1, 1}));
    return e.Add(y, e.Reshape(e.Constant(shift, "shift2"), {5, 1, 1}));
  });
  const Graph b = Program({1, 4, 6, 6}, [&](Emitter& e, ValueId x) {
    const ValueId y = e.Op(
        "Conv", {x, e.Constant(first.folded_w, "fused_w"), e.Constant(first.folded_b, "fused_b")},
        first.attrs);
    return e.Op("Conv", {y, e.Constant(folded, "fused_w2"), e.Constant(shift, "shift2")}, attrs);
  });
  const RefitReport report = Verify(a, b);
  EXPECT_TRUE(report.applies) << report.reason;
}

/// A number before the convolution, as hard-swish spelled out leaves it, belongs to both programs.
TEST(Refit, ConvolutionOfAMultiple) {
  Rng rng(11);
  const Tensor w = Random(rng, {6, 4, 3, 3}), scale = Random(rng, {6}, 0.5, 1.5);
  const Tensor folded = Folded([&](Emitter& e) {
    return e.Mul(e.Constant(w), e.Reshape(e.Constant(scale), {6, 1, 1, 1}));
  });
  const Attributes attrs{{"strides", Ints{1, 1}},
                         {"dilations", Ints{1, 1}},
                         {"pads", Ints{1, 1, 1, 1}},
                         {"group", int64_t{1}}};
  const auto multiple = [](Emitter& e, ValueId x) {
    return e.Op("Div", {e.Op("Relu", {x}), e.Constant(Tensor::Scalar(DType::kF32, 6))});
  };
  const Graph a = Program({1, 4, 6, 6}, [&](Emitter& e, ValueId x) {
    const ValueId y = e.Op("Conv", {multiple(e, x), e.Constant(w, "w")}, attrs);
    return e.Mul(y, e.Reshape(e.Constant(scale, "scale"), {6, 1, 1}));
  });
  const Graph b = Program({1, 4, 6, 6}, [&](Emitter& e, ValueId x) {
    return e.Op("Conv", {multiple(e, x), e.Constant(folded, "fused")}, attrs);
  });
  const RefitReport report = Verify(a, b);
  EXPECT_TRUE(report.applies) << report.reason;
  ASSERT_EQ(report.tensors.size(), 1u);
  EXPECT_EQ(report.tensors[0].expression, "(w * scale)");
}

TEST(Refit, ConvolutionWithBatchNorm) {
  for (const char* op : {"Conv", "ConvTranspose"}) {
    for (const int64_t group : {1, 2}) {
      for (const bool bias : {false, true}) {
        SCOPED_TRACE(testing::Message() << op << " group " << group << " bias " << bias);
        const ConvWithNorm test({op, group, bias});
        const RefitReport report =
            Verify(test.Unfolded(), test.FoldedProgram(test.folded_w, test.folded_b));
        EXPECT_TRUE(report.applies) << report.reason;
        ASSERT_EQ(report.tensors.size(), 2u);
        EXPECT_EQ(report.tensors[0].name, "fused_w");
        EXPECT_THAT(report.tensors[0].expression, HasSubstr("w * scale / sqrt(var + 1e-05)"));
        EXPECT_EQ(report.tensors[0].replaced, test.w.size());
        EXPECT_GT(report.tensors[0].differing, 0);
        EXPECT_GT(report.largest_ulps, 0);
        EXPECT_LT(report.largest_ulps, 8);
        EXPECT_LE(report.certificate.bound_log2, -80);
        ASSERT_EQ(report.errors.size(), 1u);
        EXPECT_LT(report.errors[0].b_max, 1e-5);
      }
    }
  }
}

TEST(Refit, EitherSideMayBeTheFoldedOne) {
  const ConvWithNorm test({"Conv", 1, true});
  const RefitReport report =
      Verify(test.FoldedProgram(test.folded_w, test.folded_b), test.Unfolded());
  EXPECT_TRUE(report.applies) << report.reason;
  EXPECT_EQ(report.refitted, RefitSide::kA);
}

TEST(Refit, OneElementTooFar) {
  const ConvWithNorm test({"Conv", 1, true});
  for (const int64_t element : {0, 57, 215}) {
    const RefitReport report = Verify(
        test.Unfolded(), test.FoldedProgram(Nudged(test.folded_w, element, 100), test.folded_b));
    EXPECT_FALSE(report.applies);
    EXPECT_TRUE(report.identical);
    EXPECT_NEAR(report.largest_ulps, 100, 60);
    EXPECT_THAT(report.reason, HasSubstr("fused_w"));
  }
}

TEST(Refit, PermutedScaleIsNoFold) {
  ConvWithNorm test({"Conv", 1, true});
  const Graph original = test.Unfolded();
  std::vector<double> scale = test.scale.ToDoubles();
  std::swap(scale[1], scale[4]);
  test.scale = Tensor::FromDoubles(test.scale.type(), scale);
  const Tensor wrong = Folded([&](Emitter& e) { return test.ScaledWeight(e, test.Factor(e)); });
  const RefitReport report = Verify(original, test.FoldedProgram(wrong, test.folded_b));
  EXPECT_FALSE(report.applies);
  EXPECT_GT(report.largest_ulps, 1000);
}

TEST(Refit, ExponentsAndThresholdsStay) {
  Rng rng(3);
  const Tensor c = Random(rng, {4}, 1, 2), d = Random(rng, {4}, 1, 2);
  for (const char* op : {"Pow", "Max", "Mul"}) {
    const Graph a = Program({3, 4}, [&](Emitter& e, ValueId x) {
      return e.Op(op, {x, e.Mul(e.Constant(c, "c"), e.Constant(d, "d"))});
    });
    const Tensor product = Folded([&](Emitter& e) { return e.Mul(e.Constant(c), e.Constant(d)); });
    const Graph b = Program({3, 4}, [&](Emitter& e, ValueId x) {
      return e.Op(op, {x, e.Constant(product, "cd")});
    });
    const RefitReport report = Verify(a, b);
    EXPECT_EQ(report.applies, std::string(op) == "Mul") << op << " " << report.reason;
    EXPECT_THAT(report.reason, HasSubstr(report.applies ? "" : "does not enter linearly"));
  }
}

TEST(Refit, AnotherWeightIsNoFold) {
  Rng rng(4);
  const Tensor w = Random(rng, {4, 5});
  const auto program = [&](const Tensor& weight) {
    return Program({3, 4},
                   [&](Emitter& e, ValueId x) { return e.MatMul(x, e.Constant(weight, "w")); });
  };
  EXPECT_TRUE(Verify(program(w), program(w)).applies);
  const RefitReport report = Verify(program(w), program(Nudged(w, 7, 1)));
  EXPECT_FALSE(report.applies);
  EXPECT_THAT(report.reason, HasSubstr("another weight"));
}

TEST(Refit, ConflictingReplacementsFail) {
  Rng rng(5);
  const Tensor w = Random(rng, {4, 4}), s = Random(rng, {4}), t = Random(rng, {4});
  const auto original = [&](const Tensor& second) {
    return Program({3, 4}, [&](Emitter& e, ValueId x) {
      const ValueId y = e.Mul(e.MatMul(x, e.Constant(w, "w")), e.Constant(s, "s"));
      return e.Mul(e.MatMul(e.Op("Relu", {y}), e.Constant(w, "w")), e.Constant(second, "second"));
    });
  };
  const Tensor folded = Folded([&](Emitter& e) { return e.Mul(e.Constant(w), e.Constant(s)); });
  const Graph b = Program({3, 4}, [&](Emitter& e, ValueId x) {
    const ValueId y = e.MatMul(x, e.Constant(folded, "ws"));
    return e.MatMul(e.Op("Relu", {y}), e.Constant(folded, "ws"));
  });
  EXPECT_TRUE(Verify(original(s), b).applies);
  const RefitReport report = Verify(original(t), b);
  EXPECT_FALSE(report.applies);
  EXPECT_THAT(report.reason, HasSubstr("different values"));
}

TEST(Refit, ChainOfMatricesWithBiases) {
  Rng rng(6);
  const Tensor v = Random(rng, {4, 32}), w = Random(rng, {32, 5}), b = Random(rng, {32}),
               c = Random(rng, {5});
  const Graph original = Program({2, 3, 4}, [&](Emitter& e, ValueId x) {
    const ValueId y = e.Add(e.MatMul(x, e.Constant(v, "v")), e.Constant(b, "b"));
    return e.Add(e.MatMul(y, e.Constant(w, "w")), e.Constant(c, "c"));
  });
  const Tensor vw = Folded([&](Emitter& e) { return e.MatMul(e.Constant(v), e.Constant(w)); });
  const Tensor bias = Folded([&](Emitter& e) {
    return e.Add(e.Reshape(e.MatMul(e.Reshape(e.Constant(b), {1, 32}), e.Constant(w)), {5}),
                 e.Constant(c));
  });
  const Graph folded = Program({2, 3, 4}, [&](Emitter& e, ValueId x) {
    return e.Add(e.MatMul(x, e.Constant(vw, "vw")), e.Constant(bias, "bias"));
  });
  const RefitReport report = Verify(original, folded);
  EXPECT_TRUE(report.applies) << report.reason;
  EXPECT_EQ(report.tensors.size(), 2u);
}

TEST(Refit, FoldedTransposeIsTheSameWeight) {
  Rng rng(8);
  const Tensor w = Random(rng, {5, 4});
  const Graph original = Program({3, 4}, [&](Emitter& e, ValueId x) {
    return e.MatMul(x, e.Transpose(e.Constant(w, "w"), {1, 0}));
  });
  const Tensor turned = Folded([&](Emitter& e) { return e.Transpose(e.Constant(w), {1, 0}); });
  const auto folded = [&](const Tensor& weight) {
    return Program({3, 4},
                   [&](Emitter& e, ValueId x) { return e.MatMul(x, e.Constant(weight, "wt")); });
  };
  const RefitReport report = Verify(original, folded(turned));
  EXPECT_TRUE(report.applies) << report.reason;
  EXPECT_TRUE(report.tensors.empty());
  EXPECT_FALSE(Verify(original, folded(Nudged(turned, 3, 1))).applies);
}

/// Three projections and a scaled product, against one projection that is split, with the scale in
/// the first part.
TEST(Refit, ConcatenatedProjectionsWithTheScaleOfAttention) {
  Rng rng(9);
  const Tensor q = Random(rng, {8, 8}), k = Random(rng, {8, 8}), v = Random(rng, {8, 8}),
               bias = Random(rng, {8});
  const Tensor scale = Tensor::Scalar(DType::kF32, 1 / std::sqrt(3.0));
  const auto heads = [](Emitter& e, ValueId y, Ints perm) {
    return e.Transpose(e.Reshape(y, {6, 2, 4}), std::move(perm));
  };
  const auto attention = [&](Emitter& e, ValueId a, ValueId b, ValueId c, bool scaled) {
    ValueId scores = e.MatMul(heads(e, a, {1, 0, 2}), heads(e, b, {1, 2, 0}));
    if (scaled) scores = e.Mul(scores, e.Constant(scale));
    return e.MatMul(e.Op("Softmax", {scores}, {{"axis", int64_t{2}}}), heads(e, c, {1, 0, 2}));
  };
  const Graph original = Program({6, 8}, [&](Emitter& e, ValueId x) {
    const ValueId a = e.Add(e.MatMul(x, e.Constant(q, "q")), e.Constant(bias, "bias"));
    return attention(e, a, e.MatMul(x, e.Constant(k, "k")), e.MatMul(x, e.Constant(v, "v")), true);
  });
  const Tensor all = Folded([&](Emitter& e) {
    return e.Concat({e.Mul(e.Constant(q), e.Constant(scale)), e.Constant(k), e.Constant(v)}, 1);
  });
  const Tensor scaled_bias =
      Folded([&](Emitter& e) { return e.Mul(e.Constant(bias), e.Constant(scale)); });
  const Graph folded = Program({6, 8}, [&](Emitter& e, ValueId x) {
    const ValueId y = e.MatMul(x, e.Constant(all, "qkv"));
    const std::vector<ValueId> parts =
        e.Ops("Split", {y}, 3, {{"axis", int64_t{1}}, {"sizes", Ints{8, 8, 8}}});
    return attention(e, e.Add(parts[0], e.Constant(scaled_bias, "scaled_bias")), parts[1], parts[2],
                     false);
  });
  const RefitReport report = Verify(original, folded);
  EXPECT_TRUE(report.applies) << report.reason;
  ASSERT_EQ(report.tensors.size(), 2u);
  EXPECT_EQ(report.tensors[0].replaced, 192);
}

TEST(Refit, NormBeforeAnUnpaddedConvolution) {
  Rng rng(10);
  const Tensor w = Random(rng, {3, 4, 2, 2}), s = Random(rng, {4, 1, 1}),
               t = Random(rng, {4, 1, 1});
  const Attributes attrs{
      {"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{0, 0, 0, 0}}};
  const Graph original = Program({1, 4, 5, 5}, [&](Emitter& e, ValueId x) {
    return e.Op("Conv",
                {e.Add(e.Mul(x, e.Constant(s, "s")), e.Constant(t, "t")), e.Constant(w, "w")},
                attrs);
  });
  const Tensor scaled = Folded([&](Emitter& e) { return e.Mul(e.Constant(w), e.Constant(s)); });
  const Tensor bias = Folded([&](Emitter& e) {
    return e.Op("ReduceSum", {e.Mul(e.Constant(w), e.Constant(t))},
                {{"axes", Ints{1, 2, 3}}, {"keepdims", int64_t{0}}});
  });
  const Graph folded = Program({1, 4, 5, 5}, [&](Emitter& e, ValueId x) {
    return e.Op("Conv", {x, e.Constant(scaled, "ws"), e.Constant(bias, "wt")}, attrs);
  });
  const RefitReport report = Verify(original, folded);
  EXPECT_TRUE(report.applies) << report.reason;
}

/// 0 is a folded 0 * -inf as a formula, and the slope is NaN.
TEST(Refit, DefinedForFewerInputsIsNoFold) {
  const Tensor zero = Tensor::Scalar(DType::kF32, 0);
  const Tensor infinity = Tensor::Scalar(DType::kF32, -std::numeric_limits<double>::infinity());
  const Graph a = Program({2}, [&](Emitter& e, ValueId x) {
    return e.Op("PRelu", {x, e.Constant(zero)});
  });
  const Graph b = Program({2}, [&](Emitter& e, ValueId x) {
    return e.Op("PRelu", {x, e.Mul(e.Constant(zero), e.Constant(infinity))});
  });
  const auto report = Refit(a, b);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->applies);
}

TEST(Refit, OtherInterfacesAreRefused) {
  const Graph a = Program({2}, [](Emitter& e, ValueId x) { return e.Op("Relu", {x}); });
  const Graph b = Program({3}, [](Emitter& e, ValueId x) { return e.Op("Relu", {x}); });
  EXPECT_EQ(Refit(a, b).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mendel
