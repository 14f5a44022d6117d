// Trilu(x){upper, k}: the matrices of the last two dimensions with the elements below (upper = 1)
// or above (upper = 0) the k-th diagonal replaced by zero.

#include "base/status.h"
#include "graph/movement.h"
#include "graph/whole_access.h"

namespace mendel::ops::trilu {
namespace {

struct TriluMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView& node, int, Index i) {
    const int64_t diagonal = i[i.size() - 1] - i[i.size() - 2];
    const int64_t k = node.attrs.Int("k");
    const bool kept = node.attrs.Int("upper") != 0 ? diagonal >= k : diagonal <= k;
    return kept ? in(0, i) : S{};
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes&) {
  if (inputs[0].shape.size() < 2)
    return InvalidInput("expected matrices, not ", TypeString(inputs[0]));
  return std::vector<TensorType>{inputs[0]};
}

/// Rows and columns stand on their own.
std::optional<AccessPattern> Access(const NodeView& node) {
  const size_t rank = node.outputs[0].shape.size();
  AccessPattern pattern = WholeAlong(node, rank - 2, rank);
  pattern.combine = AccessPattern::Combine::kSum;
  return pattern;
}

/// A box has its own diagonal.
std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  const size_t rank = out.begin.size();
  Restriction restriction{{out}, node.attrs};
  restriction.attrs.Set("k", node.attrs.Int("k") + out.begin[rank - 2] - out.begin[rank - 1]);
  return restriction;
}

OpSample Sample(Rng& rng) {
  const Attributes attrs{{"upper", rng.Between(0, 1)}, {"k", rng.Between(-6, 6)}};
  return {{{SampleAnyDType(rng), SampleShape(rng, 2, 4, 6)}}, attrs, {}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "Trilu";
  op.min_inputs = op.max_inputs = 1;
  op.attributes = {{"upper", int64_t{1}}, {"k", int64_t{0}}};
  op.infer = &Infer;
  op.meaning = MeaningOf<TriluMeaning>();
  op.linear_inputs = &LinearInFirst;
  op.bound = &BoundOfSelection;
  op.restrict = &Restrict;
  op.access = &Access;
  op.sample = &Sample;
  op.storage = StorageTypes::kAll;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::trilu
