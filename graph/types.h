// Element types, shapes and tensor types.
#ifndef MENDEL_GRAPH_TYPES_H_
#define MENDEL_GRAPH_TYPES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mendel {

/// Element types of the language. Boolean elements are one byte, 0 or 1. The four 8-bit floats are
/// those of ONNX: e4m3 and e5m2 with the suffix fn (no infinities) or fnuz (neither infinities nor
/// a negative zero). u64 and the 8-bit floats are storage types (IsStorageOnly).
enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kF64,
  kI8,
  kU8,
  kI32,
  kI64,
  kBool,
  kI16,
  kU16,
  kU32,
  kU64,
  kF8E4M3FN,
  kF8E4M3FNUZ,
  kF8E5M2,
  kF8E5M2FNUZ
};
inline constexpr int kDTypes = 17;

/// "f32", "bf16", ... as in the text form.
std::string_view DTypeName(DType dtype);
std::optional<DType> ParseDType(std::string_view name);
/// Bytes an element.
int64_t DTypeSize(DType dtype);
bool IsFloat(DType dtype);
bool IsFloat8(DType dtype);
/// Few operators take tensors of these types (OpDefinition::storage).
inline bool IsStorageOnly(DType dtype) { return dtype == DType::kU64 || IsFloat8(dtype); }
/// True for u8, u16, u32 and u64.
bool IsUnsigned(DType dtype);
/// True for the types of quantized codes, u8 and i8.
inline bool IsCode(DType dtype) { return dtype == DType::kU8 || dtype == DType::kI8; }
/// The least and the largest number of an integer type; of bool 0 and 1. Of u64 the largest that
/// i64 holds.
int64_t LowestInteger(DType dtype);
int64_t HighestInteger(DType dtype);
/// True for the integer types and bool: their values are exact integers.
inline bool IsIntegral(DType dtype) { return !IsFloat(dtype); }

/// Extents, outermost first. Rank at most kMaxRank; the empty shape is a scalar. Extents may be
/// zero.
using Shape = std::vector<int64_t>;
/// A position in a tensor, one coordinate a dimension.
using Index = std::span<const int64_t>;
inline constexpr int kMaxRank = 8;
/// Largest number of elements a tensor may have: sizes and offsets then never overflow 64 bits.
inline constexpr int64_t kMaxElements = int64_t{1} << 40;

/// Product of the extents (1 for a scalar). Shapes in a checked graph cannot overflow.
int64_t NumElements(const Shape& shape);
/// Row-major strides in elements.
Shape RowMajorStrides(const Shape& shape);
/// "2x3x4" as in messages; "scalar" for rank 0.
std::string ShapeString(const Shape& shape);
/// NumPy broadcasting of two shapes; nullopt when they do not fit.
std::optional<Shape> BroadcastShapes(const Shape& a, const Shape& b);
/// Row-major offset of `index`.
int64_t FlatIndex(const Shape& shape, Index index);
/// Advances `index` to the next position in row-major order; false (and all zeros) after the last.
bool NextIndex(const Shape& shape, std::span<int64_t> index);

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;
  bool operator==(const TensorType&) const = default;
};

/// "f32[2,3]" as in the text form.
std::string TypeString(const TensorType& type);
inline int64_t NumElements(const TensorType& type) { return NumElements(type.shape); }
inline int64_t ByteSize(const TensorType& type) {
  return NumElements(type.shape) * DTypeSize(type.dtype);
}

/// Half-open ranges, one a dimension: begin[d] <= i < end[d].
struct Box {
  Shape begin;
  Shape end;
  bool operator==(const Box&) const = default;
  auto operator<=>(const Box&) const = default;

  static Box Whole(const Shape& shape) { return {Shape(shape.size(), 0), shape}; }
  Shape Extents() const;
  /// Number of positions; 0 when empty in some dimension.
  int64_t Volume() const;
  bool Contains(Index index) const;
};

/// "[0:1, 2:5]".
std::string BoxString(const Box& box);
/// Intersection, or nullopt when empty.
std::optional<Box> Intersect(const Box& a, const Box& b);

}  // namespace mendel

#endif  // MENDEL_GRAPH_TYPES_H_
