#include "corrector/linear_program.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/op_helpers.h"
#include "graph/restrict.h"
#include "graph/rewrite.h"

namespace mendel {
namespace {

absl::Status NotLinear(const std::string& why) {
  return absl::FailedPreconditionError(Cat("no difference: ", why));
}

bool IsZeroPad(const Node& node) {
  return node.op->name == "Pad" && node.attrs.Str("mode") == "constant" &&
         node.attrs.Float("value") == 0;
}

/// Input of an elementwise operator of one operand that varies; -1 when it is something else.
int VaryingOperand(const Graph& graph, const std::vector<bool>& constant, int32_t id) {
  const Node& node = graph.node(id);
  if (node.op->restrict != &RestrictElementwise || node.outputs.size() != 1) return -1;
  int operand = -1;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    if (constant[static_cast<size_t>(node.inputs[k].node)]) continue;
    if (operand >= 0 || graph.type(node.inputs[k]) != node.outputs[0]) return -1;
    operand = static_cast<int>(k);
  }
  return operand;
}

/// A graph of `path` (selections, first to last) alone, its operand being an input.
absl::StatusOr<Graph> Selections(const Graph& graph, const TensorType& type,
                                 const std::vector<int32_t>& path) {
  GraphBuilder builder;
  ValueId value = builder.Input("x", type);
  for (int32_t id : path) {
    MENDEL_ASSIGN_OR_RETURN(const int32_t node, builder.CopyNode(graph.node(id), {value}));
    value = {node, 0};
  }
  builder.Output("y", value);
  return builder.Build();
}

/// Stored tensors are equal to the verifier when their symbols are, or when they have none and are
/// the same numbers.
bool SameWeights(const Graph& f, ValueId a, const Graph& g, ValueId b) {
  const Node& x = f.node(a.node);
  const Node& y = g.node(b.node);
  if (!IsConstant(x) || !IsConstant(y) || f.type(a) != g.type(b)) return false;
  if (SymbolName(x) != SymbolName(y)) return false;
  return !SymbolName(x).empty() || ConstantValue(x) == ConstantValue(y);
}

}  // namespace

bool IsView(const Node& node) {
  constexpr std::array<std::string_view, 3> kMoves = {"Reshape", "Slice", "Transpose"};
  return std::find(kMoves.begin(), kMoves.end(), node.op->name) != kMoves.end() || IsZeroPad(node);
}

absl::StatusOr<std::vector<int64_t>> TraceViews(const Graph& graph, const Shape& operand,
                                                const std::vector<int32_t>& path, int64_t bias) {
  const TensorType type{DType::kF32, operand};
  MENDEL_ASSIGN_OR_RETURN(const Graph selections, Selections(graph, type, path));
  Box box = Box::Whole(selections.type(selections.outputs()[0].value).shape);
  if (box.end.size() < 3 || box.end[1] == 0) return NotLinear("a value without channels");
  box.end[1] = 1;
  MENDEL_ASSIGN_OR_RETURN(const Graph channel, RestrictToBox(selections, 0, box));
  HostValue numbers{type, std::vector<double>(static_cast<size_t>(NumElements(type))), {}};
  for (size_t i = 0; i < numbers.scalars.size(); ++i)
    numbers.scalars[i] = static_cast<double>(i + 1);
  MENDEL_ASSIGN_OR_RETURN(const std::vector<HostValue> traced,
                          Evaluate(channel, std::vector<HostValue>{std::move(numbers)}));
  const int64_t plane = NumElements(operand) / std::max<int64_t>(1, operand[0] * operand[1]);
  std::vector<int64_t> positions;
  for (double number : traced[0].scalars) {
    const int64_t flat = static_cast<int64_t>(number) - 1;
    if (flat < 0) {
      if (bias == 0) return NotLinear("zeros after the convolution");
      positions.push_back(0);
      continue;
    }
    if (flat / plane % operand[1] != 0) return NotLinear("views that mix channels");
    positions.push_back(flat / plane / operand[1] * plane + flat % plane + bias);
  }
  return positions;
}

Shape WithoutChannels(const Shape& shape) {
  Shape result = shape;
  result.erase(result.begin() + 1);
  return result;
}

absl::StatusOr<LinearProgram> AnalyzeLinear(const Graph& graph) {
  if (graph.outputs().size() != 1) return NotLinear("several outputs");
  LinearProgram program;
  const std::vector<bool> constant = ConstantExpressions(graph);
  std::vector<int32_t> after, before;
  int32_t id = graph.outputs()[0].value.node;
  for (; graph.node(id).op->name != "Conv"; id = graph.node(id).inputs[0].node) {
    const Node& node = graph.node(id);
    if (graph.users(id).size() + (graph.IsOutput(id) ? 1u : 0u) != 1)
      return NotLinear(Cat(node.op->name, " is read twice"));
    if (IsView(node)) {
      after.insert(after.begin(), id);
      continue;
    }
    const int operand = VaryingOperand(graph, constant, id);
    if (operand < 0) return NotLinear(Cat(node.op->name, " after the last convolution"));
    program.tail.insert(program.tail.begin(), id);
    if (operand != 0) return NotLinear(Cat(node.op->name, " with its operand last"));
  }
  program.conv = id;
  const Node& conv = graph.node(id);
  if (graph.users(id).size() + (graph.IsOutput(id) ? 1u : 0u) != 1)
    return NotLinear("the convolution is read twice");
  for (size_t k = 1; k < conv.inputs.size(); ++k) {
    if (!constant[static_cast<size_t>(conv.inputs[k].node)])
      return NotLinear("weights that are computed");
  }
  for (id = conv.inputs[0].node; !IsInput(graph.node(id)); id = graph.node(id).inputs[0].node) {
    const std::string_view name = graph.node(id).op->name;
    if (!IsView(graph.node(id)))
      return NotLinear(
          Cat(name, " before the last convolution (a longer chain is not linear in one)"));
    before.insert(before.begin(), id);
  }
  program.input = id;
  program.source = graph.node(id).outputs[0].shape;
  program.conv_in = graph.type(conv.inputs[0]).shape;
  program.conv_out = conv.outputs[0].shape;
  program.out = graph.type(graph.outputs()[0].value).shape;
  const Shape& w = graph.type(conv.inputs[1]).shape;
  program.windows = WindowsOf(Shape(program.conv_in.begin() + 2, program.conv_in.end()),
                              Shape(w.begin() + 2, w.end()), conv.attrs);
  MENDEL_ASSIGN_OR_RETURN(program.reads, TraceViews(graph, program.source, before, 1));
  MENDEL_ASSIGN_OR_RETURN(program.from, TraceViews(graph, program.conv_out, after, 0));
  return program;
}

