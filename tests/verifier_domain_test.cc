// Programs that agree as formulas and not as functions: whatever the verifier accepts must be a
// number wherever the original is one.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

#include "base/status.h"
#include "graph/rewrite.h"
#include "graph/text.h"
#include "tests/graph_edit.h"
#include "tests/op_graphs.h"
#include "tests/program_source.h"
#include "tests/verifier_score.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

/// z, or z + o - o for the outputs o of `graph`: formally equal whatever o is. The inputs are those
/// of `graph` and the z.
Graph Cancelled(const Graph& graph, bool with_difference) {
  GraphBuilder builder("cancelled");
  std::vector<ValueId> inputs;
  for (int32_t id : graph.inputs())
    inputs.push_back(builder.Input(InputName(graph.node(id)), graph.node(id).outputs[0]));
  const auto outputs = Inline(graph, inputs, builder);
  EXPECT_TRUE(outputs.ok());
  for (size_t k = 0; k < outputs->size(); ++k) {
    const TensorType type = builder.type((*outputs)[k]);
    if (!IsFloat(type.dtype) || IsStorageOnly(type.dtype)) continue;
    const ValueId z = builder.Input(Cat("z", k), type);
    const auto sum = TryAdd(builder, "Add", {z, (*outputs)[k]});
    const auto same = TryAdd(builder, "Sub", {*sum, (*outputs)[k]});
    builder.Output(Cat("y", k), with_difference ? *same : z);
  }
  auto result = builder.Build();
  EXPECT_TRUE(result.ok());
  return *std::move(result);
}

/// z + o - o is z only where o is a number: whatever the verifier accepts must be one everywhere.
TEST(VerifierDomain, PartialFunctionsThatCancel) {
  const uint64_t seeds = NumberFromEnvironment("MENDEL_CANCELLED", 8);
  std::map<std::string, int> refused;
  int accepted = 0;
  for (const OpDefinition* op : AllOps()) {
    for (uint64_t seed = 1; op->sample != nullptr && seed <= seeds; ++seed) {
      Rng rng(seed);
      const Graph graph = RandomOpGraph(rng, *op);
      const Graph f = Cancelled(graph, false), g = Cancelled(graph, true);
      if (f.outputs().empty()) continue;
      const auto certificate = Certify(f, g, {.weights = WeightMode::kExact});
      if (!certificate.ok()) {
        EXPECT_EQ(certificate.status().code(), absl::StatusCode::kUnimplemented)
            << certificate.status() << PrintGraph(g);
        ++refused[std::string(op->name)];
        continue;
      }
      ++accepted;
      const NumberGap gap = GapInNumbers(f, g, WeightMode::kExact, seed, 30, 1);
      EXPECT_FALSE(gap.undefined) << "seed " << seed << ": " << gap.where << "\n" << PrintGraph(g);
    }
  }
  std::printf("%d accepted, never undefined; refused:", accepted);
  for (const auto& [name, times] : refused) std::printf(" %s %d", name.c_str(), times);
  std::printf("\n");
}

/// An infinite literal is no number to cancel either, and 0 times it is not 0.
TEST(VerifierDomain, InfiniteLiteralsThatCancel) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const bool product : {false, true}) {
    for (const double value : {infinity, -infinity, std::nan("")}) {
      const auto program = [&](bool with) {
        GraphBuilder builder;
        const ValueId x = builder.Input("x", {DType::kF32, {4}});
        const ValueId zero = ScalarLike(builder, x, 0), literal = ScalarLike(builder, x, value);
        ValueId y = product ? *builder.Add("Mul", {x, zero}) : x;
        if (with && product) y = *builder.Add("Mul", {y, literal});
        if (with && !product) y = *builder.Add("Sub", {*builder.Add("Add", {y, literal}), literal});
        builder.Output("y", y);
        return *builder.Build();
      };
      EXPECT_FALSE(Certify(program(false), program(true), {}).ok())
          << value << (product ? " times zero" : " cancelled");
    }
  }
}

