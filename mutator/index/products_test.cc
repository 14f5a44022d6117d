// The algebra derives equal programs of random sums of products, and it gains where it must.

#include "mutator/index/products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "graph/emitter.h"
#include "graph/evaluate.h"
#include "graph/rewrite.h"
#include "graph/text.h"
#include "mutator/index/generate.h"
#include "mutator/index/sample_products.h"
#include "mutator/sample.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

double MaxError(const Graph& f, const Graph& g, Rng& rng) {
  std::vector<HostValue> inputs;
  for (int32_t id : f.inputs()) {
    HostValue value{f.node(id).outputs[0], {}, {}};
    for (int64_t i = 0; i < NumElements(value.type); ++i) value.scalars.push_back(rng.Normal());
    inputs.push_back(std::move(value));
  }
  const auto a = Evaluate(f, inputs);
  const auto b = Evaluate(g, inputs);
  EXPECT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  double worst = 0;
  for (size_t output = 0; output < a->size(); ++output) {
    const std::vector<double>&left = (*a)[output].scalars, &right = (*b)[output].scalars;
    double error = 0, scale = 1e-300;
    for (size_t i = 0; i < left.size(); ++i) {
      error = std::max(error, std::abs(left[i] - right[i]));
      scale = std::max(scale, std::abs(left[i]));
    }
    worst = std::max(worst, error / scale);
  }
  return worst;
}

/// A site with all its proposals, its predicted seconds (`before`) and those of the best one.
struct DerivedSite {
  Graph site;
  std::vector<Graph> graphs;
  double before = 0, best = 0;
};

std::vector<DerivedSite> DeriveAll(const Graph& graph, Expansion expansion, Sharing sharing,
                                   const Predictor& predictor, const ProductOptions& options) {
  std::vector<DerivedSite> all;
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
    const auto site = TranslateSite(graph, node, 64, expansion, sharing);
    if (!site.has_value()) continue;
    const auto place = MakeSubprogram(graph, site->nodes);
    if (!place.ok() || place->outputs.size() != 1 + site->shared.size()) continue;
    DerivedSite derived{*Extract(graph, *place), {}};
    const auto inner = TranslateSite(derived.site, derived.site.outputs().back().value.node, 64,
                                     expansion, sharing);
    EXPECT_TRUE(inner.has_value()) << PrintGraph(derived.site);
    if (!inner.has_value()) continue;
    derived.before = derived.best = predictor.GraphSeconds(derived.site);
    for (const ProductProposal& proposal :
         DeriveProducts(derived.site, *inner, predictor, options)) {
      auto made = RealizeProposal(derived.site, *inner, proposal);
      EXPECT_TRUE(made.ok()) << made.status();
      if (!made.ok()) continue;
      derived.best = std::min(derived.best, proposal.seconds);
      derived.graphs.push_back(*std::move(made));
    }
    all.push_back(std::move(derived));
  }
  return all;
}

uint64_t Seeds() {
  const char* text = std::getenv("MENDEL_PRODUCT_SEEDS");
  return text == nullptr ? 12 : std::strtoull(text, nullptr, 10);
}

class Products : public testing::TestWithParam<ProductSample> {};

TEST_P(Products, EqualInTheFieldAndInDoubles) {
  int64_t derived = 0;
  double gain = 0;
  for (uint64_t seed = 1; seed <= Seeds(); ++seed) {
    Rng rng(seed);
    const auto graph = GetParam().make(rng);
    ASSERT_TRUE(graph.ok()) << graph.status();
    for (const auto& [expansion, sharing] : {std::pair(Expansion::kOneTerm, Sharing::kNone),
                                             std::pair(Expansion::kAllTerms, Sharing::kNone),
                                             std::pair(Expansion::kOneTerm, Sharing::kProducts)}) {
      for (const DerivedSite& site : DeriveAll(*graph, expansion, sharing, DefaultPredictor(),
                                               {.keep = 8, .worst_ratio = 1e9})) {
        EXPECT_FALSE(site.graphs.empty()) << "nothing is realized, seed " << seed << "\n"
                                          << PrintGraph(site.site);
        gain = std::max(gain, site.before / site.best);
        for (const Graph& mutant : site.graphs) {
          ++derived;
          const auto report = Localize(site.site, mutant, {.seed = seed});
          const std::string where =
              "seed " + std::to_string(seed) + "\n" + PrintGraph(site.site) + PrintGraph(mutant);
          ASSERT_TRUE(report.ok()) << report.status() << where;
          ASSERT_EQ(report->verdict, Verdict::kEquivalent) << report->reason << where;
          ASSERT_LT(MaxError(site.site, mutant, rng), 1e-10) << where;
        }
      }
    }
  }
  EXPECT_GT(derived, 0);
  EXPECT_GT(gain, 1.03) << "nothing is predicted to be faster";
  std::printf("%s: %lld programs, predicted gain up to %.2f\n", GetParam().name,
              static_cast<long long>(derived), gain);
}

INSTANTIATE_TEST_SUITE_P(Samples, Products, testing::ValuesIn(ProductSamples()),
                         [](const auto& info) { return std::string(info.param.name); });

/// A narrow middle is less arithmetic; one product is one operator less.
TEST(ProductsByDevice, ThePredictorDecides) {
  Rng rng(1);
  Emitter e("narrow");
  const ValueId x = e.Op("Relu", {e.Input("x", {DType::kF32, {64, 64}})});
  const ValueId middle = e.Op("MatMul", {x, SampleWeight(e, rng, {64, 16}, "a")});
  e.Output("y", e.Op("Relu", {e.Op("MatMul", {middle, SampleWeight(e, rng, {16, 64}, "b")})}));
  const Graph graph = e.Finish().value();
  const auto derive = [&](const DeviceRates& rates) {
    return DeriveAll(graph, Expansion::kOneTerm, Sharing::kNone, RooflinePredictor(rates), {})
        .back()
        .graphs;
  };
  EXPECT_TRUE(derive({.flops = 4e10, .bytes = 8e9, .operator_seconds = 2e-6}).empty());
  const std::vector<Graph> on_gpu =
      derive({.flops = 6e13, .bytes = 3e12, .operator_seconds = 3e-6});
  ASSERT_EQ(on_gpu.size(), 1u);
  EXPECT_EQ(OperatorHistogram(on_gpu[0]), "1 MatMul");
}

}  // namespace
}  // namespace mendel
