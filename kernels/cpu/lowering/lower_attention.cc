#include "kernels/cpu/lowering/lower_attention.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "kernels/cpu/kernels/attention.h"
#include "kernels/cpu/lowering/contraction.h"

namespace mendel::cpu {
namespace {

struct AttentionPlaces {
  Place q, k, v, out;
  std::vector<Place> terms;
};

class AttentionKernel : public Kernel {
 public:
  AttentionKernel(AttentionPlan plan, AttentionPlaces places)
      : plan_(std::move(plan)), places_(std::move(places)) {}

  absl::Status Run(const Bindings& bindings) override {
    AttentionOperands operands{bindings.At<const float>(places_.q),
                               bindings.At<const float>(places_.k),
                               bindings.At<const float>(places_.v),
                               {},
                               bindings.At<float>(places_.out)};
    for (size_t k = 0; k < places_.terms.size(); ++k)
      operands.terms[k] = bindings.Address(places_.terms[k]);
    RunAttention(plan_, operands, reinterpret_cast<float*>(bindings.scratch));
    return absl::OkStatus();
  }

 private:
  AttentionPlan plan_;
  AttentionPlaces places_;
};

bool IsF32(const TensorType& type) {
  return type.dtype == DType::kF32 && type.shape.size() >= 2 && NumElements(type) > 0;
}

bool IsProduct(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  return node.op->name == "MatMul" && IsF32(node.outputs[0]) && IsF32(graph.type(node.inputs[0])) &&
         IsF32(graph.type(node.inputs[1]));
}

/// Returns the number that all elements of a Constant equal.
std::optional<double> UniformConstant(const Graph& graph, ValueId value) {
  const Node& node = graph.node(value.node);
  if (!IsConstant(node) || ConstantValue(node).dtype() != DType::kF32) return std::nullopt;
  const std::span<const float> elements = ConstantValue(node).As<float>();
  const auto differs = [&](float x) { return x != elements[0]; };
  if (elements.empty() || std::any_of(elements.begin(), elements.end(), differs))
    return std::nullopt;
  return static_cast<double>(elements[0]);
}

/// Walks from the second product to that of Q and K.
class Walk {
 public:
  Walk(const Graph& graph, int32_t product) : graph_(graph), product_(product) {}

  std::optional<AttentionChain> Find() {
    if (!IsProduct(graph_, product_)) return std::nullopt;
    const ValueId weights = graph_.node(product_).inputs[0];
    scores_ = graph_.type(weights).shape;
    const Shape& out = graph_.node(product_).outputs[0].shape;
    const bool batched =
        scores_.size() == out.size() && std::equal(scores_.begin(), scores_.end() - 1, out.begin());
    if (!batched) return std::nullopt;
    const std::optional<int32_t> softmax = Softmax(weights);
    if (!softmax.has_value() ||
        graph_.node(*softmax).attrs.Int("axis") != static_cast<int64_t>(scores_.size()) - 1)
      return std::nullopt;
    if (!Scores(*softmax, graph_.node(*softmax).inputs[0])) return std::nullopt;
    std::reverse(chain_.terms.begin(), chain_.terms.end());
    std::sort(chain_.nodes.begin(), chain_.nodes.end());
    return std::move(chain_);
  }

 private:
  /// True when only `users` users of the node read it, once each.
  bool IsInner(int32_t id, size_t users) const {
    const Node& node = graph_.node(id);
    return !graph_.IsOutput(id) && graph_.users(id).size() == users && node.outputs.size() == 1 &&
           IsF32(node.outputs[0]) && node.outputs[0].shape == scores_ && !node.inputs.empty();
  }

  /// The softmax that makes the weights p, perhaps by way of Where(IsNaN(p), 0, p).
  std::optional<int32_t> Softmax(ValueId weights) {
    const Node* node = &graph_.node(weights.node);
    if (std::count(graph_.node(product_).inputs.begin(), graph_.node(product_).inputs.end(),
                   weights) != 1)
      return std::nullopt;
    if (node->op->name == "Softmax" && IsInner(weights.node, 1)) {
      chain_.nodes = {weights.node};
      return weights.node;
    }
    if (node->op->name != "Where" || !IsInner(weights.node, 1)) return std::nullopt;
    const int32_t nan = node->inputs[0].node;
    const ValueId p = node->inputs[2];
    const bool replaces = graph_.node(nan).op->name == "IsNaN" && graph_.node(nan).inputs[0] == p &&
                          graph_.OnlyUser(nan) >= 0 &&
                          UniformConstant(graph_, node->inputs[1]) == 0.0;
    if (!replaces || graph_.node(p.node).op->name != "Softmax" || !IsInner(p.node, 2))
      return std::nullopt;
    chain_.zero_nan = true;
    chain_.nodes = {p.node, nan, weights.node};
    return p.node;
  }

