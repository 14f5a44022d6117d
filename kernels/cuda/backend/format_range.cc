#include "kernels/cuda/backend/format_range.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <vector>

#include "kernels/cuda/fusion/operator_text.h"

namespace mendel::cuda {
namespace {

/// The largest finite number.
double LargestOf(DType format) { return format == DType::kF16 ? 65504.0 : 0x1.FEp127; }

template <class T>
bool Exceeds(std::span<const T> numbers, double largest) {
  return std::any_of(numbers.begin(), numbers.end(),
                     [&](T number) { return std::abs(number) > largest && std::abs(number) <= std::numeric_limits<T>::max(); });
}

/// Integers are indices and conditions, and the formats themselves exceed nothing.
bool Exceeds(const Tensor& tensor, double largest) {
  if (tensor.dtype() == DType::kF32) return Exceeds(tensor.As<float>(), largest);
  return tensor.dtype() == DType::kF64 && Exceeds(tensor.As<double>(), largest);
}

/// Elements of the node's value are those of its inputs, or computed of one element of each. What is gathered of a table is left
/// out: the tables of embeddings are large, and learned.
bool IsElementwiseOrView(const Node& node) {
  const OperatorText* text = FindOperatorText(node.op->name);
  return text != nullptr && !text->is_row() && text->reads != Reads::kMany && !node.op->name.starts_with("Gather");
}

}  // namespace

bool ExceedsByConstants(const Graph& graph, ValueId value, DType format) {
  const double largest = LargestOf(format);
  std::vector<int32_t> open = {value.node};
  std::set<int32_t> met = {value.node};
  while (!open.empty()) {
    const Node& node = graph.node(open.back());
    open.pop_back();
    if (IsConstant(node)) {
      if (Exceeds(ConstantValue(node), largest)) return true;
      continue;
    }
    if (!IsElementwiseOrView(node)) continue;
    for (const ValueId input : node.inputs) {
      if (met.insert(input.node).second) open.push_back(input.node);
    }
  }
  return false;
}

}  // namespace mendel::cuda
