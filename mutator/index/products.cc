#include "mutator/index/products.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/rewrite.h"
#include "mutator/index/contract.h"
#include "mutator/index/derive.h"
#include "mutator/index/generate.h"
#include "mutator/index/like_terms.h"

namespace mendel {
namespace {

bool IsSensitive(std::string_view op) {
  static const auto* ops = new std::set<std::string_view>{
      "ArgMax", "ArgMin",      "Div",      "Equal",     "Greater",   "GreaterOrEqual",
      "Less",   "LessOrEqual", "Log",      "Max",       "Min",       "Mod",
      "Pow",    "Reciprocal",  "ReduceL2", "ReduceMax", "ReduceMin", "ReduceLogSum",
      "Round",  "Sign",        "Sqrt",     "TopK",      "Hardmax"};
  return ops->count(op) > 0;
}

/// Bytes of weights that what runs reads.
double WeightBytes(const Graph& graph) {
  const std::vector<bool> weights = ConstantExpressions(graph);
  std::set<ValueId> read;
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    if (weights[id]) continue;
    for (const ValueId input : graph.nodes()[id].inputs) {
      if (weights[static_cast<size_t>(input.node)]) read.insert(input);
    }
  }
  double bytes = 0;
  for (const ValueId value : read) bytes += static_cast<double>(ByteSize(graph.type(value)));
  return bytes;
}

bool HasConv(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node& node) { return node.op->name == "Conv"; });
}

std::vector<bool> LeafWeights(const IndexSite& site, const std::vector<bool>& weights) {
  std::vector<bool> leaves;
  for (const IndexLeaf& leaf : site.leaves) leaves.push_back(IsWeightLeaf(weights, leaf));
  return leaves;
}

}  // namespace

absl::StatusOr<Graph> RealizeProposal(const Graph& subprogram, const IndexSite& site,
                                      const ProductProposal& proposal) {
  IndexSite whole = site;
  whole.leaves.insert(whole.leaves.end(), proposal.leaves.begin(), proposal.leaves.end());
  return RealizeProgram(subprogram, whole, proposal.program, proposal.realize);
}

std::vector<ProductProposal> DeriveProducts(const Graph& subprogram, const IndexSite& site,
                                            const Predictor& predictor,
                                            const ProductOptions& options) {
  const std::vector<bool> weights = ConstantExpressions(subprogram);
  const double before = predictor.GraphSeconds(subprogram), bytes = WeightBytes(subprogram);
  const double most_bytes = std::max(options.weight_growth * bytes, bytes + options.weight_bytes);
  IndexSite plain = site;
  Normalize(plain.program);
  for (IndexExpression& stage : plain.program.stages) DropUnusedSums(stage);
  const IndexSite combined = CombineLikeTerms(subprogram, plain, weights, predictor);
  IndexSite merged = plain;
  merged.program = MergeWindows(plain.program, LeafWeights(plain, weights));
  std::map<std::string, ProductProposal> best;
  for (const IndexSite* from :
       std::initializer_list<const IndexSite*>{&combined, &plain, &merged}) {
    const Program ordered =
        OrderContractions(from->program, LeafWeights(*from, weights), predictor);
    const std::vector<IndexLeaf> added(
        from->leaves.begin() + static_cast<std::ptrdiff_t>(site.leaves.size()), from->leaves.end());
    for (const bool pointwise : {true, false}) {
      if (pointwise && !HasConv(subprogram)) continue;
      ProductProposal proposal{ordered, added, {.elementwise = true, .pointwise = pointwise}, 0};
      const auto graph = RealizeProposal(subprogram, site, proposal);
      if (!graph.ok() || WeightBytes(*graph) > most_bytes) continue;
      proposal.seconds = predictor.GraphSeconds(*graph);
      if (proposal.seconds > options.worst_ratio * before) continue;
      const auto [place, is_new] = best.try_emplace(OperatorHistogram(*graph), proposal);
      if (!is_new && proposal.seconds < place->second.seconds) place->second = proposal;
    }
  }
  std::vector<ProductProposal> sorted;
  for (auto& [histogram, proposal] : best) sorted.push_back(std::move(proposal));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  if (sorted.size() > options.keep) sorted.resize(options.keep);
  return sorted;
}

bool FeedsSensitive(const Graph& graph, int32_t node) {
  std::vector<int32_t> open = {node};
  std::set<int32_t> seen = {node};
  while (!open.empty()) {
    const int32_t id = open.back();
    open.pop_back();
    for (const int32_t user : graph.users(id)) {
      const std::string_view op = graph.node(user).op->name;
      if (IsSensitive(op)) return true;
      const bool product = op == "Conv" || op == "MatMul" || op == "ConvTranspose" ||
                           op == "Einsum" || op == "Exp" || op == "Softmax";
      if (!product && seen.insert(user).second) open.push_back(user);
    }
  }
  return false;
}

}  // namespace mendel
