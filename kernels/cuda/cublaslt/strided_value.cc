#include "kernels/cuda/cublaslt/strided_value.h"

#include <algorithm>
#include <utility>

namespace mendel::cuda {
namespace {

bool IsMover(const Node& node) {
  return node.op->name == "Transpose" || node.op->name == "Reshape" || node.op->name == "Expand";
}

/// Strides of the result of `mover` on elements that lie like this; nullopt where there are none.
std::optional<Ints> StridesAfter(const Node& mover, const Shape& shape, const Ints& strides) {
  const Shape& to = mover.outputs[0].shape;
  if (mover.op->name == "Reshape") return StridesReshaped(shape, strides, to);
  Ints result(to.size(), 0);
  if (mover.op->name == "Transpose") {
    const Ints& perm = mover.attrs.IntList("perm");
    for (size_t d = 0; d < perm.size(); ++d) result[d] = strides[static_cast<size_t>(perm[d])];
    return result;
  }
  const size_t skip = to.size() - shape.size();
  for (size_t d = skip; d < to.size(); ++d)
    result[d] = shape[d - skip] == to[d] ? strides[d - skip] : 0;
  return result;
}

/// The value that the last of `through` reads, as the reader of the first sees it.
std::optional<StridedValue> ReadThrough(const Graph& graph, std::vector<int32_t> through) {
  const ValueId source = graph.node(through.back()).inputs[0];
  StridedValue read{source, graph.type(source).shape, RowMajorStrides(graph.type(source).shape),
                    std::move(through)};
  for (size_t k = read.through.size(); k-- > 0;) {
    const Node& mover = graph.node(read.through[k]);
    std::optional<Ints> strides = StridesAfter(mover, read.shape, read.strides);
    if (!strides.has_value()) return std::nullopt;
    read.strides = *std::move(strides);
    read.shape = mover.outputs[0].shape;
  }
  return read;
}

/// `stops(node)`: the value of the node is read as it is.
template <class Stops>
std::vector<StridedValue> WaysUpTo(const Graph& graph, ValueId value, const Stops& stops) {
  const Shape& shape = graph.type(value).shape;
  std::vector<StridedValue> ways = {{value, shape, RowMajorStrides(shape), {}}};
  if (NumElements(shape) == 0) return ways;
  std::vector<int32_t> through;
  for (ValueId at = value; !stops(at.node) && IsMover(graph.node(at.node));) {
    through.push_back(at.node);
    at = graph.node(at.node).inputs[0];
    if (std::optional<StridedValue> way = ReadThrough(graph, through))
      ways.insert(ways.begin(), *std::move(way));
  }
  return ways;
}

}  // namespace

std::vector<StridedValue> WaysToRead(const Graph& graph, ValueId value,
                                     const std::vector<bool>& constant) {
  return WaysUpTo(graph, value, [&](int32_t node) { return constant[static_cast<size_t>(node)]; });
}

std::vector<StridedValue> WaysToRead(const GroupingScope& scope, ValueId value) {
  return WaysUpTo(scope.graph, value, [&](int32_t node) { return !scope.IsFree(node); });
}

bool AreOnlyFor(const GroupingScope& scope, const std::vector<int32_t>& through, int32_t reader) {
  return std::all_of(through.begin(), through.end(), [&](int32_t mover) {
    return scope.IsFree(mover) && scope.OnlyUser(mover) == std::exchange(reader, mover);
  });
}

void AddOwn(const GroupingScope& scope, const std::vector<int32_t>& through,
            std::set<int32_t>& nodes) {
  for (const int32_t mover : through) {
    const int32_t user = scope.OnlyUser(mover);
    if (user < 0 || nodes.count(user) == 0 || !scope.IsFree(mover)) return;
    nodes.insert(mover);
  }
}

std::optional<Ints> StridesReshaped(const Shape& shape, const Ints& strides, const Shape& to) {
  Shape from;
  Ints steps;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    from.push_back(shape[d]);
    steps.push_back(strides[d]);
  }
  Ints result(to.size(), 1);
  size_t old_begin = 0, new_begin = 0;
  while (old_begin < from.size()) {
    // The fewest dimensions of both sides with as many elements.
    size_t old_end = old_begin + 1, new_end = new_begin + 1;
    int64_t old_count = from[old_begin], new_count = to[new_begin];
    while (old_count != new_count) {
      if (old_count < new_count) {
        old_count *= from[old_end++];
      } else {
        new_count *= to[new_end++];
      }
    }
    for (size_t d = old_begin; d + 1 < old_end; ++d) {
      if (steps[d] != steps[d + 1] * from[d + 1]) return std::nullopt;
    }
    int64_t step = steps[old_end - 1];
    for (size_t d = new_end; d-- > new_begin;) step *= (result[d] = step, to[d]);
    old_begin = old_end;
    new_begin = new_end;
  }
  return result;
}

}  // namespace mendel::cuda
