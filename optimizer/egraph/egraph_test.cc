#include "optimizer/egraph/egraph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/random_graph.h"
#include "graph/rewrite.h"

namespace mendel {
namespace {

const TensorType kType{DType::kF32, {4}};

Node MakeNode(const std::string& op, size_t outputs = 1, Attributes attrs = {}) {
  Node node;
  node.op = &GetOp(op);
  node.attrs = std::move(attrs);
  node.outputs.assign(outputs, kType);
  return node;
}

ClassId Leaf(EGraph& egraph, const std::string& name) {
  const ENodeId id = *egraph.Add(MakeNode("Input", 1, {{"name", name}}), {});
  return egraph.node(id).outputs[0];
}

ClassId Apply(EGraph& egraph, const std::string& op, const std::vector<ClassId>& operands) {
  return egraph.node(*egraph.Add(MakeNode(op), operands)).outputs[0];
}

TEST(EGraph, EqualENodesAreOne) {
  EGraph egraph;
  const ClassId x = Leaf(egraph, "x"), y = Leaf(egraph, "y");
  const ClassId sum = Apply(egraph, "Add", {x, y});
  EXPECT_EQ(Apply(egraph, "Add", {x, y}), sum);
  EXPECT_NE(Apply(egraph, "Add", {y, x}), sum);
  EXPECT_EQ(egraph.node_count(), 4);
  EXPECT_TRUE(egraph.CheckInvariants().ok());
}

TEST(EGraph, EqualOperandsMakeEqualValues) {
  EGraph egraph;
  const ClassId x = Leaf(egraph, "x"), y = Leaf(egraph, "y");
  const ClassId fx = Apply(egraph, "Relu", {Apply(egraph, "Neg", {x})});
  const ClassId fy = Apply(egraph, "Relu", {Apply(egraph, "Neg", {y})});
  ASSERT_TRUE(*egraph.Merge(x, y));
  EXPECT_FALSE(*egraph.Merge(x, y));
  ASSERT_TRUE(egraph.Rebuild().ok());
  EXPECT_EQ(egraph.Find(fx), egraph.Find(fy));
  EXPECT_EQ(egraph.node_count(), 4);  // x, y, Neg, Relu
  EXPECT_EQ(egraph.class_count(), 3);
  EXPECT_TRUE(egraph.CheckInvariants().ok());
}

TEST(EGraph, AllOutputsOfCongruentENodesAreMerged) {
  EGraph egraph;
  const ClassId x = Leaf(egraph, "x"), y = Leaf(egraph, "y");
  const ENodeId a = *egraph.Add(MakeNode("Split", 2), {x});
  const ENodeId b = *egraph.Add(MakeNode("Split", 2), {y});
  const std::vector<ClassId> of_a = egraph.node(a).outputs, of_b = egraph.node(b).outputs;
  ASSERT_TRUE(egraph.Merge(x, y).ok());
  ASSERT_TRUE(egraph.Rebuild().ok());
  for (size_t k = 0; k < 2; ++k) EXPECT_EQ(egraph.Find(of_a[k]), egraph.Find(of_b[k]));
  EXPECT_NE(egraph.Find(of_a[0]), egraph.Find(of_a[1]));
  EXPECT_EQ(egraph.Canonical(b), a);
  EXPECT_TRUE(egraph.CheckInvariants().ok());
}

TEST(EGraph, ACycleIsNoProblem) {
  EGraph egraph;
  const ClassId x = Leaf(egraph, "x");
  const ClassId back = Apply(egraph, "Neg", {Apply(egraph, "Neg", {x})});
  ASSERT_TRUE(egraph.Merge(x, back).ok());
  ASSERT_TRUE(egraph.Rebuild().ok());
  EXPECT_EQ(egraph.class_count(), 2);
  EXPECT_TRUE(egraph.CheckInvariants().ok());
}

TEST(EGraph, OtherTypesAreTheCallersMistake) {
  EGraph egraph;
  Node other = MakeNode("Input", 1, {{"name", std::string("z")}});
  other.outputs[0].shape = {5};
  const ClassId z = egraph.node(*egraph.Add(other, {})).outputs[0];
  EXPECT_TRUE(absl::IsInvalidArgument(egraph.Merge(Leaf(egraph, "x"), z).status()));
}

TEST(EGraph, ConstancySpreadsThroughMerges) {
  EGraph egraph;
  GraphBuilder builder;
  const ValueId x = builder.Input("x", kType);
  const ValueId w = builder.Constant(Tensor::Filled(kType, 2), "w");
  builder.Output("a", *builder.Add("Neg", {x}));
  builder.Output("b", *builder.Add("Neg", {w}));
  const Graph graph = *builder.Build();
  const auto where = *egraph.AddGraph(graph);
  const ClassId of_input = where[2][0], of_weight = where[3][0];
  EXPECT_FALSE(egraph.IsConstantClass(of_input));
  EXPECT_TRUE(egraph.IsConstantClass(of_weight));
  const ClassId reader = Apply(egraph, "Abs", {of_input});
  ASSERT_TRUE(egraph.Merge(of_input, of_weight).ok());
  ASSERT_TRUE(egraph.Rebuild().ok());
  EXPECT_TRUE(egraph.IsConstantClass(reader));
}

TEST(EGraph, LimitsAreValues) {
  EGraph nodes({.nodes = 2}), classes({.classes = 2}), bytes({.bytes = 300});
  for (EGraph* egraph : {&nodes, &classes, &bytes}) {
    EXPECT_EQ(egraph->Exceeded(), std::nullopt);
    for (const char* name : {"x", "y", "z"}) Leaf(*egraph, name);
  }
  EXPECT_EQ(nodes.Exceeded(), EGraphLimit::kNodes);
  EXPECT_EQ(classes.Exceeded(), EGraphLimit::kClasses);
  EXPECT_EQ(bytes.Exceeded(), EGraphLimit::kBytes);
  EXPECT_STREQ(EGraphLimitName(EGraphLimit::kNodes), "node limit");
}

TEST(EGraph, AGraphAddedTwiceAddsNothing) {
  Rng rng(7);
  for (int k = 0; k < 50; ++k) {
    SCOPED_TRACE(k);
    const auto graph = Deduplicate(RandomGraph(rng, 8));
    ASSERT_TRUE(graph.ok()) << graph.status();
    EGraph egraph;
    const auto first = *egraph.AddGraph(*graph);
    const int64_t nodes = egraph.node_count();
    EXPECT_EQ(*egraph.AddGraph(*graph), first);
    EXPECT_EQ(egraph.node_count(), nodes);
    EXPECT_EQ(nodes, static_cast<int64_t>(graph->nodes().size()));
  }
}

/// The equality that the statements imply, computed as slowly as it can be.
class NaiveClosure {
 public:
  int32_t Add(const std::string& op, std::vector<int32_t> operands, size_t outputs) {
    const int32_t first = static_cast<int32_t>(of_.size());
    for (size_t k = 0; k < outputs; ++k) of_.push_back(first + static_cast<int32_t>(k));
    terms_.push_back({op, std::move(operands), first, outputs});
    return first;
  }
  void Merge(int32_t a, int32_t b) {
    const int32_t from = of_[static_cast<size_t>(a)], to = of_[static_cast<size_t>(b)];
    for (int32_t& x : of_) x = x == from ? to : x;
  }
  void Close() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Term& a : terms_) {
        for (const Term& b : terms_) changed = Unify(a, b) || changed;
      }
    }
  }
  bool Equal(size_t a, size_t b) const { return of_[a] == of_[b]; }
  size_t size() const { return of_.size(); }

 private:
  struct Term {
    std::string op;
    std::vector<int32_t> operands;
    int32_t first;
    size_t outputs;
  };
  bool Unify(const Term& a, const Term& b) {
    if (a.op != b.op || a.operands.size() != b.operands.size()) return false;
    for (size_t k = 0; k < a.operands.size(); ++k) {
      if (!Equal(static_cast<size_t>(a.operands[k]), static_cast<size_t>(b.operands[k])))
        return false;
    }
    bool changed = false;
    for (size_t k = 0; k < a.outputs; ++k) {
      const int32_t x = a.first + static_cast<int32_t>(k), y = b.first + static_cast<int32_t>(k);
      changed = changed || !Equal(static_cast<size_t>(x), static_cast<size_t>(y));
      Merge(x, y);
    }
    return changed;
  }
  std::vector<int32_t> of_;
  std::vector<Term> terms_;
};

