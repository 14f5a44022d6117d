// Patch(base, p0, p1, ...): `base` with box k overwritten by pk. A corrected mutant is a Patch: the
// mutant's output is the base, each pk recomputes the original program on one wrong box. Boxes are
// disjoint and have the extents of their patches.

#include "base/status.h"
#include "graph/fill.h"
#include "graph/op_helpers.h"

namespace mendel::ops::patch {
namespace {

struct PatchMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    const Boxes& boxes = node.attrs.BoxList("boxes");
    FillByPosition(node.outputs[0].shape, out, [&](Index i) {
      for (size_t k = 0; k < boxes.size(); ++k) {
        if (!boxes[k].Contains(i)) continue;
        int64_t flat = 0;
        for (size_t d = 0; d < i.size(); ++d)
          flat = flat * (boxes[k].end[d] - boxes[k].begin[d]) + i[d] - boxes[k].begin[d];
        return in.Flat(static_cast<int>(k) + 1, flat);
      }
      return in(0, i);
    });
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const Boxes& boxes = attrs.BoxList("boxes");
  if (boxes.size() + 1 != inputs.size())
    return InvalidInput(boxes.size(), " boxes need as many patches, not ", inputs.size() - 1);
  const Box whole = Box::Whole(inputs[0].shape);
  for (size_t k = 0; k < boxes.size(); ++k) {
    const Box& box = boxes[k];
    if (box.begin.size() != whole.begin.size() || box.Volume() == 0 ||
        Intersect(box, whole) != box) {
      return InvalidInput("box ", BoxString(box), " lies outside ", ShapeString(inputs[0].shape));
    }
    if (inputs[k + 1] != TensorType{inputs[0].dtype, box.Extents()}) {
      return InvalidInput("patch ", k, " is ", TypeString(inputs[k + 1]), ", its box ",
                          BoxString(box));
    }
    for (size_t other = 0; other < k; ++other) {
      if (Intersect(box, boxes[other]).has_value())
        return InvalidInput("boxes ", other, " and ", k, " overlap");
    }
  }
  return std::vector<TensorType>{inputs[0]};
}

/// The base cut to the box and the patches that meet it.
std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  const Boxes& boxes = node.attrs.BoxList("boxes");
  Restriction restriction{{out}, {}};
  Boxes kept;
  for (const Box& box : boxes) {
    const std::optional<Box> common = Intersect(box, out);
    Box piece{Shape(out.begin.size(), 0), Shape(out.begin.size(), 0)};
    if (common.has_value()) {
      piece = *common;
      Box target = *common;
      for (size_t d = 0; d < out.begin.size(); ++d) {
        piece.begin[d] -= box.begin[d];
        piece.end[d] -= box.begin[d];
        target.begin[d] -= out.begin[d];
        target.end[d] -= out.begin[d];
      }
      kept.push_back(target);
    }
    restriction.inputs.push_back(piece);
  }
  restriction.attrs.Set("boxes", kept);
  return restriction;
}

/// Between the borders of the boxes every element is one element of the base or of one patch.
std::optional<AccessPattern> Access(const NodeView& node) {
  const Shape& shape = node.outputs[0].shape;
  AccessPattern pattern;
  pattern.breaks.resize(shape.size());
  Boxes boxes = node.attrs.BoxList("boxes");
  boxes.insert(boxes.begin(), Box::Whole(shape));
  for (const Box& box : boxes) {
    InputAccess access;
    for (size_t d = 0; d < shape.size(); ++d) {
      DimAccess dim;
      dim.coefficients.assign(shape.size(), 0);
      dim.coefficients[d] = 1;
      dim.offset = -box.begin[d];
      access.dims.push_back(dim);
      pattern.breaks[d].push_back(box.begin[d]);
      pattern.breaks[d].push_back(box.end[d]);
    }
    pattern.inputs.push_back(access);
  }
  return pattern;
}

OpSample Sample(Rng& rng) {
  const Shape shape = SampleShape(rng, 1, 4, 6);
  OpSample sample{{{DType::kF32, shape}}, {}, {}};
  Boxes boxes;
  for (int64_t k = rng.Between(1, 3); k > 0; --k) {
    Box box = Box::Whole(shape);
    for (size_t d = 0; d < shape.size(); ++d) {
      box.begin[d] = rng.Between(0, shape[d] - 1);
      box.end[d] = rng.Between(box.begin[d] + 1, shape[d]);
    }
    bool disjoint = true;
    for (const Box& other : boxes) disjoint = disjoint && !Intersect(box, other).has_value();
    if (!disjoint) continue;
    sample.inputs.push_back({DType::kF32, box.Extents()});
    boxes.push_back(box);
  }
  sample.attrs.Set("boxes", boxes);
  return sample;
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "Patch";
  op.min_inputs = 1;
  op.max_inputs = kVariadic;
  op.attributes = {{"boxes", Boxes(), true}};
  op.infer = &Infer;
  op.meaning = MeaningOf<PatchMeaning>();
  op.bound = &BoundOfSelection;
  op.restrict = &Restrict;
  op.access = &Access;
  op.sample = &Sample;
  op.storage = StorageTypes::kAll;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::patch
