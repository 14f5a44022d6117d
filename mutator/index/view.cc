#include "mutator/index/view.h"

#include <algorithm>
#include <numeric>

#include "base/status.h"

namespace mendel {
namespace {

constexpr Iterator kDead = -1;  // a dimension of extent 1 that stands for no iterator

struct Step {
  Iterator iterator;
  int64_t coefficient, extent;
};

/// The tensor on its way: `forms` of the dimensions that are still to be expanded.
struct Viewing {
  Emitter& e;
  ValueId value;
  std::vector<Affine> forms;
  const Extents& extents;
};

/// Largest coefficients first, of equal ones the longer iterator.
std::vector<Step> StepsOf(const Affine& form, const Extents& extents) {
  std::vector<Step> steps;
  for (const auto& [i, coefficient] : form.terms)
    steps.push_back({i, coefficient, extents[static_cast<size_t>(i)]});
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
    return a.coefficient != b.coefficient ? a.coefficient > b.coefficient : a.extent > b.extent;
  });
  return steps;
}

/// Blocks of the first coefficient that the steps from `k + 1` on reach over.
int64_t BlocksOf(const std::vector<Step>& steps, size_t k);

/// Positions that expanding the steps from `k` on takes.
int64_t LengthOf(const std::vector<Step>& steps, size_t k) {
  if (k == steps.size()) return 1;
  if (k + 1 == steps.size()) return (steps[k].extent - 1) * steps[k].coefficient + 1;
  return (steps[k].extent + BlocksOf(steps, k) - 1) * steps[k].coefficient;
}

int64_t BlocksOf(const std::vector<Step>& steps, size_t k) {
  return CeilDiv(LengthOf(steps, k + 1), steps[k].coefficient);
}

/// Interleaves zeros along every dimension that is divided.
void Dilate(Viewing& view, const std::vector<IndexForm>& index) {
  const Shape shape = view.e.shape(view.value);
  if (shape.size() != index.size()) return;  // the emitter has failed
  Shape apart, together;
  Ints before, after;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t divisor = index[d].divisor;
    apart.push_back(shape[d]);
    after.push_back(0);
    together.push_back(shape[d] * divisor);
    if (divisor > 1) {
      apart.push_back(1);
      after.push_back(divisor - 1);
    }
  }
  if (together == shape) return;
  Ints pads(apart.size(), 0);
  pads.insert(pads.end(), after.begin(), after.end());
  view.value = ReshapeTo(
      view.e, view.e.Op("Pad", {ReshapeTo(view.e, view.value, apart)}, {{"pads", pads}}), together);
}

/// Two dimensions that one iterator moves through become one: positions d1 * extent2 + d2, where d2
/// never leaves its extent.
void MergeShared(Viewing& view, size_t first, size_t second) {
  Box box = Box::Whole(view.e.shape(view.value));
  for (const size_t d : {first, second}) {
    const Range range = RangeOf(view.forms[d], view.extents);
    box.begin[d] = range.low;
    box.end[d] = range.high + 1;
    view.forms[d].constant -= range.low;
  }
  view.value = CutOrPad(view.e, view.value, box);
  Ints perm(box.begin.size());
  std::iota(perm.begin(), perm.end(), 0);
  perm.erase(perm.begin() + static_cast<std::ptrdiff_t>(second));
  perm.insert(perm.begin() + static_cast<std::ptrdiff_t>(first) + 1, static_cast<int64_t>(second));
  view.value = TransposeTo(view.e, view.value, perm);
  Shape shape = view.e.shape(view.value);
  view.forms[first] = view.forms[first] * shape[first + 1] + view.forms[second];
  view.forms.erase(view.forms.begin() + static_cast<std::ptrdiff_t>(second));
  shape[first] *= shape[first + 1];
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(first) + 1);
  view.value = ReshapeTo(view.e, view.value, shape);
}

void MergeAllShared(Viewing& view) {
  for (size_t a = 0; a < view.forms.size(); ++a) {
    for (size_t b = a + 1; b < view.forms.size(); ++b) {
      const auto& terms = view.forms[b].terms;
      const bool shared = std::any_of(terms.begin(), terms.end(),
                                      [&](const auto& t) { return view.forms[a].Uses(t.first); });
      if (!shared) continue;
      MergeShared(view, a, b);
      b = a;  // from the beginning: the merged form has more iterators
    }
  }
}

/// Iterators that run backwards are read forwards; returned, to be turned round in the end.
std::vector<Iterator> TurnForward(Viewing& view) {
  std::vector<Iterator> turned;
  for (Affine& form : view.forms) {
    for (auto& [i, coefficient] : form.terms) {
      if (coefficient > 0) continue;
      form.constant += coefficient * (view.extents[static_cast<size_t>(i)] - 1);
      coefficient = -coefficient;
      turned.push_back(i);
    }
  }
  return turned;
}

