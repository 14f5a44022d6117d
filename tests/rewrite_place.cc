#include "tests/rewrite_place.h"

#include <set>

namespace mendel {

RewrittenValue TransposePair(const RewritePlace& at) {
  const Ints perm = RandomPermutation(at.rng, at.shape().size());
  Ints inverse(perm.size());
  for (size_t d = 0; d < perm.size(); ++d)
    inverse[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
  const RewrittenValue there = at.Add("Transpose", {at.value()}, {{"perm", perm}});
  return there ? at.Add("Transpose", {*there}, {{"perm", inverse}}) : std::nullopt;
}

RewrittenValue ReshapePair(const RewritePlace& at) {
  const RewrittenValue flat =
      at.Add("Reshape", {at.value()}, {{"shape", Ints{NumElements(at.shape())}}});
  return flat ? at.Add("Reshape", {*flat}, {{"shape", at.shape()}}) : std::nullopt;
}

RewrittenValue SliceAndConcat(const RewritePlace& at) {
  if (at.shape().empty()) return std::nullopt;
  const size_t d = PickIndex(at.rng, at.shape().size());
  if (at.shape()[d] < 2) return std::nullopt;
  const int64_t cut = at.rng.Between(1, at.shape()[d] - 1);
  const RewrittenValue tail = at.Slice(at.value(), d, cut, at.shape()[d]);
  return at.Concat(at.Slice(at.value(), d, 0, cut), tail, d);
}

RewrittenValue PadAndSlice(const RewritePlace& at) {
  if (at.shape().empty() || !IsFloat(at.type().dtype)) return std::nullopt;
  const size_t rank = at.shape().size(), d = PickIndex(at.rng, rank);
  Ints pads(2 * rank, 0);
  const int64_t before = at.rng.Between(0, 2), extent = at.shape()[d];
  pads[d] = before;
  pads[rank + d] = at.rng.Between(1, 2);
  const RewrittenValue padded = at.Add("Pad", {at.value()}, {{"pads", pads}});
  return padded ? at.Slice(*padded, d, before, before + extent) : std::nullopt;
}

RewrittenValue TransposeThrough(const RewritePlace& at) {
  static const std::set<std::string_view> kElementwise = {"Abs",  "Erf",     "Exp",  "Neg",
                                                          "Relu", "Sigmoid", "Sqrt", "Tanh"};
  if (!kElementwise.contains(at.site.node.op->name)) return std::nullopt;
  const Ints perm = RandomPermutation(at.rng, at.shape().size());
  Ints inverse(perm.size());
  for (size_t d = 0; d < perm.size(); ++d)
    inverse[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
  const RewrittenValue before = at.Add("Transpose", {at.site.inputs[0]}, {{"perm", perm}});
  const RewrittenValue result = before ? at.Again({*before}) : std::nullopt;
  return result ? at.Add("Transpose", {*result}, {{"perm", inverse}}) : std::nullopt;
}

RewrittenValue TransposeProduct(const RewritePlace& at) {
  if (!at.Is("MatMul") || !at.IsArithmetic()) return std::nullopt;
  for (ValueId input : at.site.inputs) {
    if (at.builder.type(input).shape.size() != 2) return std::nullopt;
  }
  const Attributes swap = {{"perm", Ints{1, 0}}};
  const RewrittenValue a = at.Add("Transpose", {at.site.inputs[0]}, swap),
                       b = at.Add("Transpose", {at.site.inputs[1]}, swap);
  const RewrittenValue product = a && b ? at.Add("MatMul", {*b, *a}) : std::nullopt;
  return product ? at.Add("Transpose", {*product}, swap) : std::nullopt;
}

}  // namespace mendel
