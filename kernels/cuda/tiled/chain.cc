#include "kernels/cuda/tiled/chain.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/fusion/operator_text.h"
#include "kernels/cuda/fusion/preamble.h"

namespace mendel::cuda {
namespace {

// Limits of one kernel, as for other groups: its text and its parameters stay small.
constexpr size_t kMostNodes = 24, kMostOperands = 32;

class ChainMatcher {
 public:
  ChainMatcher(const GroupingScope& scope, int32_t product) : scope_(scope), graph_(scope.graph) {
    chain_.products = {product};
  }

  std::optional<TiledChain> Run(TiledFusion fusion) {
    const int32_t product = chain_.products[0];
    if (!IsProduct(product)) return std::nullopt;
    if (fusion != TiledFusion::kPair) return Complete(fusion);
    const ValueId left = LeftOf(product);
    for (const int32_t other : graph_.users(left.node)) {
      if (other <= product || !IsProduct(other) || !AreAlike(product, other)) continue;
      chain_ = {};
      chain_.products = {product, other};
      if (auto complete = Complete(fusion)) return complete;
    }
    return std::nullopt;
  }

 private:
  const OperatorText* TextOf(int32_t id) const {
    return FindOperatorText(graph_.node(id).op->name);
  }
  ValueId LeftOf(int32_t product) const {
    return graph_.node(product).inputs[TextOf(product)->product.left];
  }
  ValueId RightOf(int32_t product) const {
    return graph_.node(product).inputs[TextOf(product)->product.right];
  }

  bool IsProduct(int32_t id) const {
    const OperatorText* text = TextOf(id);
    if (text == nullptr || !text->is_product() || !scope_.IsFree(id)) return false;
    return NumElements(graph_.type({id, 0})) > 0 && NumElements(graph_.type(LeftOf(id))) > 0;
  }

  /// True if the two products have one left side and one set of places.
  bool AreAlike(int32_t a, int32_t b) const {
    const Node &first = graph_.node(a), &second = graph_.node(b);
    return first.op == second.op && TextOf(a)->product.left_has_rows && LeftOf(a) == LeftOf(b) &&
           graph_.InputTypes(a) == graph_.InputTypes(b) && first.outputs[0] == second.outputs[0];
  }

  std::optional<TiledChain> Complete(TiledFusion fusion) {
    chain_.nodes.insert(chain_.products.begin(), chain_.products.end());
    chain_.fused = chain_.nodes;
    const int32_t product = chain_.products[0];
    const bool elementwise = TextOf(product)->product.left_has_rows;
    if (fusion == TiledFusion::kRows) {
      if (!MatchRow(product)) return std::nullopt;
      Collect(graph_.node(chain_.row).inputs[0], elementwise);
    } else {
      Collect(LeftOf(product), elementwise);
    }
    for (const int32_t each : chain_.products) Collect(RightOf(each), elementwise);
    if (!Extend() || !IsClosed()) return std::nullopt;
    return chain_;
  }

  /// True if every reader of the node is part of the chain.
  bool IsOnlyReadHere(int32_t id) const {
    const std::vector<int32_t>& users = graph_.users(id);
    return !graph_.IsOutput(id) && std::all_of(users.begin(), users.end(), [&](int32_t user) {
      return chain_.nodes.count(user) > 0;
    });
  }
  bool IsElementwise(int32_t id) const {
    const OperatorText* text = TextOf(id);
    return text != nullptr && text->reads == Reads::kAtPosition && !text->is_row() &&
           graph_.node(id).outputs.size() == 1 && !graph_.node(id).inputs.empty();
  }
  bool IsMover(int32_t id) const {
    const OperatorText* text = TextOf(id);
    return text != nullptr && text->reads == Reads::kMoved && graph_.node(id).inputs.size() == 1;
  }
  bool HasRoom() const { return chain_.fused.size() < kMostNodes && Operands() < kMostOperands; }
  size_t Operands() const {
    size_t count = 0;
    for (const int32_t id : chain_.fused) count += graph_.node(id).inputs.size();
    return count;
  }

  /// Adds the nodes that make `value`, as far as the kernel computes them where it reads them.
  void Collect(ValueId value, bool elementwise) {
    const int32_t id = value.node;
    if (chain_.fused.count(id) > 0 || !scope_.IsFree(id) || !HasRoom()) return;
    const bool own = IsOnlyReadHere(id);
    if (IsMover(id)) {
      if (own) chain_.nodes.insert(id);
      chain_.fused.insert(id);
      return Collect(graph_.node(id).inputs[0], elementwise);
    }
    if (!elementwise || !own || !IsElementwise(id)) return;
    chain_.nodes.insert(id);
    chain_.fused.insert(id);
    const int64_t count = NumElements(graph_.type(value));
    for (const ValueId input : graph_.node(id).inputs) {
      // A smaller operand would be computed once for every element that it is repeated to.
      if (NumElements(graph_.type(input)) == count || IsMover(input.node))
        Collect(input, elementwise);
    }
  }

