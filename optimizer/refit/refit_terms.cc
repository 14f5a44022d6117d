#include "optimizer/refit/refit_terms.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "graph/text.h"

namespace mendel {
namespace {

bool AllAre(const Tensor& tensor, double value) {
  if (!IsFloat(tensor.dtype())) return false;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (tensor.DoubleAt(i) != value) return false;
  }
  return true;
}

}  // namespace

void RefitTerms::Mark(int32_t node) {
  if (static_cast<size_t>(node) < is_weight_.size()) return;  // known already
  const Node& added = builder_.node(node);
  is_weight_.push_back(!IsInput(added) && std::all_of(added.inputs.begin(), added.inputs.end(),
                                                      [&](RefitTerm t) { return IsWeight(t); }));
}

RefitTerm RefitTerms::Input(const std::string& name, const TensorType& type) {
  const auto known = inputs_.find(name);
  if (known != inputs_.end()) return known->second;
  const RefitTerm term = builder_.Input(name, type);
  Mark(term.node);
  return inputs_[name] = term;
}

RefitTerm RefitTerms::Constant(const Tensor& value, const std::string& symbol) {
  const bool literal = AllAre(value, 0) || AllAre(value, 1);
  const RefitTerm term = builder_.Constant(value, literal ? "" : symbol);
  Mark(term.node);
  return term;
}

std::vector<RefitTerm> RefitTerms::Ops(std::string_view op, std::vector<RefitTerm> inputs,
                                       const Attributes& attrs) {
  if (!status_.ok()) return {Placeholder()};
  std::string key = Cat(op, PrintAttributes(attrs));
  for (RefitTerm input : inputs) key += Cat(" ", input.node, ".", input.output);
  auto [it, is_new] = known_.try_emplace(std::move(key), -1);
  if (is_new) {
    const auto node = builder_.AddNode(op, std::move(inputs), attrs);
    if (!node.ok()) {
      status_ = node.status();
      known_.erase(it);
      return {Placeholder()};
    }
    it->second = *node;
    Mark(*node);
  }
  std::vector<RefitTerm> outputs;
  for (size_t k = 0; k < builder_.node(it->second).outputs.size(); ++k)
    outputs.push_back({it->second, static_cast<int32_t>(k)});
  return outputs;
}

RefitTerm RefitTerms::Reshape(RefitTerm x, Shape wanted) {
  if (shape(x) == wanted) return x;
  if (node(x).op->name == "Reshape") return Reshape(node(x).inputs[0], std::move(wanted));
  return Op("Reshape", {x}, {{"shape", std::move(wanted)}});
}

bool RefitTerms::IsFilled(RefitTerm term, double value) const {
  return IsConstant(node(term)) && AllAre(ConstantValue(node(term)), value);
}

absl::StatusOr<ValueId> RefitCopier::Copy(RefitTerm term) {
  std::vector<int32_t> open = {term.node};
  while (!open.empty()) {
    const int32_t id = open.back();
    const Node& node = terms_.node({id, 0});
    std::vector<ValueId> inputs;
    const size_t before = open.size();
    for (RefitTerm input : node.inputs) {
      const auto found = copied_.find(input.node);
      if (found == copied_.end()) {
        open.push_back(input.node);
      } else {
        inputs.push_back({found->second, input.output});
      }
    }
    if (open.size() > before) continue;
    open.pop_back();
    if (!copied_.contains(id)) {
      MENDEL_ASSIGN_OR_RETURN(copied_[id], builder_.CopyNode(node, std::move(inputs)));
    }
  }
  return ValueId{copied_[term.node], term.output};
}

}  // namespace mendel
