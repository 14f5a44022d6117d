#include "onnx/tensor_decode.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "onnx/wire.h"

namespace mendel {
namespace {

template <class To, class Repeated>
absl::StatusOr<Tensor> FromRepeated(const TensorType& type, const Repeated& values) {
  if (static_cast<int64_t>(values.size()) != NumElements(type)) {
    return InvalidInput("has ", values.size(), " elements, its type ", TypeString(type), " says ",
                        NumElements(type));
  }
  std::vector<std::byte> bytes(static_cast<size_t>(ByteSize(type)));
  size_t at = 0;
  for (const auto& value : values) {
    const To element = static_cast<To>(type.dtype == DType::kBool ? value != 0 : value);
    std::memcpy(bytes.data() + at, &element, sizeof(To));
    at += sizeof(To);
  }
  return Tensor(type, std::move(bytes));
}

/// The typed fields; which one contains a dtype is fixed by onnx.proto.
absl::StatusOr<Tensor> FromTypedField(const TensorType& type, const onnx::TensorProto& proto) {
  switch (type.dtype) {
    case DType::kF32:
      return FromRepeated<float>(type, proto.float_data());
    case DType::kF64:
      return FromRepeated<double>(type, proto.double_data());
    case DType::kI64:
      return FromRepeated<int64_t>(type, proto.int64_data());
    case DType::kI32:
      return FromRepeated<int32_t>(type, proto.int32_data());
    case DType::kU32:
      return FromRepeated<uint32_t>(type, proto.uint64_data());
    case DType::kU64:
      return FromRepeated<uint64_t>(type, proto.uint64_data());
    case DType::kI16:
      return FromRepeated<int16_t>(type, proto.int32_data());
    case DType::kF16:
    case DType::kBF16:
    case DType::kU16:
      return FromRepeated<uint16_t>(type, proto.int32_data());  // of floats the bits
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
    case DType::kI8:
      return FromRepeated<int8_t>(type, proto.int32_data());
    case DType::kU8:
    case DType::kBool:
      return FromRepeated<uint8_t>(type, proto.int32_data());
  }
  return InternalError("unhandled dtype");
}

absl::StatusOr<Tensor> FromRaw(const TensorType& type, const OwnedBytes& raw) {
  if (static_cast<int64_t>(raw.bytes.size()) != ByteSize(type)) {
    return InvalidInput("has ", raw.bytes.size(), " bytes, its type ", TypeString(type), " says ",
                        ByteSize(type));
  }
  const auto address = reinterpret_cast<uintptr_t>(raw.bytes.data());
  if (type.dtype != DType::kBool && !raw.bytes.empty() &&
      address % static_cast<size_t>(DTypeSize(type.dtype)) == 0) {
    return Tensor(type, raw.bytes, raw.owner);
  }
  std::vector<std::byte> bytes(raw.bytes.begin(), raw.bytes.end());
  ForgetPages(raw, raw.bytes);
  if (type.dtype == DType::kBool) {
    for (std::byte& value : bytes) value = value == std::byte{0} ? std::byte{0} : std::byte{1};
  }
  return Tensor(type, std::move(bytes));
}

std::optional<int64_t> ParseCount(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

absl::StatusOr<Tensor> FromExternal(const TensorType& type, const onnx::TensorProto& proto,
                                    ExternalFiles& external) {
  std::string location;
  std::optional<int64_t> offset = 0;
  std::optional<int64_t> length = ByteSize(type);
  for (const onnx::StringStringEntryProto& entry : proto.external_data()) {
    if (entry.key() == "location") {
      location = entry.value();
    } else if (entry.key() == "offset") {
      offset = ParseCount(entry.value());
    } else if (entry.key() == "length") {
      length = ParseCount(entry.value());
    } else if (entry.key() != "checksum" && entry.key().rfind("prepacked", 0) != 0) {
      return Unsupported("has external data with the unknown key '", entry.key(), "'");
    }
  }
  if (!offset.has_value() || !length.has_value())
    return InvalidInput("has external data with a bad offset or length");
  if (*length != ByteSize(type)) {
    return InvalidInput("has external data of ", *length, " bytes, its type ", TypeString(type),
                        " says ", ByteSize(type));
  }
  MENDEL_ASSIGN_OR_RETURN(OwnedBytes file, external.Open(location));
  const int64_t size = static_cast<int64_t>(file.bytes.size());
  if (*offset > size || *length > size - *offset) {
    return InvalidInput("has external data that ends behind the end of '", location, "' (", size,
                        " bytes)");
  }
  file.bytes = file.bytes.subspan(static_cast<size_t>(*offset), static_cast<size_t>(*length));
  return FromRaw(type, file);
}

struct Packing {
  int bits;
  bool is_signed;
};

std::optional<Packing> PackingOf(int32_t data_type) {
  switch (data_type) {
    case onnx::TensorProto::INT4:
      return Packing{4, true};
    case onnx::TensorProto::UINT4:
      return Packing{4, false};
    case onnx::TensorProto::INT2:
      return Packing{2, true};
    case onnx::TensorProto::UINT2:
      return Packing{2, false};
    default:
      return std::nullopt;
  }
}

}  // namespace

absl::StatusOr<DType> DTypeFromOnnx(int32_t data_type) {
  switch (data_type) {
    case onnx::TensorProto::FLOAT:
      return DType::kF32;
    case onnx::TensorProto::FLOAT16:
      return DType::kF16;
    case onnx::TensorProto::BFLOAT16:
      return DType::kBF16;
    case onnx::TensorProto::DOUBLE:
      return DType::kF64;
    case onnx::TensorProto::INT8:
      return DType::kI8;
    case onnx::TensorProto::UINT8:
      return DType::kU8;
    case onnx::TensorProto::INT32:
      return DType::kI32;
    case onnx::TensorProto::INT64:
      return DType::kI64;
    case onnx::TensorProto::BOOL:
      return DType::kBool;
    case onnx::TensorProto::INT16:
      return DType::kI16;
    case onnx::TensorProto::UINT16:
      return DType::kU16;
    case onnx::TensorProto::UINT32:
      return DType::kU32;
    case onnx::TensorProto::UINT64:
      return DType::kU64;
    case onnx::TensorProto::FLOAT8E4M3FN:
      return DType::kF8E4M3FN;
    case onnx::TensorProto::FLOAT8E4M3FNUZ:
      return DType::kF8E4M3FNUZ;
    case onnx::TensorProto::FLOAT8E5M2:
      return DType::kF8E5M2;
    case onnx::TensorProto::FLOAT8E5M2FNUZ:
      return DType::kF8E5M2FNUZ;
    default:
      break;
  }
  if (!onnx::TensorProto::DataType_IsValid(data_type))
    return InvalidInput("unknown element type ", data_type);
  return Unsupported(
      "element type ",
      onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(data_type)),
      " is not supported");
}

int32_t DTypeToOnnx(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return onnx::TensorProto::FLOAT;
    case DType::kF16:
      return onnx::TensorProto::FLOAT16;
    case DType::kBF16:
      return onnx::TensorProto::BFLOAT16;
    case DType::kF64:
      return onnx::TensorProto::DOUBLE;
    case DType::kI8:
      return onnx::TensorProto::INT8;
    case DType::kU8:
      return onnx::TensorProto::UINT8;
    case DType::kI32:
      return onnx::TensorProto::INT32;
    case DType::kI64:
      return onnx::TensorProto::INT64;
    case DType::kBool:
      return onnx::TensorProto::BOOL;
    case DType::kI16:
      return onnx::TensorProto::INT16;
    case DType::kU16:
      return onnx::TensorProto::UINT16;
    case DType::kU32:
      return onnx::TensorProto::UINT32;
    case DType::kU64:
      return onnx::TensorProto::UINT64;
    case DType::kF8E4M3FN:
      return onnx::TensorProto::FLOAT8E4M3FN;
    case DType::kF8E4M3FNUZ:
      return onnx::TensorProto::FLOAT8E4M3FNUZ;
    case DType::kF8E5M2:
      return onnx::TensorProto::FLOAT8E5M2;
    case DType::kF8E5M2FNUZ:
      return onnx::TensorProto::FLOAT8E5M2FNUZ;
  }
  return onnx::TensorProto::UNDEFINED;
}