  /// Walks from `value`, which only `user` reads, to the product of Q and K. Changes the chain only
  /// when it gets there.
  bool Scores(int32_t user, ValueId value) {
    const std::vector<ValueId>& users_inputs = graph_.node(user).inputs;
    if (!IsInner(value.node, 1) || std::count(users_inputs.begin(), users_inputs.end(), value) != 1)
      return false;
    const AttentionChain before = chain_;
    chain_.nodes.push_back(value.node);
    const std::string_view op = graph_.node(value.node).op->name;
    const bool found = op == "MatMul"               ? Product(value.node)
                       : op == "Add"                ? Sum(value.node)
                       : op == "Where"              ? Condition(value.node)
                       : op == "Mul" || op == "Div" ? Scale(value.node, op == "Div")
                                                    : false;
    if (!found) chain_ = before;
    return found;
  }

  bool Product(int32_t id) {
    chain_.product = id;
    return IsProduct(graph_, id);
  }

  bool Sum(int32_t id) {
    const std::vector<ValueId>& inputs = graph_.node(id).inputs;
    for (const size_t k : {size_t{0}, size_t{1}}) {
      if (graph_.type(inputs[1 - k]).shape.empty() || !Push({inputs[1 - k]})) continue;
      if (Scores(id, inputs[k])) return true;
      chain_.terms.pop_back();
    }
    return false;
  }

  bool Condition(int32_t id) {
    const std::vector<ValueId>& inputs = graph_.node(id).inputs;
    if (graph_.type(inputs[0]).shape.empty()) return false;
    for (const size_t k : {size_t{1}, size_t{2}}) {
      const std::optional<double> other = UniformConstant(graph_, inputs[3 - k]);
      if (!other.has_value() || !Push({inputs[0], true, k == 1, *other * chain_.scale})) continue;
      if (Scores(id, inputs[k])) return true;
      chain_.terms.pop_back();
    }
    return false;
  }

  bool Push(AttentionChain::Term term) {
    // A summand that comes before a factor would have to be multiplied.
    if (chain_.terms.size() == kMaxScoreTerms || (!term.condition && chain_.scale != 1))
      return false;
    chain_.terms.push_back(term);
    return true;
  }

  bool Scale(int32_t id, bool divides) {
    const std::vector<ValueId>& inputs = graph_.node(id).inputs;
    for (const size_t k : {size_t{0}, size_t{1}}) {
      const ValueId factor = inputs[1 - k];
      const std::optional<double> number = UniformConstant(graph_, factor);
      if (!number.has_value() || NumElements(graph_.type(factor)) != 1 || (k == 1 && divides))
        continue;
      chain_.scale *= divides ? 1 / *number : *number;
      return Scores(id, inputs[k]);
    }
    return false;
  }

  const Graph& graph_;
  int32_t product_;
  Shape scores_;
  AttentionChain chain_;
};

/// The value where it lies, row-major when it is blocked or, `rows`, when its rows are not
/// contiguous.
Place Lying(Lowering& lowering, ValueId value, bool rows) {
  const Place any = lowering.Any(value);
  const bool contiguous = any.layout.strides.back() == 1 || lowering.shape(value).back() == 1;
  return any.layout.block_dim < 0 && (contiguous || !rows) ? any : lowering.Plain(value);
}

/// Strides of an operand that is broadcast to heads of rank `rank`.
AttentionStrides StridesOf(const Layout& layout, const Shape& shape, size_t rank) {
  Shape all(rank + 2, 0);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1) all[rank + 2 - shape.size() + d] = layout.strides[d];
  }
  return {Shape(all.begin(), all.end() - 2), all[rank], all[rank + 1]};
}

/// Dimensions in the order in which those of Q lie, so that merging the heads again is no copy.
Layout LayoutLike(const Layout& q, const Shape& shape) {
  std::vector<size_t> order(shape.size() - 1);
  for (size_t d = 0; d < order.size(); ++d) order[d] = d;
  if (q.strides.size() == shape.size()) {
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return q.strides[a] > q.strides[b]; });
  }
  Layout layout{Shape(shape.size(), 1), -1, 1};
  int64_t stride = shape.back();
  for (size_t k = order.size(); k-- > 0;) {
    layout.strides[order[k]] = stride;
    stride *= shape[order[k]];
  }
  return Canonical(layout, shape);
}

/// Returns the parts of a group that remain without the nodes `inside`, by their last nodes.
/// Returns nullopt when a contraction needs one of those nodes.
std::optional<std::vector<Group>> Without(const Group& group, const std::set<int32_t>& inside) {
  const auto is_inside = [&](int32_t node) { return inside.count(node) != 0; };
  std::vector<Group> rest;
  if (!group.contraction) {
    for (const int32_t node : group.nodes) {
      if (is_inside(node)) continue;
      rest.emplace_back();
      rest.back().nodes = {node};
    }
    return rest;
  }
  if (group.attention.has_value() || group.prepared.has_value() || !group.expansion.empty())
    return std::nullopt;  // it contains more
  const int64_t taken = std::count_if(group.nodes.begin(), group.nodes.end(), is_inside);
  if (taken == static_cast<int64_t>(group.nodes.size())) return rest;
  Group kept = group;
  while (!kept.post_ops.empty() && std::any_of(kept.post_ops.back().nodes.begin(),
                                               kept.post_ops.back().nodes.end(), is_inside))
    kept.post_ops.pop_back();
  kept.nodes = NodesOf(kept, kept.post_ops.size());
  if (kept.nodes.size() + static_cast<size_t>(taken) != group.nodes.size()) return std::nullopt;
  rest.push_back(std::move(kept));
  return rest;
}

}  // namespace

