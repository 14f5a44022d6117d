// Pad(x){pads, mode, value}: pads[d] positions before and pads[rank + d] after dimension d.
// Negative pads crop, before anything is padded. Modes: "constant" (the literal `value`), "edge"
// (the nearest element), "reflect" (mirrored without repeating the edge, again and again when the
// pad is longer than the tensor) and "wrap" (periodic).

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "graph/element_structure.h"
#include "graph/fill.h"
#include "graph/integers.h"
#include "graph/movement.h"

namespace mendel::ops::pad {
namespace {

/// The rest of one dimension after cropping, and the padding around it.
struct PaddedDim {
  int64_t begin = 0;  ///< first position kept
  int64_t kept = 0;   ///< positions kept
  int64_t before = 0;
  int64_t after = 0;
};

PaddedDim DimOf(const Shape& shape, const Ints& pads, size_t d) {
  const int64_t crop_begin = std::max<int64_t>(0, -pads[d]);
  const int64_t crop_end = std::max<int64_t>(0, -pads[shape.size() + d]);
  return {crop_begin, shape[d] - crop_begin - crop_end, std::max<int64_t>(0, pads[d]),
          std::max<int64_t>(0, pads[shape.size() + d])};
}

/// The kept position whose element stands at `at` (which may lie outside); -1 for the constant.
int64_t Mirrored(const std::string& mode, int64_t at, int64_t kept) {
  if (at >= 0 && at < kept) return at;
  if (mode == "constant") return -1;
  if (mode == "edge") return std::clamp<int64_t>(at, 0, kept - 1);
  if (mode == "wrap") return (at % kept + kept) % kept;
  if (kept == 1) return 0;
  const int64_t period = 2 * (kept - 1);
  const int64_t phase = (at % period + period) % period;
  return std::min(phase, period - phase);
}

struct PadMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    const Ints& pads = node.attrs.IntList("pads");
    const std::string& mode = node.attrs.Str("mode");
    const double value = node.attrs.Float("value");
    FillByPosition(node.outputs[0].shape, out, [&](Index i) {
      std::array<int64_t, kMaxRank> source{};
      for (size_t d = 0; d < i.size(); ++d) {
        const PaddedDim dim = DimOf(in.shape(0), pads, d);
        const int64_t at = Mirrored(mode, i[d] - dim.before, dim.kept);
        if (at < 0) return Padding(in, value);
        source[d] = dim.begin + at;
      }
      return in(0, Index(source.data(), i.size()));
    });
  }

  template <class S>
  static S Padding(const Reader<S>& in, double value) {
    if (value == 0) return S{};
    return in.Literal(value);
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const Ints& pads = attrs.IntList("pads");
  const std::string& mode = attrs.Str("mode");
  const Shape& shape = inputs[0].shape;
  if (pads.size() != 2 * shape.size())
    return InvalidInput("pads must have length ", 2 * shape.size());
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    return InvalidInput("unknown mode '", mode, "'");
  const double value = attrs.Float("value");
  if (IsIntegral(inputs[0].dtype) && !IsIntegerOf(inputs[0].dtype, value))
    return InvalidInput("value ", value, " is no ", DTypeName(inputs[0].dtype));
  TensorType type{inputs[0].dtype, {}};
  for (size_t d = 0; d < shape.size(); ++d) {
    for (int64_t pad : {pads[d], pads[shape.size() + d]}) {
      if (pad > kMaxElements || pad < -shape[d])
        return InvalidInput("bad pad ", pad, " in dimension ", d, " of ", TypeString(inputs[0]));
    }
    const PaddedDim dim = DimOf(shape, pads, d);
    if (dim.kept < 0)
      return InvalidInput("pads crop more than dimension ", d, " of ", TypeString(inputs[0]));
    if (dim.kept == 0 && dim.before + dim.after > 0 && mode != "constant")
      return InvalidInput("nothing to repeat in dimension ", d);
    type.shape.push_back(dim.before + dim.kept + dim.after);
  }
  MENDEL_RETURN_IF_ERROR(CheckExtents(type.shape));
  return std::vector<TensorType>{type};
}

bool PadsZero(const NodeView& node) {
  return node.attrs.Str("mode") == "constant" && node.attrs.Float("value") == 0;
}

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  if (node.attrs.Str("mode") != "constant" || PadsZero(node)) return inputs[0];
  const double value = node.attrs.Float("value");
  return Either(inputs[0], std::isfinite(value) ? arithmetic.Literal(value) : Bound::Symbol());
}

