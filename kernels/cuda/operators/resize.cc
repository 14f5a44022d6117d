// Resize: every output position of a dimension has its taps in a table.

#include <utility>

#include "base/status.h"
#include "graph/resampling.h"
#include "kernels/cuda/fusion/operator_text.h"

namespace mendel::cuda::texts::resize {
namespace {

/// One dimension's taps: those of position o lie in [starts[o], starts[o + 1]) of the tables.
struct Taps {
  std::string places, shares;
  std::string begin, end;  ///< of the position that is written; empty: no position has any
  bool empty_somewhere = false;
};

Taps TapsOf(const ElementAt& at, size_t d, const std::vector<ResampleTaps>& all) {
  Taps taps;
  std::vector<int64_t> starts = {0}, places;
  std::vector<double> shares;
  for (const ResampleTaps& list : all) {
    for (const ResampleTap& tap : list) {
      places.push_back(tap.position);
      shares.push_back(tap.coefficient);
    }
    taps.empty_somewhere = taps.empty_somewhere || list.empty();
    starts.push_back(static_cast<int64_t>(places.size()));
  }
  if (places.empty()) return taps;
  const auto extent = [](const auto& list) { return Shape{static_cast<int64_t>(list.size())}; };
  const std::string table = at.code.Table(Tensor::FromInts({DType::kI32, extent(starts)}, starts));
  taps.places = at.code.Table(Tensor::FromInts({DType::kI32, extent(places)}, places));
  taps.shares = at.code.Table(Tensor::FromDoubles(
      {at.dtype() == DType::kF64 ? DType::kF64 : DType::kF32, extent(shares)}, shares));
  taps.begin = at.code.Let("int", Cat(table, "[", at.position.at[d], "]"));
  taps.end = at.code.Let("int", Cat(table, "[", at.position.at[d], " + 1]"));
  return taps;
}

std::string ResizeElement(const ElementAt& at) {
  const std::string extrapolated = at.Literal(at.view.attrs.Float("extrapolation_value"));
  const std::string sum = at.code.Variable(at.real(), at.Literal(0));
  std::string share = at.Literal(1), outside;
  std::vector<std::string> from = at.position.at;
  std::vector<std::pair<size_t, Taps>> dims;
  for (size_t d = 0; d < from.size(); ++d) {
    const std::vector<ResampleTaps> all = ResampleDimension(at.view, d);
    if (IsIdentity(all, at.shape(0)[d])) continue;
    dims.emplace_back(d, TapsOf(at, d, all));
    const Taps& taps = dims.back().second;
    if (taps.begin.empty()) return extrapolated;
    if (taps.empty_somewhere)
      outside += Cat(outside.empty() ? "" : " || ", taps.begin, " == ", taps.end);
  }
  for (const auto& [d, taps] : dims) {
    const std::string tap = Cat("tap", d);
    at.code.Open(
        Cat("for (int ", tap, " = ", taps.begin, "; ", tap, " < ", taps.end, "; ++", tap, ")"));
    share += Cat(" * ", taps.shares, "[", tap, "]");
    from[d] = at.code.LetIndex(Cat(taps.places, "[", tap, "]"));
  }
  const std::string x = at.In(0, from);
  at.code.Line(Cat(sum, " += ", share, " * ", x, ";"));
  for (size_t k = 0; k < dims.size(); ++k) at.code.Close();
  return outside.empty() ? sum : Cat("(", outside, ") ? ", extrapolated, " : ", sum);
}

absl::Status OnlyFloats(const NodeView& view) {
  return IsFloat(view.inputs[0].dtype)
             ? absl::OkStatus()
             : Unsupported("no CUDA kernel resizes ", DTypeName(view.inputs[0].dtype));
}

MENDEL_REGISTER_OPERATOR_TEXTS({{.op = "Resize",
                                 .reads = Reads::kMany,
                                 .element = &ResizeElement,
                                 .windowed = true,
                                 .check = &OnlyFloats}});

}  // namespace
}  // namespace mendel::cuda::texts::resize
