// The generator finds known forms by itself, from plain programs and without a target, and
// everything it proposes is right.

#include "mutator/index/generate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "graph/evaluate.h"
#include "graph/rewrite.h"
#include "graph/text.h"
#include "mutator/index/sample_sites.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

/// Operators that run, by name.
std::map<std::string, int> Operators(const Graph& graph) {
  const std::vector<bool> weights = ConstantExpressions(graph);
  std::map<std::string, int> counts;
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    if (!weights[id] && !IsInput(graph.nodes()[id]))
      ++counts[std::string(graph.nodes()[id].op->name)];
  }
  return counts;
}

int Count(const Graph& graph, const std::string& op) {
  const auto counts = Operators(graph);
  const auto entry = counts.find(op);
  return entry == counts.end() ? 0 : entry->second;
}

struct Found {
  Graph site;
  GenerateResult result;
  std::vector<Graph> graphs;  ///< one a proposal
};

Found GenerateFor(const Graph& graph, const GenerateOptions& options = {.seconds = 1e9}) {
  Found found;
  const auto site = TranslateSite(graph, graph.outputs()[0].value.node, 64);
  EXPECT_TRUE(site.has_value()) << PrintGraph(graph);
  const auto place = MakeSubprogram(graph, site->nodes);
  EXPECT_TRUE(place.ok()) << place.status();
  found.site = *Extract(graph, *place);
  const auto inner = TranslateSite(found.site, found.site.outputs()[0].value.node, 64);
  EXPECT_TRUE(inner.has_value());
  found.result = Generate(found.site, *inner, DefaultPredictor(), options);
  for (const Proposal& proposal : found.result.proposals) {
    auto made = RealizeProgram(found.site, *inner, proposal.program, proposal.realize);
    EXPECT_TRUE(made.ok()) << made.status();
    found.graphs.push_back(*std::move(made));
  }
  return found;
}

double MaxError(const Graph& f, const Graph& g, Rng& rng) {
  std::vector<HostValue> inputs;
  for (int32_t id : f.inputs()) {
    HostValue value{f.node(id).outputs[0], {}, {}};
    for (int64_t i = 0; i < NumElements(value.type); ++i) value.scalars.push_back(rng.Normal());
    inputs.push_back(std::move(value));
  }
  const auto a = Evaluate(f, inputs);
  const auto b = Evaluate(g, inputs);
  EXPECT_TRUE(a.ok() && b.ok());
  double error = 0;
  for (size_t i = 0; i < (*a)[0].scalars.size(); ++i)
    error = std::max(error, std::abs((*a)[0].scalars[i] - (*b)[0].scalars[i]));
  return error;
}

std::string Steps(const Proposal& proposal) {
  std::string text;
  for (const std::string& step : proposal.steps) text += (text.empty() ? "" : ", ") + step;
  return text.empty() ? "as it is" : text;
}

/// For each seed some proposal is of the wanted structure, certified by the verifier and equal in
/// float64.
void Discovers(const char* sample,
               const std::function<bool(const Graph& site, const Graph& found)>& wanted) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Rng rng(seed);
    const auto graph = FindSiteSample(sample).make(rng);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const Found found = GenerateFor(*graph);
    bool discovered = false;
    std::string offered;
    for (size_t k = 0; k < found.graphs.size(); ++k) {
      offered += "  " + Steps(found.result.proposals[k]) + ": " +
                 found.result.proposals[k].operator_histogram + "\n";
      if (discovered || !wanted(found.site, found.graphs[k])) continue;
      discovered = true;
      const auto certificate = Certify(found.site, found.graphs[k], {});
      ASSERT_TRUE(certificate.ok()) << certificate.status() << "\n"
                                    << PrintGraph(found.site) << PrintGraph(found.graphs[k]);
      EXPECT_LE(certificate->bound_log2, -80);
      EXPECT_LT(MaxError(found.site, found.graphs[k], rng), 1e-10);
      std::printf("%s seed %llu: %s by %s, certified with 2^%.0f\n", sample,
                  static_cast<unsigned long long>(seed),
                  found.result.proposals[k].operator_histogram.c_str(),
                  Steps(found.result.proposals[k]).c_str(), certificate->bound_log2);
    }
    EXPECT_TRUE(discovered) << sample << " seed " << seed << "\n"
                            << PrintGraph(found.site) << "offered:\n"
                            << offered;
  }
}

int64_t LargestKernel(const Graph& graph) {
  int64_t largest = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "Conv") continue;
    const Shape& w = graph.type(node.inputs[1]).shape;
    for (size_t d = 2; d < w.size(); ++d) largest = std::max(largest, w[d]);
  }
  return largest;
}

bool IsDilated(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "Conv") continue;
    for (int64_t d : node.attrs.IntList("dilations")) {
      if (d > 1) return true;
    }
  }
  return false;
}

TEST(Discoveries, ConvolutionIsMatMulAndOffsetAdd) {
  Discovers("conv", [](const Graph&, const Graph& found) {
    // One product over the channels, nine shifted views of it added up, nothing gathered.
    return Count(found, "MatMul") == 1 && Count(found, "Conv") == 0 &&
           Count(found, "Concat") == 0 && Count(found, "Add") >= 8;
  });
}

