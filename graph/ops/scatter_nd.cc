// ScatterND(data, indices, updates){reduction}: `data` with the slices that the tuples in the last
// dimension of `indices` address replaced by, or combined with, those of `updates`, in row-major
// order. Indices may be negative; updates outside the tensor are dropped (movement.h).

#include <algorithm>

#include "base/status.h"
#include "graph/movement.h"

namespace mendel::ops::scatter_nd {
namespace {

struct ScatterNdMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    const std::string& reduction = node.attrs.Str("reduction");
    const Shape& shape = in.shape(0);
    const Shape strides = RowMajorStrides(shape);
    const int64_t tuple = in.shape(1).back();
    const int64_t slice = NumElements(Shape(shape.begin() + tuple, shape.end()));
    const int64_t tuples = NumElements(in.shape(1)) / tuple;
    for (size_t k = 0; k < out.size(); ++k) out[k] = in.Flat(0, static_cast<int64_t>(k));
    for (int64_t t = 0; t < tuples; ++t) {
      int64_t offset = 0;
      bool inside = true;
      for (int64_t k = 0; k < tuple; ++k) {
        const auto at =
            ResolveIndex(in.IntegerFlat(1, t * tuple + k), shape[static_cast<size_t>(k)]);
        inside = inside && at.has_value();
        offset += at.value_or(0) * strides[static_cast<size_t>(k)];
      }
      for (int64_t k = 0; inside && k < slice; ++k) {
        S& element = out[static_cast<size_t>(offset + k)];
        element = Scattered(in, reduction, element, in.Flat(2, t * slice + k));
      }
    }
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  if (IsStorageOnly(inputs[0].dtype) && attrs.Str("reduction") != "none")
    return Unsupported("no ", attrs.Str("reduction"), " of ", DTypeName(inputs[0].dtype),
                       ", a type for storage");
  const Shape& shape = inputs[0].shape;
  const Shape& indices = inputs[1].shape;
  MENDEL_RETURN_IF_ERROR(CheckReduction(attrs.Str("reduction")));
  MENDEL_RETURN_IF_ERROR(CheckIndexType(inputs[1]));
  if (shape.empty() || indices.empty()) return InvalidInput("operands must have rank 1 or more");
  const int64_t tuple = indices.back();
  if (tuple < 1 || tuple > static_cast<int64_t>(shape.size())) {
    return InvalidInput("tuples of ", tuple, " indices do not fit ", ShapeString(shape));
  }
  Shape updates(indices.begin(), indices.end() - 1);
  updates.insert(updates.end(), shape.begin() + tuple, shape.end());
  if (inputs[2] != TensorType{inputs[0].dtype, updates}) {
    return InvalidInput("updates must be ", TypeString({inputs[0].dtype, updates}), ", not ",
                        TypeString(inputs[2]));
  }
  return std::vector<TensorType>{inputs[0]};
}

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  const double tuples = static_cast<double>(NumElements(node.inputs[1])) /
                        static_cast<double>(node.inputs[1].shape.back());
  return BoundOfScatter(node.attrs.Str("reduction"), tuples, inputs[0], inputs[2], arithmetic);
}

OpSample Sample(Rng& rng) {
  const Shape shape = SampleShape(rng, 1, 4, 5);
  const int64_t tuple = rng.Between(1, static_cast<int64_t>(shape.size()));
  Shape indices = SampleShape(rng, 0, 2, 3);
  Shape updates = indices;
  indices.push_back(tuple);
  updates.insert(updates.end(), shape.begin() + tuple, shape.end());
  const double extent =
      static_cast<double>(*std::min_element(shape.begin(), shape.begin() + tuple));
  const char* reductions[] = {"none", "none", "add", "mul", "max", "min"};
  const DType dtype = rng.Flip(0.8) ? DType::kF32 : DType::kI64;
  return {{{dtype, shape}, SampleIndexType(rng, indices), {dtype, updates}},
          {{"reduction", std::string(reductions[rng.Below(6)])}},
          {{1, {rng.Flip() ? -extent : 0.0, extent}}}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "ScatterND";
  op.min_inputs = op.max_inputs = 3;
  op.attributes = {{"reduction", std::string("none")}};
  op.infer = &Infer;
  op.meaning = MeaningOf<ScatterNdMeaning>();
  op.index_inputs = 2;
  op.bound = &BoundOf;
  op.sample = &Sample;
  op.storage = StorageTypes::kAll;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::scatter_nd