std::vector<std::string> AttentionAlgorithms(const Graph& graph, int32_t node) {
  if (DirectIsaHere() == nullptr || !Walk(graph, node).Find().has_value()) return {};
  return {std::string(kNativeAttention)};
}

std::set<int32_t> ClaimAttention(const Lowering& lowering, const std::set<int32_t>& taken,
                                 std::vector<std::optional<Group>>& groups) {
  std::set<int32_t> claimed;
  for (std::optional<Group>& group : groups) {
    if (!group.has_value() || !group->contraction) continue;
    const auto named = lowering.options().algorithms.find(group->nodes[0]);
    if (named == lowering.options().algorithms.end() || named->second != kNativeAttention ||
        DirectIsaHere() == nullptr)
      continue;
    std::optional<AttentionChain> chain = Walk(lowering.graph(), group->nodes[0]).Find();
    if (!chain.has_value()) continue;
    const std::set<int32_t> nodes(chain->nodes.begin(), chain->nodes.end());
    const auto inside = [&](int32_t node) { return nodes.count(node) != 0; };
    bool free = std::none_of(nodes.begin(), nodes.end(),
                             [&](int32_t node) { return taken.count(node) != 0; });
    std::vector<size_t> cut;
    std::vector<Group> left;
    for (size_t k = 0; k < groups.size() && free; ++k) {
      if (!groups[k].has_value() ||
          std::none_of(groups[k]->nodes.begin(), groups[k]->nodes.end(), inside))
        continue;
      std::optional<std::vector<Group>> rest = Without(*groups[k], nodes);
      free = rest.has_value();
      cut.push_back(k);
      if (free) std::move(rest->begin(), rest->end(), std::back_inserter(left));
    }
    if (!free) continue;
    for (const size_t k : cut) groups[k].reset();
    for (Group& rest : left) groups[static_cast<size_t>(rest.nodes.back())] = std::move(rest);
    claimed.insert(nodes.begin(), nodes.end());
    group->attention = std::move(chain);
  }
  return claimed;
}

absl::Status LowerAttention(Lowering& lowering, const Group& group) {
  const AttentionChain& chain = *group.attention;
  const Node& first = lowering.graph().node(chain.product);
  const Node& second = lowering.graph().node(group.nodes[0]);
  const ValueId result{group.nodes[0], 0};
  const Shape& scores = first.outputs[0].shape;
  const size_t rank = scores.size() - 2;
  AttentionPlaces places;
  places.q = Lying(lowering, first.inputs[0], true);
  places.k = Lying(lowering, first.inputs[1], false);
  places.v = Lying(lowering, second.inputs[1], false);
  for (const AttentionChain::Term& term : chain.terms)
    places.terms.push_back(Lying(lowering, term.operand, true));
  places.out = lowering.Allocate(result, LayoutLike(places.q.layout, lowering.shape(result)));
  AttentionPlan plan;
  plan.isa = DirectIsaHere();
  plan.heads = Shape(scores.begin(), scores.end() - 2);
  plan.queries = scores[rank];
  plan.keys = scores[rank + 1];
  plan.depth = lowering.shape(first.inputs[0]).back();
  plan.width = lowering.shape(result).back();
  plan.q = StridesOf(places.q.layout, lowering.shape(first.inputs[0]), rank);
  plan.k = StridesOf(places.k.layout, lowering.shape(first.inputs[1]), rank);
  plan.v = StridesOf(places.v.layout, lowering.shape(second.inputs[1]), rank);
  for (size_t k = 0; k < chain.terms.size(); ++k) {
    const AttentionChain::Term& term = chain.terms[k];
    plan.terms.push_back({StridesOf(places.terms[k].layout, lowering.shape(term.operand), rank),
                          term.condition, term.kept,
                          static_cast<float>(RoundTo(DType::kF32, term.other))});
  }
  plan.out = StridesOf(places.out.layout, lowering.shape(result), rank);
  plan.scale = static_cast<float>(chain.scale);
  plan.zero_nan = chain.zero_nan;
  CutAttention(plan, lowering.options().threads);
  std::vector<Place> touched = {places.q, places.k, places.v, places.out};
  touched.insert(touched.end(), places.terms.begin(), places.terms.end());
  std::vector<int32_t> nodes = chain.nodes;
  nodes.push_back(group.nodes[0]);
  const int64_t scratch = plan.ScratchBytes();
  const std::string name = Cat(kNativeAttention, ":", plan.isa->name);
  lowering.Emit(nodes, name, std::make_unique<AttentionKernel>(std::move(plan), std::move(places)),
                touched, scratch);
  return LowerRest(lowering, group, 0);
}

}  // namespace mendel::cpu
