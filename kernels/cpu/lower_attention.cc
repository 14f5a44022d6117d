#include "kernels/cpu/lower_attention.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/status.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/contraction.h"

namespace mendel::cpu {
namespace {

struct AttentionPlaces {
  Place q, k, v, out;
  std::optional<Place> mask;
};

class AttentionKernel : public Kernel {
 public:
  AttentionKernel(AttentionPlan plan, AttentionPlaces places) : plan_(std::move(plan)), places_(std::move(places)) {}

  absl::Status Run(const Bindings& bindings) override {
    const AttentionOperands operands{
        bindings.At<const float>(places_.q), bindings.At<const float>(places_.k), bindings.At<const float>(places_.v),
        places_.mask.has_value() ? bindings.At<const float>(*places_.mask) : nullptr, bindings.At<float>(places_.out)};
    RunAttention(plan_, operands, reinterpret_cast<float*>(bindings.scratch));
    return absl::OkStatus();
  }

 private:
  AttentionPlan plan_;
  AttentionPlaces places_;
};

bool IsF32(const TensorType& type) { return type.dtype == DType::kF32 && type.shape.size() >= 2 && NumElements(type) > 0; }

bool IsProduct(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  return node.op->name == "MatMul" && IsF32(node.outputs[0]) && IsF32(graph.type(node.inputs[0])) &&
         IsF32(graph.type(node.inputs[1]));
}

/// Walks from softmax to the product of Q and K.
class Walk {
 public:
  Walk(const Graph& graph, int32_t product) : graph_(graph), user_(product) {}

  std::optional<AttentionChain> Find() {
    if (!IsProduct(graph_, user_)) return std::nullopt;
    const Shape scores = graph_.type(graph_.node(user_).inputs[0]).shape;
    const Shape& out = graph_.node(user_).outputs[0].shape;
    const bool batched = scores.size() == out.size() && std::equal(scores.begin(), scores.end() - 1, out.begin());
    if (!batched || !Step(graph_.node(user_).inputs[0], scores) || Now().op->name != "Softmax") return std::nullopt;
    if (Now().attrs.Int("axis") != static_cast<int64_t>(scores.size()) - 1 || !Step(Now().inputs[0], scores)) return std::nullopt;
    if (Now().op->name == "Add" && !Add(scores)) return std::nullopt;
    if ((Now().op->name == "Mul" || Now().op->name == "Div") && !Scale(scores)) return std::nullopt;
    if (!IsProduct(graph_, user_)) return std::nullopt;
    chain_.product = user_;
    std::sort(chain_.nodes.begin(), chain_.nodes.end());
    return std::move(chain_);
  }

 private:
  const Node& Now() const { return graph_.node(user_); }

  /// To the node that computes `value`, which nothing else reads.
  bool Step(ValueId value, const Shape& shape) {
    const Node& node = graph_.node(value.node);
    if (graph_.IsOutput(value.node) || graph_.users(value.node).size() != 1 || node.outputs.size() != 1) return false;
    if (!IsF32(node.outputs[0]) || node.outputs[0].shape != shape || node.inputs.empty()) return false;
    if (std::count(Now().inputs.begin(), Now().inputs.end(), value) != 1) return false;
    user_ = value.node;
    chain_.nodes.push_back(user_);
    return true;
  }

  /// A summand with one element a key is a mask.
  bool Add(const Shape& scores) {
    const std::vector<ValueId>& inputs = Now().inputs;
    for (const size_t k : {size_t{0}, size_t{1}}) {
      const TensorType& mask = graph_.type(inputs[1 - k]);
      const std::string_view maker = graph_.node(inputs[k].node).op->name;
      const bool made = maker == "MatMul" || maker == "Mul" || maker == "Div";
      if (!made || mask.dtype != DType::kF32 || mask.shape.empty() || mask.shape.back() != scores.back()) continue;
      const ValueId value = inputs[1 - k];
      if (!Step(inputs[k], scores)) continue;
      chain_.mask = value;
      return true;
    }
    return false;
  }

