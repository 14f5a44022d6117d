// The work of finding matches, of taking subprograms out and of normalizing is nearly linear: steps
// are counted (base/work.h) on graphs of doubling size.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "base/status.h"
#include "base/work.h"
#include "graph/emitter.h"
#include "graph/rewrite.h"
#include "mutator/rule.h"
#include "optimizer/normalize.h"

namespace mendel {
namespace {

constexpr int64_t kSmall = 1 << 8;
constexpr int kDoublings = 2;
constexpr double kNearlyTwice = 2.4;
constexpr double kFree = 3e4;  // steps that no bound is set on

struct Family {
  const char* name;
  Graph (*make)(int64_t size);
};

Graph Chain(int64_t size) {
  Emitter e("chain");
  ValueId x = e.Input("x", {DType::kF32, {4, 4}});
  const ValueId w = e.Constant(Tensor::Filled({DType::kF32, {4, 4}}, 0.5), "w");
  for (int64_t k = 0; k < size; ++k) x = e.MatMul(x, w);
  e.Output("y", x);
  return *e.Finish();
}

Graph Elementwise(int64_t size) {
  Emitter e("elementwise");
  ValueId x = e.Input("x", {DType::kF32, {1, 4, 2}});
  const ValueId b = e.Constant(Tensor::Filled({DType::kF32, {1}}, 0.5), "b");
  for (int64_t k = 0; k < size; ++k) x = k % 2 == 0 ? e.Op("Tanh", {x}) : e.Add(x, b);
  e.Output("y", x);
  return *e.Finish();
}

Graph Views(int64_t size) {
  Emitter e("views");
  ValueId x = e.Input("x", {DType::kF32, {2, 3}});
  for (int64_t k = 0; k < size; ++k) {
    Attributes attrs;
    attrs.Set("perm", Ints{1, 0});
    x = e.Op("Tanh", {e.Op("Transpose", {e.Op("Transpose", {x}, attrs)}, attrs)});
  }
  e.Output("y", x);
  return *e.Finish();
}

Graph Ladder(int64_t size) {
  Emitter e("ladder");
  ValueId x = e.Input("x", {DType::kF32, {4, 4}});
  const ValueId w = e.Constant(Tensor::Filled({DType::kF32, {4, 4}}, 0.5), "w");
  for (int64_t k = 0; k < size; ++k) x = e.Add(e.MatMul(x, w), e.Op("Tanh", {x}));
  e.Output("y", x);
  return *e.Finish();
}

Graph Star(int64_t size) {
  Emitter e("star");
  const ValueId x = e.Input("x", {DType::kF32, {4, 4}});
  for (int64_t k = 0; k < size; ++k) {
    const ValueId w = e.Constant(Tensor::Filled({DType::kF32, {4, 4}}, 0.5), Cat("w", k));
    e.Output(Cat("y", k), e.MatMul(x, w));
  }
  return *e.Finish();
}

/// Rows that share their weights, each value read by the next row as well.
Graph Grid(int64_t size) {
  Emitter e("grid");
  const int64_t side = static_cast<int64_t>(std::sqrt(static_cast<double>(size)));
  std::vector<ValueId> row(static_cast<size_t>(side), e.Input("x", {DType::kF32, {4, 4}}));
  for (int64_t i = 0; i < side; ++i) {
    const ValueId w = e.Constant(Tensor::Filled({DType::kF32, {4, 4}}, 0.5), Cat("w", i));
    for (size_t k = 0; k < row.size(); ++k) {
      const ValueId product = e.MatMul(row[k], w);
      row[k] = k == 0 ? product : e.Add(product, row[k - 1]);
    }
  }
  for (size_t k = 0; k < row.size(); ++k) e.Output(Cat("y", k), row[k]);
  return *e.Finish();
}

const Family kFamilies[] = {{"chain", &Chain}, {"elementwise", &Elementwise},
                            {"views", &Views}, {"ladder", &Ladder},
                            {"star", &Star},   {"grid", &Grid}};

double Steps(const std::function<void()>& work) {
  const int64_t before = WorkDone();
  work();
  return static_cast<double>(WorkDone() - before);
}

/// Each doubling of the size takes little more than twice the steps.
void ExpectNearlyLinear(const std::string& what, const Family& family,
                        const std::function<void(const Graph&)>& work) {
  SCOPED_TRACE(Cat(what, " on a ", family.name));
  double before = Steps([&] { work(family.make(kSmall)); });
  for (int k = 1; k <= kDoublings; ++k) {
    const double after = Steps([&] { work(family.make(kSmall << k)); });
    EXPECT_LE(after, kNearlyTwice * before + kFree) << (kSmall << k);
    before = after;
  }
}

TEST(RulesWork, EveryRuleFindsItsMatchesInNearlyLinearWork) {
  for (const Family& family : kFamilies) {
    for (const Rule* rule : AllRules()) {
      ExpectNearlyLinear(std::string(rule->name), family, [&](const Graph& graph) {
        for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node)
          rule->match(graph, node, DefaultPredictor());
      });
    }
  }
}

TEST(RulesWork, SubprogramsAreTakenOutInWorkOfTheirOwnSize) {
  for (const Family& family : kFamilies) {
    ExpectNearlyLinear("extraction", family, [](const Graph& graph) {
      for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
        if (IsInput(graph.node(node))) continue;
        const auto place = MakeSubprogram(graph, {node});
        ASSERT_TRUE(place.ok());
        ASSERT_TRUE(Extract(graph, *place).ok());
      }
    });
  }
}

TEST(RulesWork, NormalizationIsNearlyLinear) {
  for (const Family& family : kFamilies) {
    ExpectNearlyLinear("normalization", family, [](const Graph& graph) {
      std::set<std::string> faults;
      ASSERT_TRUE(Normalize(graph, {}, faults).ok());
    });
  }
}

}  // namespace
}  // namespace mendel
