#include "graph/extended.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "graph/arithmetic.h"
#include "graph/functions.h"
#include "graph/sample_node.h"

namespace mendel {
namespace {

constexpr uint64_t kSeed = 20261123;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Operators whose elements are not computed by their meaning
/// (verifier/definedness/element_states.h).
bool IsFollowed(const SampledNode& node) {
  return !node.op->opaque && node.op->meaning.extended != nullptr && IsFloat(node.outputs[0].dtype);
}

/// Some elements become zero, infinite or NaN.
void Disturb(const SampledNode& node, std::vector<HostValue>& values, Rng& rng) {
  const double numbers[] = {0, 0, kInfinity, -kInfinity, -kInfinity, std::nan("")};
  const double share = rng.Flip(0.5) ? 0.1 : 0.5;
  for (size_t k = 0; k < values.size(); ++k) {
    if ((node.op->index_inputs >> k & 1) != 0) continue;
    for (double& v : values[k].scalars) {
      if (rng.Flip(share)) v = numbers[rng.Below(std::size(numbers))];
    }
  }
}

std::vector<Extended> Abstract(const HostValue& value, Rng& rng, bool exact) {
  std::vector<Extended> elements;
  for (const double v : value.scalars) {
    Kinds kinds = KindOf(v);
    if (!exact && rng.Flip()) kinds |= static_cast<Kinds>(rng.Below(8));
    if (!exact && rng.Flip(0.1)) kinds |= static_cast<Kinds>(rng.Below(64));
    elements.push_back(WithEventWhereUndefined({rng.Next(), 1, 0, kinds}));
  }
  return elements;
}

std::vector<Extended> EvaluateExtended(const SampledNode& node,
                                       const std::vector<HostValue>& values,
                                       const std::vector<std::vector<Extended>>& elements,
                                       int output) {
  std::vector<Operand<Extended>> operands;
  for (size_t k = 0; k < values.size(); ++k) {
    const bool known = IsIntegral(node.inputs[k].dtype);
    operands.push_back({&node.inputs[k], known ? nullptr : elements[k].data(),
                        known ? values[k].integers.data() : nullptr});
  }
  const Arithmetic<Extended> arithmetic;
  std::vector<Extended> result(
      static_cast<size_t>(NumElements(node.outputs[static_cast<size_t>(output)])));
  node.op->meaning.extended(Reader<Extended>(arithmetic, operands), node.view(), output, result);
  return result;
}

/// Whatever an operator yields belongs to the classes that are reported, unless an event occurs.
TEST(Extended, ClassesHoldForEveryOperator) {
  int64_t decided = 0, open = 0;
  for (const OpDefinition* op : AllOps()) {
    if (op->sample == nullptr) continue;
    Rng rng(kSeed);
    int64_t decided_here = 0;
    bool followed = false;
    for (int round = 0; round < 200; ++round) {
      const auto node = SampleNode(*op, rng);
      ASSERT_TRUE(node.ok()) << node.status();
      if (!IsFollowed(*node)) continue;
      followed = true;
      std::vector<HostValue> values = SampleInputs(*node, rng);
      if (rng.Flip(0.8)) Disturb(*node, values, rng);
      const bool exact = rng.Flip();
      EventTable table;
      const ExtendedScope scope(table);
      std::vector<std::vector<Extended>> elements;
      std::vector<const HostValue*> pointers;
      for (const HostValue& value : values) {
        elements.push_back(Abstract(value, rng, exact));
        pointers.push_back(&value);
      }
      const std::vector<HostValue> real = EvaluateNode(*op, node->view(), pointers);
      for (size_t k = 0; k < node->outputs.size(); ++k) {
        const auto reported = EvaluateExtended(*node, values, elements, static_cast<int>(k));
        for (size_t i = 0; i < reported.size(); ++i) {
          if (reported[i].events != 0) {
            ++open;
            continue;
          }
          ++decided_here;
          const double value = real[k].At(static_cast<int64_t>(i));
          ASSERT_NE(reported[i].kinds & KindOf(value), 0)
              << DescribeNode(*node) << " element " << i << " is " << value << ", reported "
              << int{reported[i].kinds} << ", seed " << kSeed << " round " << round;
        }
      }
    }
    EXPECT_TRUE(!followed || decided_here > 0) << op->name;
    decided += decided_here;
  }
  std::printf("%lld elements decided, %lld with events\n", static_cast<long long>(decided),
              static_cast<long long>(open));
}

/// Finite operands inside the domain give finite numbers, but where `infinite` says otherwise.
TEST(Extended, OperatorsThatMakeInfinitiesSaySo) {
  int reported = 0;
  for (const OpDefinition* op : AllOps()) {
    if (op->sample == nullptr || op->domain.has_value()) continue;
    Rng rng(kSeed);
    for (int round = 0; round < 300; ++round) {
      const auto node = SampleNode(*op, rng);
      ASSERT_TRUE(node.ok()) << node.status();
      if (!IsFloat(node->outputs[0].dtype)) continue;
      const std::vector<HostValue> values = SampleInputs(*node, rng);
      std::vector<const HostValue*> pointers;
      for (const HostValue& value : values) pointers.push_back(&value);
      const bool infinite = op->infinite != nullptr && op->infinite(node->view());
      bool seen = false;
      for (const HostValue& output : EvaluateNode(*op, node->view(), pointers)) {
        for (const double v : output.scalars) seen = seen || !std::isfinite(v);
      }
      if (infinite && seen) ++reported;
      ASSERT_TRUE(infinite || !seen) << DescribeNode(*node);
    }
  }
  EXPECT_GT(reported, 0);
}

class Events : public testing::Test {
 protected:
  Events() : scope_(table_) {}

