// Constant tensors: immutable, shared bytes of a tensor type.
#ifndef MENDEL_GRAPH_TENSOR_H_
#define MENDEL_GRAPH_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "graph/types.h"

namespace mendel {

/// A value with a tensor type. Copies share the bytes, which are never modified, so tensors are
/// safe to read from any thread. The bytes may live in a memory-mapped file (`owner` keeps the
/// mapping alive). Row-major, native endianness.
class Tensor {
 public:
  Tensor() : Tensor(TensorType{}, std::vector<std::byte>(4)) {}
  /// Takes ownership of `bytes`; CHECK-fails unless their number is ByteSize(type).
  Tensor(TensorType type, std::vector<std::byte> bytes);
  /// Shares `bytes`, which `owner` keeps alive. Alignment to the element size is required (CHECK).
  Tensor(TensorType type, std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

  /// Rounds (floats, to nearest even) or wraps (integers) each value into the dtype.
  static Tensor FromDoubles(TensorType type, std::span<const double> values);
  static Tensor FromInts(TensorType type, std::span<const int64_t> values);
  static Tensor Ints(std::initializer_list<int64_t> values);  ///< i64, rank 1
  static Tensor Scalar(DType dtype, double value);            ///< rank 0
  static Tensor Filled(TensorType type, double value);

  const TensorType& type() const { return type_; }
  DType dtype() const { return type_.dtype; }
  const Shape& shape() const { return type_.shape; }
  int64_t size() const { return NumElements(type_.shape); }
  std::span<const std::byte> bytes() const { return bytes_; }

  /// Typed view; sizeof(T) must be the dtype's size (CHECK).
  template <class T>
  std::span<const T> As() const {
    MENDEL_CHECK(static_cast<int64_t>(sizeof(T)) == DTypeSize(type_.dtype));
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  /// Element `flat` as double (exact for all but large i64 and u64).
  double DoubleAt(int64_t flat) const;
  /// Element `flat` of an integral tensor, exact (CHECK on float dtypes); of u64 modulo 2^64.
  int64_t IntAt(int64_t flat) const;
  /// False when some element is infinite or NaN. One pass over the bytes at the memory's speed.
  bool AllFinite() const;
  std::vector<double> ToDoubles() const;
  std::vector<int64_t> ToInts() const;

  /// Same bytes under another shape with as many elements (CHECK).
  Tensor Reshaped(Shape shape) const;
  /// SHA-256 over dtype, shape and bytes.
  std::string ContentHash() const;
  /// Same type and same bytes.
  bool operator==(const Tensor& other) const;

 private:
  TensorType type_;
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
};

/// Round-to-nearest-even conversions between float and the 16-bit formats.
uint16_t FloatToHalf(float value);
float HalfToFloat(uint16_t bits);
uint16_t FloatToBFloat16(float value);
float BFloat16ToFloat(uint16_t bits);
/// The same for an 8-bit float (CHECK on other dtypes). A finite value beyond the largest one
/// becomes infinity in e5m2 and NaN in the others: there is no saturation.
uint8_t FloatToFloat8(DType dtype, float value);
float Float8ToFloat(DType dtype, uint8_t bits);
/// The largest finite number of an 8-bit float.
double LargestFloat8(DType dtype);
/// `value` rounded to what `dtype` can hold (identity for f64; integral dtypes wrap).
double RoundTo(DType dtype, double value);

}  // namespace mendel

#endif  // MENDEL_GRAPH_TENSOR_H_