/// Constant padding is clipped; the other modes need at most the whole dimension where the box
/// overlaps their padding.
std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  const Shape& shape = node.inputs[0].shape;
  const Ints& pads = node.attrs.IntList("pads");
  const bool constant = node.attrs.Str("mode") == "constant";
  Restriction restriction{{out}, node.attrs};
  Ints cut(pads.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    const PaddedDim dim = DimOf(shape, pads, d);
    const int64_t begin = std::max<int64_t>(0, out.begin[d] - dim.before);
    const int64_t end = std::min(dim.kept, out.end[d] - dim.before);
    if (begin >= end) return std::nullopt;
    const bool inside = out.begin[d] >= dim.before && out.end[d] <= dim.before + dim.kept;
    if (!inside && !constant) return std::nullopt;
    restriction.inputs[0].begin[d] = dim.begin + begin;
    restriction.inputs[0].end[d] = dim.begin + end;
    cut[d] = begin + dim.before - out.begin[d];
    cut[shape.size() + d] = out.end[d] - dim.before - end;
  }
  restriction.attrs.Set("pads", cut);
  return restriction;
}

/// Zero padding is an absent element. The accesses never reach input positions that cropping
/// removes.
std::optional<AccessPattern> Access(const NodeView& node) {
  const Ints& pads = node.attrs.IntList("pads");
  const Shape& shape = node.inputs[0].shape;
  AccessPattern pattern;
  pattern.breaks.resize(shape.size());
  InputAccess access;
  for (size_t d = 0; d < shape.size(); ++d) {
    // A dimension with a crop and a pad: the pad would read cropped positions.
    const PaddedDim dim = DimOf(shape, pads, d);
    const bool hidden = (dim.before > 0 || dim.after > 0) && dim.kept != shape[d];
    if (!PadsZero(node) || hidden) return std::nullopt;
    access.dims.push_back(LinearAccess(shape.size(), d, 1, -pads[d]));
  }
  pattern.inputs = {access};
  return pattern;
}

OpSample Sample(Rng& rng) {
  const Shape shape = SampleShape(rng, 1, 4, 6);
  const char* modes[] = {"constant", "constant", "constant", "edge", "reflect", "wrap"};
  const std::string mode = modes[rng.Below(6)];
  Ints pads(2 * shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    pads[d] = rng.Between(rng.Flip(0.3) && shape[d] > 2 ? -1 : 0, 3);
    pads[shape.size() + d] = rng.Between(rng.Flip(0.3) && shape[d] > 2 ? -1 : 0, 3);
  }
  const double value = rng.Flip() ? 0.0 : static_cast<double>(rng.Between(-3, 3));
  const DType dtype = rng.Flip(0.8) ? DType::kF32 : DType::kI64;
  return {{{dtype, shape}}, {{"pads", pads}, {"mode", mode}, {"value", value}}, {}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "Pad";
  op.min_inputs = op.max_inputs = 1;
  op.attributes = {{"pads", Ints(), true}, {"mode", std::string("constant")}, {"value", 0.0}};
  op.infer = &Infer;
  op.meaning = MeaningOf<PadMeaning>();
  op.linear_inputs = [](const NodeView& node) {
    return node.attrs.Str("mode") != "constant" || PadsZero(node) ? 1u : 0u;
  };
  op.bound = &BoundOf;
  op.restrict = &Restrict;
  op.access = &Access;
  op.sample = &Sample;
  op.infinite = [](const NodeView& node) { return !std::isfinite(node.attrs.Float("value")); };
  op.storage = StorageTypes::kAll;
  return op;
}

std::optional<SeparableTaps> Taps(const NodeView& node, std::span<const Tensor* const>, int) {
  const Shape& shape = node.inputs[0].shape;
  const std::string& mode = node.attrs.Str("mode");
  SeparableTaps result;
  for (size_t d = 0; d < shape.size(); ++d) {
    const PaddedDim padded = DimOf(shape, node.attrs.IntList("pads"), d);
    SeparableTaps::Dim& dim = result.dims.emplace_back();
    dim.input_dim = static_cast<int>(d);
    for (int64_t t = 0; t < node.outputs[0].shape[d]; ++t) {
      const int64_t at = Mirrored(mode, t - padded.before, padded.kept);
      std::vector<Tap>& list = dim.taps.emplace_back();
      if (at >= 0) list.push_back({padded.begin + at, 1.0});
    }
  }
  return result;
}

MENDEL_REGISTER_OP(&Make);
MENDEL_REGISTER_ELEMENT_STRUCTURE({.op = "Pad", .taps = &Taps});

}  // namespace
}  // namespace mendel::ops::pad