absl::Status CheckAlike(const Graph& original, const LinearProgram& f, const Graph& mutant,
                        const LinearProgram& g) {
  const Node& a = original.node(f.conv);
  const Node& b = mutant.node(g.conv);
  bool same = a.inputs.size() == b.inputs.size() && a.attrs.Int("group") == b.attrs.Int("group");
  for (size_t k = 1; same && k < a.inputs.size(); ++k)
    same = SameWeights(original, a.inputs[k], mutant, b.inputs[k]);
  if (!same) return absl::FailedPreconditionError("no difference: the mutant has other weights");
  const auto position = [](const Graph& graph, int32_t input) {
    return std::find(graph.inputs().begin(), graph.inputs().end(), input) - graph.inputs().begin();
  };
  if (position(original, f.input) != position(mutant, g.input)) {
    return absl::FailedPreconditionError("no difference: the mutant reads another input");
  }
  if (f.conv_out != f.out)
    return absl::FailedPreconditionError("no difference: the original's result is a view");
  for (size_t i = 0; i < f.reads.size(); ++i) {
    if (f.reads[i] != static_cast<int64_t>(i) + 1)
      return absl::FailedPreconditionError("no difference: the original reads a view");
  }
  return absl::OkStatus();
}

bool TailMoves(const Graph& graph, const LinearProgram& program) {
  for (int32_t id : program.tail) {
    const Node& node = graph.node(id);
    for (size_t k = 1; k < node.inputs.size(); ++k) {
      const Shape& shape = graph.type(node.inputs[k]).shape;
      const bool scalar = NumElements(shape) == 1;
      const bool per_channel = shape.size() + 1 >= program.out.size() &&
                               NumElements(shape) == program.out[1] &&
                               shape[shape.size() + 1 - program.out.size()] == program.out[1];
      if (!scalar && !per_channel) return false;
    }
  }
  return true;
}

absl::StatusOr<ValueId> CopyWeights(const Graph& graph, ValueId value, GraphBuilder& builder) {
  const Node& node = graph.node(value.node);
  if (IsConstant(node)) return builder.Constant(ConstantValue(node), SymbolName(node));
  std::vector<ValueId> inputs;
  for (ValueId input : node.inputs) {
    MENDEL_ASSIGN_OR_RETURN(const ValueId copied, CopyWeights(graph, input, builder));
    inputs.push_back(copied);
  }
  MENDEL_ASSIGN_OR_RETURN(const int32_t id, builder.CopyNode(node, std::move(inputs)));
  return ValueId{id, value.output};
}

absl::StatusOr<ValueId> EmitWithoutTail(
    const Graph& graph, const LinearProgram& program, const std::vector<ValueId>& inputs,
    GraphBuilder& builder, const std::function<absl::StatusOr<ValueId>(ValueId)>& after_conv) {
  std::vector<int32_t> path;
  for (int32_t id = graph.outputs()[0].value.node; id != program.input;
       id = graph.node(id).inputs[0].node)
    path.push_back(id);
  const auto position = std::find(graph.inputs().begin(), graph.inputs().end(), program.input) -
                        graph.inputs().begin();
  ValueId value = inputs[static_cast<size_t>(position)];
  for (auto id = path.rbegin(); id != path.rend(); ++id) {
    if (std::find(program.tail.begin(), program.tail.end(), *id) != program.tail.end()) continue;
    std::vector<ValueId> operands = {value};
    const Node& node = graph.node(*id);
    for (size_t k = 1; k < node.inputs.size(); ++k) {
      MENDEL_ASSIGN_OR_RETURN(const ValueId weights, CopyWeights(graph, node.inputs[k], builder));
      operands.push_back(weights);
    }
    MENDEL_ASSIGN_OR_RETURN(const int32_t copied, builder.CopyNode(node, std::move(operands)));
    value = {copied, 0};
    if (*id == program.conv && after_conv) {
      MENDEL_ASSIGN_OR_RETURN(value, after_conv(value));
    }
  }
  return value;
}

absl::StatusOr<ValueId> EmitTailOf(const Graph& graph, const LinearProgram& program, ValueId value,
                                   GraphBuilder& builder) {
  for (int32_t id : program.tail) {
    std::vector<ValueId> operands = {value};
    const Node& node = graph.node(id);
    for (size_t k = 1; k < node.inputs.size(); ++k) {
      MENDEL_ASSIGN_OR_RETURN(const ValueId weights, CopyWeights(graph, node.inputs[k], builder));
      operands.push_back(weights);
    }
    MENDEL_ASSIGN_OR_RETURN(const int32_t copied, builder.CopyNode(node, std::move(operands)));
    value = {copied, 0};
  }
  return value;
}

}  // namespace mendel
