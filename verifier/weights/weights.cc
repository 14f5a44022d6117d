#include "verifier/weights/weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

namespace mendel {
namespace {

std::map<std::string, const Tensor*> Symbols(const Graph& graph) {
  std::map<std::string, const Tensor*> symbols;
  for (const Node& node : graph.nodes()) {
    if (IsConstant(node) && !SymbolName(node).empty())
      symbols.emplace(SymbolName(node), &ConstantValue(node));
  }
  return symbols;
}

/// Rank of a float among all floats of its format, both zeros being one: neighbors are one apart.
int64_t RankOf(const Tensor& tensor, int64_t flat) {
  const size_t size = static_cast<size_t>(DTypeSize(tensor.dtype()));
  uint64_t bits = 0;
  std::memcpy(&bits, tensor.bytes().data() + static_cast<size_t>(flat) * size, size);
  const uint64_t sign = uint64_t{1} << (8 * size - 1);
  const auto magnitude = static_cast<int64_t>(bits & (sign - 1));
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

double UlpsBetween(const Tensor& a, const Tensor& b, int64_t flat) {
  const double x = a.DoubleAt(flat);
  const double y = b.DoubleAt(flat);
  if (!std::isfinite(x) || !std::isfinite(y)) return std::numeric_limits<double>::infinity();
  return std::abs(static_cast<double>(RankOf(a, flat)) - static_cast<double>(RankOf(b, flat)));
}

WeightDifference Describe(const std::string& name, const Tensor& a, const Tensor& b) {
  WeightDifference difference{name, a.size(), 0, 0};
  if (a.type() != b.type()) {
    difference.differing = a.size();
    difference.largest_ulps = std::numeric_limits<double>::infinity();
    return difference;
  }
  const size_t size = static_cast<size_t>(DTypeSize(a.dtype()));
  for (int64_t i = 0; i < a.size(); ++i) {
    const size_t at = static_cast<size_t>(i) * size;
    if (std::memcmp(a.bytes().data() + at, b.bytes().data() + at, size) == 0) continue;
    ++difference.differing;
    difference.largest_ulps = std::max(difference.largest_ulps, UlpsBetween(a, b, i));
  }
  return difference;
}

}  // namespace

std::vector<WeightDifference> WeightDifferences(const Graph& a, const Graph& b) {
  const std::map<std::string, const Tensor*> others = Symbols(b);
  std::vector<WeightDifference> differing;
  for (const auto& [name, tensor] : Symbols(a)) {
    const auto other = others.find(name);
    if (other != others.end() && !(*other->second == *tensor))
      differing.push_back(Describe(name, *tensor, *other->second));
  }
  return differing;
}

std::vector<std::string> DifferingWeights(const Graph& a, const Graph& b) {
  std::vector<std::string> names;
  for (const WeightDifference& difference : WeightDifferences(a, b))
    names.push_back(difference.name);
  return names;
}

}  // namespace mendel