absl::Status CheckShape(const Shape& shape) {
  if (shape.size() > static_cast<size_t>(kMaxRank))
    return Unsupported("rank ", shape.size(), " exceeds the limit of ", kMaxRank);
  int64_t count = 1;
  for (int64_t extent : shape) {
    if (extent < 0) return InvalidInput("negative extent in shape ", ShapeString(shape));
    if (extent > kMaxElements || (extent > 0 && count > kMaxElements / extent)) {
      return InvalidInput("shape ", ShapeString(shape), " has more than 2^40 elements");
    }
    count *= extent;
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> DecodeTensor(const onnx::TensorProto& proto, const ModelFile& file,
                                    ExternalFiles& external) {
  TensorType type;
  MENDEL_ASSIGN_OR_RETURN(type.dtype, DTypeFromOnnx(proto.data_type()));
  type.shape.assign(proto.dims().begin(), proto.dims().end());
  MENDEL_RETURN_IF_ERROR(CheckShape(type.shape));
  if (proto.has_segment()) return Unsupported("is stored in segments");
  if (proto.data_location() == onnx::TensorProto::EXTERNAL)
    return FromExternal(type, proto, external);
  if (!proto.has_raw_data()) return FromTypedField(type, proto);
  const std::optional<uint64_t> token = ParseRawToken(proto.raw_data());
  if (!token.has_value() || *token >= file.raw.size())
    return InternalError("raw data without a token");
  return FromRaw(type, {file.raw[*token], file.bytes.owner, file.bytes.mapped});
}

bool IsPacked(int32_t data_type) { return PackingOf(data_type).has_value(); }

absl::StatusOr<Tensor> DecodePacked(const onnx::TensorProto& proto, const ModelFile& file,
                                    ExternalFiles& external) {
  const Packing packing = *PackingOf(proto.data_type());
  const Shape shape(proto.dims().begin(), proto.dims().end());
  MENDEL_RETURN_IF_ERROR(CheckShape(shape));
  const int64_t count = NumElements(shape), per_byte = 8 / packing.bits;
  onnx::TensorProto bytes = proto;
  bytes.set_data_type(onnx::TensorProto::UINT8);
  bytes.clear_dims();
  bytes.add_dims((count + per_byte - 1) / per_byte);
  MENDEL_ASSIGN_OR_RETURN(const Tensor packed, DecodeTensor(bytes, file, external));
  const std::span<const uint8_t> from = packed.As<uint8_t>();
  std::vector<std::byte> elements(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int low = packing.bits * static_cast<int>(i % per_byte);
    int element = (from[static_cast<size_t>(i / per_byte)] >> low) & ((1 << packing.bits) - 1);
    if (packing.is_signed && (element >> (packing.bits - 1)) != 0) element -= 1 << packing.bits;
    elements[static_cast<size_t>(i)] = static_cast<std::byte>(element);
  }
  return Tensor({packing.is_signed ? DType::kI8 : DType::kU8, shape}, std::move(elements));
}

absl::StatusOr<Tensor> DecodeTensor(onnx::TensorProto proto) {
  ExternalFiles none("");
  ModelFile file;
  const std::string raw = proto.raw_data();
  if (proto.has_raw_data()) {
    auto copy = std::make_shared<std::vector<std::byte>>(raw.size());
    if (!raw.empty()) std::memcpy(copy->data(), raw.data(), raw.size());
    file.raw.push_back(*copy);
    file.bytes.owner = copy;
    proto.set_raw_data(RawToken(0));
  }
  return DecodeTensor(proto, file, none);
}

}  // namespace mendel
