// A formula emits the nodes that spell out one ONNX operator, and keeps the first error to the end.
//
// After an error every method returns a value that must not be used and emits nothing; SetOutput
// and status() report the error. Shapes of such values are empty.
#ifndef MENDEL_ONNX_FORMULA_H_
#define MENDEL_ONNX_FORMULA_H_

#include <optional>
#include <string_view>
#include <vector>

#include "onnx/op_context.h"

namespace mendel {

class Formula {
 public:
  explicit Formula(OpContext& op) : op_(op) {}

  const absl::Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  /// Keeps `status` unless there is an error already.
  void Fail(const absl::Status& status);

  const Shape& shape(ValueId value) const;
  int64_t rank(ValueId value) const { return static_cast<int64_t>(shape(value).size()); }
  DType dtype(ValueId value) const;

  ValueId Op(std::string_view name, std::vector<ValueId> inputs, Attributes attrs = {});
  ValueId Add(ValueId a, ValueId b) { return Op("Add", {a, b}); }
  ValueId Sub(ValueId a, ValueId b) { return Op("Sub", {a, b}); }
  ValueId Mul(ValueId a, ValueId b) { return Op("Mul", {a, b}); }
  ValueId Div(ValueId a, ValueId b) { return Op("Div", {a, b}); }
  ValueId MatMul(ValueId a, ValueId b) { return Op("MatMul", {a, b}); }
  ValueId Where(ValueId condition, ValueId yes, ValueId no) {
    return Op("Where", {condition, yes, no});
  }
  /// One element of the dtype of `like`.
  ValueId Scalar(ValueId like, double element);
  ValueId Times(ValueId value, double factor) { return Mul(value, Scalar(value, factor)); }
  ValueId Plus(ValueId value, double term) { return Add(value, Scalar(value, term)); }
  ValueId Literal(Tensor value);
  /// `element` repeated, of the dtype of `like`.
  ValueId Filled(ValueId like, double element, Shape shape);

  ValueId Cast(ValueId value, DType dtype);
  ValueId Reshape(ValueId value, Shape shape);
  ValueId Transpose(ValueId value, Ints perm);
  /// Exchanges the last two dimensions.
  ValueId Transposed(ValueId value);
  ValueId Expand(ValueId value, Shape shape);
  /// Positions [begin, end) along `axis`.
  ValueId Slice(ValueId value, int64_t axis, int64_t begin, int64_t end);
  ValueId Concat(std::vector<ValueId> values, int64_t axis);
  /// Begins of all dimensions, then ends.
  ValueId Pad(ValueId value, Ints pads, double element = 0);
  /// `name` over `axes` (not negative), dimensions kept.
  ValueId Reduce(std::string_view name, ValueId value, Ints axes);
  ValueId Softmax(ValueId value, int64_t axis) { return Op("Softmax", {value}, {{"axis", axis}}); }
  /// x sigmoid(alpha x).
  ValueId Swish(ValueId value, double alpha);

  /// Sets output `k` of the operator, or keeps the error.
  void SetOutput(int k, ValueId value);

 private:
  ValueId Keep(absl::StatusOr<ValueId> value);

  OpContext& op_;
  absl::Status status_;
};

}  // namespace mendel

#endif  // MENDEL_ONNX_FORMULA_H_
