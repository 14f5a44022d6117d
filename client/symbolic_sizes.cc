#include "client/symbolic_sizes.h"

#include <algorithm>
#include <array>

#include "base/status.h"

namespace mendel {
namespace {

/// Larger positions are not tried: most large numbers in models are no positions.
constexpr int64_t kLargestPosition = 512;
constexpr size_t kMostPositions = 6;
/// Sizes are powers of different primes, so that no dimension is a multiple of another.
constexpr std::array<int64_t, 10> kPrimes = {5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
constexpr std::array<int64_t, 10> kLarger = {41, 27, 25, 16, 49, 43, 47, 53, 59, 61};

Sizes AllOf(const std::set<std::string>& dimensions, int64_t size) {
  Sizes sizes;
  for (const std::string& dimension : dimensions) sizes[dimension] = size;
  return sizes;
}

Sizes OneOf(const std::set<std::string>& dimensions, const std::array<int64_t, 10>& numbers) {
  Sizes sizes;
  for (const std::string& dimension : dimensions)
    sizes[dimension] = numbers[sizes.size() % numbers.size()];
  return sizes;
}

/// Positions at which a graph cuts or indexes, or with which it compares.
void AddPositions(const Graph& graph, std::set<int64_t>& positions) {
  const auto add = [&](int64_t position) {
    if (position > 3 && position <= kLargestPosition) positions.insert(position);
  };
  for (const Node& node : graph.nodes()) {
    if (node.op->name == "Slice" || node.op->name == "Split") {
      for (const auto& [name, value] : node.attrs.values()) {
        if (!std::holds_alternative<Ints>(value)) continue;
        for (const int64_t number : std::get<Ints>(value)) add(number);
      }
    }
    const bool integers = node.op->index_inputs != 0 || node.op->name == "Less" ||
                          node.op->name == "LessOrEqual" || node.op->name == "Greater" ||
                          node.op->name == "GreaterOrEqual" || node.op->name == "Equal";
    for (size_t k = 0; integers && k < node.inputs.size(); ++k) {
      const Node& operand = graph.node(node.inputs[k].node);
      if (!IsConstant(operand) || IsFloat(operand.outputs[0].dtype)) continue;
      const Tensor& tensor = ConstantValue(operand);
      for (int64_t i = 0; i < std::min<int64_t>(tensor.size(), 64); ++i) add(tensor.IntAt(i));
    }
  }
}

}  // namespace

std::vector<Sizes> TellingSizes(const std::set<std::string>& dimensions,
                                const std::vector<Graph>& graphs) {
  std::vector<Sizes> all = {AllOf(dimensions, 2), AllOf(dimensions, 3), OneOf(dimensions, kPrimes),
                            OneOf(dimensions, kLarger)};
  std::set<int64_t> positions;
  for (const Graph& graph : graphs) AddPositions(graph, positions);
  for (const int64_t position : positions) {
    if (all.size() >= 4 + 2 * kMostPositions) break;
    all.push_back(AllOf(dimensions, position));
    all.push_back(AllOf(dimensions, position + 1));
  }
  return all;
}

std::string SizesText(const Sizes& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes) text += Cat(text.empty() ? "" : ", ", name, " = ", size);
  return text;
}

}  // namespace mendel
