// The rules propose a handful a node, in a time that grows with the graph: a search has to verify
// and measure every proposal.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/deadline.h"
#include "graph/emitter.h"
#include "mutator/rule.h"
#include "mutator/sample.h"
#include "onnx/import.h"

namespace mendel {
namespace {

/// Residual blocks of two 3x3 convolutions, every other one with a 1x1 projection, on a batch of
/// `batch` images.
Graph Residual(int64_t batch, int blocks) {
  Emitter e("residual");
  Rng rng(1);
  ValueId x = e.Input("x", {DType::kF32, {batch, 8, 24, 24}});
  const auto conv = [&](ValueId v, int64_t kernel, const std::string& name) {
    const std::vector<ValueId> inputs = {v,
                                         SampleWeight(e, rng, {8, 8, kernel, kernel}, "w" + name),
                                         SampleWeight(e, rng, {8}, "b" + name)};
    return e.Op("Conv", inputs, WindowAttributes(2, 1, 1, kernel / 2));
  };
  for (int k = 0; k < blocks; ++k) {
    const std::string number = std::to_string(k);
    const ValueId y = conv(e.Op("Relu", {conv(x, 3, number + "a")}), 3, number + "b");
    x = e.Op("Relu", {e.Add(y, k % 2 == 0 ? x : conv(x, 1, number + "c"))});
  }
  e.Output("y", x);
  auto graph = e.Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

/// Matches of every rule at every node.
int64_t Proposals(const Graph& graph, bool print) {
  int64_t total = 0;
  for (const Rule* rule : AllRules()) {
    int64_t count = 0;
    const Stopwatch clock;
    for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
      count += static_cast<int64_t>(rule->match(graph, node, DefaultPredictor()).size());
    }
    if (print && count > 0) {
      std::printf("  %-28s %5lld  %.3f s\n", std::string(rule->name).c_str(),
                  static_cast<long long>(count), clock.Seconds());
    }
    total += count;
  }
  return total;
}

TEST(Candidates, AHandfulAConvolution) {
  const int64_t convolutions = 20;  // of 8 blocks
  const int64_t one = Proposals(Residual(1, 8), false), eight = Proposals(Residual(8, 8), false);
  std::printf("8 residual blocks: %lld candidates for one image, %lld for eight\n",
              static_cast<long long>(one), static_cast<long long>(eight));
  EXPECT_GT(one, 0);
  EXPECT_LE(one, 16 * convolutions);
  EXPECT_LE(eight, 40 * convolutions);
}

TEST(Candidates, GrowWithTheNumberOfBlocksOnly) {
  const int64_t eight = Proposals(Residual(1, 8), false),
                thirty_two = Proposals(Residual(1, 32), false);
  EXPECT_LE(thirty_two, 5 * eight);
}

/// MENDEL_MODELS: a folder of models whose candidates are printed rule by rule.
TEST(Candidates, OfModels) {
  const char* folder = std::getenv("MENDEL_MODELS");
  if (folder == nullptr) GTEST_SKIP() << "MENDEL_MODELS is not set";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".onnx") continue;
    const auto model = ImportOnnxFile(entry.path().string());
    if (!model.ok()) continue;
    std::printf("%s, %zu nodes\n", entry.path().filename().c_str(), model->graph.nodes().size());
    const int64_t total = Proposals(model->graph, true);
    std::printf("  %-28s %5lld\n", "all", static_cast<long long>(total));
  }
}

}  // namespace
}  // namespace mendel
