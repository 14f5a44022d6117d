#include "mutator/conv_chain.h"

#include <algorithm>

#include "base/status.h"
#include "graph/op_helpers.h"
#include "mutator/parallel.h"

namespace mendel {
namespace {

bool IsOp(const Graph& graph, int32_t node, std::string_view name) {
  return graph.node(node).op->name == name;
}

int32_t DataInput(const Graph& graph, int32_t node) {
  for (ValueId value : graph.node(node).inputs) {
    if (!IsConstant(graph.node(value.node))) return value.node;
  }
  return -1;
}

/// The link that ends with `node`; nullopt when there is none.
std::optional<ConvLink> LinkEndingAt(const Graph& graph, int32_t node) {
  ConvLink link;
  while (!IsOp(graph, node, "Conv")) {
    if (!IsPointwise(graph, node)) return std::nullopt;
    link.tail.insert(link.tail.begin(), node);
    node = DataInput(graph, node);
    if (node < 0 || graph.OnlyUser(node) != link.tail.front()) return std::nullopt;
  }
  const std::vector<ValueId>& inputs = graph.node(node).inputs;
  if (!std::all_of(inputs.begin() + 1, inputs.end(),
                   [&](ValueId value) { return IsWeight(graph, value); }))
    return std::nullopt;
  link.conv = node;
  return link;
}

}  // namespace

bool IsUniformOverBatchAndSpace(const Shape& constant, size_t rank) {
  const size_t skip = rank - constant.size();
  for (size_t d = 0; d < constant.size(); ++d) {
    if (constant[d] != 1 && skip + d != 1) return false;
  }
  return true;
}

bool IsPointwise(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  if (node.op->restrict != &RestrictElementwise || node.outputs.size() != 1) return false;
  int data_inputs = 0;
  const Shape& shape = node.outputs[0].shape;
  for (ValueId value : node.inputs) {
    if (IsConstant(graph.node(value.node))) {
      if (!IsUniformOverBatchAndSpace(graph.type(value).shape, shape.size())) return false;
    } else {
      ++data_inputs;
      if (graph.type(value).shape != shape) return false;
    }
  }
  return data_inputs == 1;
}

std::vector<ConvLink> ConvChainEndingAt(const Graph& graph, int32_t node) {
  const int32_t user = graph.OnlyUser(node);
  if (user >= 0 && IsPointwise(graph, user)) return {};  // the link ends further on
  std::vector<ConvLink> chain;
  for (std::optional<ConvLink> link = LinkEndingAt(graph, node); link.has_value();
       link = LinkEndingAt(graph, node)) {
    chain.insert(chain.begin(), *link);
    node = graph.node(link->conv).inputs[0].node;
    if (graph.OnlyUser(node) != link->conv) break;
  }
  return chain;
}

ConvShape ShapeOf(const Graph& graph, int32_t conv) {
  const Node& node = graph.node(conv);
  const Shape& x = graph.type(node.inputs[0]).shape;
  const Shape& w = graph.type(node.inputs[1]).shape;
  const Shape& y = node.outputs[0].shape;
  ConvShape shape{x[0], x[1], y[1], node.attrs.Int("group"), {}, Shape(y.begin() + 2, y.end())};
  shape.windows =
      WindowsOf(Shape(x.begin() + 2, x.end()), Shape(w.begin() + 2, w.end()), node.attrs);
  return shape;
}

bool IsPointwiseConv(const ConvShape& shape) {
  return std::all_of(shape.windows.begin(), shape.windows.end(), [](const Window& window) {
    return window.kernel == 1 && window.stride == 1 && window.pad_begin == 0 && window.pad_end == 0;
  });
}

std::vector<Match> MatchLink(const Graph& graph, int32_t node,
                             const std::function<bool(const ConvShape&)>& accepts,
                             const std::vector<std::map<std::string, int64_t>>& choices) {
  const std::vector<ConvLink> chain = ConvChainEndingAt(graph, node);
  if (chain.empty() || !accepts(ShapeOf(graph, chain.back().conv))) return {};
  Match match;
  match.nodes.push_back(chain.back().conv);
  match.nodes.insert(match.nodes.end(), chain.back().tail.begin(), chain.back().tail.end());
  std::vector<Match> matches;
  for (const auto& choice : choices) {
    match.choices = choice;
    matches.push_back(match);
  }
  return matches;
}

absl::StatusOr<std::vector<ConvLink>> WholeChain(const Graph& subprogram) {
  if (subprogram.inputs().size() != 1 || subprogram.outputs().size() != 1) {
    return absl::FailedPreconditionError("not a chain of convolutions of one input");
  }
  std::vector<ConvLink> chain = ConvChainEndingAt(subprogram, subprogram.outputs()[0].value.node);
  if (chain.empty() || subprogram.node(chain[0].conv).inputs[0].node != subprogram.inputs()[0]) {
    return absl::FailedPreconditionError("not a chain of convolutions of one input");
  }
  return chain;
}

ValueId EmitLink(Emitter& e, const Graph& graph, const ConvLink& link, ValueId x,
                 const Attributes& attrs) {
  std::vector<ValueId> inputs = {x};
  const Node& conv = graph.node(link.conv);
  for (size_t k = 1; k < conv.inputs.size(); ++k)
    inputs.push_back(e.CopyConstantExpression(graph, conv.inputs[k]));
  return EmitTail(e, graph, link, e.Op("Conv", inputs, attrs, conv.name));
}

ValueId EmitTail(Emitter& e, const Graph& graph, const ConvLink& link, ValueId x) {
  for (int32_t id : link.tail) {
    const Node& node = graph.node(id);
    std::vector<ValueId> inputs;
    for (ValueId value : node.inputs) {
      inputs.push_back(IsConstant(graph.node(value.node)) ? e.CopyConstantExpression(graph, value)
                                                          : x);
    }
    x = e.Op(node.op->name, inputs, node.attrs, node.name);
  }
  return x;
}

Attributes ChangedWindows(const Graph& graph, int32_t conv, const WindowChange& change) {
  Attributes attrs = graph.node(conv).attrs;
  if (change.strides.has_value()) attrs.Set("strides", *change.strides);
  if (change.dilations.has_value()) attrs.Set("dilations", *change.dilations);
  if (change.pads.has_value()) attrs.Set("pads", *change.pads);
  return attrs;
}

absl::StatusOr<Graph> MakeConvSample(const ConvSample& sample) {
  Emitter e("sample");
  Rng rng(7);
  const auto weights = [&](const Shape& shape, const std::string& name) {
    std::vector<double> values(static_cast<size_t>(NumElements(shape)));
    for (double& value : values) value = rng.Normal();
    return e.Constant(Tensor::FromDoubles({DType::kF32, shape}, values), name);
  };
  ValueId x = e.Input("x", {DType::kF32, sample.input});
  const Attributes attrs{{"strides", sample.strides},
                         {"dilations", sample.dilations},
                         {"pads", sample.pads},
                         {"group", sample.group}};
  for (int k = 0; k < sample.length; ++k) {
    std::vector<ValueId> inputs = {x, weights(sample.weight, Cat("w", k))};
    if (sample.bias) inputs.push_back(weights({sample.weight[0]}, Cat("b", k)));
    x = e.Op("Conv", inputs, attrs);
    if (sample.relu) x = e.Op("Relu", {x});
  }
  e.Output("y", x);
  return e.Finish();
}

}  // namespace mendel
