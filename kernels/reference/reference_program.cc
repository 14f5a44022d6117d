#include "kernels/reference/reference_program.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/status.h"
#include "graph/rewrite.h"

namespace mendel {

ReferenceProgram::ReferenceProgram(Graph graph)
    : graph_(std::move(graph)),
      input_position_(graph_.nodes().size(), -1),
      constant_(ConstantExpressions(graph_)),
      last_use_(graph_.nodes().size(), -1),
      weights_(graph_.nodes().size()) {
  for (size_t k = 0; k < graph_.inputs().size(); ++k) {
    input_position_[static_cast<size_t>(graph_.inputs()[k])] = static_cast<int>(k);
  }
  // Last uses by constant expressions first: they free what only weights are made of.
  for (int32_t id = 0; id < static_cast<int32_t>(graph_.nodes().size()); ++id) {
    for (ValueId value : graph_.node(id).inputs) last_use_[static_cast<size_t>(value.node)] = id;
    if (!constant_[static_cast<size_t>(id)] && !IsInput(graph_.node(id))) steps_.push_back(id);
  }
  const auto needed_by_steps = [&](int32_t id) {
    const std::vector<int32_t>& users = graph_.users(id);
    return graph_.IsOutput(id) || std::any_of(users.begin(), users.end(), [&](int32_t user) {
             return !constant_[static_cast<size_t>(user)];
           });
  };
  for (int32_t id = 0; id < static_cast<int32_t>(graph_.nodes().size()); ++id) {
    const Node& node = graph_.node(id);
    if (!constant_[static_cast<size_t>(id)]) continue;
    std::vector<HostValue>& result = weights_[static_cast<size_t>(id)];
    if (IsConstant(node)) {
      result.push_back(HostValue::FromTensor(ConstantValue(node)));
    } else {
      result = EvaluateAt(id, {}, {});
    }
    for (ValueId value : node.inputs) {
      const size_t producer = static_cast<size_t>(value.node);
      if (last_use_[producer] == id && !needed_by_steps(value.node)) weights_[producer].clear();
    }
  }
}

const HostValue& ReferenceProgram::Find(ValueId value, std::span<const HostValue> inputs,
                                        const Values& values) const {
  const size_t node = static_cast<size_t>(value.node);
  if (input_position_[node] >= 0) return inputs[static_cast<size_t>(input_position_[node])];
  const Values& source = constant_[node] ? weights_ : values;
  return source[node][static_cast<size_t>(value.output)];
}

std::vector<HostValue> ReferenceProgram::EvaluateAt(int32_t id, std::span<const HostValue> inputs,
                                                    const Values& values) const {
  const Node& node = graph_.node(id);
  std::vector<const HostValue*> operands;
  for (ValueId value : node.inputs) operands.push_back(&Find(value, inputs, values));
  return WithView(graph_, id,
                  [&](const NodeView& view) { return EvaluateNode(*node.op, view, operands); });
}

absl::StatusOr<std::vector<HostValue>> ReferenceProgram::Run(std::span<const HostValue> inputs,
                                                             std::vector<double>* seconds) const {
  if (inputs.size() != graph_.inputs().size()) {
    return InvalidInput("graph has ", graph_.inputs().size(), " inputs, not ", inputs.size());
  }
  for (size_t k = 0; k < inputs.size(); ++k) {
    const TensorType& type = graph_.type({graph_.inputs()[k], 0});
    if (inputs[k].type != type) {
      return InvalidInput("input '", InputName(graph_.node(graph_.inputs()[k])), "' must be ",
                          TypeString(type), ", not ", TypeString(inputs[k].type));
    }
  }
  if (seconds != nullptr) seconds->clear();
  Values values(graph_.nodes().size());
  for (int32_t id : steps_) {
    const auto start = std::chrono::steady_clock::now();
    values[static_cast<size_t>(id)] = EvaluateAt(id, inputs, values);
    for (ValueId value : graph_.node(id).inputs) {
      const size_t producer = static_cast<size_t>(value.node);
      if (last_use_[producer] == id && !graph_.IsOutput(value.node)) values[producer].clear();
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (seconds != nullptr) seconds->push_back(elapsed.count());
  }
  std::vector<HostValue> outputs;
  for (const GraphOutput& output : graph_.outputs())
    outputs.push_back(Find(output.value, inputs, values));
  return outputs;
}

int64_t ReferenceProgram::weight_bytes() const {
  int64_t bytes = 0;
  for (const std::vector<HostValue>& node : weights_) {
    for (const HostValue& value : node)
      bytes += NumElements(value.type) * static_cast<int64_t>(sizeof(double));
  }
  return bytes;
}

absl::StatusOr<std::vector<HostValue>> EvaluateReference(const Graph& graph,
                                                         std::span<const HostValue> inputs) {
  return ReferenceProgram(graph).Run(inputs);
}

}  // namespace mendel
