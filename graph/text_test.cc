#include "graph/text.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace mendel {
namespace {

/// A graph of one random sample of an operator with random constants as some of its operands.
absl::StatusOr<Graph> SampleGraph(const OpDefinition& op, Rng& rng) {
  GraphBuilder builder("sample \"quoted\"\n");
  const OpSample sample = op.sample(rng);
  std::vector<ValueId> inputs;
  for (size_t k = 0; k < sample.inputs.size(); ++k) {
    if (rng.Flip()) {
      inputs.push_back(builder.Input("in" + std::to_string(k), sample.inputs[k]));
    } else {
      std::vector<double> values(static_cast<size_t>(NumElements(sample.inputs[k])));
      for (double& value : values) value = rng.Normal();
      inputs.push_back(
          builder.Constant(Tensor::FromDoubles(sample.inputs[k], values), "w" + std::to_string(k)));
    }
  }
  auto node = builder.AddNode(op.name, inputs, sample.attrs, "node");
  if (!node.ok()) return node.status();
  for (size_t k = 0; k < builder.node(*node).outputs.size(); ++k)
    builder.Output("out" + std::to_string(k), {*node, static_cast<int32_t>(k)});
  return builder.Build();
}

TEST(Text, RoundTripsEveryOperator) {
  for (const OpDefinition* op : AllOps()) {
    if (op->sample == nullptr) continue;
    for (uint64_t seed = 0; seed < 50; ++seed) {
      Rng rng(seed);
      const auto graph = SampleGraph(*op, rng);
      ASSERT_TRUE(graph.ok()) << op->name << " seed " << seed << ": " << graph.status();
      ASSERT_TRUE(CheckGraph(*graph).ok()) << op->name << " seed " << seed;
      const std::string text = PrintGraph(*graph);
      const auto parsed = ParseGraph(text);
      ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
      EXPECT_EQ(PrintGraph(*parsed), text);
      std::vector<Tensor> tensors;
      const std::string compact = PrintGraph(*graph, {.tensors = &tensors, .inline_limit = 4});
      const auto reparsed = ParseGraph(compact, tensors);
      ASSERT_TRUE(reparsed.ok()) << reparsed.status() << "\n" << compact;
      EXPECT_EQ(PrintGraph(*reparsed), text);
    }
  }
}

TEST(Text, NamesTheLineOfAnError) {
  const auto graph = ParseGraph(
      "graph \"g\" {\n  %0 = Input() {name = \"x\", shape = [2]}\n  %1 = Rellu(%0)\n  return \"y\" "
      "= %1\n}");
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.status().message().find("line 3"), absl::string_view::npos) << graph.status();
}

}  // namespace
}  // namespace mendel
