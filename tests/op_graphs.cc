#include "tests/op_graphs.h"

#include "base/check.h"
#include "base/status.h"
#include "graph/sample_node.h"
#include "tests/graph_edit.h"

namespace mendel {
namespace {

/// Something simple that keeps the type, or `x` itself.
ValueId Followed(Rng& rng, GraphBuilder& builder, ValueId x) {
  const TensorType type = builder.type(x);
  if (!IsFloat(type.dtype) || NumElements(type) == 0) return x;
  switch (rng.Below(6)) {
    case 0:
      return TryAdd(builder, "Relu", {x}).value_or(x);
    case 1:
      return TryAdd(builder, "Mul", {x, ScalarLike(builder, x, 0.5)}).value_or(x);
    case 2:
      return TryAdd(builder, "Add", {x, builder.Input("late", type)}).value_or(x);
    case 3:
      return TryAdd(builder, "Mul", {x, x}).value_or(x);
    default:
      return x;
  }
}

}  // namespace

const std::vector<const OpDefinition*>& SampledOps() {
  static const std::vector<const OpDefinition*> ops = [] {
    std::vector<const OpDefinition*> sampled;
    for (const OpDefinition* op : AllOps()) {
      if (op->sample != nullptr) sampled.push_back(op);
    }
    return sampled;
  }();
  return ops;
}

Graph RandomOpGraph(Rng& rng, const OpDefinition& op) {
  const auto node = SampleNode(op, rng);
  MENDEL_CHECK(node.ok());
  const std::vector<HostValue> operands = SampleInputs(*node, rng, 8);
  GraphBuilder builder("op");
  std::vector<ValueId> values;
  for (size_t k = 0; k < operands.size(); ++k) {
    const uint64_t role = IsFloat(node->inputs[k].dtype)
                              ? rng.Below(5)
                              : (rng.Flip(0.1) && node->ranges.empty() ? 0 : 4);
    if (role < 2 || (k == 0 && IsFloat(node->inputs[k].dtype))) {
      values.push_back(builder.Input(Cat("x", k), node->inputs[k]));
    } else {
      values.push_back(builder.Constant(operands[k].ToTensor(), role < 4 ? Cat("w", k) : ""));
    }
  }
  const auto id = builder.AddNode(op.name, values, node->attrs);
  MENDEL_CHECK(id.ok());
  for (size_t k = 0; k < node->outputs.size(); ++k) {
    const ValueId value{*id, static_cast<int32_t>(k)};
    builder.Output(Cat("y", k), k == 0 ? Followed(rng, builder, value) : value);
  }
  auto graph = builder.Build();
  MENDEL_CHECK(graph.ok());
  return *std::move(graph);
}

}  // namespace mendel
