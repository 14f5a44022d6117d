#include "kernels/cuda/backend/format_range.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "kernels/cuda/fusion/operator_text.h"

namespace mendel::cuda {
namespace {

/// The largest finite number.
double LargestOf(DType format) { return format == DType::kF16 ? 65504.0 : 0x1.FEp127; }

template <class T>
double LargestFinite(std::span<const T> numbers) {
  T largest = 0;
  for (const T number : numbers) {
    const T magnitude = std::abs(number);
    if (magnitude > largest && magnitude <= std::numeric_limits<T>::max()) largest = magnitude;
  }
  return static_cast<double>(largest);
}

/// Integers are indices and conditions, and the formats themselves exceed nothing.
double LargestFinite(const Tensor& tensor) {
  if (tensor.dtype() == DType::kF32) return LargestFinite(tensor.As<float>());
  return tensor.dtype() == DType::kF64 ? LargestFinite(tensor.As<double>()) : 0;
}

/// A cache of LargestFinite, which is queried for every algorithm of the nodes around a weight.
/// It keeps the tensors of the latest queries, so that no other bytes come to lie at their
/// addresses.
class LargestNumbers {
 public:
  double Of(const Tensor& tensor) {
    const Key key{tensor.bytes().data(), tensor.bytes().size(), tensor.dtype()};
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (const auto known = known_.find(key); known != known_.end()) return known->second.largest;
    }
    const double largest = LargestFinite(tensor);
    if (tensor.bytes().size() > kMostBytes) return largest;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!known_.try_emplace(key, Known{tensor, largest}).second) return largest;
    order_.push_back(key);
    bytes_ += tensor.bytes().size();
    for (; bytes_ > kMostBytes; order_.pop_front()) {
      const auto oldest = known_.find(order_.front());
      bytes_ -= oldest->second.tensor.bytes().size();
      known_.erase(oldest);
    }
    return largest;
  }

 private:
  static constexpr size_t kMostBytes = size_t{64} << 20;
  using Key = std::tuple<const void*, size_t, DType>;
  struct Known {
    Tensor tensor;
    double largest = 0;
  };
  std::mutex mutex_;
  std::map<Key, Known> known_;
  std::deque<Key> order_;  // in which they came
  size_t bytes_ = 0;
};

bool Exceeds(const Tensor& tensor, double largest) {
  static auto* const numbers = new LargestNumbers;
  return numbers->Of(tensor) > largest;
}

/// True where each element of the value comes from one element of each input. Gathers from a table
/// are left out: the tables of embeddings are large, and learned.
bool IsElementwiseOrView(const Node& node) {
  const OperatorText* text = FindOperatorText(node.op->name);
  return text != nullptr && !text->is_row() && text->reads != Reads::kMany &&
         !node.op->name.starts_with("Gather");
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