/// Dimension `axis`, cut to LengthOf its steps, as one dimension a step; returns how many.
size_t Expand(Viewing& view, size_t axis, const std::vector<Step>& steps, size_t k) {
  Emitter& e = view.e;
  const int64_t dim = static_cast<int64_t>(axis);
  if (axis >= e.shape(view.value).size()) return steps.size();  // the emitter has failed
  if (k + 1 >= steps.size()) {
    if (k < steps.size() && steps[k].coefficient > 1) {
      view.value = e.Slice(view.value, dim, 0, e.shape(view.value)[axis], steps[k].coefficient);
    }
    return 1;
  }
  const Step& step = steps[k];
  const int64_t blocks = BlocksOf(steps, k);
  Shape shape = e.shape(view.value);
  shape[axis] = step.extent + blocks - 1;
  shape.insert(shape.begin() + dim + 1, step.coefficient);
  const ValueId rows = ReshapeTo(e, view.value, shape);
  std::vector<ValueId> pieces;
  for (int64_t block = 0; block < blocks; ++block)
    pieces.push_back(e.Slice(rows, dim, block, block + step.extent));
  view.value = e.Slice(e.Concat(pieces, dim + 1), dim + 1, 0, LengthOf(steps, k + 1));
  return 1 + Expand(view, axis + 1, steps, k + 1);
}

}  // namespace

ValueId ReshapeTo(Emitter& e, ValueId x, const Shape& shape) {
  return e.shape(x) == shape ? x : e.Reshape(x, shape);
}

ValueId TransposeTo(Emitter& e, ValueId x, const Ints& perm) {
  return std::is_sorted(perm.begin(), perm.end()) ? x : e.Transpose(x, perm);
}

ValueId CutOrPad(Emitter& e, ValueId x, const Box& box) {
  const Shape shape = e.shape(x);
  Box cut = box;
  Ints pads(2 * shape.size());
  bool padded = false;
  for (size_t d = 0; d < shape.size() && d < box.begin.size(); ++d) {
    cut.begin[d] = std::clamp<int64_t>(box.begin[d], 0, shape[d]);
    cut.end[d] = std::clamp<int64_t>(box.end[d], cut.begin[d], shape[d]);
    const int64_t before = std::min(cut.begin[d], box.end[d]) - box.begin[d];
    pads[d] = before;
    pads[shape.size() + d] = box.end[d] - box.begin[d] - before - (cut.end[d] - cut.begin[d]);
    padded = padded || pads[d] > 0 || pads[shape.size() + d] > 0;
  }
  const ValueId inside = e.Cut(x, cut);
  return padded ? e.Op("Pad", {inside}, {{"pads", pads}}) : inside;
}

IndexedValue EmitIndexed(Emitter& e, ValueId tensor, std::vector<IndexForm> index,
                         const Extents& extents) {
  Viewing view{e, tensor, {}, extents};
  Dilate(view, index);
  for (const IndexForm& form : index) view.forms.push_back(form.affine);
  MergeAllShared(view);
  const std::vector<Iterator> turned = TurnForward(view);
  Box box;
  for (const Affine& form : view.forms) {
    box.begin.push_back(form.constant);
    box.end.push_back(form.constant + LengthOf(StepsOf(form, extents), 0));
  }
  if (view.forms.size() != e.shape(view.value).size())
    e.Fail(InternalError("a view of another rank"));
  view.value = CutOrPad(e, view.value, box);
  IndexedValue result;
  for (size_t d = 0, axis = 0; d < view.forms.size(); ++d) {
    const std::vector<Step> steps = StepsOf(view.forms[d], extents);
    axis += Expand(view, axis, steps, 0);
    if (steps.empty()) result.dims.push_back(kDead);
    for (const Step& step : steps) result.dims.push_back(step.iterator);
  }
  for (size_t d = 0; d < result.dims.size() && d < e.shape(view.value).size(); ++d) {
    if (std::find(turned.begin(), turned.end(), result.dims[d]) == turned.end()) continue;
    const Shape shape = e.shape(view.value);
    Ints starts(shape.size(), 0), ends = shape, steps(shape.size(), 1);
    starts[d] = shape[d] - 1;
    ends[d] = -1;
    steps[d] = -1;
    view.value =
        e.Op("Slice", {view.value}, {{"starts", starts}, {"ends", ends}, {"steps", steps}});
  }
  std::erase(result.dims, kDead);
  Shape live;
  for (const Iterator i : result.dims) live.push_back(extents[static_cast<size_t>(i)]);
  result.value = ReshapeTo(e, view.value, live);
  return result;
}

ValueId Arranged(Emitter& e, const IndexedValue& x, const std::vector<Iterator>& order) {
  Ints perm;
  Shape shape;
  for (const Iterator i : order) {
    const auto at = std::find(x.dims.begin(), x.dims.end(), i);
    const size_t d = static_cast<size_t>(at - x.dims.begin());
    shape.push_back(at == x.dims.end() || d >= e.shape(x.value).size() ? 1 : e.shape(x.value)[d]);
    if (at != x.dims.end()) perm.push_back(static_cast<int64_t>(d));
  }
  if (perm.size() != x.dims.size()) e.Fail(InternalError("an iterator of a factor is in no class"));
  return ReshapeTo(e, TransposeTo(e, x.value, perm), shape);
}

ValueId EmitView(Emitter& e, ValueId tensor, const std::vector<IndexForm>& index,
                 const std::vector<Iterator>& order, const Extents& extents) {
  return Arranged(e, EmitIndexed(e, tensor, index, extents), order);
}

}  // namespace mendel
