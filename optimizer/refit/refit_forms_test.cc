// Forms that simplifiers give to what they fold: rows in one matrix, views in other orders, sums
// multiplied out.

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "base/status.h"
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

/// A block of RepVGG: a 3x3 and a 1x1 convolution and the value itself, each with a batch norm.
struct Branches {
  explicit Branches(int64_t group, uint64_t seed = 35) : group(group) {
    Rng rng(seed);
    w3 = Random(rng, {kChannels, kChannels / group, 3, 3});
    w1 = Random(rng, {kChannels, kChannels / group, 1, 1});
    for (Norm& norm : norms) {
      norm = {Random(rng, {kChannels}, 0.5, 1.5), Random(rng, {kChannels}),
              Random(rng, {kChannels}), Random(rng, {kChannels}, 0.1, 2)};
    }
  }

  static constexpr int64_t kChannels = 4;
  struct Norm {
    Tensor scale, shift, mean, var;
  };

  Attributes Windows(int64_t pad) const {
    return {{"strides", Ints{1, 1}},
            {"dilations", Ints{1, 1}},
            {"pads", Ints{pad, pad, pad, pad}},
            {"group", group}};
  }
  ValueId Normalized(Emitter& e, ValueId x, size_t k) const {
    return e.Op(
        "BatchNormalization",
        {x, e.Constant(norms[k].scale, Cat("scale", k)),
         e.Constant(norms[k].shift, Cat("shift", k)), e.Constant(norms[k].mean, Cat("mean", k)),
         e.Constant(norms[k].var, Cat("var", k))},
        {{"epsilon", 1e-5}});
  }
  Graph Training() const {
    return Program({1, kChannels, 5, 5}, [&](Emitter& e, ValueId input) {
      const ValueId x = e.Op("Relu", {input});
      const ValueId wide = e.Op("Conv", {x, e.Constant(w3, "w3")}, Windows(1));
      const ValueId narrow = e.Op("Conv", {x, e.Constant(w1, "w1")}, Windows(0));
      return e.Add(e.Add(Normalized(e, wide, 0), Normalized(e, narrow, 1)), Normalized(e, x, 2));
    });
  }

  ValueId Factor(Emitter& e, size_t k) const {
    const ValueId epsilon = e.Constant(Tensor::Scalar(DType::kF32, 1e-5));
    return e.Op("Div", {e.Constant(norms[k].scale),
                        e.Op("Sqrt", {e.Add(e.Constant(norms[k].var), epsilon)})});
  }
  /// Ones for the output channel that is the input channel `shift` later in its group.
  Tensor Identity(int64_t shift) const {
    const int64_t rows = kChannels / group;
    std::vector<double> ones(static_cast<size_t>(kChannels * rows), 0);
    for (int64_t c = 0; c < kChannels; ++c)
      ones[static_cast<size_t>(c * rows + (c + shift) % rows)] = 1;
    return Tensor::FromDoubles({DType::kF32, {kChannels, rows, 1, 1}}, ones);
  }
  /// The kernel of all branches; the 1x1 kernel stands at `at` and the identity reads `shift`
  /// channels later.
  Tensor Kernel(int64_t at = 1, int64_t shift = 0) const {
    return Folded([&](Emitter& e) {
      const auto scaled = [&](const Tensor& w, size_t k) {
        return e.Mul(e.Constant(w), e.Reshape(Factor(e, k), {kChannels, 1, 1, 1}));
      };
      const auto padded = [&](ValueId w, int64_t before) {
        return e.Op("Pad", {w}, {{"pads", Ints{0, 0, before, 1, 0, 0, 2 - before, 1}}});
      };
      return e.Add(e.Add(scaled(w3, 0), padded(scaled(w1, 1), at)),
                   padded(scaled(Identity(shift), 2), 1));
    });
  }
  Tensor Bias() const {
    return Folded([&](Emitter& e) {
      std::vector<ValueId> terms;
      for (size_t k = 0; k < 3; ++k) {
        const ValueId mean = e.Mul(e.Constant(norms[k].mean), Factor(e, k));
        terms.push_back(e.Op("Sub", {e.Constant(norms[k].shift), mean}));
      }
      return e.Add(e.Add(terms[0], terms[1]), terms[2]);
    });
  }
  Graph Merged(const Tensor& kernel, const Tensor& bias) const {
    return Program({1, kChannels, 5, 5}, [&](Emitter& e, ValueId input) {
      return e.Op("Conv",
                  {e.Op("Relu", {input}), e.Constant(kernel, "kernel"), e.Constant(bias, "bias")},
                  Windows(1));
    });
  }

  int64_t group;
  Tensor w3, w1;
  Norm norms[3];
};

TEST(RefitForms, BranchesOfOneValueInOneConvolution) {
  for (const int64_t group : {1, 2, 4}) {
    const Branches branches(group);
    const Graph training = branches.Training();
    const Tensor kernel = branches.Kernel(), bias = branches.Bias();
    const RefitReport report = Verify(training, branches.Merged(kernel, bias));
    EXPECT_TRUE(report.applies) << group << ": " << report.reason;
    EXPECT_TRUE(Verify(branches.Merged(kernel, bias), training).applies) << group;
    const int64_t center = 4;
    EXPECT_FALSE(Verify(training, branches.Merged(Nudged(kernel, center, 200), bias)).applies);
    EXPECT_FALSE(Verify(training, branches.Merged(kernel, Nudged(bias, 1, 200))).applies);
  }
}

TEST(RefitForms, BranchesAtOtherPlacesStayApart) {
  const Branches branches(1);
  const Graph training = branches.Training();
  EXPECT_FALSE(Verify(training, branches.Merged(branches.Kernel(0), branches.Bias())).applies);
  EXPECT_FALSE(Verify(training, branches.Merged(branches.Kernel(1, 1), branches.Bias())).applies);
}

/// x w + (x u) v s = x (w + u v s).
TEST(RefitForms, LowRankAdditionsInOneMatrix) {
  Rng rng(36);
  const Tensor w = Random(rng, {6, 4}), u = Random(rng, {6, 2}), v = Random(rng, {2, 4});
  const Tensor scale = Tensor::Scalar(DType::kF32, 2);
  const Graph a = Program({3, 6}, [&](Emitter& e, ValueId x) {
    const ValueId low = e.MatMul(e.MatMul(x, e.Constant(u, "u")), e.Constant(v, "v"));
    return e.Add(e.MatMul(x, e.Constant(w, "w")), e.Mul(low, e.Constant(scale)));
  });
  const Tensor folded = Folded([&](Emitter& e) {
    return e.Add(e.Constant(w), e.Mul(e.MatMul(e.Constant(u), e.Constant(v)), e.Constant(scale)));
  });
  const auto merged = [&](const Tensor& weight) {
    return Program(
        {3, 6}, [&](Emitter& e, ValueId x) { return e.MatMul(x, e.Constant(weight, "folded")); });
  };
  const RefitReport report = Verify(a, merged(folded));
  EXPECT_TRUE(report.applies) << report.reason;
  EXPECT_FALSE(Verify(a, merged(Nudged(folded, 3, 200))).applies);
  EXPECT_FALSE(Verify(a, merged(w)).applies);
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
