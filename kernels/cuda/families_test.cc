// The corrections of real mutants: every rule on small layers, judged, mended, the kernels executed over the mutant's own output.

#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "base/status.h"
#include "corrector/corrector.h"
#include "graph/emitter.h"
#include "kernels/cuda/emulator/device.h"
#include "kernels/cuda/mending_case.h"
#include "mutator/rule.h"
#include "verifier/verifier.h"

namespace mendel::cuda {
namespace {

/// A chain of convolutions, with a Relu after each.
Graph Layers(const Shape& x, int length, int64_t kernel, int64_t dilation, int64_t group = 1) {
  Emitter e("layers");
  Rng rng(3);
  const auto weight = [&](const Shape& shape, const std::string& name) {
    std::vector<double> values;
    for (int64_t i = 0; i < NumElements(shape); ++i) values.push_back(static_cast<double>(rng.Between(-2, 2)));
    return e.Constant(Tensor::FromDoubles({DType::kF32, shape}, values), name);
  };
  ValueId y = e.Input("x", {DType::kF32, x});
  const int64_t pad = dilation * (kernel / 2);
  for (int k = 0; k < length; ++k) {
    y = e.Op(
        "Conv", {y, weight({x[1], x[1] / group, kernel, kernel}, Cat("w", k)), weight({x[1]}, Cat("b", k))},
        {{"strides", Ints{1, 1}}, {"dilations", Ints{dilation, dilation}}, {"pads", Ints{pad, pad, pad, pad}}, {"group", group}});
    y = e.Op("Relu", {y});
  }
  e.Output("y", y);
  auto graph = e.Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

struct Count {
  int mended = 0, refused = 0;
};

TEST(Families, CorrectionsOfEveryRule) {
  const std::vector<Graph> layers = {Layers({4, 4, 8, 8}, 1, 3, 1), Layers({2, 4, 9, 10}, 1, 5, 1), Layers({1, 4, 12, 12}, 1, 3, 2),
                                     Layers({4, 4, 8, 8}, 1, 3, 1, 4), Layers({1, 4, 16, 16}, 1, 3, 1)};
  std::map<std::string, Count> counts;
  std::vector<MendingCase> cases;
  std::vector<EmittedKernel> texts;
  for (const Graph& layer : layers) {
    for (const Rule* rule : AllRules()) {
      int taken = 0;
      for (int32_t node = 0; node < static_cast<int32_t>(layer.nodes().size()); ++node) {
        for (const Match& match : rule->match(layer, node)) {
          if (taken >= 2) break;
          const auto mutant = MakeMutant(layer, *rule, match);
          if (!mutant.ok()) continue;
          const auto report = Localise(mutant->original, mutant->mutant, {});
          if (!report.ok() || report->verdict != Verdict::kPartial) continue;
          const auto mended = Recompute(mutant->original, mutant->mutant, *report, 0.9);
          if (!mended.ok()) continue;
          ++taken;
          auto one = MakeCase(mended->graph, cases.size() % 2 == 0 ? Layout::kNchw : Layout::kNhwc, Cat("m", cases.size(), "_"));
          if (absl::IsUnimplemented(one.status())) {
            ++counts[std::string(rule->name)].refused;
            std::printf("%s: %s\n", std::string(rule->name).c_str(), std::string(one.status().message()).c_str());
            continue;
          }
          ASSERT_TRUE(one.ok()) << one.status();
          ++counts[std::string(rule->name)].mended;
          one->told = Cat("rule ", std::string(rule->name));
          one->seed = cases.size();
          texts.insert(texts.end(), one->kernels.begin(), one->kernels.end());
          cases.push_back(*std::move(one));
        }
      }
    }
  }
  ASSERT_FALSE(cases.empty());
  const auto module = EmulatorDevice().Load(texts);
  ASSERT_TRUE(module.ok()) << module.status();
  for (const MendingCase& one : cases) {
    const absl::Status status = RunCase(one, **module);
    EXPECT_TRUE(status.ok()) << status;
  }
  for (const auto& [rule, count] : counts) {
    std::printf("%-24s %d corrections executed, %d refused\n", rule.c_str(), count.mended, count.refused);
    EXPECT_GT(count.mended, 0) << rule;
  }
}

}  // namespace
}  // namespace mendel::cuda
