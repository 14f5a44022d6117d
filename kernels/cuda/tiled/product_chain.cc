#include "kernels/cuda/tiled/product_chain.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/cuda/fusion/operator_text.h"
#include "kernels/cuda/fusion/preamble.h"

namespace mendel::cuda {
namespace {

// Limits of one kernel: its text and its parameters stay small.
constexpr size_t kMostChainNodes = 40, kMostChainOperands = 48;

class PairFinder {
 public:
  PairFinder(const GroupingScope& scope, int32_t product)
      : scope_(scope), graph_(scope.graph), product_(product) {}

  std::optional<ProductChain> Run() {
    auto first = MatchTiledChain(scope_, product_, TiledFusion::kNone);
    if (!first.has_value()) return std::nullopt;
    const int32_t next = NextProduct(first->result.node);
    if (next < 0) return std::nullopt;
    for (const TiledFusion fusion : {TiledFusion::kRows, TiledFusion::kNone}) {
      auto second = MatchTiledChain(scope_, next, fusion);
      if (!second.has_value()) continue;
      ProductChain chain{*first, *std::move(second)};
      if (Complete(chain)) return chain;
    }
    return std::nullopt;
  }

 private:
  const ProductText& TextOf(int32_t id) const {
    return FindOperatorText(graph_.node(id).op->name)->product;
  }
  bool IsProduct(int32_t id) const {
    const OperatorText* text = FindOperatorText(graph_.node(id).op->name);
    return text != nullptr && text->is_product();
  }

  /// The nearest product that reads what is made of `node`; -1: none.
  int32_t NextProduct(int32_t node) const {
    std::set<int32_t> open(graph_.users(node).begin(), graph_.users(node).end());
    for (size_t seen = 0; !open.empty() && seen < kMostChainNodes; ++seen) {
      const int32_t id = *open.begin();
      if (IsProduct(id)) return id;
      open.erase(open.begin());
      open.insert(graph_.users(id).begin(), graph_.users(id).end());
    }
    return -1;
  }

  bool Complete(ProductChain& chain) const {
    if (!Fits(chain)) return false;
    chain.nodes = chain.first.nodes;
    chain.nodes.insert(chain.second.nodes.begin(), chain.second.nodes.end());
    chain.fused = chain.first.fused;
    chain.fused.insert(chain.second.fused.begin(), chain.second.fused.end());
    if (chain.fused.size() > kMostChainNodes || Operands(chain.fused) > kMostChainOperands)
      return false;
    return IsOneWay(chain) && (chain.second.row < 0 || Depend(chain).count(chain.second.row) > 0);
  }
  size_t Operands(const std::set<int32_t>& nodes) const {
    size_t count = 0;
    for (const int32_t id : nodes) count += graph_.node(id).inputs.size();
    return count;
  }

  /// Are these operators such that one block can compute a part of the first result and all that
  /// needs it?
  bool Fits(ProductChain& chain) const {
    const int32_t a = chain.product(0), b = chain.product(1);
    const ProductText &first = TextOf(a), &second = TextOf(b);
    if (first.left_has_rows != second.left_has_rows) return false;
    if (!second.left_has_rows && graph_.node(b).op->name != "Conv") return false;
    chain.operand = second.left_has_rows ? second.left : second.right;
    const TensorType& read = graph_.type(graph_.node(b).inputs[chain.operand]);
    const TensorType& made = graph_.type({a, 0});
    if (read.shape != made.shape || RealName(read.dtype) != RealName(made.dtype)) return false;
    if (RealName(graph_.type(chain.kept()).dtype) != RealName(made.dtype)) return false;
    if (RealName(graph_.type({b, 0}).dtype) != RealName(made.dtype)) return false;
    // A batch that broadcasts would compute the first product anew for each of its matrices.
    const Shape& result = graph_.type({b, 0}).shape;
    return !second.left_has_rows || NumElements(Shape(made.shape.begin(), made.shape.end() - 1)) ==
                                        NumElements(Shape(result.begin(), result.end() - 1));
  }

  /// Nodes of the kernel that read what the first product makes, the second product left out.
  std::set<int32_t> Depend(const ProductChain& chain) const {
    std::set<int32_t> depend = {chain.product(0)};
    for (const int32_t id : chain.fused) {
      const std::vector<ValueId>& inputs = graph_.node(id).inputs;
      if (id != chain.product(1) && std::any_of(inputs.begin(), inputs.end(), [&](ValueId input) {
            return depend.count(input.node) > 0;
          })) {
        depend.insert(id);
      }
    }
    return depend;
  }

  /// Does all that depends on the first product lead to the one operand of the second one, element
  /// by element and row by row?
  bool IsOneWay(const ProductChain& chain) const {
    const std::set<int32_t> depend = Depend(chain);
    const std::vector<ValueId>& read = graph_.node(chain.product(1)).inputs;
    for (size_t k = 0; k < read.size(); ++k) {
      if ((depend.count(read[k].node) > 0) != (k == chain.operand)) return false;
    }
    return std::all_of(depend.begin(), depend.end(), [&](int32_t id) {
      const std::vector<int32_t>& users = graph_.users(id);
      const bool is_open =
          graph_.IsOutput(id) || std::any_of(users.begin(), users.end(), [&](int32_t user) {
            return user != chain.product(1) && depend.count(user) == 0;
          });
      return !is_open &&
             (id == chain.product(0) || id == chain.second.row || IsElementwise(id, chain));
    });
  }
  bool IsElementwise(int32_t id, const ProductChain& chain) const {
    const OperatorText* text = FindOperatorText(graph_.node(id).op->name);
    if (text->reads != Reads::kAtPosition || text->is_row()) return false;
    const Shape &shape = graph_.type({id, 0}).shape, &whole = graph_.type(chain.kept()).shape;
    return shape == whole ||
           (shape.size() == whole.size() && shape.back() == 1 && chain.second.row >= 0);
  }

  const GroupingScope& scope_;
  const Graph& graph_;
  const int32_t product_;
};

}  // namespace

std::optional<ProductChain> MatchProductChain(const GroupingScope& scope, int32_t product) {
  return PairFinder(scope, product).Run();
}

}  // namespace mendel::cuda
