#include "runtime/npy.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "base/status.h"

namespace mendel {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr size_t kMaxHeader = size_t{1} << 20;

struct DTypeCode {
  DType dtype;
  std::string_view code;
};
constexpr std::array<DTypeCode, 12> kCodes = {{{DType::kF32, "<f4"},
                                               {DType::kF64, "<f8"},
                                               {DType::kF16, "<f2"},
                                               {DType::kI8, "|i1"},
                                               {DType::kU8, "|u1"},
                                               {DType::kI32, "<i4"},
                                               {DType::kI64, "<i8"},
                                               {DType::kBool, "|b1"},
                                               {DType::kI16, "<i2"},
                                               {DType::kU16, "<u2"},
                                               {DType::kU32, "<u4"},
                                               {DType::kU64, "<u8"}}};

struct Header {
  std::string descr;
  bool fortran = false;
  Shape shape;
};

/// The header is a Python dictionary literal: {'descr': '<f4', 'fortran_order': False, 'shape': (2,
/// 3), }.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  absl::StatusOr<Header> Parse() {
    Header header;
    unsigned seen = 0;
    if (!Accept('{')) return Malformed();
    while (!Accept('}')) {
      const std::optional<std::string> key = Quoted();
      if (!key.has_value() || !Accept(':')) return Malformed();
      const unsigned field = *key == "descr"           ? 1u
                             : *key == "fortran_order" ? 2u
                             : *key == "shape"         ? 4u
                                                       : 0u;
      if (field == 0 || (seen & field) != 0 || !Value(field, header)) return Malformed();
      seen |= field;
      if (!Accept(',') && !Peek('}')) return Malformed();
    }
    Skip();
    if (seen != 7 || position_ != text_.size()) return Malformed();
    return header;
  }

 private:
  static absl::Status Malformed() { return InvalidInput("malformed .npy header"); }
  void Skip() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_])))
      ++position_;
  }
  bool Peek(char c) {
    Skip();
    return position_ < text_.size() && text_[position_] == c;
  }
  bool Accept(char c) {
    if (!Peek(c)) return false;
    ++position_;
    return true;
  }
  bool AcceptWord(std::string_view word) {
    Skip();
    if (!text_.substr(position_).starts_with(word)) return false;
    position_ += word.size();
    return true;
  }
  std::optional<std::string> Quoted() {
    Skip();
    if (position_ >= text_.size() || (text_[position_] != '\'' && text_[position_] != '"'))
      return std::nullopt;
    const char quote = text_[position_++];
    const size_t end = text_.find(quote, position_);
    if (end == std::string_view::npos) return std::nullopt;
    std::string value(text_.substr(position_, end - position_));
    position_ = end + 1;
    return value;
  }
  bool Value(unsigned field, Header& header) {
    if (field == 1) {
      const std::optional<std::string> descr = Quoted();
      header.descr = descr.value_or("");
      return descr.has_value();
    }
    if (field == 2) {
      header.fortran = AcceptWord("True");
      return header.fortran || AcceptWord("False");
    }
    return Tuple(header.shape);
  }
  bool Tuple(Shape& shape) {
    if (!Accept('(')) return false;
    while (!Accept(')')) {
      Skip();
      int64_t extent = 0;
      const char* first = text_.data() + position_;
      const auto result = std::from_chars(first, text_.data() + text_.size(), extent);
      if (result.ec != std::errc() || extent < 0 || shape.size() >= static_cast<size_t>(kMaxRank))
        return false;
      position_ += static_cast<size_t>(result.ptr - first);
      shape.push_back(extent);
      if (!Accept(',') && !Peek(')')) return false;
    }
    return true;
  }

  std::string_view text_;
  size_t position_ = 0;
};

absl::StatusOr<TensorType> TypeOf(const Header& header) {
  int64_t count = 1;
  for (int64_t extent : header.shape) {
    if (extent > kMaxElements || (extent > 0 && count > kMaxElements / extent))
      return InvalidInput(".npy array is too large");
    count *= extent;
  }
  for (const DTypeCode& known : kCodes) {
    if (known.code == header.descr) return TensorType{known.dtype, header.shape};
  }
  return Unsupported(".npy array has dtype '", header.descr,
                     "' (supported: f32, f64, f16, i8, u8, i32, i64, bool, little-endian)");
}

