#include "graph/evaluate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "graph/meaning.h"

namespace mendel {
namespace {

template <class S>
std::vector<Operand<S>> Operands(std::span<const HostValue* const> inputs) {
  std::vector<Operand<S>> operands;
  for (const HostValue* input : inputs) {
    Operand<S> operand{&input->type, nullptr, nullptr};
    if (IsIntegral(input->type.dtype)) {
      operand.integers = input->integers.data();
    } else if constexpr (std::is_same_v<S, double>) {
      operand.scalars = input->scalars.data();
    }
    operands.push_back(operand);
  }
  return operands;
}

/// Worth converting again for its next reader, which may come long after.
bool IsLargeConstant(const Node& node) {
  constexpr int64_t kLarge = 1 << 20;
  return IsConstant(node) && NumElements(node.outputs[0]) >= kLarge;
}

}  // namespace

HostValue HostValue::FromTensor(const Tensor& tensor) {
  HostValue value{tensor.type(), {}, {}};
  if (IsFloat(tensor.dtype())) {
    value.scalars = tensor.ToDoubles();
  } else {
    value.integers = tensor.ToInts();
  }
  return value;
}

Tensor HostValue::ToTensor() const {
  return IsFloat(type.dtype) ? Tensor::FromDoubles(type, scalars)
                             : Tensor::FromInts(type, integers);
}

double ElementDistance(const HostValue& a, const HostValue& b, int64_t flat) {
  if (IsFloat(a.type.dtype)) return std::abs(a.At(flat) - b.At(flat));
  const int64_t x = a.integers[static_cast<size_t>(flat)];
  const int64_t y = b.integers[static_cast<size_t>(flat)];
  const uint64_t difference =
      static_cast<uint64_t>(std::max(x, y)) - static_cast<uint64_t>(std::min(x, y));
  return static_cast<double>(difference);
}

std::vector<HostValue> EvaluateNode(const OpDefinition& op, const NodeView& node,
                                    std::span<const HostValue* const> inputs) {
  MENDEL_CHECK(op.meaning.real != nullptr);
  const auto integral = [](const TensorType& type) { return IsIntegral(type.dtype); };
  const bool exact = std::all_of(node.inputs.begin(), node.inputs.end(), integral) &&
                     std::all_of(node.outputs.begin(), node.outputs.end(), integral);
  std::vector<HostValue> outputs;
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    HostValue value{node.outputs[k], {}, {}};
    const size_t count = static_cast<size_t>(NumElements(value.type));
    if (exact) {
      const Arithmetic<int64_t> arithmetic;
      const std::vector<Operand<int64_t>> operands = Operands<int64_t>(inputs);
      value.integers.resize(count);
      op.meaning.integer(Reader<int64_t>(arithmetic, operands), node, static_cast<int>(k),
                         value.integers);
      value = HostValue::FromTensor(
          Tensor::FromInts(value.type, value.integers));  // wraps into the dtype
    } else {
      const Arithmetic<double> arithmetic;
      const std::vector<Operand<double>> operands = Operands<double>(inputs);
      value.scalars.resize(count);
      op.meaning.real(Reader<double>(arithmetic, operands), node, static_cast<int>(k),
                      value.scalars);
      if (IsIntegral(value.type.dtype))
        value = HostValue::FromTensor(Tensor::FromDoubles(value.type, value.scalars));
    }
    outputs.push_back(std::move(value));
  }
  return outputs;
}

absl::StatusOr<std::vector<HostValue>> Evaluate(const Graph& graph,
                                                std::span<const HostValue> inputs) {
  return EvaluateWith(graph, inputs, &EvaluateNode);
}

absl::StatusOr<std::vector<HostValue>> EvaluateWith(const Graph& graph,
                                                    std::span<const HostValue> inputs,
                                                    const NodeEvaluation& evaluate) {
  if (inputs.size() != graph.inputs().size()) {
    return InvalidInput("graph has ", graph.inputs().size(), " inputs, not ", inputs.size());
  }
  std::vector<int32_t> last_use(graph.nodes().size(), -1);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    for (ValueId value : graph.nodes()[i].inputs)
      last_use[static_cast<size_t>(value.node)] = static_cast<int32_t>(i);
  }
  std::vector<std::vector<HostValue>> values(graph.nodes().size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    const int32_t id = graph.inputs()[k];
    if (inputs[k].type != graph.node(id).outputs[0]) {
      return InvalidInput("input '", InputName(graph.node(id)), "' must be ",
                          TypeString(graph.node(id).outputs[0]), ", not ",
                          TypeString(inputs[k].type));
    }
    values[static_cast<size_t>(id)] = {inputs[k]};
  }
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (IsInput(node)) continue;
    if (IsConstant(node)) {
      if (graph.IsOutput(static_cast<int32_t>(i)))
        values[i] = {HostValue::FromTensor(ConstantValue(node))};
      continue;
    }
    std::vector<const HostValue*> operands;
    for (ValueId value : node.inputs) {
      // Constants are converted when they are needed: in double, all of them at once would be twice
      // the model.
      std::vector<HostValue>& produced = values[static_cast<size_t>(value.node)];
      if (produced.empty())
        produced = {HostValue::FromTensor(ConstantValue(graph.node(value.node)))};
      operands.push_back(&produced[static_cast<size_t>(value.output)]);
    }
    values[i] = WithView(graph, static_cast<int32_t>(i),
                         [&](const NodeView& view) { return evaluate(*node.op, view, operands); });
    for (ValueId value : node.inputs) {
      const size_t producer = static_cast<size_t>(value.node);
      if (graph.IsOutput(value.node)) continue;
      if (last_use[producer] == static_cast<int32_t>(i) || IsLargeConstant(graph.node(value.node)))
        values[producer].clear();
    }
  }
  std::vector<HostValue> outputs;
  for (const GraphOutput& output : graph.outputs()) {
    outputs.push_back(
        values[static_cast<size_t>(output.value.node)][static_cast<size_t>(output.value.output)]);
  }
  return outputs;
}

}  // namespace mendel
