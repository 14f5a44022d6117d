// Translation and every derivation against the definitional evaluator: programs are evaluated as
// they are written.

#include "mutator/index/derive.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "graph/emitter.h"
#include "graph/evaluate.h"
#include "graph/text.h"
#include "mutator/index/sample_sites.h"
#include "mutator/index/translate.h"

namespace mendel {
namespace {

/// Elements of a factor at given values of all iterators.
double ElementOf(const Factor& factor, const Shape& shape, const std::vector<double>& tensor,
                 const std::vector<int64_t>& values) {
  int64_t flat = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t at = factor.index[d].affine.constant;
    for (const auto& [i, coefficient] : factor.index[d].affine.terms)
      at += coefficient * values[static_cast<size_t>(i)];
    if (at % factor.index[d].divisor != 0) return 0;
    at /= factor.index[d].divisor;
    if (at < 0 || at >= shape[d]) return 0;
    flat = flat * shape[d] + at;
  }
  return tensor[static_cast<size_t>(flat)];
}

double TermAt(const Program& program, const IndexExpression& stage, const IndexTerm& term,
              const std::vector<std::vector<double>>& tensors, std::vector<int64_t> values) {
  Shape counts;
  for (Iterator sum : term.sums) counts.push_back(stage.extent(sum));
  Shape at(counts.size(), 0);
  double total = 0;
  do {
    for (size_t k = 0; k < at.size(); ++k) values[static_cast<size_t>(term.sums[k])] = at[k];
    double product = 1;
    for (const Factor& factor : term.factors) {
      product *= ElementOf(factor, program.TensorShape(factor.tensor),
                           tensors[static_cast<size_t>(factor.tensor)], values);
    }
    total += product;
  } while (NextIndex(counts, at));
  return total;
}

std::vector<double> EvaluateStage(const Program& program, const IndexExpression& stage,
                                  const std::vector<std::vector<double>>& tensors) {
  std::vector<double> result;
  const Shape shape = stage.OutputShape();
  Shape at(shape.size(), 0);
  do {
    std::vector<int64_t> values(stage.extents.size(), 0);
    for (size_t d = 0; d < shape.size(); ++d) {
      int64_t position = at[d] + stage.outputs[d].begin;
      for (size_t k = stage.outputs[d].iterators.size(); k-- > 0;) {
        const Iterator i = stage.outputs[d].iterators[k];
        values[static_cast<size_t>(i)] = position % stage.extent(i);
        position /= stage.extent(i);
      }
      EXPECT_EQ(position, 0) << "a wanted position outside the iterators";
    }
    double total = 0;
    for (const IndexTerm& term : stage.terms)
      total += TermAt(program, stage, term, tensors, values);
    result.push_back(total);
  } while (NextIndex(shape, at));
  return result;
}

std::vector<double> EvaluateProgram(const Program& program,
                                    std::vector<std::vector<double>> tensors) {
  for (const IndexExpression& stage : program.stages)
    tensors.push_back(EvaluateStage(program, stage, tensors));
  return tensors.back();
}

double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double distance = a.size() == b.size() ? 0 : 1e300;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    distance = std::max(distance, std::abs(a[i] - b[i]));
  return distance;
}

std::vector<HostValue> RandomInputs(const Graph& graph, Rng& rng) {
  std::vector<HostValue> inputs;
  for (int32_t id : graph.inputs()) {
    HostValue value{graph.node(id).outputs[0], {}, {}};
    for (int64_t i = 0; i < NumElements(value.type); ++i)
      value.scalars.push_back(static_cast<double>(rng.Between(-4, 4)));
    inputs.push_back(std::move(value));
  }
  return inputs;
}

class DeriveTest : public testing::TestWithParam<size_t> {};

