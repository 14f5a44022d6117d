// Every operator's structure against what its elements do when the operands are translated.

#include "verifier/regions/structure.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/hash.h"
#include "base/status.h"
#include "graph/sample_node.h"
#include "verifier/field_evaluator.h"

namespace mendel {
namespace {

constexpr uint64_t kSeeds = 60;

/// One sampled node as a graph: operands read as indices are stored, the others are Inputs.
struct Sampled {
  Graph graph;
  int32_t node = -1;
};

absl::StatusOr<Sampled> MakeGraph(const SampledNode& sample, Rng& rng) {
  GraphBuilder builder;
  std::vector<ValueId> operands;
  const std::vector<HostValue> values = SampleInputs(sample, rng);
  for (size_t k = 0; k < sample.inputs.size(); ++k) {
    const bool index = k < 32 && (sample.op->index_inputs >> k & 1) != 0;
    operands.push_back(index ? builder.Constant(values[k].ToTensor())
                             : builder.Input(Cat("x", k), sample.inputs[k]));
  }
  Sampled result;
  MENDEL_ASSIGN_OR_RETURN(result.node, builder.AddNode(sample.op->name, operands, sample.attrs));
  for (size_t k = 0; k < sample.outputs.size(); ++k)
    builder.Output(Cat("y", k), {result.node, static_cast<int32_t>(k)});
  MENDEL_ASSIGN_OR_RETURN(result.graph, builder.Build());
  return result;
}

/// Operands are functions of any index, also outside the tensor: element `index` of Input `source`.
Fp ElementOf(const FieldEvaluator& evaluator, int32_t source, std::span<const int64_t> index) {
  KeyedHash hash({1, static_cast<uint64_t>(source)});
  for (int64_t i : index) hash.Add(static_cast<uint64_t>(i + (int64_t{1} << 40)));
  const Hash128 value = hash.Finish();
  return {evaluator.field().FromBits(value.high, value.low)};
}

/// Output `output` of the node with every Input's elements moved.
FieldValue Evaluate(const FieldEvaluator& evaluator, const Sampled& sampled, int output,
                    const std::map<int32_t, Step>& moves) {
  const Node& node = sampled.graph.node(sampled.node);
  std::vector<FieldValue> values;
  for (ValueId value : node.inputs) {
    const Node& operand = sampled.graph.node(value.node);
    if (IsConstant(operand)) {
      values.push_back(evaluator.Constant(operand));
      continue;
    }
    const Shape& shape = operand.outputs[0].shape;
    FieldValue& moved = values.emplace_back();
    const auto move = moves.find(value.node);
    std::vector<int64_t> at(shape.size(), 0);
    for (int64_t k = NumElements(shape); k > 0; --k, NextIndex(shape, at)) {
      std::vector<int64_t> from = at;
      if (move != moves.end()) AddScaled(from, 1, move->second);
      moved.scalars.push_back(ElementOf(evaluator, value.node, from));
    }
  }
  std::vector<const FieldValue*> operands;
  for (const FieldValue& value : values) operands.push_back(&value);
  return WithView(sampled.graph, sampled.node, [&](const NodeView& view) {
    return evaluator.Apply(*node.op, view, operands, output);
  });
}

size_t SegmentOf(const ValueStructure& structure, size_t dim, int64_t at) {
  size_t segment = 0;
  while (segment < structure.breaks[dim].size() && at >= structure.breaks[dim][segment].at)
    ++segment;
  return segment;
}

/// A period along `dim` inside a segment is a translation of the operands by one of the groups.
/// Returns how many steps it looked at.
int64_t CheckDimension(const FieldEvaluator& evaluator, const Sampled& sampled, int output,
                       const ValueStructure& structure, size_t dim, const FieldValue& still) {
  std::vector<const DisplacementClass*> classes;
  for (const DisplacementClass& one : structure.classes) classes.push_back(&one);
  std::vector<FieldValue> moved;
  for (const auto& group : GroupsAlong(classes, dim))
    moved.push_back(Evaluate(evaluator, sampled, output, group));
  const int64_t stride = RowMajorStrides(structure.shape)[dim];
  int64_t steps = 0;
  for (int64_t flat = 0; flat < NumElements(structure.shape); ++flat) {
    const int64_t at = flat / stride % structure.shape[dim];
    const int64_t next = at + structure.periods[dim];
    if (next >= structure.shape[dim] ||
        SegmentOf(structure, dim, at) != SegmentOf(structure, dim, next))
      continue;
    ++steps;
    const Fp expected = still.At(flat + structure.periods[dim] * stride);
    const FieldScope scope(evaluator.field());
    const bool any = std::any_of(moved.begin(), moved.end(), [&](const FieldValue& value) {
      return value.At(flat) == expected;
    });
    EXPECT_TRUE(any) << "element " << flat << " moves otherwise along dimension " << dim;
    if (!any) return steps;
  }
  return steps;
}

class OperatorStructure : public testing::TestWithParam<const OpDefinition*> {};

/// Operators without a structure, and why (the end of the reason that Localize reports).
const std::map<std::string_view, std::string_view>& WithoutStructure() {
  static const std::map<std::string_view, std::string_view> kOperators = {
      {"ArgMax", "one function of the whole tensor"},
      {"ArgMin", "one function of the whole tensor"},
      {"BitShift", "integer arithmetic"},
      {"BitwiseAnd", "integer arithmetic"},
      {"BitwiseOr", "integer arithmetic"},
      {"BitwiseXor", "integer arithmetic"},
      {"GatherElements", "no known structure"},
      {"GatherND", "no known structure"},
      {"Hardmax", "one function of the whole tensor"},
      {"Loop", "no known structure"},
      {"OneHot", "no known structure"},
      {"ReverseSequence", "no known structure"},
      {"ScatterElements", "no known structure"},
      {"ScatterND", "no known structure"},
      {"TopK", "one function of the whole tensor"},
  };
  return kOperators;
}

TEST_P(OperatorStructure, MovesAsItSays) {
  const OpDefinition& op = *GetParam();
  if (op.sample == nullptr) GTEST_SKIP() << op.name << " has no sampler";
  int64_t steps = 0;
  int64_t known = 0;
  for (uint64_t seed = 1; seed <= kSeeds && !HasFailure(); ++seed) {
    Rng rng(seed);
    const auto sample = SampleNode(op, rng);
    ASSERT_TRUE(sample.ok()) << sample.status();
    SCOPED_TRACE(Cat("seed ", seed, ": ", DescribeNode(*sample)));
    const auto sampled = MakeGraph(*sample, rng);
    ASSERT_TRUE(sampled.ok()) << sampled.status();
    const auto structures = AnalyzeStructure(sampled->graph, WeightMode::kSymbolic);
    const FieldEvaluator evaluator(SeededDraw(rng), WeightMode::kSymbolic);
    for (size_t k = 0; k < sample->outputs.size(); ++k) {
      const ValueStructure& structure = structures[static_cast<size_t>(sampled->node)][k];
      const auto expected = WithoutStructure().find(op.name);
      if (NumElements(structure.shape) == 0) continue;
      if (expected != WithoutStructure().end()) {
        const std::string reason = Cat(op.name, ": ", expected->second);
        const bool integer = structure.unknown.contains(Cat(op.name, ": integer arithmetic"));
        EXPECT_TRUE(integer || structure.unknown.contains(reason))
            << "expected the reason '" << reason << "'";
        continue;
      }
      known += structure.unknown.empty() ? 1 : 0;
      const FieldValue still = Evaluate(evaluator, *sampled, static_cast<int>(k), {});
      if (evaluator.zero_denominator() || still.concrete) continue;
      for (size_t d = 0; d < structure.shape.size(); ++d) {
        if (!structure.Dense(d))
          steps += CheckDimension(evaluator, *sampled, static_cast<int>(k), structure, d, still);
      }
    }
  }
  if (WithoutStructure().contains(op.name)) return;
  EXPECT_GT(known, 0) << op.name << " has no structure: give it one, or list it with the reason";
  EXPECT_GT(steps, 0) << op.name << ": every position of every sample stands on its own";
}

std::vector<const OpDefinition*> Operators() {
  const auto all = AllOps();
  return {all.begin(), all.end()};
}

INSTANTIATE_TEST_SUITE_P(All, OperatorStructure, testing::ValuesIn(Operators()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace mendel
