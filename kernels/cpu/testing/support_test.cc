#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/sample_node.h"
#include "gtest/gtest.h"
#include "kernels/cpu/testing/call_counts.h"
#include "kernels/cpu/testing/guarded.h"
#include "kernels/cpu/testing/test_support.h"

namespace mendel::cpu {
namespace {

/// A tensor's bytes, NaNs at first.
Guarded<std::byte> BytesOf(const TensorType& type, Guard guard) {
  Guarded<std::byte> bytes(ByteSize(type), guard, DTypeSize(type.dtype));
  std::fill(bytes.begin(), bytes.end(), std::byte{0xff});
  return bytes;
}

double RoundingOf(DType dtype) {
  if (dtype == DType::kF16) return 1e-3;
  if (dtype == DType::kBF16) return 8e-3;
  return 0;
}

double Largest(const HostValue& value) {
  double largest = 0;
  for (double x : value.scalars)
    largest = std::isfinite(x) ? std::max(largest, std::fabs(x)) : largest;
  return largest;
}

std::string Joined(const std::vector<std::string>& kernels) {
  std::string all;
  for (const std::string& kernel : kernels) all += kernel + "; ";
  return all;
}

/// `scale` is the largest input. It bounds the error of cancellation.
void ExpectClose(const HostValue& expected, const Tensor& actual, double scale, double tolerance) {
  ASSERT_EQ(expected.type, actual.type());
  const double allowed =
      (tolerance + RoundingOf(actual.dtype())) * std::max(scale, Largest(expected));
  for (int64_t i = 0; i < actual.size(); ++i) {
    if (IsIntegral(actual.dtype())) {
      ASSERT_EQ(expected.integers[static_cast<size_t>(i)], actual.IntAt(i)) << "element " << i;
      continue;
    }
    const double want = RoundTo(actual.dtype(), expected.scalars[static_cast<size_t>(i)]);
    const double got = actual.DoubleAt(i);
    if (std::isfinite(want)) {
      ASSERT_NEAR(want, got, allowed) << "element " << i;
    } else {
      ASSERT_TRUE(std::isnan(want) ? std::isnan(got) : want == got)
          << "element " << i << ": " << got << " instead of " << want;
    }
  }
}

/// Checks a run after the first. Only the definition of an operator without a kernel may allocate,
/// and oneDNN for the duration of a call (the table of its arguments).
void ExpectSteady(const WatchedCalls& calls, const std::vector<std::string>& kernels) {
  const std::string all = Joined(kernels);
  if (std::count(kernels.begin(), kernels.end(), "definition") == 0) {
    EXPECT_EQ(calls.own, CallCounts{}) << "kernels: " << all;
  }
  const CallCounts& onednn = calls.onednn;
  const bool kept =
      onednn.allocations != onednn.frees || onednn.mappings != 0 || onednn.threads != 0;
  EXPECT_FALSE(kept) << onednn << " inside " << calls.primitives << " primitives of " << all;
}

}  // namespace

std::vector<std::string> ExpectMatches(const Graph& graph, const std::vector<HostValue>& inputs,
                                       const CompileOptions& options, double tolerance,
                                       double scale) {
  std::vector<std::string> kernels;
  const absl::StatusOr<std::vector<HostValue>> expected = Evaluate(graph, inputs);
  EXPECT_TRUE(expected.ok()) << expected.status();
  absl::StatusOr<std::unique_ptr<Executable>> executable =
      FindBackend("cpu")->Compile(graph, options);
  EXPECT_TRUE(executable.ok()) << executable.status();
  if (!expected.ok() || !executable.ok()) return kernels;
  for (const Step& step : (*executable)->steps()) kernels.push_back(step.kernel);
  std::vector<std::vector<Tensor>> runs;
  for (const Guard guard : kGuards) {
    std::vector<Guarded<std::byte>> in, out;
    std::vector<std::span<const std::byte>> sources;
    std::vector<std::span<std::byte>> sinks;
    for (const HostValue& input : inputs) {
      const Tensor tensor = input.ToTensor();
      in.push_back(BytesOf(input.type, guard));
      std::copy(tensor.bytes().begin(), tensor.bytes().end(), in.back().begin());
    }
    for (const GraphOutput& output : graph.outputs())
      out.push_back(BytesOf(graph.type(output.value), guard));
    for (Guarded<std::byte>& buffer : in) sources.emplace_back(buffer);
    for (Guarded<std::byte>& buffer : out) sinks.emplace_back(buffer);
    const bool steady = !runs.empty() && call_watch != nullptr;
    if (steady) call_watch->start();
    const absl::Status status = (*executable)->Run(sources, sinks);
    if (steady) ExpectSteady(call_watch->stop(), kernels);
    EXPECT_TRUE(status.ok()) << status;
    if (!status.ok()) return kernels;
    runs.emplace_back();
    for (size_t k = 0; k < sinks.size(); ++k) {
      runs.back().emplace_back(graph.type(graph.outputs()[k].value),
                               std::vector<std::byte>(sinks[k].begin(), sinks[k].end()));
    }
  }
  SCOPED_TRACE("kernels: " + Joined(kernels));
  EXPECT_TRUE(runs[0] == runs[1] && runs[0] == runs[2]) << "the runs differ";
  for (const HostValue& input : inputs) scale = std::max(scale, Largest(input));
  for (size_t k = 0; k < runs[0].size(); ++k) {
    SCOPED_TRACE(testing::Message() << "output " << k);
    ExpectClose((*expected)[k], runs[0][k], scale, tolerance);
  }
  return kernels;
}

void CheckOperator(const std::string& name, const std::vector<TensorType>& inputs,
                   const Attributes& attrs, const SampleRanges& ranges, const ChangeInputs& change,
                   double tolerance) {
  for (const int threads : {1, 3}) {
    absl::StatusOr<SampledNode> node = MakeNode(*FindOp(name), inputs, attrs);
    ASSERT_TRUE(node.ok()) << node.status();
    node->ranges = ranges;
    SCOPED_TRACE(testing::Message() << DescribeNode(*node) << " threads " << threads);
    Rng rng(7);
    std::vector<HostValue> values = SampleInputs(*node, rng);
    if (change != nullptr) change(values);
    GraphBuilder builder;
    std::vector<ValueId> operands;
    for (size_t k = 0; k < inputs.size(); ++k) {
      ValueId value = builder.Input(Cat("x", k), inputs[k]);
      if (inputs[k].dtype == DType::kF32)
        value = *builder.Add("Neg", {*builder.Add("Neg", {value})});
      operands.push_back(value);
    }
    const absl::StatusOr<int32_t> id = builder.AddNode(name, operands, attrs);
    ASSERT_TRUE(id.ok()) << id.status();
    for (size_t k = 0; k < node->outputs.size(); ++k)
      builder.Output(Cat("y", k), {*id, static_cast<int32_t>(k)});
    const absl::StatusOr<Graph> graph = builder.Build();
    ASSERT_TRUE(graph.ok()) << graph.status();
    CompileOptions options;
    options.threads = threads;
    EXPECT_THAT(ExpectMatches(*graph, values, options, tolerance),
                testing::Not(testing::Contains("definition")));
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace mendel::cpu
