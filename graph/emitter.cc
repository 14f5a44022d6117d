#include "graph/emitter.h"

#include <map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/rewrite.h"

namespace mendel {

Emitter::Emitter(std::string name) : builder_(std::move(name)) {}
Emitter::~Emitter() = default;

std::vector<ValueId> Emitter::InputsOf(const Graph& like) {
  std::vector<ValueId> values;
  for (int32_t id : like.inputs())
    values.push_back(builder_.Input(InputName(like.node(id)), like.node(id).outputs[0]));
  return values;
}

std::vector<ValueId> Emitter::Inline(const Graph& graph, const std::vector<ValueId>& inputs) {
  if (!status_.ok()) return std::vector<ValueId>(graph.outputs().size());
  auto outputs = mendel::Inline(graph, inputs, builder_);
  if (outputs.ok()) return *std::move(outputs);
  Fail(outputs.status());
  return std::vector<ValueId>(graph.outputs().size());
}

ValueId Emitter::CopyConstantExpression(const Graph& graph, ValueId value) {
  std::map<int32_t, int32_t> copies;
  std::vector<int32_t> open = {value.node};  // every node after its readers
  while (status_.ok() && !open.empty()) {
    const int32_t id = open.back();
    const Node& node = graph.node(id);
    if (IsInput(node)) {
      Fail(InternalError("'", InputName(node), "' is not a weight expression"));
      break;
    }
    const size_t before = open.size();
    for (size_t k = node.inputs.size(); k-- > 0;) {
      if (copies.count(node.inputs[k].node) == 0) open.push_back(node.inputs[k].node);
    }
    if (open.size() > before) continue;
    open.pop_back();
    if (copies.count(id) > 0) continue;
    std::vector<ValueId> inputs = node.inputs;
    for (ValueId& input : inputs) input.node = copies.at(input.node);
    const auto copy = builder_.CopyNode(node, std::move(inputs));
    if (!copy.ok()) {
      Fail(copy.status());
      break;
    }
    copies[id] = *copy;
  }
  return status_.ok() ? ValueId{copies.at(value.node), value.output} : ValueId{};
}

ValueId Emitter::Op(std::string_view op, std::vector<ValueId> inputs, Attributes attrs,
                    std::string name) {
  if (!status_.ok()) return {};
  const auto value = builder_.Add(op, std::move(inputs), std::move(attrs), std::move(name));
  if (value.ok()) return *value;
  Fail(value.status());
  return {};
}

std::vector<ValueId> Emitter::Ops(std::string_view op, std::vector<ValueId> inputs, size_t count,
                                  Attributes attrs) {
  std::vector<ValueId> values(count);
  if (!status_.ok()) return values;
  const auto node = builder_.AddNode(op, std::move(inputs), std::move(attrs));
  if (!node.ok()) {
    Fail(node.status());
  } else if (builder_.node(*node).outputs.size() != count) {
    Fail(InternalError("operator ", op, " has ", builder_.node(*node).outputs.size(),
                       " outputs, not ", count));
  } else {
    for (size_t k = 0; k < count; ++k) values[k] = {*node, static_cast<int32_t>(k)};
  }
  return values;
}

ValueId Emitter::Input(std::string name, TensorType type) {
  return builder_.Input(std::move(name), std::move(type));
}
ValueId Emitter::Constant(Tensor value, std::string symbol) {
  return builder_.Constant(std::move(value), std::move(symbol));
}
ValueId Emitter::Reshape(ValueId x, Shape shape) {
  return Op("Reshape", {x}, {{"shape", std::move(shape)}});
}
ValueId Emitter::Transpose(ValueId x, Ints perm) {
  return Op("Transpose", {x}, {{"perm", std::move(perm)}});
}
ValueId Emitter::MatMul(ValueId a, ValueId b) { return Op("MatMul", {a, b}); }
ValueId Emitter::Add(ValueId a, ValueId b) { return Op("Add", {a, b}); }
ValueId Emitter::Mul(ValueId a, ValueId b) { return Op("Mul", {a, b}); }
void Emitter::Output(std::string name, ValueId value) {
  outputs_.emplace_back(std::move(name), value);
}

ValueId Emitter::Concat(std::vector<ValueId> values, int64_t axis) {
  if (values.size() == 1) return values[0];
  return Op("Concat", std::move(values), {{"axis", axis}});
}

ValueId Emitter::Slice(ValueId x, int64_t axis, int64_t begin, int64_t end, int64_t step) {
  if (!status_.ok()) return {};  // the placeholder may have fewer dimensions
  const Shape& extents = shape(x);
  if (begin == 0 && end == extents[static_cast<size_t>(axis)] && step == 1) return x;
  Ints starts(extents.size(), 0), ends = extents, steps(extents.size(), 1);
  starts[static_cast<size_t>(axis)] = begin;
  ends[static_cast<size_t>(axis)] = end;
  steps[static_cast<size_t>(axis)] = step;
  return Op("Slice", {x}, {{"starts", starts}, {"ends", ends}, {"steps", steps}});
}

ValueId Emitter::Cut(ValueId x, const Box& box) {
  if (box == Box::Whole(shape(x))) return x;
  return Op("Slice", {x},
            {{"starts", box.begin}, {"ends", box.end}, {"steps", Ints(box.begin.size(), 1)}});
}

ValueId Emitter::PadZero(ValueId x, int64_t axis, int64_t before, int64_t after) {
  if (!status_.ok()) return {};
  if (before == 0 && after == 0) return x;
  const size_t rank = shape(x).size();
  Ints pads(2 * rank, 0);
  pads[static_cast<size_t>(axis)] = before;
  pads[rank + static_cast<size_t>(axis)] = after;
  return Op("Pad", {x}, {{"pads", pads}});
}

const TensorType& Emitter::type(ValueId value) const {
  static const auto* placeholder = new TensorType{DType::kF32, Shape(kMaxRank, 1)};
  return status_.ok() && value.node >= 0 ? builder_.type(value) : *placeholder;
}

void Emitter::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

absl::StatusOr<Graph> Emitter::Finish() {
  MENDEL_RETURN_IF_ERROR(status_);
  for (auto& [name, value] : outputs_) builder_.Output(name, value);
  return builder_.Build();
}

}  // namespace mendel