/// Attributes that would make an operator partial: 1 / sqrt(0) of a row of equal elements, 0^-beta,
/// x / 0.
TEST(VerifierDomain, AttributesThatMakePartialFunctionsAreRefused) {
  struct Case {
    std::string op;
    Attributes good;
    std::string attribute;
    std::vector<double> bad;
  };
  const std::vector<Case> cases = {
      {"LRN", {{"size", int64_t{3}}}, "bias", {0, -1, std::nan("")}},
      {"LRN", {{"size", int64_t{3}}}, "alpha", {-1e-4}},
      {"LayerNormalization", {{"axis", int64_t{1}}}, "epsilon", {0, -1e-5}},
      {"GroupNormalization", {{"num_groups", int64_t{1}}}, "epsilon", {0, -1e-5}},
      {"InstanceNormalization", {}, "epsilon", {0, -1e-5}},
      {"BatchNormalization", {}, "epsilon", {-1e-5}},
      {"Celu", {}, "alpha", {0}},
  };
  for (const Case& one : cases) {
    GraphBuilder builder;
    std::vector<ValueId> operands = {builder.Input("x", {DType::kF32, {2, 3, 3}})};
    const int parameters = one.op == "LayerNormalization" ? 1 : FindOp(one.op)->min_inputs - 1;
    for (int k = 0; k < parameters; ++k)
      operands.push_back(builder.Input(Cat("p", k), {DType::kF32, {3}}));
    ASSERT_TRUE(builder.Add(one.op, operands, one.good).ok())
        << one.op << builder.Add(one.op, operands, one.good).status();
    for (const double value : one.bad) {
      Attributes attrs = one.good;
      attrs.Set(one.attribute, value);
      const auto refused = builder.Add(one.op, operands, attrs);
      ASSERT_FALSE(refused.ok()) << one.op << " " << one.attribute << " " << value;
      EXPECT_NE(std::string(refused.status().message()).find(one.attribute), std::string::npos)
          << refused.status();
    }
  }
}

/// A quotient that the original computes under a guard is no excuse for one without.
TEST(VerifierDomain, DenominatorsGuardedInTheOriginal) {
  const auto program = [](bool with) {
    GraphBuilder builder;
    const TensorType type{DType::kF32, {4}};
    const ValueId a = builder.Input("a", type), b = builder.Input("b", type),
                  c = builder.Input("c", {DType::kBool, {4}});
    builder.Output("guarded", *builder.Add("Where", {c, *builder.Add("Div", {a, b}), a}));
    builder.Output("y", with ? *builder.Add("Div", {*builder.Add("Mul", {a, b}), b}) : a);
    return *builder.Build();
  };
  EXPECT_FALSE(Certify(program(false), program(true), {}).ok());
}

/// The same with the quotient itself read outside its guard.
TEST(VerifierDomain, GuardedQuotientsReadOutsideTheirGuard) {
  const auto program = [](bool with) {
    GraphBuilder builder;
    const TensorType type{DType::kF32, {4}};
    const ValueId a = builder.Input("a", type), b = builder.Input("b", type),
                  c = builder.Input("c", {DType::kBool, {4}});
    const ValueId quotient = *builder.Add("Div", {a, b});
    builder.Output("guarded", *builder.Add("Where", {c, quotient, a}));
    builder.Output("y", with ? *builder.Add("Mul", {quotient, b}) : a);
    return *builder.Build();
  };
  EXPECT_FALSE(Certify(program(false), program(true), {}).ok());
  EXPECT_TRUE(Certify(program(false), program(false), {}).ok());
}

/// Under the same guard a quotient may be written otherwise.
TEST(VerifierDomain, QuotientsUnderTheSameGuard) {
  const auto program = [](bool with) {
    GraphBuilder builder;
    const TensorType type{DType::kF32, {4}};
    const ValueId a = builder.Input("a", type), b = builder.Input("b", type),
                  c = builder.Input("c", {DType::kBool, {4}});
    ValueId quotient = *builder.Add("Div", {a, b});
    if (with) quotient = *builder.Add("Neg", {*builder.Add("Div", {*builder.Add("Neg", {a}), b})});
    builder.Output("y", *builder.Add("Where", {c, quotient, a}));
    return *builder.Build();
  };
  EXPECT_TRUE(Certify(program(false), program(true), {}).ok())
      << Certify(program(false), program(true), {}).status();
}

}  // namespace
}  // namespace mendel
