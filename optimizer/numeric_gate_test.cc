#include "optimizer/numeric_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "base/status.h"
#include "graph/evaluate.h"
#include "optimizer/pipeline.h"
#include "runtime/allowed_error.h"

namespace mendel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The definition, slowly; with the algorithm "skewed" at once, and every output too large by a
/// share.
class SkewedExecutable final : public Executable {
 public:
  SkewedExecutable(Graph graph, double skew) : graph_(std::move(graph)), skew_(skew) {
    for (int32_t id = 0; id < static_cast<int32_t>(graph_.nodes().size()); ++id) {
      if (!IsInput(graph_.node(id)) && !IsConstant(graph_.node(id)))
        steps_.push_back({"step", {id}, "definition", 1});
    }
  }
  absl::Status Run(std::span<const std::span<const std::byte>> inputs,
                   std::span<const std::span<std::byte>> outputs) override {
    if (skew_ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    std::vector<HostValue> values;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const TensorType& type = graph_.type({graph_.inputs()[k], 0});
      values.push_back(HostValue::FromTensor(
          Tensor(type, std::vector<std::byte>(inputs[k].begin(), inputs[k].end()))));
    }
    MENDEL_ASSIGN_OR_RETURN(std::vector<HostValue> results, Evaluate(graph_, values));
    for (size_t k = 0; k < results.size(); ++k) {
      for (double& scalar : results[k].scalars) scalar *= 1 + skew_;
      std::memcpy(outputs[k].data(), results[k].ToTensor().bytes().data(), outputs[k].size());
    }
    return absl::OkStatus();
  }
  const std::vector<Step>& steps() const override { return steps_; }
  absl::Status RunTimed(std::span<const std::span<const std::byte>> inputs,
                        std::span<const std::span<std::byte>> outputs,
                        std::vector<double>& seconds) override {
    seconds.assign(steps_.size(), skew_ == 0 ? 1.0 : 0.1);
    return Run(inputs, outputs);
  }
  MemoryReport memory() const override { return {}; }

 private:
  Graph graph_;
  double skew_;
  std::vector<Step> steps_;
};

/// Multiplies in bf16, it says.
class SkewedBackend final : public Backend {
 public:
  explicit SkewedBackend(double skew) : skew_(skew) {}
  mutable int compiled = 0;
  mutable std::vector<Numerics> classes;  ///< of what was compiled
  std::string_view name() const override { return "skewed"; }
  absl::Status Probe() const override { return absl::OkStatus(); }
  std::string Identity() const override { return "skewed"; }
  absl::Status Supports(Numerics) const override { return absl::OkStatus(); }
  std::vector<std::string> Algorithms(const Graph& graph, int32_t node,
                                      Numerics numerics) const override {
    if (graph.node(node).op->name != "MatMul" || numerics != Numerics::kBf16) return {};
    return {"skewed"};
  }
  absl::StatusOr<std::unique_ptr<Executable>> Compile(
      const Graph& graph, const CompileOptions& options) const override {
    ++compiled;
    classes.push_back(options.numerics);
    return std::make_unique<SkewedExecutable>(graph, options.algorithms.empty() ? 0 : skew_);
  }

 private:
  double skew_;
};

/// x times a matrix.
Graph Product() {
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {3, 8}});
  std::vector<double> weights(64);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<double>(i % 7) - 3;
  const ValueId w = builder.Constant(Tensor::FromDoubles({DType::kF32, {8, 8}}, weights), "w");
  builder.Output("y", *builder.Add("MatMul", {x, w}));
  return *builder.Build();
}

TEST(NumericGate, EveryClassHasItsBound) {
  const Graph graph = Product();
  const auto cache = *ProfileCache::Open(":memory:");
  for (const Numerics numerics : kAllNumerics) {
    for (const double share : {0.5, 0.9, 1.1, 2.0}) {
      const SkewedBackend backend(share * AllowedError(numerics));
      const Profiler profiler(backend, *cache, {.numerics = numerics});
      const auto result = NumericGate(
          graph, {graph, {}}, {graph, {{graph.outputs()[0].value.node, "skewed"}}}, profiler, {});
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->passed, share < 1) << NumericsName(numerics) << " " << share;
      EXPECT_NEAR(result->outputs[0].plan_max(), share * AllowedError(numerics), 1e-6);
      EXPECT_THAT(result->failure, HasSubstr(share > 1 ? "output 'y'" : ""));
    }
  }
}