  bool Scale(const Shape& scores) {
    const std::vector<ValueId>& inputs = Now().inputs;
    for (const size_t k : {size_t{0}, size_t{1}}) {
      const ValueId factor = inputs[1 - k];
      if (!IsConstant(graph_.node(factor.node)) || NumElements(graph_.type(factor)) != 1) continue;
      if (k == 1 && Now().op->name == "Div") continue;
      chain_.divided = Now().op->name == "Div";
      chain_.scale = factor;
      return Step(inputs[k], scores);
    }
    return false;
  }

  const Graph& graph_;
  int32_t user_;
  AttentionChain chain_;
};

/// The value where it lies, row-major when it is blocked or, `rows`, when its rows are not contiguous.
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
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return q.strides[a] > q.strides[b]; });
  }
  Layout layout{Shape(shape.size(), 1), -1, 1};
  int64_t stride = shape.back();
  for (size_t k = order.size(); k-- > 0;) {
    layout.strides[order[k]] = stride;
    stride *= shape[order[k]];
  }
  return Canonical(layout, shape);
}

}  // namespace

std::vector<std::string> AttentionAlgorithms(const Graph& graph, int32_t node) {
  if (DirectIsaHere() == nullptr || !Walk(graph, node).Find().has_value()) return {};
  return {std::string(kOwnAttention)};
}

std::set<int32_t> ClaimAttention(const Lowering& lowering, const std::set<int32_t>& taken,
                                 std::vector<std::optional<Group>>& groups) {
  std::set<int32_t> claimed;
  for (std::optional<Group>& group : groups) {
    if (!group.has_value() || !group->contraction) continue;
    const auto named = lowering.options().algorithms.find(group->nodes[0]);
    if (named == lowering.options().algorithms.end() || named->second != kOwnAttention || DirectIsaHere() == nullptr) continue;
    std::optional<AttentionChain> chain = Walk(lowering.graph(), group->nodes[0]).Find();
    if (!chain.has_value()) continue;
    const std::set<int32_t> nodes(chain->nodes.begin(), chain->nodes.end());
    const auto inside = [&](int32_t node) { return nodes.count(node) != 0; };
    bool free = std::none_of(nodes.begin(), nodes.end(), [&](int32_t node) { return taken.count(node) != 0; });
    std::vector<size_t> whole;
    for (size_t k = 0; k < groups.size(); ++k) {
      if (!groups[k].has_value()) continue;
      const std::vector<int32_t>& members = groups[k]->nodes;
      const int64_t count = std::count_if(members.begin(), members.end(), inside);
      if (count > 0) whole.push_back(k);
      free = free && (count == 0 || count == static_cast<int64_t>(members.size()));
    }
    if (!free) continue;
    for (const size_t k : whole) groups[k].reset();
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
  if (chain.mask.has_value()) places.mask = Lying(lowering, *chain.mask, true);
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
  if (chain.mask.has_value()) plan.mask = StridesOf(places.mask->layout, lowering.shape(*chain.mask), rank);
  plan.out = StridesOf(places.out.layout, lowering.shape(result), rank);
  if (chain.scale.has_value()) {
    const double factor = lowering.folded().Exact(*chain.scale).scalars[0];
    plan.scale = static_cast<float>(chain.divided ? 1 / factor : factor);
  }
  CutAttention(plan, lowering.options().threads);
  std::vector<Place> touched = {places.q, places.k, places.v, places.out};
  if (places.mask.has_value()) touched.push_back(*places.mask);
  std::vector<int32_t> nodes = chain.nodes;
  nodes.push_back(group.nodes[0]);
  const int64_t scratch = plan.ScratchBytes();
  const std::string name = Cat(kOwnAttention, ":", plan.isa->name);
  lowering.Emit(nodes, name, std::make_unique<AttentionKernel>(std::move(plan), std::move(places)), touched, scratch);
  return LowerRest(lowering, group, 0);
}

}  // namespace mendel::cpu
