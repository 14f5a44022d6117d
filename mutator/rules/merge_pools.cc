// A pool of a pool becomes one pool.
//
//   before  MaxPool(MaxPool(x)), AveragePool(AveragePool(x)), ReduceMean(AveragePool(x)){space}
//   after   MaxPool(x) of the larger window, AveragePool(x), ReduceMean(x)
//
// Exact: the maximum of maxima is a maximum, and the mean of means of equally many elements a mean.

#include <algorithm>
#include <numeric>

#include "graph/emitter.h"
#include "graph/window.h"
#include "mutator/rule.h"
#include "mutator/sample.h"

namespace mendel::rules::merge_pools {
namespace {

bool IsPool(const Node& node) {
  return (node.op->name == "MaxPool" || node.op->name == "AveragePool") && node.outputs.size() == 1;
}

std::vector<Window> WindowsOfPool(const Graph& graph, const Node& pool) {
  const Shape& shape = graph.type(pool.inputs[0]).shape;
  return WindowsOf(Shape(shape.begin() + 2, shape.end()), pool.attrs.IntList("kernel_shape"),
                   pool.attrs);
}

bool IsPlain(const std::vector<Window>& windows, bool padded) {
  return std::all_of(windows.begin(), windows.end(), [&](const Window& window) {
    return window.dilation == 1 && (padded || (window.pad_begin == 0 && window.pad_end == 0));
  });
}

/// The windows of a first pool follow each other without overlap, or at least without gaps.
bool Follow(const Graph& graph, const Node& pool) {
  const bool largest = pool.op->name == "MaxPool";
  const std::vector<Window> windows = WindowsOfPool(graph, pool);
  return pool.attrs.Int("ceil_mode") == 0 && IsPlain(windows, /*padded=*/largest) &&
         std::all_of(windows.begin(), windows.end(), [&](const Window& window) {
           return largest ? window.stride <= window.kernel : window.stride == window.kernel;
         });
}

/// The mean over all of space.
bool IsSpatialMean(const Node& node, const Graph& graph) {
  if (node.op->name != "ReduceMean") return false;
  Ints axes = node.attrs.IntList("axes");
  std::sort(axes.begin(), axes.end());
  Ints space(graph.type(node.inputs[0]).shape.size() - 2);
  std::iota(space.begin(), space.end(), 2);
  return !space.empty() && axes == space;
}

/// The first pool's windows are all of its image.
bool Covers(const Graph& graph, const Node& pool) {
  const Shape& from = graph.type(pool.inputs[0]).shape;
  const Ints& kernel = pool.attrs.IntList("kernel_shape");
  for (size_t d = 0; d < kernel.size(); ++d) {
    if (pool.outputs[0].shape[d + 2] * kernel[d] != from[d + 2]) return false;
  }
  return true;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  const Node& second = graph.node(node);
  if (second.inputs.empty()) return {};
  const Node& first = graph.node(second.inputs[0].node);
  if (!IsPool(first) || graph.OnlyUser(second.inputs[0].node) < 0 || !Follow(graph, first))
    return {};
  const bool mean =
      first.op->name == "AveragePool" && IsSpatialMean(second, graph) && Covers(graph, first);
  const bool pools = second.op == first.op && second.outputs.size() == 1 &&
                     second.attrs.Int("ceil_mode") == 0 &&
                     IsPlain(WindowsOfPool(graph, second), /*padded=*/false);
  if (!mean && !pools) return {};
  return {{{second.inputs[0].node, node}, {}}};
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  const Node& second = subprogram.node(subprogram.outputs()[0].value.node);
  const Node& first = subprogram.node(second.inputs[0].node);
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  if (!IsPool(second)) {
    e.Output("out0", e.Op("ReduceMean", {x}, second.attrs, second.name));
    return e.Finish();
  }
  const Ints &k1 = first.attrs.IntList("kernel_shape"), &s1 = first.attrs.IntList("strides"),
             &k2 = second.attrs.IntList("kernel_shape"), &s2 = second.attrs.IntList("strides");
  Ints kernel, strides;
  for (size_t d = 0; d < k1.size(); ++d) {
    kernel.push_back(k1[d] + (k2[d] - 1) * s1[d]);
    strides.push_back(s1[d] * s2[d]);
  }
  Attributes attrs = first.attrs;
  attrs.Set("kernel_shape", kernel);
  attrs.Set("strides", strides);
  e.Output("out0", e.Op(first.op->name, {x}, attrs, second.name));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const bool largest = rng.Flip();
  const int64_t kernel = rng.Between(2, 3), outer = rng.Between(2, 3);
  const int64_t stride = largest ? rng.Between(1, kernel) : kernel;
  const int64_t size = kernel * outer * rng.Between(1, 2);
  const auto pool = [&](ValueId v, int64_t window, int64_t step, int64_t pad) {
    Attributes attrs = WindowAttributes(2, step, 1, pad);
    attrs.Set("kernel_shape", Ints{window, window});
    return e.Op(largest ? "MaxPool" : "AveragePool", {v}, attrs);
  };
  const ValueId x = e.Input("x", {DType::kF32, {rng.Between(1, 2), 2, size, size}});
  const ValueId first = pool(x, kernel, stride, largest ? rng.Between(0, 1) : 0);
  if (!largest && rng.Flip(0.3)) {
    e.Output("y", e.Op("ReduceMean", {first}, {{"axes", Ints{2, 3}}}));
  } else {
    e.Output("y", pool(first, outer, rng.Between(1, outer), 0));
  }
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "merge_pools";
  rule.family = "linear order";
  rule.before = "MaxPool(MaxPool(x)), AveragePool(AveragePool(x)), ReduceMean(AveragePool(x))";
  rule.after = "one pool of the larger window, or ReduceMean(x)";
  rule.precondition =
      "averages of windows that do not overlap, maxima of windows without gaps; the second pool "
      "has no padding";
  rule.loses_when = "the larger windows overlap a lot";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::merge_pools
