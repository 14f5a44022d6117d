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
  bool is_float;
};

constexpr std::array<DTypeInfo, 9> kDTypes = {{
    {DType::kF32, "f32", 4, true},
    {DType::kF16, "f16", 2, true},
    {DType::kBF16, "bf16", 2, true},
    {DType::kF64, "f64", 8, true},
    {DType::kI8, "i8", 1, false},
    {DType::kU8, "u8", 1, false},
    {DType::kI32, "i32", 4, false},
    {DType::kI64, "i64", 8, false},
    {DType::kBool, "bool", 1, false},
}};

const DTypeInfo& Info(DType dtype) { return kDTypes[static_cast<size_t>(dtype)]; }

}  // namespace

std::string_view DTypeName(DType dtype) { return Info(dtype).name; }

std::optional<DType> ParseDType(std::string_view name) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.name == name) return info.dtype;
  }
  return std::nullopt;
}

int64_t DTypeSize(DType dtype) { return Info(dtype).size; }

int64_t LowestInteger(DType dtype) {
  if (dtype == DType::kU8 || dtype == DType::kBool) return 0;
  return -HighestInteger(dtype) - 1;
}

int64_t HighestInteger(DType dtype) {
  if (dtype == DType::kBool) return 1;
  const int64_t bits = 8 * DTypeSize(dtype) - (dtype == DType::kU8 ? 0 : 1);
  return static_cast<int64_t>((uint64_t{1} << bits) - 1);
}

bool IsFloat(DType dtype) { return Info(dtype).is_float; }

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
