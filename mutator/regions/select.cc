#include "mutator/regions/select.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/status.h"
#include "graph/positions.h"

namespace mendel {
namespace {

/// One dimension: a slice, then copies of it, then fill at both ends.
struct DimSelection {
  Positions slice;
  std::vector<int64_t> gather;  ///< positions of the slice; kAbsent: fill
  int64_t blocks = 1;           ///< how often each position occurs in turn
  int64_t before = 0, after = 0;
};

/// Every position of 0, 1, .. the same number of times in turn; 1 when it is not so.
int64_t BlocksOf(const std::vector<int64_t>& list) {
  const int64_t count = std::count(list.begin(), list.end(), list[0]);
  if (static_cast<int64_t>(list.size()) % count != 0) return 1;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] != static_cast<int64_t>(i) / count) return 1;
  }
  return count;
}

DimSelection AnalyzeDim(std::vector<int64_t> list) {
  DimSelection result;
  const auto present = [](int64_t at) { return at != kAbsent; };
  const auto first = std::find_if(list.begin(), list.end(), present);
  const auto last = std::find_if(list.rbegin(), list.rend(), present).base();
  if (first == list.end()) return result;
  result.before = first - list.begin();
  result.after = list.end() - last;
  list = std::vector<int64_t>(first, last);
  const Positions whole = Positions::List(list);
  if (whole.IsRange() && (whole.size() == 1 || whole.step() != 0)) {
    result.slice = whole;
    return result;
  }
  const Positions sorted = UnionOf(whole, {});
  const int64_t low = sorted[0];
  const int64_t high = sorted[sorted.size() - 1];
  result.slice = sorted.IsRange() ? sorted : Positions::Range(low, high - low + 1);
  for (int64_t& at : list) {
    if (at != kAbsent) at = (at - low) / result.slice.step();
  }
  result.blocks = BlocksOf(list);
  if (result.blocks == 1) result.gather = std::move(list);
  return result;
}

ValueId SliceAll(Emitter& e, ValueId x, const std::vector<DimSelection>& dims) {
  Ints starts, ends, steps;
  bool whole = true;
  for (size_t d = 0; d < dims.size(); ++d) {
    const Positions& slice = dims[d].slice;
    const int64_t first = slice[0], last = slice[slice.size() - 1];
    starts.push_back(first);
    steps.push_back(slice.step());
    ends.push_back(slice.step() > 0 ? last + 1 : last - 1);
    whole = whole && slice.IsWhole(e.shape(x)[d]);
  }
  if (whole) return x;
  return e.Op("Slice", {x}, {{"starts", starts}, {"ends", ends}, {"steps", steps}});
}

ValueId PadDim(Emitter& e, ValueId x, size_t d, int64_t before, int64_t after, double fill) {
  const size_t rank = e.shape(x).size();
  Ints pads(2 * rank, 0);
  pads[d] = before;
  pads[rank + d] = after;
  return e.Op("Pad", {x}, {{"pads", pads}, {"value", fill}});
}

ValueId GatherDim(Emitter& e, ValueId x, size_t d, std::vector<int64_t> list, double fill) {
  const int64_t extent = e.shape(x)[d];
  if (std::find(list.begin(), list.end(), kAbsent) != list.end()) {
    x = PadDim(e, x, d, 0, 1, fill);
    std::replace(list.begin(), list.end(), kAbsent, extent);
  }
  const TensorType type{DType::kI64, {static_cast<int64_t>(list.size())}};
  return e.Op("Gather", {x, e.Constant(Tensor::FromInts(type, list))},
              {{"axis", static_cast<int64_t>(d)}});
}

/// Expand where single positions are repeated, nearest upsampling elsewhere.
ValueId RepeatAll(Emitter& e, ValueId x, const std::vector<DimSelection>& dims) {
  Shape expanded = e.shape(x), shape = expanded;
  std::vector<double> scales(dims.size(), 1);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].blocks == 1) continue;
    if (shape[d] == 1) {
      expanded[d] = dims[d].blocks;
    } else {
      scales[d] = static_cast<double>(dims[d].blocks);
      shape[d] *= dims[d].blocks;
    }
  }
  if (shape != e.shape(x) && IsFloat(e.type(x).dtype)) {
    x = e.Op("Resize", {x},
             {{"output_sizes", shape},
              {"scales", scales},
              {"mode", std::string("nearest")},
              {"coordinate_transformation_mode", std::string("asymmetric")},
              {"nearest_mode", std::string("floor")}});
  } else {
    for (size_t d = 0; d < dims.size(); ++d) {
      if (scales[d] == 1) continue;
      std::vector<int64_t> list;
      for (int64_t i = 0; i < shape[d]; ++i) list.push_back(i / dims[d].blocks);
      x = GatherDim(e, x, d, std::move(list), 0);
    }
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    if (scales[d] != 1) expanded[d] = shape[d];
  }
  return expanded == e.shape(x) ? x : e.Op("Expand", {x}, {{"shape", expanded}});
}

}  // namespace

std::vector<ValueId> CopyNode(Emitter& e, const Node& node, std::vector<ValueId> inputs) {
  if (IsConstant(node)) return {e.Constant(ConstantValue(node), SymbolName(node))};
  if (node.outputs.size() > 1)
    return e.Ops(node.op->name, std::move(inputs), node.outputs.size(), node.attrs);
  return {e.Op(node.op->name, std::move(inputs), node.attrs, node.name)};
}

ValueId SelectPositions(Emitter& e, ValueId x, const std::vector<std::vector<int64_t>>& lists,
                        double fill) {
  std::vector<DimSelection> dims;
  for (const std::vector<int64_t>& list : lists) {
    dims.push_back(AnalyzeDim(list));
    if (dims.back().slice.size() == 0) {
      e.Fail(absl::FailedPreconditionError("nothing but padding is read"));
      return {};
    }
  }
  x = SliceAll(e, x, dims);
  for (size_t d = 0; d < dims.size() && IsBuilt(x); ++d) {
    if (!dims[d].gather.empty()) x = GatherDim(e, x, d, dims[d].gather, fill);
  }
  if (!IsBuilt(x)) return {};
  x = RepeatAll(e, x, dims);
  for (size_t d = 0; d < dims.size() && IsBuilt(x); ++d) {
    if (dims[d].before + dims[d].after > 0)
      x = PadDim(e, x, d, dims[d].before, dims[d].after, fill);
  }
  return x;
}

ValueId PickAlong(Emitter& e, ValueId x, size_t axis, const std::vector<int64_t>& picked) {
  if (!IsBuilt(x)) return x;
  std::vector<std::vector<int64_t>> lists;
  for (const int64_t extent : e.shape(x)) {
    lists.emplace_back(static_cast<size_t>(extent));
    std::iota(lists.back().begin(), lists.back().end(), 0);
  }
  if (lists[axis] == picked) return x;
  lists[axis] = picked;
  return SelectPositions(e, x, lists, 0);
}

}  // namespace mendel
