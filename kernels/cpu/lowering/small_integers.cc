#include "kernels/cpu/lowering/small_integers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

namespace mendel::cpu {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr double kLargestExact = 0x1p24;
constexpr int kMostNodes = 8;

bool IsArithmetic(std::string_view op) { return op == "Add" || op == "Sub" || op == "Mul"; }

bool IsTileType(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBool || dtype == DType::kU8 ||
         dtype == DType::kI8 || dtype == DType::kI32;
}

double LargestOf(DType dtype) {
  if (dtype == DType::kBool) return 1;
  if (dtype == DType::kI8) return 128;
  return dtype == DType::kU8 ? 255 : kUnbounded;
}

/// No element of the integer value is larger in magnitude.
double LargestOf(const Graph& graph, Folded& folded, ValueId value, int depth) {
  const DType dtype = graph.type(value).dtype;
  const double by_type = LargestOf(dtype);
  if (by_type < kUnbounded || dtype != DType::kI32 || depth == 0) return by_type;
  if (folded.IsConstant(value)) {
    double largest = 0;
    for (const int64_t element : folded.Rounded(value).ToInts())
      largest = std::max(largest, std::abs(static_cast<double>(element)));
    return largest;
  }
  const Node& node = graph.node(value.node);
  if (node.op->name == "Cast") return LargestOf(graph, folded, node.inputs[0], depth - 1);
  if (!IsArithmetic(node.op->name)) return kUnbounded;
  const double a = LargestOf(graph, folded, node.inputs[0], depth - 1);
  const double b = LargestOf(graph, folded, node.inputs[1], depth - 1);
  return node.op->name == "Mul" ? a * b : a + b;
}

}  // namespace

bool IsOnSmallIntegers(const Graph& graph, Folded& folded, int32_t id) {
  const Node& node = graph.node(id);
  const DType to = node.outputs[0].dtype;
  const auto small = [&](ValueId value) {
    return LargestOf(graph, folded, value, kMostNodes) <= kLargestExact;
  };
  if (node.op->name == "Cast") {
    const DType from = graph.type(node.inputs[0]).dtype;
    if (!IsTileType(from) || !IsTileType(to)) return false;
    return IsFloat(from) || IsFloat(to) || to == DType::kBool || small(node.inputs[0]);
  }
  return to == DType::kI32 && IsArithmetic(node.op->name) && small({id, 0}) &&
         std::all_of(node.inputs.begin(), node.inputs.end(), small);
}

}  // namespace mendel::cpu
