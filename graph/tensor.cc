#include "graph/tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/hash.h"

namespace mendel {
namespace {

template <class T>
void Store(std::byte* base, int64_t flat, T value) {
  std::memcpy(base + flat * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

/// Wraps into the integral dtype's range (two's complement), and to 0 or 1 for bool.
void StoreInt(DType dtype, std::byte* base, int64_t flat, int64_t value) {
  if (dtype == DType::kI64) return Store(base, flat, value);
  if (dtype == DType::kI32) return Store(base, flat, static_cast<int32_t>(value));
  if (dtype == DType::kI8) return Store(base, flat, static_cast<int8_t>(value));
  if (dtype == DType::kU8) return Store(base, flat, static_cast<uint8_t>(value));
  if (dtype == DType::kI16) return Store(base, flat, static_cast<int16_t>(value));
  if (dtype == DType::kU16) return Store(base, flat, static_cast<uint16_t>(value));
  if (dtype == DType::kU32) return Store(base, flat, static_cast<uint32_t>(value));
  if (dtype == DType::kU64) return Store(base, flat, static_cast<uint64_t>(value));
  MENDEL_CHECK(dtype == DType::kBool);
  Store(base, flat, static_cast<uint8_t>(value != 0));
}

void StoreFloat(DType dtype, std::byte* base, int64_t flat, double value) {
  if (dtype == DType::kF32) return Store(base, flat, static_cast<float>(value));
  if (dtype == DType::kF64) return Store(base, flat, value);
  if (dtype == DType::kF16) return Store(base, flat, FloatToHalf(static_cast<float>(value)));
  if (IsFloat8(dtype)) return Store(base, flat, FloatToFloat8(dtype, static_cast<float>(value)));
  MENDEL_CHECK(dtype == DType::kBF16);
  Store(base, flat, FloatToBFloat16(static_cast<float>(value)));
}

/// Truncation towards zero as C does, but defined for every double. Of u64 modulo 2^64.
int64_t TruncateToInt(DType dtype, double value) {
  if (std::isnan(value)) return 0;
  if (dtype == DType::kU64 && value >= 0x1p63)
    return static_cast<int64_t>(value < 0x1p64 ? static_cast<uint64_t>(value) : ~uint64_t{0});
  if (value >= 0x1p63) return std::numeric_limits<int64_t>::max();
  if (value < -0x1p63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

/// No element has all of `bits` set. Without an early end the loop is one of vectors.
template <class T>
bool NoneHasAllBits(std::span<const T> elements, T bits) {
  bool found = false;
  for (const T element : elements) found |= (element & bits) == bits;
  return !found;
}

}  // namespace

Tensor::Tensor(TensorType type, std::vector<std::byte> bytes) : type_(std::move(type)) {
  MENDEL_CHECK(static_cast<int64_t>(bytes.size()) == ByteSize(type_));
  auto shared = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  bytes_ = *shared;
  owner_ = std::move(shared);
}

Tensor::Tensor(TensorType type, std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
    : type_(std::move(type)), owner_(std::move(owner)), bytes_(bytes) {
  MENDEL_CHECK(static_cast<int64_t>(bytes.size()) == ByteSize(type_));
  MENDEL_CHECK(reinterpret_cast<uintptr_t>(bytes.data()) %
                   static_cast<uintptr_t>(DTypeSize(type_.dtype)) ==
               0);
}

Tensor Tensor::FromDoubles(TensorType type, std::span<const double> values) {
  std::vector<std::byte> bytes(static_cast<size_t>(ByteSize(type)));
  MENDEL_CHECK(static_cast<int64_t>(values.size()) == NumElements(type));
  if (type.dtype == DType::kF32) {  // nearly all of them: one loop that the compiler vectorizes
    for (size_t i = 0; i < values.size(); ++i)
      Store(bytes.data(), static_cast<int64_t>(i), static_cast<float>(values[i]));
    return Tensor(std::move(type), std::move(bytes));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (IsFloat(type.dtype)) {
      StoreFloat(type.dtype, bytes.data(), static_cast<int64_t>(i), values[i]);
    } else if (type.dtype == DType::kBool) {
      StoreInt(type.dtype, bytes.data(), static_cast<int64_t>(i), values[i] != 0);
    } else {
      StoreInt(type.dtype, bytes.data(), static_cast<int64_t>(i),
               TruncateToInt(type.dtype, values[i]));
    }
  }
  return Tensor(std::move(type), std::move(bytes));
}

Tensor Tensor::FromInts(TensorType type, std::span<const int64_t> values) {
  std::vector<std::byte> bytes(static_cast<size_t>(ByteSize(type)));
  MENDEL_CHECK(static_cast<int64_t>(values.size()) == NumElements(type));
  for (size_t i = 0; i < values.size(); ++i) {
    if (IsFloat(type.dtype)) {
      StoreFloat(type.dtype, bytes.data(), static_cast<int64_t>(i), static_cast<double>(values[i]));
    } else {
      StoreInt(type.dtype, bytes.data(), static_cast<int64_t>(i), values[i]);
    }
  }
  return Tensor(std::move(type), std::move(bytes));
}

Tensor Tensor::Ints(std::initializer_list<int64_t> values) {
  return FromInts({DType::kI64, {static_cast<int64_t>(values.size())}},
                  std::vector<int64_t>(values));
}

Tensor Tensor::Scalar(DType dtype, double value) {
  return FromDoubles({dtype, {}}, std::vector<double>{value});
}

Tensor Tensor::Filled(TensorType type, double value) {
  const std::vector<double> values(static_cast<size_t>(NumElements(type)), value);
  return FromDoubles(std::move(type), values);
}

double Tensor::DoubleAt(int64_t flat) const {
  const size_t i = static_cast<size_t>(flat);
  switch (type_.dtype) {
    case DType::kF32:
      return static_cast<double>(As<float>()[i]);
    case DType::kF64:
      return As<double>()[i];
    case DType::kF16:
      return static_cast<double>(HalfToFloat(As<uint16_t>()[i]));
    case DType::kBF16:
      return static_cast<double>(BFloat16ToFloat(As<uint16_t>()[i]));
    case DType::kU64:
      return static_cast<double>(As<uint64_t>()[i]);
    default:
      if (IsFloat8(type_.dtype))
        return static_cast<double>(Float8ToFloat(type_.dtype, As<uint8_t>()[i]));
      return static_cast<double>(IntAt(flat));
  }
}

bool Tensor::AllFinite() const {
  switch (type_.dtype) {
    case DType::kF32:
      return NoneHasAllBits<uint32_t>(As<uint32_t>(), 0x7f800000);
    case DType::kF64:
      return NoneHasAllBits<uint64_t>(As<uint64_t>(), 0x7ff0000000000000);
    case DType::kF16:
      return NoneHasAllBits<uint16_t>(As<uint16_t>(), 0x7c00);
    case DType::kBF16:
      return NoneHasAllBits<uint16_t>(As<uint16_t>(), 0x7f80);
    default:
      break;
  }
  if (!IsFloat8(type_.dtype)) return true;
  const std::span<const uint8_t> elements = As<uint8_t>();
  return std::all_of(elements.begin(), elements.end(),
                     [&](uint8_t bits) { return std::isfinite(Float8ToFloat(type_.dtype, bits)); });
}

int64_t Tensor::IntAt(int64_t flat) const {
  const size_t i = static_cast<size_t>(flat);
  switch (type_.dtype) {
    case DType::kI64:
      return As<int64_t>()[i];
    case DType::kI32:
      return As<int32_t>()[i];
    case DType::kI8:
      return As<int8_t>()[i];
    case DType::kU8:
      return As<uint8_t>()[i];
    case DType::kI16:
      return As<int16_t>()[i];
    case DType::kU16:
      return As<uint16_t>()[i];
    case DType::kU32:
      return As<uint32_t>()[i];
    case DType::kU64:
      return static_cast<int64_t>(As<uint64_t>()[i]);
    case DType::kBool:
      return As<uint8_t>()[i] != 0;
    default:
      MENDEL_CHECK(false && "IntAt on a float tensor");
      return 0;
  }
}

std::vector<double> Tensor::ToDoubles() const {
  if (type_.dtype == DType::kF32) return {As<float>().begin(), As<float>().end()};
  std::vector<double> values(static_cast<size_t>(size()));
  const int64_t count = size();
  for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = DoubleAt(i);
  return values;
}

std::vector<int64_t> Tensor::ToInts() const {
  std::vector<int64_t> values(static_cast<size_t>(size()));
  for (int64_t i = 0; i < size(); ++i) values[static_cast<size_t>(i)] = IntAt(i);
  return values;
}

Tensor Tensor::Reshaped(Shape shape) const {
  MENDEL_CHECK(NumElements(shape) == size());
  Tensor result = *this;
  result.type_.shape = std::move(shape);
  return result;
}

std::string Tensor::ContentHash() const {
  Sha256 hash;
  hash.Update(TypeString(type_));
  hash.Update(bytes_);
  return hash.HexDigest();
}

bool Tensor::operator==(const Tensor& other) const {
  if (type_ != other.type_) return false;
  return bytes_.data() == other.bytes_.data() || bytes_.empty() ||
         std::memcmp(bytes_.data(), other.bytes_.data(), bytes_.size()) == 0;
}

uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);   // NaN
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {  // subnormal: let the FPU round at the right place
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(
        sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f)));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t FloatToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float BFloat16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

double RoundTo(DType dtype, double value) {
  if (dtype == DType::kF64) return value;
  if (dtype == DType::kF32) return static_cast<double>(static_cast<float>(value));
  return Tensor::Scalar(dtype, value).DoubleAt(0);
}

}  // namespace mendel
