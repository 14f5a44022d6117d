#include "verifier/regions/structure.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "base/status.h"
#include "verifier/field_evaluator.h"

namespace mendel {
namespace {

ValueStructure Source(int32_t node, const Shape& shape) {
  ValueStructure structure(shape);
  Columns identity(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    identity[d].assign(shape.size(), 0);
    identity[d][d] = 1;
  }
  structure.classes = {{{node, identity}}};
  return structure;
}

/// A literal is a constant coefficient where it does not vary.
ValueStructure Literal(const Tensor& tensor, int32_t node) {
  ValueStructure structure(tensor.shape());
  structure.classes = {{}};
  const Shape strides = RowMajorStrides(tensor.shape());
  const size_t size = static_cast<size_t>(DTypeSize(tensor.dtype()));
  const auto bytes = tensor.bytes();
  const auto same = [&](int64_t a, int64_t b) {
    return std::equal(bytes.begin() + a * static_cast<int64_t>(size),
                      bytes.begin() + (a + 1) * static_cast<int64_t>(size),
                      bytes.begin() + b * static_cast<int64_t>(size));
  };
  for (size_t d = 0; d < strides.size(); ++d) {
    for (int64_t flat = 0; flat < tensor.size(); ++flat) {
      const bool last = flat / strides[d] % tensor.shape()[d] == tensor.shape()[d] - 1;
      if (last || same(flat, flat + strides[d])) continue;
      structure.BreakEverywhere(d, {node, "a literal tensor varies"});
      structure.unknown.insert("a literal tensor varies");
      break;
    }
  }
  return structure;
}

/// The reason why nothing is known of a node whatever its operator's structure; empty when there is
/// none.
std::string_view Obstacle(const Graph& graph, const Node& node) {
  if (node.op->opaque) return "one function of the whole tensor";
  for (size_t k = 0; k < node.inputs.size() && k < 32; ++k) {
    if ((node.op->index_inputs >> k & 1) != 0 && !IsConstant(graph.node(node.inputs[k].node)))
      return "indices are data";
  }
  // The verifier takes arithmetic on run-time integers for oracles, of an element's operands at
  // best.
  const bool integer = IsIntegral(node.outputs[0].dtype) && node.outputs[0].dtype != DType::kBool;
  if (integer && !MovesElements(*node.op, node.attrs)) return "integer arithmetic";
  return "";
}

class Analyzer {
 public:
  explicit Analyzer(WeightMode weights) : weights_(weights) {}

  /// `given`: structures of the graph's inputs; null: they are sources. `cause` >= 0 stands for
  /// every node of the graph.
  std::vector<std::vector<ValueStructure>> Run(const Graph& graph,
                                               const std::vector<const ValueStructure*>* given,
                                               int32_t cause) const {
    std::vector<std::vector<ValueStructure>> result(graph.nodes().size());
    size_t position = 0;
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      const Node& node = graph.nodes()[i];
      const int32_t id = static_cast<int32_t>(i);
      if (IsInput(node)) {
        result[i] = {given == nullptr ? Source(id, node.outputs[0].shape) : *(*given)[position++]};
      } else if (IsConstant(node)) {
        const bool symbol =
            weights_ == WeightMode::kSymbolic && !SymbolName(node).empty() && given == nullptr;
        result[i] = {symbol ? Source(id, node.outputs[0].shape)
                            : Literal(ConstantValue(node), cause < 0 ? id : cause)};
      } else {
        std::vector<const ValueStructure*> inputs;
        for (ValueId value : node.inputs) {
          inputs.push_back(
              &result[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)]);
        }
        result[i] = OfNode(graph, id, inputs, cause < 0 ? id : cause);
      }
    }
    return result;
  }

