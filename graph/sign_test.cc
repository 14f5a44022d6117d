// Signs and domains that operators state agree with their own definitions on random operands.

#include "graph/sign.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "graph/sample_node.h"

namespace mendel {
namespace {

constexpr uint64_t kSeed = 20;

Sign SignOfAll(const HostValue& value) {
  Sign sign = Sign::kPositive;
  for (int64_t i = 0; i < NumElements(value.type); ++i) sign = std::min(sign, SignOf(value.At(i)));
  return sign;
}

/// Random operands. In most draws they are positive or nonnegative where the operator allows any.
std::vector<HostValue> Operands(const SampledNode& node, Rng& rng) {
  std::vector<HostValue> values = SampleInputs(node, rng);
  for (size_t k = 0; k < values.size(); ++k) {
    const bool ranged = std::any_of(node.ranges.begin(), node.ranges.end(), [k](const auto& range) {
      return range.first == static_cast<int>(k);
    });
    const double least = rng.Flip() ? 1.0 / 64 : 0;
    if (ranged || rng.Flip(0.2)) continue;
    for (double& v : values[k].scalars) v = std::abs(v) + least;
  }
  return values;
}

TEST(Signs, RulesHoldOnRandomOperands) {
  std::cout << "seed " << kSeed << "\n";
  int rules = 0, reported = 0;
  for (const OpDefinition* op : AllOps()) {
    if (op->sign == nullptr) continue;
    ++rules;
    Rng rng(kSeed);
    int reported_here = 0;
    for (int round = 0; round < 300; ++round) {
      const auto node = SampleNode(*op, rng);
      ASSERT_TRUE(node.ok()) << node.status();
      if (!IsFloat(node->outputs[0].dtype)) continue;
      const std::vector<HostValue> values = Operands(*node, rng);
      std::vector<const HostValue*> inputs;
      std::vector<Sign> signs;
      for (const HostValue& value : values) {
        inputs.push_back(&value);
        signs.push_back(SignOfAll(value));
      }
      const Sign sign = op->sign(node->view(), signs, false);
      reported_here += sign != Sign::kUnknown;
      for (const HostValue& output : EvaluateNode(*op, node->view(), inputs)) {
        for (int64_t i = 0; i < NumElements(output.type); ++i) {
          if (!std::isfinite(output.At(i))) continue;
          EXPECT_GE(SignOf(output.At(i)), sign)
              << DescribeNode(*node) << " element " << i << " is " << output.At(i);
        }
      }
    }
    EXPECT_GT(reported_here, 0) << op->name << " never reports a sign";
    reported += reported_here;
  }
  std::cout << rules << " rules reported a sign " << reported << " times\n";
  EXPECT_GE(rules, 40);
}

TEST(Signs, SquaresAreNotNegative) {
  const OpDefinition& mul = GetOp("Mul");
  const std::vector<TensorType> types = {{DType::kF32, {2}}, {DType::kF32, {2}}};
  const Attributes attrs;
  const std::vector<Sign> unknown = {Sign::kUnknown, Sign::kUnknown};
  EXPECT_EQ(mul.sign({types, attrs, types}, unknown, true), Sign::kNonNegative);
  EXPECT_EQ(mul.sign({types, attrs, types}, unknown, false), Sign::kUnknown);
}

/// Inside the stated domain every operator is finite.
TEST(Domains, OperatorsAreFiniteInside) {
  int partial = 0;
  for (const OpDefinition* op : AllOps()) {
    if (!op->domain.has_value()) continue;
    ++partial;
    EXPECT_LT(op->domain->input, static_cast<size_t>(op->min_inputs)) << op->name;
    Rng rng(kSeed);
    for (int round = 0; round < 100; ++round) {
      const auto node = SampleNode(*op, rng);
      ASSERT_TRUE(node.ok()) << node.status();
      if (!IsFloat(node->outputs[0].dtype) || op->domain->demand == Demand::kSameNode) continue;
      std::vector<HostValue> values = SampleInputs(*node, rng);
      std::vector<const HostValue*> inputs;
      for (HostValue& value : values) inputs.push_back(&value);
      for (double& v : values[op->domain->input].scalars) {
        v = std::abs(v) + 1.0 / 64;
        if (op->domain->demand == Demand::kNonZero && rng.Flip()) v = -v;
        if (op->domain->demand == Demand::kNonNegative && rng.Flip(0.1)) v = 0;
      }
      const std::vector<HostValue> outputs = EvaluateNode(*op, node->view(), inputs);
      for (double v : outputs[0].scalars) EXPECT_TRUE(std::isfinite(v)) << DescribeNode(*node);
    }
  }
  EXPECT_GE(partial, 12);  // Acos, Asin, BatchNormalization, Div, Log, ...
}

}  // namespace
}  // namespace mendel
