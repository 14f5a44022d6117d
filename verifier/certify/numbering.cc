#include "verifier/certify/numbering.h"

#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "base/status.h"
#include "graph/text.h"

namespace mendel {
namespace {

class Builder {
 public:
  Builder(const std::map<Origin, Origin>& merges, ConstantKeys& constants)
      : merges_(merges), constants_(constants) {}

  void AddGraph(const Graph& graph, Side side) {
    for (size_t i = 0; i < graph.nodes().size(); ++i) AddNode(graph, side, static_cast<int32_t>(i));
  }

  void AddOutputs(const Graph& original, const Graph& plan) {
    for (const GraphOutput& output : original.outputs()) {
      const auto twin =
          std::find_if(plan.outputs().begin(), plan.outputs().end(),
                       [&](const GraphOutput& candidate) { return candidate.name == output.name; });
      MENDEL_CHECK(twin != plan.outputs().end());
      const int32_t wanted = NumberOf({Side::kOriginal, output.value});
      const int32_t found = NumberOf({Side::kPlan, twin->value});
      result_.original_outputs.push_back(wanted);
      result_.plan_outputs.push_back(found);
      if (Representative(wanted) != Representative(found))
        result_.claims.push_back({wanted, found, {Side::kPlan, twin->value}, output.name});
    }
  }

  Numbering Finish() { return std::move(result_); }

 private:
  int32_t NumberOf(const Origin& origin) const {
    const auto it = result_.number_of.find(origin);
    MENDEL_CHECK(it != result_.number_of.end());
    return it->second;
  }
  int32_t Representative(int32_t number) const {
    return representative_[static_cast<size_t>(number)];
  }

  void AddNode(const Graph& graph, Side side, int32_t id) {
    const Node& node = graph.node(id);
    NumberedNode numbered{
        &node, graph.InputTypes(id), {}, side == Side::kOriginal, side == Side::kPlan};
    for (ValueId input : node.inputs)
      numbered.inputs.push_back(Representative(NumberOf({side, input})));
    if (node.op->is_view) {
      result_.number_of[{side, {id, 0}}] = NumberOf({side, node.inputs[0]});
      return;
    }
    const auto [it, is_new] =
        first_number_.try_emplace(Key(numbered), static_cast<int32_t>(result_.values.size()));
    if (is_new) {
      Define(std::move(numbered), {side, {id, 0}});
    } else {
      NumberedNode& known =
          result_.nodes[static_cast<size_t>(result_.values[static_cast<size_t>(it->second)].node)];
      if (side == Side::kPlan && known.in_original && !IsInput(node) && !IsConstant(node))
        ++result_.shared_nodes;
      (side == Side::kPlan ? known.in_plan : known.in_original) = true;
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const Origin origin{side, {id, static_cast<int32_t>(k)}};
      const int32_t number = it->second + static_cast<int32_t>(k);
      result_.number_of[origin] = number;
      Merge(origin, number);
    }
  }

  void Define(NumberedNode numbered, Origin origin) {
    for (size_t k = 0; k < numbered.node->outputs.size(); ++k) {
      origin.value.output = static_cast<int32_t>(k);
      representative_.push_back(static_cast<int32_t>(result_.values.size()));
      result_.values.push_back(
          {static_cast<int32_t>(result_.nodes.size()), static_cast<int32_t>(k), origin});
    }
    result_.nodes.push_back(std::move(numbered));
  }

  void Merge(const Origin& origin, int32_t number) {
    const auto merge = merges_.find(origin);
    if (merge == merges_.end() || Representative(number) != number) return;
    const int32_t target = Representative(NumberOf(merge->second));
    // Only towards older numbers: representatives then never need to be followed twice.
    if (target >= number) return;
    representative_[static_cast<size_t>(number)] = target;
    result_.claims.push_back({target, number, origin, ""});
  }

  std::string Key(const NumberedNode& numbered) {
    const Node& node = *numbered.node;
    if (IsConstant(node)) return constants_.Of(node);
    std::string key = Cat(node.op->name, PrintAttributes(node.attrs));
    for (size_t k = 0; k < numbered.inputs.size(); ++k)
      key += Cat(" ", numbered.inputs[k], ":", TypeString(numbered.input_types[k]));
    return key;
  }

  const std::map<Origin, Origin>& merges_;
  ConstantKeys& constants_;
  std::unordered_map<std::string, int32_t> first_number_;
  std::vector<int32_t> representative_;
  Numbering result_;
};

}  // namespace

std::string ConstantKeys::Of(const Node& node) {
  const Tensor& tensor = ConstantValue(node);
  const std::string type = TypeString(tensor.type());
  if (weights_ == WeightMode::kSymbolic && !SymbolName(node).empty() && IsFloat(tensor.dtype())) {
    return Cat("weight ", type, " ", SymbolName(node));
  }
  const auto [it, is_new] = hashes_.try_emplace({tensor.bytes().data(), type});
  if (is_new) it->second = tensor.ContentHash();
  return Cat("literal ", type, " ", it->second);
}

Numbering NumberValues(const Graph& original, const Graph& plan,
                       const std::map<Origin, Origin>& merges, ConstantKeys& constants) {
  Builder builder(merges, constants);
  builder.AddGraph(original, Side::kOriginal);
  builder.AddGraph(plan, Side::kPlan);
  builder.AddOutputs(original, plan);
  return builder.Finish();
}

std::string ElementString(const Shape& shape, int64_t flat) {
  Shape index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = flat % shape[d];
    flat /= shape[d];
  }
  std::string text = "[";
  for (size_t d = 0; d < index.size(); ++d) text += Cat(d == 0 ? "" : ", ", index[d]);
  return text + "]";
}

}  // namespace mendel
