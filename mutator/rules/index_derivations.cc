// Sites of linear operators are rearranged by their index expression: the generator of operators
// (mutator/index/) as one rule.
//
//   before  a convolution with a large or dilated kernel, a transposed convolution, an Einsum, or
//           sums and concatenations of products with shifted operands (banded products)
//   after   the derivation of predicted rank `derivation`: dense convolutions on residues, sums of
//           small convolutions, a matrix product and shifted additions, or batched matrix products
//
// Exact: every derivation keeps the expression equal, padding included. A site has at most two
// derivations, those predicted faster than the site. Equal sites are derived once in a process.
//
// Source: EinNet (OSDI 2023).

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "base/status.h"
#include "graph/rewrite.h"
#include "mutator/index/generate.h"
#include "mutator/index/sample_sites.h"
#include "mutator/rule.h"

namespace mendel::rules::index_derivations {
namespace {

constexpr size_t kMostProposals = 2;  // a site
constexpr size_t kMostRemembered = 512;
/// No limit in seconds: what is offered must not depend on the machine's load.
const GenerateOptions kLimits{
    .depth = 3, .programs = 60, .seconds = 1e9, .keep = 8, .worst_ratio = 0.95, .worst_flops = 2.5};

using Proposals = std::vector<Proposal>;

/// Convolutions that some derivation may make faster; of the others only products of shifted
/// operands are worth a look.
bool MayGain(const Graph& graph, const Node& node) {
  if (node.op->name == "ConvTranspose" || node.op->name == "Einsum") return true;
  if (node.op->name != "Conv") return false;
  const Shape& w = graph.type(node.inputs[1]).shape;
  const Ints& dilations = node.attrs.IntList("dilations");
  return std::any_of(w.begin() + 2, w.end(), [](int64_t k) { return k > 3; }) ||
         std::any_of(dilations.begin(), dilations.end(), [](int64_t d) { return d > 1; });
}

/// Ends of sites without convolutions and matrix products: several elementwise products, and
/// nothing linear reads the result.
bool EndsSum(const Graph& graph, int32_t node) {
  const std::string_view op = graph.node(node).op->name;
  if (op != "Add" && op != "Concat") return false;
  const std::vector<int32_t>& users = graph.users(node);
  return std::none_of(users.begin(), users.end(), [&](int32_t user) {
    const std::string_view reader = graph.node(user).op->name;
    return reader == "Add" || reader == "Concat";
  });
}

bool IsShiftedProducts(const Graph& graph, const IndexSite& site) {
  const auto count = [&](std::string_view op) {
    return std::count_if(site.nodes.begin(), site.nodes.end(),
                         [&](int32_t id) { return graph.node(id).op->name == op; });
  };
  return count("Mul") > 1 && count("Conv") == 0 && count("ConvTranspose") == 0 &&
         count("MatMul") == 0 && count("Einsum") == 0;
}

/// The proposals of a site, remembered by its expression, its cost and which of its leaves are
/// weights.
std::shared_ptr<const Proposals> ProposalsFor(const Graph& subprogram, const IndexSite& site,
                                              const Predictor& predictor) {
  static std::mutex mutex;
  static auto* remembered = new std::map<std::string, std::shared_ptr<const Proposals>>();
  std::string key = Cat(CanonicalKey(site.program), "\n", predictor.Key(), "\n",
                        predictor.GraphSeconds(subprogram));
  for (const IndexLeaf& leaf : site.leaves)
    key += IsInput(subprogram.node(leaf.value.node)) ? " input" : " weight";
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto entry = remembered->find(key);
    if (entry != remembered->end()) return entry->second;
  }
  Proposals proposals = Generate(subprogram, site, predictor, kLimits).proposals;
  // A product matched as another operator needs no derivation: other rules propose it.
  std::erase_if(proposals, [](const Proposal& proposal) { return proposal.steps.empty(); });
  if (proposals.size() > kMostProposals) proposals.resize(kMostProposals);
  const auto result = std::make_shared<const Proposals>(std::move(proposals));
  const std::lock_guard<std::mutex> lock(mutex);
  if (remembered->size() >= kMostRemembered) remembered->clear();
  return remembered->emplace(key, result).first->second;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor& predictor) {
  const bool sums = EndsSum(graph, node);
  if (!sums && !MayGain(graph, graph.node(node))) return {};
  const std::optional<IndexSite> site = TranslateSite(graph, node, kMostSiteNodes);
  if (!site.has_value() || (sums && !IsShiftedProducts(graph, *site))) return {};
  const auto place = MakeSubprogram(graph, site->nodes);
  if (!place.ok() || place->outputs.size() != 1) return {};
  const auto subprogram = Extract(graph, *place);
  if (!subprogram.ok()) return {};
  const auto inner =
      TranslateSite(*subprogram, subprogram->outputs()[0].value.node, kMostSiteNodes);
  if (!inner.has_value()) return {};
  std::vector<Match> matches;
  for (size_t k = 0; k < ProposalsFor(*subprogram, *inner, predictor)->size(); ++k) {
    matches.push_back({site->nodes, {{"derivation", static_cast<int64_t>(k)}}});
  }
  return matches;
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match& match,
                            const Predictor& predictor) {
  const auto site = TranslateSite(subprogram, subprogram.outputs()[0].value.node, kMostSiteNodes);
  if (!site.has_value()) return absl::FailedPreconditionError("no site of linear operators");
  const std::shared_ptr<const Proposals> proposals = ProposalsFor(subprogram, *site, predictor);
  const size_t choice = static_cast<size_t>(match.choices.at("derivation"));
  if (choice >= proposals->size()) return absl::FailedPreconditionError("no such derivation");
  const Proposal& proposal = (*proposals)[choice];
  return RealizeProgram(subprogram, *site, proposal.program, proposal.realize);
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  switch (rng.Below(3)) {
    case 0:
      return FindSiteSample("banded").make(rng);
    case 1:
      return FindSiteSample("banded_sum").make(rng);
    default:
      return MakeWideSite(rng);
  }
}

Rule Make() {
  Rule rule;
  rule.name = "index_derivations";
  rule.family = "index expressions";
  rule.before = "a site of linear operators: sum over k of products of tensors at affine indices";
  rule.after =
      "its index expression split, staged or skewed, as convolutions, matrix products and shifted "
      "sums";
  rule.precondition =
      "kernels larger than 3, dilated, transposed, or products with shifted operands; predicted to "
      "be faster";
  rule.loses_when = "the views cost more than the products gain";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::index_derivations