TEST(EGraph, RandomMergesKeepCongruence) {
  constexpr uint64_t kSeed = 20211;
  const std::vector<std::pair<std::string, size_t>> unary = {{"Neg", 1}, {"Relu", 1}, {"Split", 2}};
  for (uint64_t run = 0; run < 2000; ++run) {
    SCOPED_TRACE(Cat("seed ", kSeed + run));
    Rng rng(kSeed + run);
    EGraph egraph;
    NaiveClosure naive;
    std::vector<ClassId> values;  // by the naive closure's numbers
    for (const char* name : {"a", "b", "c", "d"}) {
      values.push_back(Leaf(egraph, name));
      naive.Add(name, {}, 1);
    }
    const int64_t steps = rng.Between(3, 25);
    for (int64_t step = 0; step < steps; ++step) {
      const size_t x = rng.Below(values.size()), y = rng.Below(values.size());
      if (rng.Flip(0.25)) {
        ASSERT_TRUE(egraph.Merge(values[x], values[y]).ok());
        naive.Merge(static_cast<int32_t>(x), static_cast<int32_t>(y));
        if (rng.Flip()) {
          ASSERT_TRUE(egraph.Rebuild().ok());
        }
        continue;
      }
      const bool binary = rng.Flip();
      const auto& [op, outputs] =
          binary ? std::pair<std::string, size_t>{"Add", 1} : unary[rng.Below(unary.size())];
      const auto id = binary ? egraph.Add(MakeNode(op), {values[x], values[y]})
                             : egraph.Add(MakeNode(op, outputs), {values[x]});
      ASSERT_TRUE(id.ok()) << id.status();
      for (ClassId output : egraph.node(*id).outputs) values.push_back(output);
      naive.Add(op,
                binary ? std::vector<int32_t>{static_cast<int32_t>(x), static_cast<int32_t>(y)}
                       : std::vector<int32_t>{static_cast<int32_t>(x)},
                outputs);
    }
    ASSERT_TRUE(egraph.Rebuild().ok());
    naive.Close();
    ASSERT_TRUE(egraph.CheckInvariants().ok()) << egraph.CheckInvariants();
    for (size_t a = 0; a < values.size(); ++a) {
      for (size_t b = 0; b < a; ++b) {
        ASSERT_EQ(egraph.Find(values[a]) == egraph.Find(values[b]), naive.Equal(a, b))
            << "values " << a << " and " << b;
      }
    }
  }
}

}  // namespace
}  // namespace mendel
