#include "tests/graph_edit.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/status.h"

namespace mendel {
namespace {

/// Node ids in a random topological order, the graph's inputs first and in their order.
std::vector<int32_t> RandomOrder(Rng& rng, const Graph& graph) {
  std::vector<size_t> missing(graph.nodes().size());
  std::vector<int32_t> ready;
  std::vector<int32_t> order = graph.inputs();
  const auto release = [&](int32_t id) {
    for (int32_t user : graph.users(id)) {
      if (--missing[static_cast<size_t>(user)] == 0) ready.push_back(user);
    }
  };
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    std::vector<int32_t> producers;
    for (ValueId value : graph.nodes()[i].inputs) producers.push_back(value.node);
    std::sort(producers.begin(), producers.end());
    missing[i] =
        static_cast<size_t>(std::unique(producers.begin(), producers.end()) - producers.begin());
    if (missing[i] == 0 && !IsInput(graph.nodes()[i])) ready.push_back(static_cast<int32_t>(i));
  }
  for (int32_t id : graph.inputs()) release(id);
  while (!ready.empty()) {
    std::swap(ready[PickIndex(rng, ready.size())], ready.back());
    order.push_back(ready.back());
    ready.pop_back();
    release(order.back());
  }
  return order;
}

}  // namespace

absl::StatusOr<Graph> EditGraph(const Graph& graph, const NodeEdit& edit) {
  GraphBuilder builder(graph.name());
  std::vector<std::vector<ValueId>> where(graph.nodes().size());
  const auto mapped = [&](ValueId value) {
    return where[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)];
  };
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    NodeSite site{static_cast<int32_t>(i), node, {}, {}};
    for (ValueId value : node.inputs) site.inputs.push_back(mapped(value));
    MENDEL_ASSIGN_OR_RETURN(const int32_t copy, builder.CopyNode(node, site.inputs));
    for (size_t k = 0; k < node.outputs.size(); ++k)
      site.outputs.push_back({copy, static_cast<int32_t>(k)});
    where[i] = edit(builder, site);
    if (where[i].empty()) where[i] = site.outputs;
    if (where[i].size() != node.outputs.size())
      return InvalidInput("an edit returned another number of values");
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (builder.type(where[i][k]) != node.outputs[k])
        return InvalidInput("an edit returned a value of another type");
    }
  }
  for (const GraphOutput& output : graph.outputs())
    builder.Output(output.name, mapped(output.value));
  return builder.Build();
}

Graph Shuffled(Rng& rng, const Graph& graph) {
  GraphBuilder builder("shuffled");
  std::vector<int32_t> where(graph.nodes().size(), -1);
  for (int32_t id : RandomOrder(rng, graph)) {
    Node node = graph.node(id);
    node.name = Cat("n", rng.Below(1000000));
    for (ValueId& value : node.inputs) value.node = where[static_cast<size_t>(value.node)];
    const auto copy = builder.CopyNode(node, node.inputs);
    MENDEL_CHECK(copy.ok());
    where[static_cast<size_t>(id)] = *copy;
  }
  for (const GraphOutput& output : graph.outputs()) {
    builder.Output(output.name,
                   {where[static_cast<size_t>(output.value.node)], output.value.output});
  }
  auto shuffled = builder.Build();
  MENDEL_CHECK(shuffled.ok());
  return *std::move(shuffled);
}

Graph WithRandomWeights(const Graph& graph, uint64_t seed, bool positive) {
  const auto edit = [&](GraphBuilder& builder, const NodeSite& site) -> std::vector<ValueId> {
    if (!IsConstant(site.node) || SymbolName(site.node).empty()) return {};
    uint64_t hash = seed;
    for (const char c : SymbolName(site.node))
      hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
    Rng rng(hash);
    const TensorType& type = site.node.outputs[0];
    std::vector<double> values(static_cast<size_t>(NumElements(type)));
    for (double& value : values) value = static_cast<double>(rng.Between(positive ? 1 : -8, 8)) / 4;
    return {builder.Constant(Tensor::FromDoubles(type, values), Cat("r", SymbolName(site.node)))};
  };
  auto result = EditGraph(graph, edit);
  MENDEL_CHECK(result.ok());
  return *std::move(result);
}

Ints RandomPermutation(Rng& rng, size_t count) {
  Ints order(count);
  std::iota(order.begin(), order.end(), 0);
  for (size_t k = count; k > 1; --k) std::swap(order[k - 1], order[PickIndex(rng, k)]);
  return order;
}

size_t PickIndex(Rng& rng, size_t count) { return static_cast<size_t>(rng.Below(count)); }

std::optional<ValueId> SliceOf(GraphBuilder& builder, ValueId x, size_t axis, int64_t begin,
                               int64_t end, int64_t step) {
  const Shape& shape = builder.type(x).shape;
  Ints starts(shape.size(), 0), ends = shape, steps(shape.size(), 1);
  starts[axis] = begin;
  ends[axis] = end;
  steps[axis] = step;
  return TryAdd(builder, "Slice", {x}, {{"starts", starts}, {"ends", ends}, {"steps", steps}});
}

std::optional<ValueId> TryAdd(GraphBuilder& builder, std::string_view op,
                              std::vector<ValueId> inputs, Attributes attrs) {
  const auto value = builder.Add(op, std::move(inputs), std::move(attrs));
  if (!value.ok()) return std::nullopt;
  return *value;
}

ValueId ScalarLike(GraphBuilder& builder, ValueId like, double value) {
  return builder.Constant(Tensor::Scalar(builder.type(like).dtype, value));
}

}  // namespace mendel