TEST_P(DeriveTest, EveryProgramComputesTheSite) {
  const SiteSample& sample = SiteSamples()[GetParam()];
  std::map<std::string, int> used;
  int programs = 0;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    Rng rng(seed);
    const auto graph = sample.make(rng);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const auto site = TranslateSite(*graph, graph->outputs()[0].value.node, 64);
    ASSERT_TRUE(site.has_value()) << sample.name << " seed " << seed << "\n" << PrintGraph(*graph);
    const std::vector<HostValue> inputs = RandomInputs(*graph, rng);
    const auto expected = Evaluate(*graph, inputs);
    ASSERT_TRUE(expected.ok());
    std::vector<std::vector<double>> leaves;
    for (const IndexLeaf& leaf : site->leaves) {
      for (size_t k = 0; k < inputs.size(); ++k) {
        if (graph->inputs()[k] == leaf.value.node) leaves.push_back(inputs[k].scalars);
      }
      if (IsConstant(graph->node(leaf.value.node)))
        leaves.push_back(ConstantValue(graph->node(leaf.value.node)).ToDoubles());
    }
    ASSERT_EQ(leaves.size(), site->leaves.size());
    ASSERT_EQ(Distance(EvaluateProgram(site->program, leaves), (*expected)[0].scalars), 0)
        << ProgramString(site->program);
    std::vector<Derived> level = {{"", site->program}};
    for (int depth = 0; depth < 2; ++depth) {
      std::vector<Derived> next;
      for (const Derived& from : level) {
        for (const NamedStep& step : AllSteps()) {
          std::vector<Derived> derived;
          step.step(from.program, derived);
          for (Derived& found : derived) {
            Normalize(found.program);
            ++used[std::string(step.name)];
            ++programs;
            EXPECT_EQ(Distance(EvaluateProgram(found.program, leaves), (*expected)[0].scalars), 0)
                << sample.name << " seed " << seed << " " << from.step << ", " << found.step << "\n"
                << ProgramString(from.program) << ProgramString(found.program);
            next.push_back(std::move(found));
          }
        }
      }
      level = std::move(next);
    }
  }
  std::printf("%s: %d programs;", sample.name, programs);
  for (const auto& [name, count] : used) std::printf(" %s %d", name.c_str(), count);
  std::printf("\n");
  // A product of whole rows has nothing to split.
  const std::string name = sample.name;
  EXPECT_TRUE(programs > 0 || name == "matmul" || name == "einsum");
}

INSTANTIATE_TEST_SUITE_P(Sites, DeriveTest, testing::Range<size_t>(0, SiteSamples().size()),
                         [](const auto& info) {
                           return std::string(SiteSamples()[info.param].name);
                         });

TEST(Affine, DigitsAreExact) {
  Rng rng(7);
  int distinguished = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const Extents extents = {rng.Between(1, 4), rng.Between(1, 4), rng.Between(1, 4)};
    const int64_t base = rng.Between(1, 6);
    Affine form = Affine::Constant(rng.Between(-9, 9));
    for (Iterator i = 0; i < 3; ++i) form = form + Affine::Of(i, rng.Between(-6, 6));
    const auto digits = Digits(form, base, extents);
    if (!digits.has_value()) continue;
    ++distinguished;
    EXPECT_EQ((digits->first * base + digits->second), form);
    EXPECT_TRUE(RangeOf(digits->second, extents).Within(0, base));
  }
  EXPECT_GT(distinguished, 100);
}

TEST(Translate, LeavesWhatIsNotLinear) {
  Emitter e("net");
  const ValueId x = e.Input("x", {DType::kF32, {2, 3}});
  const ValueId y = e.Op("Relu", {x});
  e.Output("y", e.Op("Max", {y, x}));
  const auto graph = e.Finish();
  ASSERT_TRUE(graph.ok());
  for (int32_t node = 0; node < static_cast<int32_t>(graph->nodes().size()); ++node) {
    EXPECT_FALSE(TranslateSite(*graph, node, 64).has_value());
  }
}

TEST(Translate, StopsAtNonlinearOperatorsAndSharedValues) {
  Emitter e("net");
  const ValueId x = e.Op("Relu", {e.Input("x", {DType::kF32, {4, 3}})});
  const ValueId shared = e.Transpose(x, {1, 0});
  const ValueId a = e.MatMul(x, shared);
  e.Output("y", a);
  e.Output("z", e.Op("Relu", {shared}));
  const auto graph = e.Finish();
  ASSERT_TRUE(graph.ok());
  const auto site = TranslateSite(*graph, graph->outputs()[0].value.node, 64);
  ASSERT_TRUE(site.has_value());
  EXPECT_EQ(site->nodes.size(), 1u) << "the transposed value is read outside, too";
  EXPECT_EQ(site->leaves.size(), 2u);
}

}  // namespace
}  // namespace mendel
