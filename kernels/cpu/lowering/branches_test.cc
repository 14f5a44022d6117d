// Choices on the CPU: runs of one program, whatever was chosen before, against the definition.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/text.h"
#include "kernels/cpu/testing/test_support.h"

namespace mendel::cpu {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::Not;

constexpr int kConditions = 3;
const Shape kShape = {1, 8, 6, 6};

std::unique_ptr<Executable> Compiled(const Graph& graph, int threads = 1) {
  auto executable = FindBackend("cpu")->Compile(graph, {.threads = threads});
  EXPECT_TRUE(executable.ok()) << executable.status();
  return *std::move(executable);
}

std::vector<std::string> KernelsOf(const Executable& executable) {
  std::vector<std::string> kernels;
  for (const Step& step : executable.steps()) kernels.push_back(step.kernel);
  return kernels;
}

/// Runs the program for the conditions that the bits of `chosen` are; the other inputs are random.
void ExpectRight(Executable& executable, const Graph& graph, unsigned chosen, Rng& rng) {
  std::vector<HostValue> inputs = RandomInputs(rng, graph);
  std::vector<Tensor> tensors;
  unsigned bit = 0;
  for (HostValue& input : inputs) {
    Tensor tensor = input.ToTensor();
    if (tensor.dtype() == DType::kI64) {
      std::vector<double> places;
      for (int64_t k = 0; k < tensor.size(); ++k)
        places.push_back(static_cast<double>(rng.Below(6)));
      input = HostValue::FromTensor(tensor = Tensor::FromDoubles(tensor.type(), places));
    }
    if (tensor.dtype() == DType::kBool) {
      tensor = Tensor::FromDoubles(tensor.type(),
                                   std::vector<double>{(chosen >> bit++ & 1) != 0 ? 1.0 : 0.0});
      input = HostValue::FromTensor(tensor);
    }
    tensors.push_back(std::move(tensor));
  }
  const auto wanted = Evaluate(graph, inputs);
  const auto got = RunOnTensors(executable, graph, tensors);
  ASSERT_TRUE(wanted.ok() && got.ok()) << wanted.status() << got.status();
  for (size_t k = 0; k < got->size(); ++k) {
    const Tensor expected = (*wanted)[k].ToTensor();
    for (int64_t n = 0; n < expected.size(); ++n) {
      const double a = expected.DoubleAt(n), b = (*got)[k].DoubleAt(n);
      ASSERT_NEAR(a, b, 1e-4 * (1 + std::abs(a))) << "output " << k << " element " << n;
    }
  }
}

/// A graph of image operators with choices among what came before.
class RandomChoices {
 public:
  explicit RandomChoices(Rng& rng) : rng_(rng) {}

  Graph Make(int nodes) {
    values_ = {net_.Input("x", {DType::kF32, kShape}), net_.Input("y", {DType::kF32, kShape})};
    places_ = net_.Input("places", {DType::kI64, {1, 8, 6, 1}});
    for (int k = 0; k < kConditions; ++k)
      conditions_.push_back(net_.Input(Cat("c", k), {DType::kBool, k == 0 ? Shape{} : Shape{1}}));
    for (int k = 0; k < nodes; ++k) values_.push_back(Next());
    net_.Output("late", values_.back());
    net_.Output("any", Any());
    return net_.Build().value();
  }

