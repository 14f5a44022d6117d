#include "onnx/formula.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace mendel {

void Formula::Fail(const absl::Status& status) {
  if (status_.ok()) status_ = status;
}

ValueId Formula::Keep(absl::StatusOr<ValueId> value) {
  if (value.ok()) return *value;
  Fail(value.status());
  return {};
}

const Shape& Formula::shape(ValueId value) const {
  static const auto& none = *new Shape();
  return ok() ? op_.shape(value) : none;
}

DType Formula::dtype(ValueId value) const { return ok() ? op_.type(value).dtype : DType::kF32; }

ValueId Formula::Op(std::string_view name, std::vector<ValueId> inputs, Attributes attrs) {
  return ok() ? Keep(op_.Emit(name, std::move(inputs), std::move(attrs))) : ValueId{};
}

ValueId Formula::Scalar(ValueId like, double element) {
  return ok() ? op_.ScalarLike(like, element) : ValueId{};
}

ValueId Formula::Literal(Tensor value) { return ok() ? op_.Literal(std::move(value)) : ValueId{}; }

ValueId Formula::Filled(ValueId like, double element, Shape shape) {
  return ok() ? Keep(op_.Filled(Tensor::Scalar(dtype(like), element), std::move(shape)))
              : ValueId{};
}

ValueId Formula::Cast(ValueId value, DType dtype) {
  return ok() ? Keep(op_.Cast(value, dtype)) : ValueId{};
}

ValueId Formula::Reshape(ValueId value, Shape shape) {
  return ok() ? Keep(op_.Reshape(value, std::move(shape))) : ValueId{};
}

ValueId Formula::Transpose(ValueId value, Ints perm) {
  return ok() ? Keep(op_.Transpose(value, std::move(perm))) : ValueId{};
}

ValueId Formula::Transposed(ValueId value) {
  Ints perm(shape(value).size());
  std::iota(perm.begin(), perm.end(), 0);
  if (perm.size() >= 2) std::swap(perm[perm.size() - 2], perm.back());
  return Transpose(value, std::move(perm));
}

ValueId Formula::Expand(ValueId value, Shape shape) {
  return this->shape(value) == shape ? value : Op("Expand", {value}, {{"shape", shape}});
}

ValueId Formula::Slice(ValueId value, int64_t axis, int64_t begin, int64_t end) {
  if (!ok()) return {};
  Ints starts(shape(value).size(), 0), ends = shape(value);
  const size_t d = static_cast<size_t>(axis);
  if (begin == 0 && end == ends[d]) return value;
  starts[d] = begin;
  ends[d] = end;
  const Ints steps(starts.size(), 1);
  return Op("Slice", {value}, {{"starts", starts}, {"ends", ends}, {"steps", steps}});
}

ValueId Formula::Concat(std::vector<ValueId> values, int64_t axis) {
  return values.size() == 1 ? values[0] : Op("Concat", std::move(values), {{"axis", axis}});
}

ValueId Formula::Pad(ValueId value, Ints pads, double element) {
  if (std::all_of(pads.begin(), pads.end(), [](int64_t pad) { return pad == 0; })) return value;
  return Op("Pad", {value},
            {{"pads", std::move(pads)}, {"mode", std::string("constant")}, {"value", element}});
}

ValueId Formula::Reduce(std::string_view name, ValueId value, Ints axes) {
  return Op(name, {value}, {{"axes", std::move(axes)}, {"keepdims", int64_t{1}}});
}

ValueId Formula::Swish(ValueId value, double alpha) {
  return Mul(value, Op("Sigmoid", {alpha == 1 ? value : Times(value, alpha)}));
}

void Formula::SetOutput(int k, ValueId value) {
  if (ok()) Fail(op_.SetOutput(k, value));
}

}  // namespace mendel