TEST(NumericGate, APlanThatIsTheBaselineRunsOnce) {
  const Graph graph = Product(), other = Product();
  const auto cache = *ProfileCache::Open(":memory:");
  const SkewedBackend backend(0);
  const Profiler profiler(backend, *cache, {});
  ASSERT_TRUE(NumericGate(graph, {graph, {}}, {graph, {}}, profiler, {}).ok());
  EXPECT_EQ(backend.compiled, 1);
  ASSERT_TRUE(NumericGate(graph, {graph, {}}, {other, {}}, profiler, {}).ok());
  EXPECT_EQ(backend.compiled, 3);
}

TEST(NumericGate, IntegersAreHeldAgainstFloats) {
  const Graph graph = Product();
  const auto cache = *ProfileCache::Open(":memory:");
  const SkewedBackend backend(0);
  const Profiler profiler(backend, *cache, {.numerics = Numerics::kInt8});
  ASSERT_TRUE(NumericGate(graph, {graph, {}}, {graph, {}}, profiler, {}).ok());
  EXPECT_THAT(backend.classes, ElementsAre(Numerics::kDefault, Numerics::kInt8));
}

TEST(NumericGate, ABackendWithoutAClassSaysSo) {
  const auto cache = *ProfileCache::Open(":memory:");
  OptimizeOptions options;
  options.backend = "reference";
  options.search.budget_seconds = 1;
  for (const Numerics numerics : kAllNumerics) {
    options.numerics = numerics;
    const auto result = Optimize(Product(), options, *cache);
    ASSERT_TRUE(result.ok()) << result.status();
    const bool lacks = OperandRounding(numerics) > 0 || numerics == Numerics::kInt8;
    EXPECT_EQ(result->plan.info.target().numerics(),
              NumericsName(lacks ? Numerics::kDefault : numerics));
    EXPECT_EQ(result->notices.size(), lacks ? 1u : 0u);
    for (const std::string& notice : result->notices) {
      EXPECT_THAT(notice,
                  HasSubstr(std::string(NumericsName(numerics)) +
                            " allows no more than default here: backend reference has no kernels"));
    }
  }
}

TEST(NumericGate, AClassThatAddsNoAlgorithmSaysSo) {
  const auto cache = *ProfileCache::Open(":memory:");
  const SkewedBackend backend(0.001);  // whose only algorithm is of bf16
  OptimizeOptions options;
  options.backend = "skewed";
  options.device = &backend;
  options.search.baseline_only = true;
  for (const Numerics numerics :
       {Numerics::kDefault, Numerics::kHigh, Numerics::kTf32, Numerics::kBf16}) {
    options.numerics = numerics;
    const auto result = Optimize(Product(), options, *cache);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->plan.info.target().numerics(), NumericsName(numerics));
    if (OperandRounding(numerics) == 0 || numerics == Numerics::kBf16) {
      EXPECT_THAT(result->notices, IsEmpty());
    } else {
      const std::string wanted = Cat("numerics ", NumericsName(numerics),
                                     ": this machine has no algorithm of that class beyond ",
                                     NumericsName(*Stricter(numerics)), "'s");
      EXPECT_THAT(result->notices, ElementsAre(HasSubstr(wanted)));
    }
  }
}

TEST(NumericGate, WhatBf16MayNotIsTriedInTheNextStricterClass) {
  const auto optimize = [](double skew) {
    const auto cache = *ProfileCache::Open(":memory:");
    const SkewedBackend backend(skew);
    OptimizeOptions options;
    options.backend = "skewed";
    options.device = &backend;
    options.numerics = Numerics::kBf16;
    options.search.budget_seconds = 2;
    auto result = Optimize(Product(), options, *cache);
    EXPECT_TRUE(result.ok()) << result.status();
    return *std::move(result);
  };
  const OptimizeResult good = optimize(0.02);
  EXPECT_EQ(good.plan.info.target().numerics(), "bf16");
  EXPECT_EQ(good.plan.info.algorithms().size(), 1u);
  EXPECT_NEAR(good.gate.outputs[0].plan_max(), 0.02, 1e-6);
  // Within what two programs of the class may differ by, but not within what one may be wrong by.
  const OptimizeResult bad = optimize(0.05);
  EXPECT_EQ(bad.plan.info.target().numerics(), "tf32");
  EXPECT_TRUE(bad.plan.info.algorithms().empty());
  ASSERT_FALSE(bad.notices.empty());
  EXPECT_THAT(bad.notices[0],
              HasSubstr("numerics tf32 was used, because under bf16 the numeric gate refused"));
}

}  // namespace
}  // namespace mendel