 private:
  std::vector<ValueStructure> OfNode(const Graph& graph, int32_t id,
                                     const std::vector<const ValueStructure*>& inputs,
                                     int32_t cause) const {
    const Node& node = graph.node(id);
    std::vector<ValueStructure> outputs;
    std::string_view obstacle = Obstacle(graph, node);
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      std::optional<ValueStructure> structure;
      if (obstacle.empty()) structure = Derive(graph, id, static_cast<int>(k), inputs, cause);
      if (structure.has_value()) {
        outputs.push_back(*std::move(structure));
        continue;
      }
      if (obstacle.empty()) obstacle = "no known structure";
      outputs.push_back(UnknownStructure(node.outputs[k].shape, inputs, {cause, obstacle},
                                         Cat(node.op->name, ": ", obstacle)));
    }
    return outputs;
  }

  std::optional<ValueStructure> Derive(const Graph& graph, int32_t id, int output,
                                       const std::vector<const ValueStructure*>& inputs,
                                       int32_t cause) const {
    const Node& node = graph.node(id);
    const Shape& shape = node.outputs[static_cast<size_t>(output)].shape;
    if (NumElements(shape) == 0) return std::nullopt;
    if (node.op->access != nullptr && node.outputs.size() == 1) {
      const std::optional<AccessPattern> pattern = WithView(graph, id, node.op->access);
      if (pattern.has_value() && pattern->combine == AccessPattern::Combine::kReshape) {
        return StructureOfView(shape, *inputs[0], cause);
      }
      if (pattern.has_value())
        return StructureByPattern(*pattern, shape, inputs, cause, std::string(node.op->name));
    }
    const ElementStructure* structure = FindElementStructure(node.op->name);
    if (structure == nullptr) return std::nullopt;
    if (structure->taps != nullptr) {
      std::vector<const Tensor*> constants;
      for (ValueId value : node.inputs) {
        const Node& operand = graph.node(value.node);
        constants.push_back(IsConstant(operand) ? &ConstantValue(operand) : nullptr);
      }
      const auto taps = WithView(graph, id, [&](const NodeView& view) {
        return structure->taps(view, constants, output);
      });
      if (taps.has_value())
        return StructureByTaps(*taps, shape, *inputs[static_cast<size_t>(taps->input)], cause);
    }
    if (structure->lower == nullptr) return std::nullopt;
    const absl::StatusOr<Graph> lowered = WithView(graph, id, structure->lower);
    if (!lowered.ok()) return std::nullopt;
    const auto values = Run(*lowered, &inputs, cause);
    const ValueId value = lowered->outputs()[0].value;
    return values[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)];
  }

  WeightMode weights_;
};

}  // namespace

ValueStructure::ValueStructure(const Shape& extents)
    : shape(extents),
      breaks(extents.size()),
      periods(extents.size(), 1),
      period_causes(extents.size()) {}

int64_t ValueStructure::Representatives(size_t dim) const {
  int64_t sum = 0;
  int64_t begin = 0;
  for (const Break& cut : breaks[dim]) {
    sum += std::min(cut.at - begin, periods[dim]);
    begin = cut.at;
  }
  return sum + std::min(shape[dim] - begin, periods[dim]);
}

bool ValueStructure::Dense(size_t dim) const { return Representatives(dim) >= shape[dim]; }

void ValueStructure::BreakEverywhere(size_t dim, Cause cause) {
  if (Dense(dim)) return;
  breaks[dim].clear();
  periods[dim] = shape[dim];
  period_causes[dim] = cause;
}

void ValueStructure::Repeat(size_t dim, int64_t period, Cause cause) {
  if (periods[dim] % period == 0) return;
  const int64_t factor = period / std::gcd(period, periods[dim]);
  if (factor >= shape[dim] || periods[dim] > shape[dim] / factor)
    return BreakEverywhere(dim, cause);
  periods[dim] *= factor;
  period_causes[dim] = cause;
}

void ValueStructure::SortBreaks(size_t dim) {
  std::vector<Break>& list = breaks[dim];
  std::erase_if(list, [&](const Break& one) { return one.at <= 0 || one.at >= shape[dim]; });
  std::stable_sort(list.begin(), list.end(),
                   [](const Break& a, const Break& b) { return a.at < b.at; });
  list.erase(std::unique(list.begin(), list.end(),
                         [](const Break& a, const Break& b) { return a.at == b.at; }),
             list.end());
}

void ValueStructure::Normalize() {
  std::vector<bool> dense;
  for (size_t d = 0; d < shape.size(); ++d) dense.push_back(Dense(d));
  std::set<DisplacementClass> normal;
  for (DisplacementClass one : classes) {
    for (auto& [source, columns] : one) {
      for (size_t d = 0; d < columns.size(); ++d) {
        if (dense[d]) columns[d].clear();
      }
    }
    normal.insert(std::move(one));
  }
  classes = std::move(normal);
}

void ValueStructure::InheritReasons(const std::vector<const ValueStructure*>& inputs) {
  for (const ValueStructure* input : inputs)
    unknown.insert(input->unknown.begin(), input->unknown.end());
}

ValueStructure UnknownStructure(const Shape& shape,
                                const std::vector<const ValueStructure*>& inputs,
                                const Cause& cause, const std::string& reason) {
  ValueStructure structure(shape);
  structure.InheritReasons(inputs);
  structure.unknown.insert(reason);
  for (size_t d = 0; d < shape.size(); ++d) structure.BreakEverywhere(d, cause);
  DisplacementClass still;
  for (const ValueStructure* input : inputs) {
    for (const DisplacementClass& one : input->classes) {
      for (const auto& [source, columns] : one) still[source] = Columns(shape.size());
    }
  }
  structure.classes = {still};
  return structure;
}

std::vector<std::vector<ValueStructure>> AnalyzeStructure(const Graph& graph, WeightMode weights) {
  return Analyzer(weights).Run(graph, nullptr, -1);
}

}  // namespace mendel