TEST(Discoveries, FiveByFiveIsThreeByThrees) {
  Discovers("conv5x5", [](const Graph&, const Graph& found) {
    return Count(found, "Conv") == 4 && LargestKernel(found) == 3;
  });
}

TEST(Discoveries, TransposedConvolutionIsMatMulAndOverlapAdd) {
  Discovers("conv_transpose", [](const Graph&, const Graph& found) {
    return Count(found, "MatMul") == 1 && Count(found, "Conv") == 0 &&
           Count(found, "ConvTranspose") == 0 && Count(found, "Concat") == 0;
  });
}

TEST(Discoveries, TransposedConvolutionIsInterleavedConvolution) {
  Discovers("conv_transpose", [](const Graph& site, const Graph& found) {
    const Node& node = site.node(site.outputs()[0].value.node);
    // Windows that do not overlap are one product, without any addition but that of the bias.
    const bool apart = site.type(node.inputs[1]).shape[2] == node.attrs.IntList("strides")[0];
    return Count(found, apart ? "MatMul" : "Conv") == 1 && Count(found, "Add") < 2 &&
           Count(found, "Concat") == 0;
  });
}

TEST(Discoveries, DilatedIsBatch) {
  Discovers("dilated", [](const Graph& site, const Graph& found) {
    if (Count(found, "Conv") != 1 || IsDilated(found)) return false;
    for (const Node& node : found.nodes()) {
      if (node.op->name == "Conv")
        return node.outputs[0].shape[0] > site.nodes().back().outputs[0].shape[0];
    }
    return false;
  });
}

bool IsBatchedProduct(const Graph& site, const Graph& found) {
  if (Count(found, "MatMul") != 1 || Count(found, "Mul") != 0 || Count(found, "ReduceSum") != 0)
    return false;
  for (const Node& node : found.nodes()) {
    // More batches than the site has: blocks of rows.
    if (node.op->name == "MatMul" && node.outputs[0].shape.size() == 3) {
      const Shape& y = node.outputs[0].shape;
      const Shape& band = found.type(found.outputs()[0].value).shape;
      return y[0] > site.nodes().back().outputs[0].shape[0] && y[0] < band[0] * band[1] &&
             y[1] > 1 && y[2] > 1;
    }
  }
  return false;
}

TEST(Discoveries, BandedProductIsBatchedMatMul) { Discovers("banded", &IsBatchedProduct); }
TEST(Discoveries, SumOverBandIsBatchedMatMul) { Discovers("banded_sum", &IsBatchedProduct); }

TEST(Discoveries, StridedIsSpaceToDepth) {
  Discovers("strided", [](const Graph& site, const Graph& found) {
    for (const Node& node : found.nodes()) {
      if (node.op->name != "Conv" || node.attrs.IntList("strides") != Ints{1, 1}) continue;
      return found.type(node.inputs[0]).shape[1] > site.node(site.inputs()[0]).outputs[0].shape[1];
    }
    return false;
  });
}

TEST(Proposals, EveryOneIsEqual) {
  int64_t proposals = 0;
  for (const SiteSample& sample : SiteSamples()) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      Rng rng(1000 + seed);
      const auto graph = sample.make(rng);
      ASSERT_TRUE(graph.ok());
      const Found found = GenerateFor(*graph);
      for (size_t k = 0; k < found.graphs.size(); ++k) {
        const auto equal = ScreenedEqual(found.site, found.graphs[k], {.seed = seed});
        const std::string where = std::string(sample.name) + " seed " +
                                  std::to_string(1000 + seed) + " " +
                                  Steps(found.result.proposals[k]) + "\n" + PrintGraph(found.site) +
                                  PrintGraph(found.graphs[k]);
        ASSERT_TRUE(equal.ok()) << equal.status() << where;
        EXPECT_TRUE(*equal) << where;
        EXPECT_LT(MaxError(found.site, found.graphs[k], rng), 1e-10) << where;
        ++proposals;
      }
      EXPECT_TRUE(found.result.faults.empty()) << found.result.faults[0];
    }
  }
  std::printf("%lld proposals\n", static_cast<long long>(proposals));
  EXPECT_GT(proposals, 100);
}

TEST(Limits, AreKeptAndReported) {
  Rng rng(3);
  const auto graph = FindSiteSample("conv5x5").make(rng);
  ASSERT_TRUE(graph.ok());
  GenerateResult result = GenerateFor(*graph, {.depth = 1, .seconds = 1e9}).result;
  EXPECT_EQ(result.stop, GenerateStop::kDepth);
  EXPECT_EQ(result.depth, 1);
  for (const Proposal& proposal : result.proposals) EXPECT_LE(proposal.steps.size(), 1u);
  result = GenerateFor(*graph, {.programs = 7, .seconds = 1e9}).result;
  EXPECT_EQ(result.stop, GenerateStop::kPrograms);
  EXPECT_EQ(result.programs, 7);
  result = GenerateFor(*graph, {.seconds = 0}).result;
  EXPECT_EQ(result.stop, GenerateStop::kSeconds);
  result = GenerateFor(*graph, {.seconds = 1e9, .keep = 2}).result;
  EXPECT_EQ(result.proposals.size(), 2u);
  result = GenerateFor(*graph, {.seconds = 1e9, .worst_ratio = 0}).result;
  EXPECT_TRUE(result.proposals.empty());
}

}  // namespace
}  // namespace mendel
