// Factors and summands that fit neither the weights nor the bias of a contraction.

#include <string>
#include <vector>

#include "base/random.h"
#include "graph/random_graph.h"
#include "gtest/gtest.h"
#include "kernels/cpu/testing/test_support.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kChannels = 16;

class Epilogues : public testing::Test {
 protected:
  ValueId Number(double value) { return builder_.Constant(Tensor::Scalar(DType::kF32, value)); }
  ValueId Add(const std::string& op, std::vector<ValueId> inputs, Attributes attrs = {}) {
    return *builder_.Add(op, std::move(inputs), std::move(attrs));
  }
  ValueId Input(const std::string& name, const Shape& shape) {
    return builder_.Input(name, {DType::kF32, shape});
  }
  /// Different numbers, one for each channel.
  ValueId Channels(const Shape& shape) {
    std::vector<double> values;
    for (int64_t c = 0; c < kChannels; ++c) values.push_back(static_cast<double>(c) - 3);
    return builder_.Constant(Tensor::FromDoubles({DType::kF32, shape}, values), "channels");
  }
  ValueId Weights(const Shape& shape) { return builder_.Constant(MixedWeights(shape), "w"); }
  void ExpectRight(ValueId y) {
    builder_.Output("y", y);
    const Graph graph = *builder_.Build();
    Rng rng(1);
    ExpectMatches(graph, RandomInputs(rng, graph), {});
  }

  GraphBuilder builder_;
};

TEST_F(Epilogues, AddASummandAChannelAfterAFactorOfDynamicWeights) {
  for (const bool divides : {false, true}) {
    builder_ = GraphBuilder();
    const ValueId y = Add("MatMul", {Input("a", {5, 8}), Input("b", {8, kChannels})});
    const ValueId scaled = Add(divides ? "Div" : "Mul", {y, Number(divides ? 2 : 0.5)});
    ExpectRight(Add(divides ? "Sub" : "Add", {scaled, Channels({kChannels})}));
  }
}

TEST_F(Epilogues, AddAMaskToScores) {
  const ValueId scores =
      Add("MatMul", {Input("q", {1, 2, 4, 8}), Input("k", {1, 2, 8, kChannels})});
  const ValueId masked =
      Add("Add", {Add("Mul", {scores, Number(0.35)}), Channels({1, 1, 1, kChannels})});
  ExpectRight(Add("Softmax", {masked}, {{"axis", int64_t{3}}}));
}

TEST_F(Epilogues, AddASummandAChannelAfterAResidualAndAFactor) {
  for (const int64_t rows : {20, 100}) {
    builder_ = GraphBuilder();
    const ValueId y = Add("MatMul", {Input("a", {rows, 8}), Weights({8, kChannels})});
    const ValueId sum = Add("Add", {y, Input("r", {rows, kChannels})});
    ExpectRight(Add("Add", {Add("Mul", {sum, Number(0.5)}), Channels({kChannels})}));
  }
}

TEST_F(Epilogues, AddASummandAChannelAfterAResidualOfAConvolution) {
  const Attributes attrs = {{"strides", Ints{1, 1}},
                            {"dilations", Ints{1, 1}},
                            {"pads", Ints{1, 1, 1, 1}},
                            {"group", int64_t{1}}};
  const ValueId y = Add("Conv", {Input("x", {1, 8, 9, 9}), Weights({kChannels, 8, 3, 3})}, attrs);
  const ValueId sum = Add("Add", {y, Input("r", {1, kChannels, 9, 9})});
  ExpectRight(Add("Add", {Add("Mul", {sum, Number(0.5)}), Channels({kChannels, 1, 1})}));
}

TEST_F(Epilogues, FactorsWhoseProductOverflowsStayApart) {
  const ValueId zeros = Add("Mul", {Input("a", {5, 8}), Number(0)});
  const ValueId y = Add("MatMul", {zeros, Input("b", {8, kChannels})});
  ExpectRight(Add("Mul", {Add("Mul", {y, Number(1e20)}), Number(1e20)}));
}

TEST_F(Epilogues, FactorsAfterAnActivationStayApart) {
  const ValueId y = Add("MatMul", {Input("a", {20, 8}), Weights({8, kChannels})});
  const ValueId bent = Add("Tanh", {Add("Mul", {y, Number(0)})});
  const ValueId large = Add("Mul", {Add("Mul", {bent, Number(1e20)}), Number(1e20)});
  ExpectRight(Add("Add", {large, Number(0.25)}));
}

}  // namespace
}  // namespace mendel::cpu
