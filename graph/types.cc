#include "graph/types.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace mendel {
namespace {

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  int64_t size;
  enum : uint8_t { kFloat, kSigned, kUnsigned } kind;
};

constexpr std::array<DTypeInfo, kDTypes> kInfos = {{
    {DType::kF32, "f32", 4, DTypeInfo::kFloat},
    {DType::kF16, "f16", 2, DTypeInfo::kFloat},
    {DType::kBF16, "bf16", 2, DTypeInfo::kFloat},
    {DType::kF64, "f64", 8, DTypeInfo::kFloat},
    {DType::kI8, "i8", 1, DTypeInfo::kSigned},
    {DType::kU8, "u8", 1, DTypeInfo::kUnsigned},
    {DType::kI32, "i32", 4, DTypeInfo::kSigned},
    {DType::kI64, "i64", 8, DTypeInfo::kSigned},
    {DType::kBool, "bool", 1, DTypeInfo::kUnsigned},
    {DType::kI16, "i16", 2, DTypeInfo::kSigned},
    {DType::kU16, "u16", 2, DTypeInfo::kUnsigned},
    {DType::kU32, "u32", 4, DTypeInfo::kUnsigned},
    {DType::kU64, "u64", 8, DTypeInfo::kUnsigned},
    {DType::kF8E4M3FN, "f8e4m3fn", 1, DTypeInfo::kFloat},
    {DType::kF8E4M3FNUZ, "f8e4m3fnuz", 1, DTypeInfo::kFloat},
    {DType::kF8E5M2, "f8e5m2", 1, DTypeInfo::kFloat},
    {DType::kF8E5M2FNUZ, "f8e5m2fnuz", 1, DTypeInfo::kFloat},
}};

const DTypeInfo& Info(DType dtype) { return kInfos[static_cast<size_t>(dtype)]; }

}  // namespace

std::string_view DTypeName(DType dtype) { return Info(dtype).name; }

std::optional<DType> ParseDType(std::string_view name) {
  for (const DTypeInfo& info : kInfos) {
    if (info.name == name) return info.dtype;
  }
  return std::nullopt;
}

int64_t DTypeSize(DType dtype) { return Info(dtype).size; }

int64_t LowestInteger(DType dtype) {
  return IsUnsigned(dtype) || dtype == DType::kBool ? 0 : -HighestInteger(dtype) - 1;
}

int64_t HighestInteger(DType dtype) {
  if (dtype == DType::kBool) return 1;
  const int64_t bits = std::min<int64_t>(8 * DTypeSize(dtype) - (IsUnsigned(dtype) ? 0 : 1), 63);
  return static_cast<int64_t>((uint64_t{1} << bits) - 1);
}

bool IsFloat(DType dtype) { return Info(dtype).kind == DTypeInfo::kFloat; }

bool IsFloat8(DType dtype) { return IsFloat(dtype) && DTypeSize(dtype) == 1; }

bool IsUnsigned(DType dtype) {
  return Info(dtype).kind == DTypeInfo::kUnsigned && dtype != DType::kBool;
}

int64_t NumElements(const Shape& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

Shape RowMajorStrides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

std::string ShapeString(const Shape& shape) {
  if (shape.empty()) return "scalar";
  std::string text;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d > 0) text += 'x';
    text += std::to_string(shape[d]);
  }
  return text;
}

std::optional<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (size_t d = 0; d < result.size(); ++d) {
    const int64_t left = d < a.size() ? a[a.size() - 1 - d] : 1;
    const int64_t right = d < b.size() ? b[b.size() - 1 - d] : 1;
    if (left != right && left != 1 && right != 1) return std::nullopt;
    result[result.size() - 1 - d] = left == 1 ? right : left;
  }
  return result;
}

int64_t FlatIndex(const Shape& shape, Index index) {
  int64_t flat = 0;
  for (size_t d = 0; d < shape.size(); ++d) flat = flat * shape[d] + index[d];
  return flat;
}

bool NextIndex(const Shape& shape, std::span<int64_t> index) {
  for (size_t d = shape.size(); d-- > 0;) {
    if (++index[d] < shape[d]) return true;
    index[d] = 0;
  }
  return false;
}

std::string TypeString(const TensorType& type) {
  std::string text(DTypeName(type.dtype));
  text += '[';
  for (size_t d = 0; d < type.shape.size(); ++d) {
    if (d > 0) text += ',';
    text += std::to_string(type.shape[d]);
  }
  return text + ']';
}

Shape Box::Extents() const {
  Shape extents(begin.size());
  for (size_t d = 0; d < begin.size(); ++d) extents[d] = std::max<int64_t>(0, end[d] - begin[d]);
  return extents;
}

int64_t Box::Volume() const { return NumElements(Extents()); }

bool Box::Contains(Index index) const {
  for (size_t d = 0; d < begin.size(); ++d) {
    if (index[d] < begin[d] || index[d] >= end[d]) return false;
  }
  return true;
}

std::string BoxString(const Box& box) {
  std::string text = "[";
  for (size_t d = 0; d < box.begin.size(); ++d) {
    if (d > 0) text += ", ";
    text += Cat(box.begin[d], ":", box.end[d]);
  }
  return text + "]";
}

std::optional<Box> Intersect(const Box& a, const Box& b) {
  Box result = a;
  for (size_t d = 0; d < a.begin.size(); ++d) {
    result.begin[d] = std::max(a.begin[d], b.begin[d]);
    result.end[d] = std::min(a.end[d], b.end[d]);
    if (result.begin[d] >= result.end[d]) return std::nullopt;
  }
  return result;
}

}  // namespace mendel