  /// The row operator, and what is elementwise between it and the left side.
  bool MatchRow(int32_t product) {
    return TextOf(product)->product.left_has_rows &&
           FindRow(LeftOf(product), graph_.type(LeftOf(product)));
  }
  bool FindRow(ValueId value, const TensorType& left) {
    const int32_t id = value.node;
    if (!scope_.IsFree(id) || !IsOnlyReadHere(id) || !HasRoom()) return false;
    const bool is_row = IsRow(id, left);
    if (!is_row && (!IsElementwise(id) || !IsOfRows(graph_.type(value).shape, left.shape)))
      return false;
    chain_.nodes.insert(id);
    chain_.fused.insert(id);
    if (is_row) chain_.row = id;
    const std::vector<ValueId>& inputs = graph_.node(id).inputs;
    if (is_row || std::any_of(inputs.begin(), inputs.end(),
                              [&](ValueId input) { return FindRow(input, left); }))
      return true;
    chain_.nodes.erase(id);
    chain_.fused.erase(id);
    return false;
  }
  /// True if there is one element for each of the left side's, or one for each row.
  static bool IsOfRows(const Shape& shape, const Shape& left) {
    return shape.size() == left.size() &&
           std::equal(shape.begin(), shape.end() - 1, left.begin()) &&
           (shape.back() == left.back() || shape.back() == 1);
  }
  bool IsRow(int32_t id, const TensorType& left) const {
    const OperatorText* text = TextOf(id);
    const Node& node = graph_.node(id);
    if (text == nullptr || !text->is_row() || node.outputs.size() != 1) return false;
    // Statistics lie beside the product's factors.
    const TensorType& input = graph_.type(node.inputs[0]);
    if (RealName(node.outputs[0].dtype) != RealName(left.dtype) ||
        RealName(input.dtype) != RealName(left.dtype))
      return false;
    const auto [extents, axes] =
        WithView(graph_, id, [&](const NodeView& view) { return text->row.geometry(view); });
    return extents == left.shape && input.shape == left.shape &&
           axes == Ints{static_cast<int64_t>(left.shape.size()) - 1} &&
           IsOfRows(node.outputs[0].shape, left.shape);
  }

  /// Adds the longest part of the following nodes that ends in one value. False if there is none,
  /// as for two products that no node combines.
  bool Extend() {
    const Shape& shape = graph_.type({chain_.products[0], 0}).shape;
    const int32_t last = *std::max_element(chain_.products.begin(), chain_.products.end());
    std::set<int32_t> after(chain_.products.begin(), chain_.products.end()), best;
    std::set<int32_t> open = Readers(chain_.products);
    if (chain_.products.size() == 1) best = after;
    while (!open.empty() && chain_.fused.size() + after.size() < kMostNodes) {
      const int32_t id = *open.begin();
      open.erase(open.begin());
      if (!MayFollow(id, after, shape, last)) continue;
      after.insert(id);
      for (const int32_t user : graph_.users(id)) open.insert(user);
      if (EndsIn(id, after)) best = after;
    }
    if (best.empty()) return false;
    chain_.result = {*best.rbegin(), 0};
    chain_.nodes.insert(best.begin(), best.end());
    chain_.fused.insert(best.begin(), best.end());
    return true;
  }
  std::set<int32_t> Readers(const std::vector<int32_t>& nodes) const {
    std::set<int32_t> readers;
    for (const int32_t id : nodes) readers.insert(graph_.users(id).begin(), graph_.users(id).end());
    return readers;
  }
  bool MayFollow(int32_t id, const std::set<int32_t>& after, const Shape& shape,
                 int32_t last) const {
    if (!scope_.IsFree(id) || !IsElementwise(id) || chain_.fused.count(id) > 0 ||
        graph_.type({id, 0}).shape != shape)
      return false;
    const std::vector<ValueId>& inputs = graph_.node(id).inputs;
    return std::all_of(inputs.begin(), inputs.end(), [&](ValueId input) {
      return after.count(input.node) > 0 || scope_.IsThereBefore(input, last);
    });
  }
  /// True if `id` is the one node of `after` that others read.
  bool EndsIn(int32_t id, const std::set<int32_t>& after) const {
    return std::all_of(after.begin(), after.end(), [&](int32_t node) {
      const std::vector<int32_t>& users = graph_.users(node);
      return node == id ||
             (!graph_.IsOutput(node) && std::all_of(users.begin(), users.end(), [&](int32_t user) {
               return after.count(user) > 0;
             }));
    });
  }

  /// True if no other node reads the chain's intermediate values, and the chain reads none of its
  /// own nodes that are not computed there.
  bool IsClosed() const {
    for (const int32_t id : chain_.nodes) {
      if (id != chain_.result.node && !IsOnlyReadHere(id)) return false;
    }
    for (const int32_t each : chain_.products) {
      for (const ValueId operand : {LeftOf(each), RightOf(each)}) {
        if (Reaches(operand, chain_.products)) return false;
      }
      // Statistics are those of the left side's rows.
      if (chain_.row >= 0 && Reaches(RightOf(each), {chain_.row})) return false;
    }
    return Operands() <= kMostOperands;
  }
  /// True if one of `nodes` is computed for `value` in this kernel.
  bool Reaches(ValueId value, const std::vector<int32_t>& nodes) const {
    if (std::find(nodes.begin(), nodes.end(), value.node) != nodes.end()) return true;
    if (chain_.fused.count(value.node) == 0) return false;
    const std::vector<ValueId>& inputs = graph_.node(value.node).inputs;
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](ValueId input) { return Reaches(input, nodes); });
  }

  const GroupingScope& scope_;
  const Graph& graph_;
  TiledChain chain_;
};

}  // namespace

std::optional<TiledChain> MatchTiledChain(const GroupingScope& scope, int32_t product,
                                          TiledFusion fusion) {
  return ChainMatcher(scope, product).Run(fusion);
}

}  // namespace mendel::cuda
