#include "client/onnxruntime/partition.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>

namespace mendel::ort {
namespace {

/// The nodes that make each value; negative where none does.
std::vector<int> Makers(const GraphView& view) {
  std::vector<int> makers(view.values.size(), -1);
  for (size_t n = 0; n < view.nodes.size(); ++n)
    for (const int output : view.nodes[n].outputs)
      if (output >= 0) makers[static_cast<size_t>(output)] = static_cast<int>(n);
  return makers;
}

std::vector<int> Sources(const ViewNode& node, const std::vector<int>& makers) {
  std::vector<int> sources;
  for (const auto* read : {&node.inputs, &node.implicit})
    for (const int value : *read)
      if (value >= 0 && makers[static_cast<size_t>(value)] >= 0)
        sources.push_back(makers[static_cast<size_t>(value)]);
  return sources;
}

int Root(std::vector<int>& parents, int node) {
  while (parents[static_cast<size_t>(node)] != node) {
    int& parent = parents[static_cast<size_t>(node)];
    parent = parents[static_cast<size_t>(parent)];
    node = parent;
  }
  return node;
}

bool Heavy(std::string_view op) {
  static const auto* const ops = new std::set<std::string_view>{
      "Attention",     "Conv", "ConvInteger",     "ConvTranspose", "Einsum",        "GRU",
      "Gemm",          "LSTM", "LinearAttention", "MatMul",        "MatMulInteger", "QLinearConv",
      "QLinearMatMul", "RNN"};
  return ops->contains(op);
}

/// Elements, with 64 for a symbolic dimension.
int64_t Elements(const ViewValue& value) {
  int64_t elements = 1;
  for (const int64_t size : value.shape) elements *= size < 0 ? 64 : size;
  return elements;
}

constexpr size_t kManyNodes = 4;
constexpr int64_t kManyElements = 1 << 16;

}  // namespace

std::vector<Part> Partition(const GraphView& view, const std::vector<bool>& taken) {
  const std::vector<int> makers = Makers(view);
  const size_t count = view.nodes.size();
  // The depth counts the changes from a node outside to a taken one on any path from the inputs: a
  // path that leaves a part and comes back ends deeper than it began.
  std::vector<int> depth(count, 0);
  std::vector<int> parents(count);
  std::iota(parents.begin(), parents.end(), 0);
  for (size_t n = 0; n < count; ++n) {
    const std::vector<int> sources = Sources(view.nodes[n], makers);
    for (const int source : sources) {
      const bool enters = taken[n] && !taken[static_cast<size_t>(source)];
      depth[n] = std::max(depth[n], depth[static_cast<size_t>(source)] + (enters ? 1 : 0));
    }
    for (const int source : sources) {
      const size_t from = static_cast<size_t>(source);
      if (taken[n] && taken[from] && depth[n] == depth[from])
        parents[static_cast<size_t>(Root(parents, source))] = Root(parents, static_cast<int>(n));
    }
  }
  std::map<int, Part> parts;
  for (size_t n = 0; n < count; ++n)
    if (taken[n]) parts[Root(parents, static_cast<int>(n))].push_back(static_cast<int>(n));
  std::vector<Part> sorted;
  for (auto& [root, part] : parts) sorted.push_back(std::move(part));
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

Boundary BoundaryOf(const GraphView& view, const Part& part) {
  std::vector<bool> inside(view.nodes.size(), false);
  for (const int n : part) inside[static_cast<size_t>(n)] = true;
  std::vector<bool> read_outside(view.values.size(), false);
  for (size_t n = 0; n < view.nodes.size(); ++n) {
    for (const auto* read : {&view.nodes[n].inputs, &view.nodes[n].implicit})
      for (const int value : *read)
        if (value >= 0 && !inside[n]) read_outside[static_cast<size_t>(value)] = true;
  }
  Boundary boundary;
  std::set<int> known;
  for (const int n : part) {
    const ViewNode& node = view.nodes[static_cast<size_t>(n)];
    for (const int input : node.inputs) {
      if (input < 0 || view.values[static_cast<size_t>(input)].constant) continue;
      if (known.insert(input).second) boundary.inputs.push_back(input);
    }
    for (const int output : node.outputs) {
      if (output < 0) continue;
      known.insert(output);
      const size_t value = static_cast<size_t>(output);
      if (view.values[value].graph_output || read_outside[value])
        boundary.outputs.push_back(output);
    }
  }
  return boundary;
}

bool WorthACall(const GraphView& view, const Part& part) {
  int64_t largest = 0;
  for (const int n : part) {
    const ViewNode& node = view.nodes[static_cast<size_t>(n)];
    if (Heavy(node.proto.op_type())) return true;
    for (const int output : node.outputs)
      if (output >= 0)
        largest = std::max(largest, Elements(view.values[static_cast<size_t>(output)]));
  }
  return part.size() >= kManyNodes && largest >= kManyElements;
}

}  // namespace mendel::ort
