// Sums of products are multiplied out and put together again in the cheapest way.
//
//   before  x*w + (x*a)*b           Conv(Conv(x, a), b)       (x*a)*b      sum (x - c)^2
//   after   x*(w + a*b)             Conv(x, b*a)              x*(a*b)      x.x - 2 x.c + c.c
//
// Exact: like terms are added up (mutator/index/like_terms.h). Products are contracted in the order
// of least predicted time (mutator/index/contract.h). Expressions of weights are computed when a
// plan is loaded. Squares of sums can cancel, so they are not offered before roots, logarithms,
// quotients and comparisons.

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "base/status.h"
#include "graph/rewrite.h"
#include "mutator/index/generate.h"
#include "mutator/index/products.h"
#include "mutator/index/sample_products.h"
#include "mutator/rule.h"

namespace mendel::rules::sums_of_products {
namespace {

constexpr size_t kMostRemembered = 512;

using Proposals = std::vector<ProductProposal>;

bool MayEndSite(const Graph& graph, int32_t id) {
  static const auto* ends =
      new std::set<std::string_view>{"Add",        "AveragePool", "BatchNormalization",
                                     "Conv",       "Div",         "Einsum",
                                     "MatMul",     "Mul",         "Neg",
                                     "ReduceMean", "ReduceSum",   "ReduceSumSquare",
                                     "Sub"};
  if (ends->count(graph.node(id).op->name) == 0) return false;
  const std::vector<int32_t>& users = graph.users(id);
  if (users.size() != 1 || graph.IsOutput(id)) return true;
  // The sum that reads it ends a larger site.
  const std::string_view reader = graph.node(users[0]).op->name;
  return reader != "Add" && reader != "Sub";
}

/// The proposals of a site, remembered by its expression, its cost and which of its leaves are
/// weights.
std::shared_ptr<const Proposals> ProposalsFor(const Graph& subprogram, const IndexSite& site,
                                              const Predictor& predictor) {
  static std::mutex mutex;
  static auto* remembered = new std::map<std::string, std::shared_ptr<const Proposals>>();
  std::string key = Cat(CanonicalKey(site.program), "\n", predictor.Key(), "\n",
                        predictor.GraphSeconds(subprogram), OperatorHistogram(subprogram));
  for (const int32_t shared : site.shared) key += Cat(" shared ", shared);
  for (const IndexLeaf& leaf : site.leaves) {
    const bool input = leaf.kind == LeafKind::kValue && IsInput(subprogram.node(leaf.value.node));
    key += Cat(input ? " input" : " weight", static_cast<int>(leaf.kind), "-", leaf.extent);
  }
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto entry = remembered->find(key);
    if (entry != remembered->end()) return entry->second;
  }
  const auto result = std::make_shared<const Proposals>(
      DeriveProducts(subprogram, site, predictor, ProductOptions{}));
  const std::lock_guard<std::mutex> lock(mutex);
  if (remembered->size() >= kMostRemembered) remembered->clear();
  return remembered->emplace(key, result).first->second;
}

/// The extent to which a site is read.
struct Reading {
  Expansion expansion;
  Sharing sharing;
};
constexpr Reading kReadings[] = {{Expansion::kOneTerm, Sharing::kNone},
                                 {Expansion::kAllTerms, Sharing::kNone},
                                 {Expansion::kOneTerm, Sharing::kProducts}};

std::optional<IndexSite> Translate(const Graph& graph, int32_t last, const Reading& reading) {
  return TranslateSite(graph, last, kMostSiteNodes, reading.expansion, reading.sharing);
}

int32_t LastNode(const Graph& subprogram) { return subprogram.outputs().back().value.node; }

/// A site and the reading that finds it in its own subprogram, too.
struct Place {
  IndexSite site;
  size_t reading;
};

/// The products within a site.
std::set<int32_t> InnerProducts(const Graph& graph, const IndexSite& site) {
  std::set<int32_t> products;
  for (const int32_t id : site.nodes) {
    if (id != site.nodes.back() && IsProduct(*graph.node(id).op)) products.insert(id);
  }
  return products;
}

std::vector<Place> FindPlaces(const Graph& graph, int32_t last) {
  std::vector<Place> places;
  const auto add = [&](std::optional<IndexSite> site, size_t reading) {
    if (!site.has_value() || site->nodes.size() < 2) return;
    if (!places.empty() && places.back().site.nodes == site->nodes) return;
    if (site->shared.empty() == (kReadings[reading].sharing == Sharing::kNone))
      places.push_back({*std::move(site), reading});
  };
  for (size_t r = 0; r < std::size(kReadings); ++r) add(Translate(graph, last, kReadings[r]), r);
  if (places.empty() || !places[0].site.has_square) return places;
  // The square of a product multiplies it out twice; an expert keeps its result.
  std::set<int32_t> products = InnerProducts(graph, places[0].site);
  if (!products.empty())
    add(TranslateSite(graph, last, kMostSiteNodes, kReadings[0].expansion, kReadings[0].sharing,
                      std::move(products)),
        0);
  return places;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor& predictor) {
  if (!MayEndSite(graph, node)) return {};
  std::vector<Match> matches;
  for (const auto& [site, reading] : FindPlaces(graph, node)) {
    if (site.has_square && FeedsSensitive(graph, node)) continue;
    const auto place = MakeSubprogram(graph, site.nodes);
    if (!place.ok() || place->outputs.size() != 1 + site.shared.size()) continue;
    const auto subprogram = Extract(graph, *place);
    if (!subprogram.ok()) continue;
    const auto inner = Translate(*subprogram, LastNode(*subprogram), kReadings[reading]);
    if (!inner.has_value() || inner->shared.size() != site.shared.size()) continue;
    for (size_t k = 0; k < ProposalsFor(*subprogram, *inner, predictor)->size(); ++k) {
      matches.push_back(
          {site.nodes,
           {{"derivation", static_cast<int64_t>(k)}, {"reading", static_cast<int64_t>(reading)}}});
    }
  }
  return matches;
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match& match,
                            const Predictor& predictor) {
  const Reading& reading = kReadings[match.choices.at("reading")];
  const auto site = Translate(subprogram, LastNode(subprogram), reading);
  if (!site.has_value()) return absl::FailedPreconditionError("no sum of products");
  const std::shared_ptr<const Proposals> proposals = ProposalsFor(subprogram, *site, predictor);
  const size_t choice = static_cast<size_t>(match.choices.at("derivation"));
  if (choice >= proposals->size()) return absl::FailedPreconditionError("no such derivation");
  return RealizeProposal(subprogram, *site, (*proposals)[choice]);
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  const std::vector<ProductSample>& samples = ProductSamples();
  return samples[rng.Below(samples.size())].make(rng);
}

Rule Make() {
  Rule rule;
  rule.name = "sums_of_products";
  rule.family = "index expressions";
  rule.before = "x*w + (x*a)*b, (x*a)*b, Conv(Conv(x, a), b), x*w + y*w, sum (x - c)^2";
  rule.after = "x*(w + a*b), x*(a*b), Conv(x, b*a), (x + y)*w, x.x - 2*x.c + c.c";
  rule.precondition =
      "linear operators read once, or products that others read, too; at most 8 factors an "
      "operand; predicted to be faster; weights at most 1.5 times or 64 MiB more; squares of sums "
      "not "
      "before roots, quotients and comparisons";
  rule.loses_when = "the merged weights are slower to read than predicted";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::sums_of_products
