// The corrections of real mutants: every rule on small layers, verified, corrected, the kernels
// executed over the mutant's own output.

#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "base/status.h"
#include "corrector/corrector.h"
#include "graph/emitter.h"
#include "kernels/cuda/testing/correction_case.h"
#include "kernels/cuda/testing/emulator/device.h"
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
    for (int64_t i = 0; i < NumElements(shape); ++i)
      values.push_back(static_cast<double>(rng.Between(-2, 2)));
    return e.Constant(Tensor::FromDoubles({DType::kF32, shape}, values), name);
  };
  ValueId y = e.Input("x", {DType::kF32, x});
  const int64_t pad = dilation * (kernel / 2);
  for (int k = 0; k < length; ++k) {
    y = e.Op(
        "Conv",
        {y, weight({x[1], x[1] / group, kernel, kernel}, Cat("w", k)), weight({x[1]}, Cat("b", k))},
        {{"strides", Ints{1, 1}},
         {"dilations", Ints{dilation, dilation}},
         {"pads", Ints{pad, pad, pad, pad}},
         {"group", group}});
    y = e.Op("Relu", {y});
  }
  e.Output("y", y);
  auto graph = e.Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

struct Count {
  int executed = 0, refused = 0;
};

/// The corrections of all mutants of some layers.
class Collection {
 public:
  void AddMutants(const Graph& layer, const Rule& rule) {
    int taken = 0;  // of one rule and layer
    for (int32_t node = 0; node < static_cast<int32_t>(layer.nodes().size()); ++node) {
      for (const Match& match : rule.match(layer, node, DefaultPredictor())) {
        const auto mutant = MakeMutant(layer, rule, match, DefaultPredictor());
        if (taken >= 2 || !mutant.ok()) continue;
        const auto report = Localize(mutant->original, mutant->mutant, {});
        if (!report.ok() || report->verdict != Verdict::kPartial) continue;
        ++taken;
        for (const auto& corrected : {Recompute(mutant->original, mutant->mutant, *report, 0.9),
                                      Difference(mutant->original, mutant->mutant, *report, 0.9),
                                      Inside(mutant->original, mutant->mutant, *report, 0.9)}) {
          if (corrected.ok())
            Add(corrected->graph, Cat(rule.name, " by ", CorrectionName(corrected->correction)));
        }
      }
    }
  }

  const std::vector<CorrectionCase>& cases() const { return cases_; }
  const std::vector<EmittedKernel>& texts() const { return texts_; }
  const std::map<std::string, Count>& counts() const { return counts_; }

 private:
  void Add(const Graph& corrected, const std::string& what) {
    auto one = MakeCase(corrected, cases_.size() % 2 == 0 ? Layout::kNchw : Layout::kNhwc,
                        Cat("m", cases_.size(), "_"));
    if (absl::IsUnimplemented(one.status())) {
      ++counts_[what].refused;
      std::printf("%s: %s\n", what.c_str(), std::string(one.status().message()).c_str());
      return;
    }
    ASSERT_TRUE(one.ok()) << one.status();
    ++counts_[what].executed;
    one->description = what;
    one->seed = cases_.size();
    texts_.insert(texts_.end(), one->kernels.begin(), one->kernels.end());
    cases_.push_back(*std::move(one));
  }

  std::vector<CorrectionCase> cases_;
  std::vector<EmittedKernel> texts_;
  std::map<std::string, Count> counts_;
};

TEST(Families, CorrectionsOfEveryRule) {
  Collection collection;
  for (const Graph& layer : {Layers({4, 4, 8, 8}, 1, 3, 1), Layers({2, 4, 9, 10}, 1, 5, 1),
                             Layers({1, 4, 12, 12}, 1, 3, 2), Layers({4, 4, 8, 8}, 1, 3, 1, 4),
                             Layers({1, 4, 16, 16}, 2, 3, 1)}) {
    for (const Rule* rule : AllRules()) collection.AddMutants(layer, *rule);
  }
  ASSERT_FALSE(collection.cases().empty());
  const auto module = EmulatorDevice().Load(collection.texts());
  ASSERT_TRUE(module.ok()) << module.status();
  for (const CorrectionCase& one : collection.cases()) {
    const absl::Status status = RunCase(one, **module);
    EXPECT_TRUE(status.ok()) << status;
  }
  for (const auto& [what, count] : collection.counts()) {
    std::printf("%-36s %d executed, %d refused\n", what.c_str(), count.executed, count.refused);
  }
}

}  // namespace
}  // namespace mendel::cuda
