// Loops on the CPU: the body compiled once, against the definition.

#include "graph/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/status.h"
#include "graph/random_graph.h"
#include "kernels/cpu/kernels/pointwise.h"
#include "kernels/cpu/testing/test_support.h"

namespace mendel::cpu {
namespace {

/// A gated recurrence over `steps`, with recurrent weights that are constants or inputs.
Graph Recurrence(int64_t steps, bool reverse, bool constant, int64_t batch = 2) {
  constexpr int64_t kHidden = 20;
  const TensorType state{DType::kF32, {batch, kHidden}};
  const TensorType square{DType::kF32, {kHidden, kHidden}};
  GraphBuilder body;
  const ValueId h = body.Input("x0", state), c = body.Input("x1", state);
  const ValueId x = body.Input("x2", state), r = body.Input("x3", square);
  const ValueId sum = body.Add("Add", {x, body.Add("MatMul", {h, r}).value()}).value();
  const ValueId gate = body.Add("Sigmoid", {sum}).value();
  const ValueId next = body.Add("Mul", {gate, body.Add("Tanh", {c}).value()}).value();
  body.Output("y0", next);
  body.Output("y1", body.Add("Add", {h, body.Add("Mul", {gate, c}).value()}).value());
  body.Output("y2", next);  // the carried value itself
  body.Output("y3", c);     // an input of the step
  Rng rng(3);
  GraphBuilder net;
  std::vector<double> weights(kHidden * kHidden);
  for (double& weight : weights) weight = rng.Uniform(-0.2, 0.2);
  const std::vector<ValueId> inputs = {
      net.Input("h", state), net.Input("c", state),
      net.Input("x", {DType::kF32, {steps, batch, kHidden}}),
      constant ? net.Constant(Tensor::FromDoubles(square, weights), "r") : net.Input("r", square)};
  const int32_t loop = net.AddNode("Loop", inputs,
                                   {{"body", PrintLoopBody(body.Build().value())},
                                    {"carried", int64_t{2}},
                                    {"reverse", int64_t{reverse}},
                                    {"scanned", int64_t{1}},
                                    {"steps", steps}})
                           .value();
  for (int32_t k = 0; k < 4; ++k) net.Output(Cat("y", k), {loop, k});
  return net.Build().value();
}

TEST(CpuLoop, RunsItsBody) {
  uint64_t seed = 1;
  for (const int64_t steps : {1, 2, 7, 100}) {
    for (const bool reverse : {false, true}) {
      for (const bool constant : {false, true}) {
        const Graph graph = Recurrence(steps, reverse, constant);
        SCOPED_TRACE(Cat(steps, " steps, reverse ", reverse, ", constant ", constant));
        CompileOptions options;
        options.threads = constant ? 1 : 2;
        Rng rng(seed++);
        EXPECT_THAT(ExpectMatches(graph, RandomInputs(rng, graph), options),
                    testing::Contains("loop"));
      }
    }
  }
}

/// Two recurrences h' = tanh(x W + h R) over the same steps, one in reverse; `chained`: the second
/// reads the first one's states.
Graph TwoRecurrences(int64_t steps, int64_t hidden, bool chained) {
  const TensorType state{DType::kF32, {2, hidden}}, square{DType::kF32, {hidden, hidden}};
  GraphBuilder body;
  const ValueId h = body.Input("x0", state), step = body.Input("x1", state);
  const ValueId product = body.Add("MatMul", {h, body.Input("x2", square)}).value();
  const ValueId next = body.Add("Tanh", {body.Add("Add", {step, product}).value()}).value();
  body.Output("y0", next);
  body.Output("y1", next);
  const std::string text = PrintLoopBody(body.Build().value());
  Rng rng(5);
  GraphBuilder net;
  const ValueId first = net.Input("h", state);
  ValueId x = net.Input("x", {DType::kF32, {steps, 2, hidden}});
  const auto weights = [&](const char* name) {
    std::vector<double> values(hidden * hidden);
    for (double& value : values) value = rng.Uniform(-0.1, 0.1);
    return net.Constant(Tensor::FromDoubles(square, values), name);
  };
  std::vector<ValueId> last;
  for (const bool reverse : {false, true}) {
    const char* name = reverse ? "backward" : "forward";
    const ValueId products = net.Add("MatMul", {x, weights(reverse ? "wb" : "wf")}).value();
    const int32_t loop = net.AddNode("Loop", {first, products, weights(reverse ? "rb" : "rf")},
                                     {{"body", text},
                                      {"carried", int64_t{1}},
                                      {"reverse", int64_t{reverse}},
                                      {"scanned", int64_t{1}},
                                      {"steps", steps}})
                             .value();
    last.push_back(net.Add("Relu", {ValueId{loop, 0}}).value());
    net.Output(name, {loop, 1});
    if (chained) x = {loop, 1};
  }
  net.Output("last", net.Add("Concat", last, {{"axis", int64_t{0}}}).value());
  return net.Build().value();
}

TEST(CpuLoop, IndependentLoopsRunSideBySide) {
  uint64_t seed = 1;
  for (const auto& [steps, hidden] : {std::pair(1, 20), {2, 20}, {300, 20}, {5, 320}}) {
    for (const bool chained : {false, true}) {
      for (const int threads : {1, 2, 3}) {
        SCOPED_TRACE(
            Cat(steps, " steps, ", hidden, " units, chained ", chained, ", threads ", threads));
        const Graph graph = TwoRecurrences(steps, hidden, chained);
        CompileOptions options;
        options.threads = threads;
        Rng rng(seed++);
        const auto kernels = ExpectMatches(graph, RandomInputs(rng, graph), options);
        const auto beside = testing::Contains("loop side by side");
        if (threads == 2 && !chained)
          EXPECT_THAT(kernels, beside);
        else
          EXPECT_THAT(kernels, testing::Not(beside));
      }
    }
  }
}

TEST(CpuLoop, RunsItsBodyByEveryAlgorithm) {
  const Backend& backend = *FindBackend("cpu");
  uint64_t seed = 1;
  for (const int64_t batch : {1, 2, 9}) {
    const Graph graph = Recurrence(5, false, true, batch);
    const int32_t loop = graph.outputs()[0].value.node;
    const std::vector<std::string> names = backend.Algorithms(graph, loop, Numerics::kDefault);
    EXPECT_EQ(std::count(names.begin(), names.end(), "pointwise-own") == 1,
              DirectIsaHere() != nullptr);
    for (const std::string& name : names) {
      CompileOptions options;
      options.algorithms[loop] = name;
      Rng rng(seed++);
      EXPECT_THAT(ExpectMatches(graph, RandomInputs(rng, graph), options),
                  testing::Contains(Cat("loop:", name)));
    }
  }
  // Weights that are inputs have no algorithms, and unknown names are refused.
  const Graph graph = Recurrence(5, false, false);
  const int32_t loop = graph.outputs()[0].value.node;
  EXPECT_THAT(backend.Algorithms(graph, loop, Numerics::kDefault), testing::IsEmpty());
  CompileOptions options;
  options.algorithms[loop] = "pointwise-own";
  EXPECT_EQ(backend.Compile(graph, options).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mendel::cpu
