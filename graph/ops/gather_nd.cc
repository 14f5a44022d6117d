// GatherND(x, indices){batch_dims}: the last dimension of `indices` holds tuples that address the
// dimensions of x after the first `batch_dims`, which both share: y[b..., i..., s...] = x[b...,
// indices[b..., i..., :]..., s...]. Indices may be negative; for those outside the extent see
// movement.h.

#include <algorithm>

#include "base/status.h"
#include "graph/movement.h"

namespace mendel::ops::gather_nd {
namespace {

struct GatherNdMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView& node, int, Index i) {
    const Shape& shape = in.shape(0);
    const size_t batch = static_cast<size_t>(node.attrs.Int("batch_dims"));
    const size_t lead = in.shape(1).size() - 1;
    const size_t tuple = static_cast<size_t>(in.shape(1).back());
    const int64_t first = TupleOffset(in.shape(1), i.first(lead));
    std::array<int64_t, kMaxRank> source{};
    std::copy(i.begin(), i.begin() + static_cast<int64_t>(batch), source.begin());
    for (size_t k = 0; k < tuple; ++k) {
      const auto at =
          ResolveIndex(in.IntegerFlat(1, first + static_cast<int64_t>(k)), shape[batch + k]);
      if (!at.has_value()) return InvalidElement<S>();
      source[batch + k] = *at;
    }
    std::copy(i.begin() + static_cast<int64_t>(lead), i.end(), source.begin() + batch + tuple);
    return in(0, Index(source.data(), shape.size()));
  }

  /// Row-major offset of the first element of the tuple at `index`.
  static int64_t TupleOffset(const Shape& indices, Index index) {
    int64_t flat = 0;
    for (size_t d = 0; d < index.size(); ++d) flat = flat * indices[d] + index[d];
    return flat * indices.back();
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const Shape& shape = inputs[0].shape;
  const Shape& indices = inputs[1].shape;
  const int64_t batch = attrs.Int("batch_dims");
  MENDEL_RETURN_IF_ERROR(CheckIndexType(inputs[1]));
  if (shape.empty() || indices.empty()) return InvalidInput("operands must have rank 1 or more");
  const int64_t least = static_cast<int64_t>(std::min(shape.size(), indices.size()));
  if (batch < 0 || batch >= least)
    return InvalidInput("batch_dims ", batch, " must be less than the ranks");
  if (!std::equal(shape.begin(), shape.begin() + batch, indices.begin())) {
    return InvalidInput("the batch dimensions of ", ShapeString(shape), " and ",
                        ShapeString(indices), " differ");
  }
  const int64_t tuple = indices.back();
  if (tuple < 1 || tuple > static_cast<int64_t>(shape.size()) - batch) {
    return InvalidInput("tuples of ", tuple, " indices do not fit ", ShapeString(shape));
  }
  TensorType type{inputs[0].dtype, Shape(indices.begin(), indices.end() - 1)};
  type.shape.insert(type.shape.end(), shape.begin() + batch + tuple, shape.end());
  if (type.shape.size() > kMaxRank) return InvalidInput("the result has rank ", type.shape.size());
  MENDEL_RETURN_IF_ERROR(CheckExtents(type.shape));
  return std::vector<TensorType>{type};
}

/// The data stay whole where tuples address them.
std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  const size_t lead = node.inputs[1].shape.size() - 1;
  const size_t batch = static_cast<size_t>(node.attrs.Int("batch_dims"));
  const size_t tuple = static_cast<size_t>(node.inputs[1].shape.back());
  Restriction result{{Box::Whole(node.inputs[0].shape), Box::Whole(node.inputs[1].shape)},
                     node.attrs};
  for (size_t d = 0; d < out.begin.size(); ++d) {
    const auto put = [&](size_t input, size_t dim) {
      result.inputs[input].begin[dim] = out.begin[d];
      result.inputs[input].end[dim] = out.end[d];
    };
    if (d < lead) put(1, d);
    if (d < batch) put(0, d);
    if (d >= lead) put(0, batch + tuple + d - lead);
  }
  return result;
}

OpSample Sample(Rng& rng) {
  const Shape shape = SampleShape(rng, 1, 4, 5);
  const int64_t rank = static_cast<int64_t>(shape.size());
  const int64_t batch = rng.Between(0, std::min<int64_t>(rank - 1, 2));
  const int64_t tuple = rng.Between(1, rank - batch);
  Shape indices(shape.begin(), shape.begin() + batch);
  const Shape middle = SampleShape(rng, 0, 2, 4);
  indices.insert(indices.end(), middle.begin(), middle.end());
  indices.push_back(tuple);
  const double extent =
      static_cast<double>(*std::min_element(shape.begin() + batch, shape.begin() + batch + tuple));
  return {{{SampleAnyDType(rng), shape}, SampleIndexType(rng, indices)},
          {{"batch_dims", batch}},
          {{1, {rng.Flip() ? -extent : 0.0, extent}}}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "GatherND";
  op.min_inputs = op.max_inputs = 2;
  op.attributes = {{"batch_dims", int64_t{0}}};
  op.infer = &Infer;
  op.meaning = MeaningOf<GatherNdMeaning>();
  op.linear_inputs = &LinearInFirst;
  op.index_inputs = 2;
  op.bound = &BoundOfSelection;
  op.restrict = &Restrict;
  op.sample = &Sample;
  op.storage = StorageTypes::kAll;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::gather_nd
