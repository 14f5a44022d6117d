// Operators that move elements to where constants say: each result is one element of one input, or
// a constant.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/status.h"
#include "kernels/cuda/fusion/operator_text.h"

namespace mendel::cuda::texts::views {
namespace {

using Names = std::vector<std::string>;

std::string ReshapeElement(const ElementAt& at) {
  std::string flat = at.position.flat;
  if (flat.empty()) flat = at.code.LetIndex(FlatOf(at.shape(), at.position));
  return at.In(0, at.code.Decode(flat, at.shape(0)));
}

std::string TransposeElement(const ElementAt& at) {
  const Ints& perm = at.view.attrs.IntList("perm");
  Position from{Names(perm.size()), std::vector<FromRoot>(perm.size())};
  for (size_t d = 0; d < perm.size(); ++d) {
    from.at[static_cast<size_t>(perm[d])] = at.position.at[d];
    from.root[static_cast<size_t>(perm[d])] = at.position.RootOf(d);
  }
  return at.In(0, from);
}

std::string ExpandElement(const ElementAt& at) { return at.In(0); }

std::string SliceElement(const ElementAt& at) {
  const Ints& starts = at.view.attrs.IntList("starts");
  const Ints& steps = at.view.attrs.IntList("steps");
  Position from = at.position;
  for (size_t d = 0; d < starts.size(); ++d)
    from = Moved(from, d, at.shape()[d] == 1 ? 0 : steps[d], starts[d]);
  return at.In(0, from);
}

std::string SplitElement(const ElementAt& at) {
  const Ints& sizes = at.view.attrs.IntList("sizes");
  const size_t axis = static_cast<size_t>(at.view.attrs.Int("axis"));
  return at.In(0, Moved(at.position, axis, 1,
                        std::accumulate(sizes.begin(), sizes.begin() + at.output, int64_t{0})));
}

std::string TileElement(const ElementAt& at) {
  Names from;
  for (size_t d = 0; d < at.position.at.size(); ++d)
    from.push_back(Modulo(at.position.at[d], at.shape(0)[d]));
  return at.In(0, from);
}

std::string ConcatElement(const ElementAt& at) {
  const size_t axis = static_cast<size_t>(at.view.attrs.Int("axis"));
  const std::string value = at.code.Variable(at.real(), at.Literal(0));
  int64_t begin = 0;
  for (size_t k = 0; k < at.view.inputs.size(); ++k) {
    const int64_t end = begin + at.shape(k)[axis];
    if (end == begin) continue;
    at.code.OpenWithin(at.shape(), at.position, {{axis, begin, end}}, value);
    at.code.Line(Cat(value, " = ", at.In(k, Moved(at.position, axis, 1, -begin)), ";"));
    at.code.Close();
    begin = end;
  }
  return value;
}

/// The first box that contains the position wins.
std::string PatchElement(const ElementAt& at) {
  const Boxes& boxes = at.view.attrs.BoxList("boxes");
  const std::string value = at.code.Variable(at.real(), at.In(0, at.position));
  for (size_t k = boxes.size(); k-- > 0;) {
    std::string inside;
    Position from;
    for (size_t d = 0; d < at.position.at.size(); ++d) {
      const std::string& place = at.position.at[d];
      from.at.push_back(Added(place, -boxes[k].begin[d]));
      if (boxes[k].begin[d] > 0)
        inside += Cat(inside.empty() ? "" : " && ", place, " >= ", boxes[k].begin[d]);
      if (boxes[k].end[d] < at.shape()[d])
        inside += Cat(inside.empty() ? "" : " && ", place, " < ", boxes[k].end[d]);
    }
    if (boxes[k].Volume() == 0) continue;
    at.code.Open(inside.empty() ? "" : Cat("if (", inside, ")"));
    const Shape extents = boxes[k].Extents();
    const std::string flat = at.code.LetIndex(FlatOf(extents, from));
    at.code.Line(Cat(value, " = ", at.In(k + 1, at.code.Decode(flat, at.shape(k + 1))), ";"));
    at.code.Close();
  }
  return value;
}

/// The position that `place`, counted from the first of `kept` elements, shows where the mode
/// repeats elements.
std::string Mirrored(const ElementAt& at, const std::string& mode, const std::string& place,
                     int64_t kept) {
  const std::string from = at.code.LetIndex(place);
  if (mode == "edge")
    return at.code.LetIndex(
        Cat(from, " < 0 ? 0 : (", from, " > ", kept - 1, " ? ", kept - 1, " : ", from, ")"));
  if (mode == "wrap")
    return at.code.LetIndex(Cat("(", from, " % ", kept, " + ", kept, ") % ", kept));
  if (kept == 1) return "0";
  const int64_t period = 2 * (kept - 1);
  const std::string phase =
      at.code.LetIndex(Cat("(", from, " % ", period, " + ", period, ") % ", period));
  return at.code.LetIndex(Cat(phase, " < ", kept, " ? ", phase, " : ", period, " - ", phase));
}

std::string PadElement(const ElementAt& at) {
  const Ints& pads = at.view.attrs.IntList("pads");
  const std::string& mode = at.view.attrs.Str("mode");
  const Shape& shape = at.shape(0);
  const double value = at.view.attrs.Float("value");
  const bool finite = IsFloat(at.dtype()) || std::abs(value) < 0x1p63;
  const std::string result = at.code.Variable(at.real(), finite ? at.Literal(value) : "0");
  std::vector<Extent> inside;
  Position from = at.position;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t crop = std::max<int64_t>(0, -pads[d]),
                  crop_end = std::max<int64_t>(0, -pads[shape.size() + d]);
    const int64_t before = std::max<int64_t>(0, pads[d]),
                  after = std::max<int64_t>(0, pads[shape.size() + d]);
    const int64_t kept = shape[d] - crop - crop_end;
    if (kept == 0) return result;
    if (mode == "constant" || before + after == 0) {
      from = Moved(from, d, 1, crop - before);
      inside.push_back({d, before, before + kept});
      continue;
    }
    from.at[d] = Added(Mirrored(at, mode, Added(at.position.at[d], -before), kept), crop);
    from.flat.clear();
    if (!from.root.empty()) from.root[d] = {};
  }
  at.code.OpenWithin(at.shape(), at.position, inside);
  at.code.Line(Cat(result, " = ", at.In(0, from), ";"));
  at.code.Close();
  return result;
}

std::string DepthToSpaceElement(const ElementAt& at) {
  const int64_t b = at.view.attrs.Int("blocksize");
  const Names& o = at.position.at;
  const std::string i = Modulo(o[2], b), j = Modulo(o[3], b);
  const std::string channel = at.view.attrs.Str("mode") == "DCR"
                                  ? Added(Scaled(Added(Scaled(i, b), j), at.shape()[1]), o[1])
                                  : Added(Scaled(Added(Scaled(o[1], b), i), b), j);
  return at.In(0, {o[0], channel, Divided(o[2], b), Divided(o[3], b)});
}

std::string SpaceToDepthElement(const ElementAt& at) {
  const int64_t b = at.view.attrs.Int("blocksize");
  const Names& o = at.position.at;
  const std::string block = Divided(o[1], at.shape(0)[1]);
  return at.In(0, {o[0], Modulo(o[1], at.shape(0)[1]), Added(Scaled(o[2], b), Divided(block, b)),
                   Added(Scaled(o[3], b), Modulo(block, b))});
}

std::string TriluElement(const ElementAt& at) {
  const Names& o = at.position.at;
  const std::string value = at.code.Variable(at.real(), at.Literal(0));
  at.code.Open(Cat("if (", o[o.size() - 1], " - ", o[o.size() - 2],
                   at.view.attrs.Int("upper") != 0 ? " >= " : " <= ", "(", at.view.attrs.Int("k"),
                   "ll))"));
  at.code.Line(Cat(value, " = ", at.In(0, at.position), ";"));
  at.code.Close();
  return value;
}

Attributes PermutedAxis(const NodeView& view, const Ints& perm) {
  Attributes attrs = view.attrs;
  attrs.Set("axis", std::find(perm.begin(), perm.end(), attrs.Int("axis")) - perm.begin());
  return attrs;
}

Ints Permuted(const Ints& list, const Ints& perm) {
  Ints permuted;
  for (const int64_t d : perm) permuted.push_back(list[static_cast<size_t>(d)]);
  return permuted;
}

Attributes PermutedSlice(const NodeView& view, const Ints& perm) {
  Attributes attrs = view.attrs;
  for (const char* name : {"starts", "ends", "steps"})
    attrs.Set(name, Permuted(view.attrs.IntList(name), perm));
  return attrs;
}

Attributes PermutedPads(const NodeView& view, const Ints& perm) {
  const Ints& pads = view.attrs.IntList("pads");
  Ints both = perm;  // before, then after
  for (const int64_t d : perm) both.push_back(d + static_cast<int64_t>(perm.size()));
  Attributes attrs = view.attrs;
  attrs.Set("pads", Permuted(pads, both));
  return attrs;
}
double PadFills(const NodeView& view) {
  return view.attrs.Str("mode") == "constant" ? view.attrs.Float("value") : 0;
}

MENDEL_REGISTER_OPERATOR_TEXTS({
    {.op = "Concat",
     .reads = Reads::kMoved,
     .element = &ConcatElement,
     .once = true,
     .move = {&PermutedAxis}},
    {.op = "DepthToSpace", .reads = Reads::kMoved, .element = &DepthToSpaceElement},
    {.op = "Expand", .reads = Reads::kMoved, .element = &ExpandElement},
    {.op = "Pad",
     .reads = Reads::kMoved,
     .element = &PadElement,
     .once = true,
     .move = {&PermutedPads, &PadFills}},
    {.op = "Patch", .reads = Reads::kMoved, .element = &PatchElement, .once = true},
    {.op = "Reshape", .reads = Reads::kMoved, .element = &ReshapeElement},
    {.op = "Slice", .reads = Reads::kMoved, .element = &SliceElement, .move = {&PermutedSlice}},
    {.op = "SpaceToDepth", .reads = Reads::kMoved, .element = &SpaceToDepthElement},
    {.op = "Split", .reads = Reads::kMoved, .element = &SplitElement, .move = {&PermutedAxis}},
    {.op = "Tile", .reads = Reads::kMoved, .element = &TileElement},
    {.op = "Transpose", .reads = Reads::kMoved, .element = &TransposeElement},
    {.op = "Trilu", .reads = Reads::kMoved, .element = &TriluElement},
});

}  // namespace
}  // namespace mendel::cuda::texts::views
