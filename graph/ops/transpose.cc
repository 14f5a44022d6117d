// Transpose(x){perm}: output dimension d is input dimension perm[d].

#include <algorithm>

#include "base/status.h"
#include "graph/fill.h"
#include "graph/movement.h"

namespace mendel::ops::transpose {
namespace {

struct TransposeMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    const Ints& perm = node.attrs.IntList("perm");
    FillByPosition(node.outputs[0].shape, out, [&](Index i) {
      std::array<int64_t, kMaxRank> source{};
      for (size_t d = 0; d < i.size(); ++d) source[static_cast<size_t>(perm[d])] = i[d];
      return in(0, Index(source.data(), i.size()));
    });
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const Ints& perm = attrs.IntList("perm");
  Ints sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool valid = perm.size() == inputs[0].shape.size();
  for (size_t d = 0; valid && d < sorted.size(); ++d) valid = sorted[d] == static_cast<int64_t>(d);
  if (!valid)
    return InvalidInput("perm is no permutation of the dimensions of ", TypeString(inputs[0]));
  TensorType type{inputs[0].dtype, {}};
  for (int64_t d : perm) type.shape.push_back(inputs[0].shape[static_cast<size_t>(d)]);
  return std::vector<TensorType>{type};
}

std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  const Ints& perm = node.attrs.IntList("perm");
  Box box = out;
  for (size_t d = 0; d < perm.size(); ++d) {
    box.begin[static_cast<size_t>(perm[d])] = out.begin[d];
    box.end[static_cast<size_t>(perm[d])] = out.end[d];
  }
  return Restriction{{box}, node.attrs};
}

std::optional<AccessPattern> Access(const NodeView& node) {
  const Ints& perm = node.attrs.IntList("perm");
  AccessPattern pattern;
  pattern.breaks.resize(perm.size());
  InputAccess access;
  access.dims.resize(perm.size());
  for (size_t d = 0; d < perm.size(); ++d)
    access.dims[static_cast<size_t>(perm[d])] = LinearAccess(perm.size(), d);
  pattern.inputs = {access};
  return pattern;
}

OpSample Sample(Rng& rng) {
  const Shape shape = SampleShape(rng, 0, 5, 5);
  Ints perm;
  for (size_t d = 0; d < shape.size(); ++d) perm.push_back(static_cast<int64_t>(d));
  for (size_t d = perm.size(); d > 1; --d) std::swap(perm[d - 1], perm[rng.Below(d)]);
  return {{{SampleAnyDType(rng), shape}}, {{"perm", perm}}, {}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "Transpose";
  op.min_inputs = op.max_inputs = 1;
  op.attributes = {{"perm", Ints(), true}};
  op.infer = &Infer;
  op.meaning = MeaningOf<TransposeMeaning>();
  op.linear_inputs = &LinearInFirst;
  op.bound = &BoundOfSelection;
  op.restrict = &Restrict;
  op.access = &Access;
  op.sample = &Sample;
  op.sign = &SignLeast;
  op.storage = StorageTypes::kAll;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::transpose
