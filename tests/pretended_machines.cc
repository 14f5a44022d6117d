#include "tests/pretended_machines.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/rewrite.h"
#include "graph/text.h"

namespace mendel {
namespace {

constexpr double kCall = 1e-6;
constexpr double kFlop = 1e-9;
constexpr double kByte = 1e-10;

bool IsConv(const OpDefinition& op) { return op.name == "Conv" || op.name == "ConvTranspose"; }

bool IsProduct(const OpDefinition& op) {
  return IsConv(op) || op.name == "MatMul" || op.name == "Einsum";
}

bool MovesData(const OpDefinition& op) {
  constexpr std::string_view kNames[] = {"Concat", "DepthToSpace", "Expand", "Gather",
                                         "Pad",    "Patch",        "Slice",  "SpaceToDepth",
                                         "Split",  "Transpose"};
  return std::find(std::begin(kNames), std::end(kNames), op.name) != std::end(kNames);
}

/// `seconds(op, node)` for all nodes that run.
template <class Seconds>
std::vector<double> ForNodes(const Graph& graph, const Seconds& seconds) {
  std::vector<double> all(graph.nodes().size(), 0);
  const std::vector<bool> constant = ConstantExpressions(graph);
  for (int32_t id = 0; id < static_cast<int32_t>(all.size()); ++id) {
    const Node& node = graph.node(id);
    if (constant[static_cast<size_t>(id)] || IsInput(node) || node.op->is_view) continue;
    all[static_cast<size_t>(id)] =
        WithView(graph, id, [&](const NodeView& view) { return seconds(*node.op, view); });
  }
  return all;
}

bool IsDenseThreeByThree(const NodeView& node) {
  const Shape& kernel = node.inputs[1].shape;
  const auto ones = [&](const char* name) {
    const Ints& values = node.attrs.IntList(name);
    return std::all_of(values.begin(), values.end(), [](int64_t value) { return value == 1; });
  };
  return kernel.size() == 4 && kernel[2] == 3 && kernel[3] == 3 && ones("strides") &&
         ones("dilations");
}

/// Bytes of the operands from `first` on.
double BytesFrom(std::span<const TensorType> inputs, size_t first) {
  double bytes = 0;
  for (size_t k = first; k < inputs.size(); ++k) bytes += static_cast<double>(ByteSize(inputs[k]));
  return bytes;
}

/// The time of a convolution as a multiple of its arithmetic.
double ConvFactor(Machine machine, const OpDefinition& op, const NodeView& node) {
  const Shape& image = node.inputs[0].shape;
  const Shape& kernel = node.inputs[1].shape;
  const auto spatial = [](const Shape& shape) {
    double product = 1;
    for (size_t d = 2; d < shape.size(); ++d) product *= static_cast<double>(shape[d]);
    return product;
  };
  switch (machine) {
    case Machine::kWindows:
      return op.name == "Conv" && IsDenseThreeByThree(node) ? 1 : 4;
    case Machine::kSmallKernels:
      return *std::max_element(kernel.begin() + 2, kernel.end()) > 3 ? 4 : 1;
    case Machine::kMatrices:
      return 4;
    case Machine::kWideBatches:
      return 16 / std::min(16.0, static_cast<double>(image[0]));
    case Machine::kLargeImages:
      return 32 / std::min(32.0, std::sqrt(spatial(image)));
    case Machine::kDenseChannels:
      return op.name == "Conv" && node.attrs.Int("group") > 1 ? 4 : 1;
    case Machine::kEightChannels:
      return image[1] % 8 == 0 && kernel[0] % 8 == 0 ? 1 : 4;
    default:
      return 1;
  }
}

double SecondsOn(Machine machine, const OpDefinition& op, const NodeView& node) {
  if (machine == Machine::kLaunches) return MovesData(op) ? 0.1 * kCall : kCall;
  const Cost cost = CostOf(op, node);
  if (op.name == "Patch")
    return 2 * kByte / (machine == Machine::kBytes ? 1 : 100) * BytesFrom(node.inputs, 1);
  if (machine == Machine::kBytes) return kByte * cost.bytes;
  if (MovesData(op)) return kByte / 100 * cost.bytes;
  double factor = IsConv(op) ? ConvFactor(machine, op, node) : 1;
  if (machine == Machine::kConvolutions && IsProduct(op) && !IsConv(op)) factor = 4;
  return kFlop * cost.flops * factor + kByte / 100 * cost.bytes;
}

}  // namespace

CostFunction CostsOf(Machine machine) {
  return [machine](const Graph& graph, const CompileOptions&) {
    return ForNodes(graph, [&](const OpDefinition& op, const NodeView& node) {
      return SecondsOn(machine, op, node);
    });
  };
}

CostFunction RandomMachine(uint64_t seed) {
  return [seed](const Graph& graph, const CompileOptions&) {
    return ForNodes(graph, [&](const OpDefinition& op, const NodeView& node) {
      std::string text = Cat(op.name, PrintAttributes(node.attrs));
      for (const TensorType& type : node.inputs) text += TypeString(type);
      uint64_t hash = seed;
      for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
      const Cost cost = CostOf(op, node);
      return (kCall + kFlop * cost.flops + kByte * cost.bytes) * std::exp(Rng(hash).Uniform(-2, 2));
    });
  };
}

}  // namespace mendel
