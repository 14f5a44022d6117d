#include "mutator/index/translate.h"

#include <algorithm>

#include "graph/rewrite.h"
#include "mutator/index/reader.h"

namespace mendel {
namespace {

constexpr int kAttempts = 16;  // splits of output dimensions and closed nodes that a site may need

/// One dimension of the result, in mixed radix by the splits wished for.
struct RootDim {
  std::vector<int64_t> radices;
};

/// The splits of a site's iterators: the result's dimensions and sums by their number.
struct Splits {
  std::vector<RootDim> dims;
  std::map<int, int64_t> sums;
};

struct Attempt {
  IndexExpression stage;
  std::vector<IndexLeaf> leaves;
  std::set<int32_t> inlined;
  std::optional<std::pair<size_t, int64_t>> wish;   ///< output iterator by position, inner extent
  std::optional<std::pair<int, int64_t>> sum_wish;  ///< a sum by its number, inner extent
  bool has_product = false, has_square = false, too_large = false;
};

Attempt TryReading(const Graph& graph, int32_t last, const std::vector<bool>& weights,
                   const std::set<int32_t>& closed, const Splits& splits, int max_nodes,
                   Expansion expansion) {
  ExpressionReader reader(graph, weights, closed, max_nodes, expansion);
  reader.sum_splits = splits.sums;
  Attempt attempt;
  Forms at;
  for (const RootDim& dim : splits.dims) {
    Affine form;
    OutputDim output;
    for (int64_t radix : dim.radices) {
      output.iterators.push_back(attempt.stage.NewIterator(radix));
      form = form * radix + Affine::Of(output.iterators.back());
      output.extent *= radix;
    }
    attempt.stage.outputs.push_back(output);
    at.push_back(form);
  }
  const size_t roots = attempt.stage.extents.size();
  reader.extents = attempt.stage.extents;
  attempt.stage.terms = reader.Read({last, 0}, at);
  if (attempt.stage.terms.size() > 2 && expansion == Expansion::kViews) {
    reader.extents.push_back(static_cast<int64_t>(attempt.stage.terms.size()));
    const Iterator step = static_cast<Iterator>(reader.extents.size() - 1);
    if (auto rolled = RollTerms(attempt.stage.terms, step, reader.extents)) {
      rolled->sums.push_back(step);
      attempt.stage.terms = {*rolled};
    }
  }
  attempt.stage.extents = reader.extents;
  attempt.leaves = reader.leaves;
  attempt.inlined = reader.inlined;
  attempt.has_product = reader.has_product;
  attempt.has_square = reader.has_square;
  attempt.too_large = reader.too_large;
  if (!reader.wish.has_value()) return attempt;
  const auto [iterator, inner] = *reader.wish;
  if (static_cast<size_t>(iterator) < roots) {
    attempt.wish = {static_cast<size_t>(iterator), inner};
  } else if (expansion != Expansion::kViews && reader.sum_numbers.count(iterator) > 0) {
    attempt.sum_wish = {reader.sum_numbers.at(iterator), inner};
  }
  return attempt;
}

bool IsLeaf(const std::vector<IndexLeaf>& leaves, int32_t node) {
  return std::any_of(leaves.begin(), leaves.end(), [&](const IndexLeaf& leaf) {
    return leaf.kind == LeafKind::kValue && leaf.value.node == node;
  });
}

/// Nodes of the attempt, but the last, that something outside reads, or that are a leaf in another
/// place.
std::vector<int32_t> ReadOutside(const Graph& graph, int32_t last, const std::set<int32_t>& inlined,
                                 const std::vector<IndexLeaf>& leaves) {
  std::vector<int32_t> found;
  for (const IndexLeaf& leaf : leaves) {
    if (leaf.kind == LeafKind::kValue && inlined.count(leaf.value.node) > 0)
      found.push_back(leaf.value.node);
  }
  for (int32_t node : inlined) {
    if (node == last) continue;
    const std::vector<int32_t>& users = graph.users(node);
    const bool inside = std::all_of(users.begin(), users.end(),
                                    [&](int32_t user) { return inlined.count(user) > 0; });
    if (!inside || graph.IsOutput(node)) found.push_back(node);
  }
  return found;
}

/// A product, or its sum with a bias.
bool IsSharedProduct(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  if (node.op->name != "Add") return IsProduct(*node.op);
  const auto is_weight = [&](ValueId value) {
    return graph.constant()[static_cast<size_t>(value.node)];
  };
  if (is_weight(node.inputs[0])) return IsSharedProduct(graph, node.inputs[1].node);
  return is_weight(node.inputs[1]) && IsSharedProduct(graph, node.inputs[0].node);
}

void ApplyWish(std::vector<RootDim>& dims, size_t position, int64_t inner) {
  for (RootDim& dim : dims) {
    if (position >= dim.radices.size()) {
      position -= dim.radices.size();
      continue;
    }
    dim.radices[position] /= inner;
    dim.radices.insert(dim.radices.begin() + static_cast<std::ptrdiff_t>(position) + 1, inner);
    return;
  }
}

}  // namespace

bool IsProduct(const OpDefinition& op) {
  return op.name == "Conv" || op.name == "ConvTranspose" || op.name == "MatMul" ||
         op.name == "Einsum";
}

std::optional<IndexSite> TranslateSite(const Graph& graph, int32_t last, int max_nodes,
                                       Expansion expansion, Sharing sharing,
                                       std::set<int32_t> closed) {
  const std::vector<bool>& weights = graph.constant();
  const Node& node = graph.node(last);
  if (weights[static_cast<size_t>(last)] || node.outputs.size() != 1 ||
      !IsFloat(node.outputs[0].dtype))
    return std::nullopt;
  Splits splits;
  for (int64_t extent : node.outputs[0].shape) splits.dims.push_back({{extent}});
  for (int k = 0; k < kAttempts; ++k) {
    Attempt attempt = TryReading(graph, last, weights, closed, splits, max_nodes, expansion);
    if (attempt.wish.has_value()) {
      ApplyWish(splits.dims, attempt.wish->first, attempt.wish->second);
      continue;
    }
    if (attempt.sum_wish.has_value() && splits.sums.insert(*attempt.sum_wish).second) continue;
    if (!attempt.has_product || attempt.too_large) return std::nullopt;
    const std::vector<int32_t> shared = ReadOutside(graph, last, attempt.inlined, attempt.leaves);
    const size_t closed_before = closed.size();
    for (const int32_t id : shared) {
      if (sharing == Sharing::kNone || !IsSharedProduct(graph, id) || IsLeaf(attempt.leaves, id))
        closed.insert(id);
    }
    if (closed.size() > closed_before) continue;
    IndexSite site{{attempt.inlined.begin(), attempt.inlined.end()},
                   shared,
                   attempt.leaves,
                   {{}, {attempt.stage}},
                   attempt.has_square};
    for (const IndexLeaf& leaf : site.leaves) site.program.leaves.push_back(LeafShape(graph, leaf));
    return site;
  }
  return std::nullopt;
}

}  // namespace mendel