/// Row-major bytes of a column-major array.
std::vector<std::byte> FromFortran(const TensorType& type, std::span<const std::byte> data) {
  const size_t width = static_cast<size_t>(DTypeSize(type.dtype));
  const Shape& shape = type.shape;
  std::vector<std::byte> result(data.size());
  Shape index(shape.size(), 0);
  const int64_t count = NumElements(shape);
  for (int64_t flat = 0; flat < count; ++flat) {
    int64_t source = 0;
    for (size_t d = shape.size(); d-- > 0;) source = source * shape[d] + index[d];
    std::memcpy(result.data() + static_cast<size_t>(flat) * width,
                data.data() + static_cast<size_t>(source) * width, width);
    NextIndex(shape, index);
  }
  return result;
}

}  // namespace

absl::StatusOr<Tensor> ParseNpy(std::span<const std::byte> bytes) {
  if (bytes.size() < 10 || std::memcmp(bytes.data(), kNpyMagic.data(), kNpyMagic.size()) != 0)
    return InvalidInput("not a .npy file");
  const auto byte = [&](size_t i) { return std::to_integer<size_t>(bytes[i]); };
  const size_t major = byte(6);
  if (major < 1 || major > 3)
    return InvalidInput(".npy format version ", major, " is not supported");
  size_t start = 10;
  size_t length = byte(8) + (byte(9) << 8);
  if (major > 1) {
    if (bytes.size() < 12) return InvalidInput(".npy file is cut off");
    start = 12;
    length += (byte(10) << 16) + (byte(11) << 24);
  }
  if (length > kMaxHeader || length > bytes.size() - start)
    return InvalidInput(".npy header is cut off or too long");
  MENDEL_ASSIGN_OR_RETURN(
      const Header header,
      HeaderParser({reinterpret_cast<const char*>(bytes.data() + start), length}).Parse());
  MENDEL_ASSIGN_OR_RETURN(TensorType type, TypeOf(header));
  const std::span<const std::byte> data = bytes.subspan(start + length);
  if (static_cast<int64_t>(data.size()) != ByteSize(type)) {
    return InvalidInput(".npy file holds ", data.size(), " bytes where ", TypeString(type),
                        " needs ", ByteSize(type));
  }
  std::vector<std::byte> elements =
      header.fortran ? FromFortran(type, data) : std::vector<std::byte>(data.begin(), data.end());
  if (type.dtype == DType::kBool) {
    for (std::byte& element : elements) element = static_cast<std::byte>(element != std::byte{0});
  }
  return Tensor(std::move(type), std::move(elements));
}

absl::StatusOr<Tensor> ReadNpy(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const int error = errno;
  if (!file) return absl::ErrnoToStatus(error, Cat("cannot open ", path));
  const std::streamoff size = file.tellg();
  if (size < 0 || size > int64_t{1} << 44)
    return InvalidInput(path, " is not a readable .npy file");
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), size);
  if (!file) return absl::DataLossError(Cat("cannot read ", path));
  absl::StatusOr<Tensor> tensor = ParseNpy(bytes);
  if (!tensor.ok()) return Annotate(tensor.status(), path);
  return tensor;
}

absl::StatusOr<std::vector<std::byte>> FormatNpy(const Tensor& tensor) {
  const auto known = std::find_if(kCodes.begin(), kCodes.end(),
                                  [&](const DTypeCode& c) { return c.dtype == tensor.dtype(); });
  if (known == kCodes.end())
    return Unsupported(".npy files cannot hold ", DTypeName(tensor.dtype()));
  std::string shape;
  for (int64_t extent : tensor.shape()) shape += Cat(extent, ", ");
  if (tensor.shape().size() > 1) shape.resize(shape.size() - 2);
  if (tensor.shape().size() == 1) shape.resize(shape.size() - 1);
  std::string header =
      Cat("{'descr': '", known->code, "', 'fortran_order': False, 'shape': (", shape, "), }");
  constexpr size_t kFixed = 10;
  header.append((64 - (kFixed + header.size() + 1) % 64) % 64, ' ');
  header += '\n';
  std::string file = Cat(kNpyMagic, std::string("\x01\x00", 2));
  file += static_cast<char>(header.size() & 255);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  std::vector<std::byte> bytes(file.size() + tensor.bytes().size());
  std::memcpy(bytes.data(), file.data(), file.size());
  if (!tensor.bytes().empty())
    std::memcpy(bytes.data() + file.size(), tensor.bytes().data(), tensor.bytes().size());
  return bytes;
}

absl::Status WriteNpy(const Tensor& tensor, const std::string& path) {
  MENDEL_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, FormatNpy(tensor));
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  const int error = errno;
  if (!file) return absl::ErrnoToStatus(error, Cat("cannot create ", path));
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file ? absl::OkStatus() : absl::DataLossError(Cat("cannot write ", path));
}

}  // namespace mendel