  static Extended Unknown(uint64_t id) { return {id, 1, 0, kFiniteKinds}; }
  static Extended Log(const Extended& x) {
    return Arithmetic<Extended>().Call(functions::kLog, {&x, 1});
  }

  EventTable table_;
  ExtendedScope scope_;
};

TEST_F(Events, AMaskedElementIsMinusInfinity) {
  const Extended mask = Arithmetic<Extended>().Literal(-kInfinity);
  const Extended masked = Unknown(7) + mask;
  EXPECT_EQ(masked.kinds, kMinusInfinityKind);
  EXPECT_EQ(masked.events, 0);
  EXPECT_EQ((masked - masked).kinds, kNaNKind);
  EXPECT_EQ((Arithmetic<Extended>().Literal(0) * masked).kinds, kNaNKind);
  EXPECT_EQ(Arithmetic<Extended>().Call(functions::kExp, {&masked, 1}).kinds, kZeroKind);
}

TEST_F(Events, OneConditionIsOneEvent) {
  const Extended x = Unknown(7), y = Unknown(8);
  const Extended one = Arithmetic<Extended>().Literal(1);
  EXPECT_EQ((y / x).events, (one / x).events);
  EXPECT_TRUE(table_.Covers(Log(x).events, (one / x).events));
  EXPECT_FALSE(table_.Covers((one / x).events, Log(x).events));
  EXPECT_FALSE(table_.Covers((one / x).events, (one / y).events));
  EXPECT_TRUE(table_.Covers((one / x + one / y).events, (one / y).events));
}

TEST_F(Events, GuardsNarrowAnEvent) {
  const Arithmetic<Extended> arithmetic;
  const Extended condition{9, 1, 0, kNotNegativeKinds}, x = Unknown(7);
  const Extended guarded = arithmetic.Select(condition, Log(x), x);
  EXPECT_TRUE(table_.Covers(Log(x).events, guarded.events));
  EXPECT_FALSE(table_.Covers(guarded.events, Log(x).events));
  EXPECT_TRUE(table_.Covers(guarded.events, (-guarded).events));
}

/// tanh(1 / x) is finite where 1 / x is not: what follows from it is an event of its own.
TEST_F(Events, AbsorbedEventsAreTheirOwn) {
  const Extended x = Unknown(7);
  const Extended inverse = Arithmetic<Extended>().Literal(1) / x;
  const Extended relu = Arithmetic<Extended>().Call(functions::kMax, std::array{inverse, x});
  EXPECT_FALSE(table_.Covers(relu.events, inverse.events));
  EXPECT_FALSE(table_.Covers(inverse.events, relu.events));
}

}  // namespace
}  // namespace mendel