 private:
  ValueId Add(const char* op, const std::vector<ValueId>& inputs, const Attributes& attrs = {}) {
    return net_.Add(op, inputs, attrs).value();
  }
  /// Mostly one of the last, so that branches are long.
  ValueId Any() {
    const uint64_t last = std::min<uint64_t>(values_.size(), rng_.Below(3) == 0 ? 100 : 4);
    return values_[values_.size() - 1 - static_cast<size_t>(rng_.Below(last))];
  }
  static Attributes Windows(int64_t pad) {
    return {{"dilations", Ints{1, 1}},
            {"group", int64_t{1}},
            {"pads", Ints{pad, pad, pad, pad}},
            {"strides", Ints{1, 1}}};
  }
  ValueId Number(double value) {
    return net_.Constant(Tensor::FromDoubles({DType::kF32, {}}, std::vector<double>{value}), "");
  }
  ValueId Condition() {
    if (rng_.Flip()) return conditions_[static_cast<size_t>(rng_.Below(conditions_.size()))];
    const ValueId mean =
        Add("ReduceMean", {Any()}, {{"axes", Ints{0, 1, 2, 3}}, {"keepdims", int64_t{1}}});
    // Numbers near the limit would be chosen by rounding.
    conditions_.push_back(Add("Greater", {mean, Number(rng_.Flip() ? 0.377 : -1.131)}));
    return conditions_.back();
  }
  /// Up to four nodes in a row, of which others see only some.
  ValueId Chain() {
    const size_t known = values_.size();
    ++depth_;
    for (uint64_t left = rng_.Below(5); left > 0; --left) values_.push_back(Next());
    --depth_;
    const ValueId last = values_.back();
    if (rng_.Below(4) != 0) values_.resize(known);
    return last;
  }
  ValueId Next() {
    switch (rng_.Below(depth_ < 3 ? 9 : 6)) {
      case 0:
        return Add("Conv", {Any(), net_.Constant(MixedWeights({8, 8, 3, 3}), "w")}, Windows(1));
      case 1:
        return Add("Relu", {Any()});
      case 2:
        return Add("Tanh", {Add("Add", {Any(), Any()})});
      case 3:
        return Add("MaxPool", {Any()},
                   {{"ceil_mode", int64_t{0}},
                    {"dilations", Ints{1, 1}},
                    {"kernel_shape", Ints{3, 3}},
                    {"pads", Ints{1, 1, 1, 1}},
                    {"strides", Ints{1, 1}}});
      case 4: {
        const ValueId whole = Add("Concat", {Any(), Any()}, {{"axis", int64_t{1}}});
        return Add("Conv", {whole, net_.Constant(MixedWeights({8, 16, 1, 1}), "v")}, Windows(0));
      }
      case 5: {  // indices that a branch left out would leave undefined
        const ValueId last =
            net_.Constant(Tensor::FromDoubles({DType::kI64, {}}, std::vector<double>{5}), "");
        const ValueId at = Add("Sub", {last, places_});
        return Add("Sub", {Any(), Add("GatherElements", {Any(), at}, {{"axis", int64_t{3}}})});
      }
      default: {
        const ValueId condition = Condition();
        const ValueId first = Chain(), second = Chain();
        return Add("Where", {condition, first, second});
      }
    }
  }

  Rng& rng_;
  GraphBuilder net_;
  int depth_ = 0;  ///< of choices
  std::vector<ValueId> values_, conditions_;
  ValueId places_;
};

TEST(CpuBranches, RandomChoicesAreRightInAnyOrder) {
  size_t steps = 0, in_branches = 0;
  const char* const wanted = std::getenv("MENDEL_BRANCH_GRAPHS");
  const uint64_t graphs = wanted == nullptr ? 60 : std::strtoull(wanted, nullptr, 10);
  for (uint64_t seed = 1; seed <= graphs; ++seed) {
    SCOPED_TRACE(Cat("seed ", seed));
    Rng rng(seed);
    const Graph graph = RandomChoices(rng).Make(6);
    const auto executable = Compiled(graph, seed % 3 == 0 ? 2 : 1);
    for (const std::string& kernel : KernelsOf(*executable)) {
      ++steps;
      in_branches += kernel.ends_with(", if needed") ? 1 : 0;
    }
    for (int run = 0; run < 12; ++run) {
      ExpectRight(*executable, graph, static_cast<unsigned>(rng.Below(1 << kConditions)), rng);
      if (HasFatalFailure()) return;
    }
  }
  std::printf("%zu of %zu steps are left out where a choice takes another operand\n", in_branches,
              steps);
  EXPECT_GT(in_branches, steps / 10);
}

TEST(CpuBranches, AStepThatAnybodyElseNeedsAlwaysRuns) {
  const auto kernels = [](const std::string& rest) {
    const auto graph = ParseGraph(Cat(R"(graph "g" {
      %0 = Input() {name = "c", dtype = "bool", shape = []}
      %1 = Input() {name = "x", shape = [4, 64]}
      %2 = Softmax(%1) {axis = 1}
      %3 = Softmax(%2) {axis = 0}
      %4 = Where(%0, %3, %1)
)",
                                      rest, "\n}"));
    EXPECT_TRUE(graph.ok()) << graph.status();
    return KernelsOf(*Compiled(*graph));
  };
  const auto if_needed = EndsWith(", if needed");
  EXPECT_THAT(kernels("return \"y\" = %4"), Contains(if_needed).Times(2));
  EXPECT_THAT(kernels("return \"y\" = %4, \"z\" = %2"), Contains(if_needed).Times(1));
  EXPECT_THAT(kernels("return \"y\" = %4, \"z\" = %3"), Not(Contains(if_needed)));
  EXPECT_THAT(kernels("%5 = Where(%0, %4, %3)\nreturn \"y\" = %5"), Not(Contains(if_needed)));
}

}  // namespace
}  // namespace mendel::cpu
