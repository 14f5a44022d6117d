#include "onnx/wire.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/status.h"

namespace mendel {
namespace {

enum class Kind {
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kSparse,
  kFunction,
  kRaw,
  kDropped,
  kOther
};

struct Child {
  Kind parent;
  uint32_t field;
  Kind kind;
};

/// The fields of onnx.proto that lead to tensors.
constexpr std::array kChildren = {
    Child{Kind::kModel, 7, Kind::kGraph},          // graph
    Child{Kind::kModel, 20, Kind::kDropped},       // training_info
    Child{Kind::kModel, 25, Kind::kFunction},      // functions
    Child{Kind::kFunction, 7, Kind::kNode},        // node
    Child{Kind::kFunction, 11, Kind::kAttribute},  // attribute_proto
    Child{Kind::kGraph, 1, Kind::kNode},           // node
    Child{Kind::kGraph, 5, Kind::kTensor},         // initializer
    Child{Kind::kGraph, 15, Kind::kSparse},        // sparse_initializer
    Child{Kind::kNode, 5, Kind::kAttribute},       // attribute
    Child{Kind::kAttribute, 5, Kind::kTensor},     // t
    Child{Kind::kAttribute, 6, Kind::kGraph},      // g
    Child{Kind::kAttribute, 10, Kind::kTensor},    // tensors
    Child{Kind::kAttribute, 11, Kind::kGraph},     // graphs
    Child{Kind::kAttribute, 22, Kind::kSparse},    // sparse_tensor
    Child{Kind::kAttribute, 23, Kind::kSparse},    // sparse_tensors
    Child{Kind::kSparse, 1, Kind::kTensor},        // values
    Child{Kind::kSparse, 2, Kind::kTensor},        // indices
    Child{Kind::kTensor, 9, Kind::kRaw},           // raw_data
};

constexpr int kMaxNesting = 90;  // below protobuf's own limit of 100

Kind ChildKind(Kind parent, uint64_t field) {
  const auto found = std::find_if(kChildren.begin(), kChildren.end(), [&](const Child& c) {
    return c.parent == parent && c.field == field;
  });
  return found == kChildren.end() ? Kind::kOther : found->kind;
}

void AppendVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

class Stripper {
 public:
  explicit Stripper(StrippedModel& model) : model_(model) {}

  /// Appends the stripped form of `in` to `out`.
  absl::Status Message(std::span<const std::byte> in, Kind kind, int depth, std::string& out) {
    if (depth > kMaxNesting)
      return InvalidInput("the model is nested more than ", kMaxNesting, " levels deep");
    size_t at = 0;
    while (at < in.size()) {
      const size_t start = at;
      uint64_t tag = 0;
      if (!Varint(in, at, tag)) return Truncated();
      size_t length = 0;
      switch (tag & 7) {
        case 0: {
          uint64_t value = 0;
          if (!Varint(in, at, value)) return Truncated();
          break;
        }
        case 1:
          length = 8;
          break;
        case 5:
          length = 4;
          break;
        case 2: {
          uint64_t stated = 0;
          if (!Varint(in, at, stated) || stated > in.size() - at) return Truncated();
          length = static_cast<size_t>(stated);
          break;
        }
        default:
          return InvalidInput("the file is not an ONNX model (unknown wire type)");
      }
      if (length > in.size() - at) return Truncated();
      const Kind child = (tag & 7) == 2 ? ChildKind(kind, tag >> 3) : Kind::kOther;
      if (child == Kind::kOther) {
        out.append(reinterpret_cast<const char*>(in.data()) + start, at + length - start);
      } else {
        MENDEL_RETURN_IF_ERROR(Submessage(in.subspan(at, length), child, tag, depth, out));
      }
      at += length;
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status Truncated() {
    return InvalidInput("the file is not an ONNX model or is truncated");
  }

  static bool Varint(std::span<const std::byte> in, size_t& at, uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at == in.size()) return false;
      const uint64_t byte = static_cast<uint64_t>(in[at++]);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  absl::Status Submessage(std::span<const std::byte> in, Kind kind, uint64_t tag, int depth,
                          std::string& out) {
    if (kind == Kind::kDropped) return absl::OkStatus();
    std::string content;
    if (kind == Kind::kRaw) {
      content = RawToken(model_.raw.size());
      model_.raw.push_back(in);
    } else {
      MENDEL_RETURN_IF_ERROR(Message(in, kind, depth + 1, content));
    }
    AppendVarint(tag, out);
    AppendVarint(content.size(), out);
    out += content;
    return absl::OkStatus();
  }

  StrippedModel& model_;
};

}  // namespace

absl::StatusOr<StrippedModel> StripRawData(std::span<const std::byte> model) {
  StrippedModel stripped;
  MENDEL_RETURN_IF_ERROR(Stripper(stripped).Message(model, Kind::kModel, 0, stripped.message));
  return stripped;
}

std::string RawToken(uint64_t index) {
  std::string token(sizeof(index), '\0');
  std::memcpy(token.data(), &index, sizeof(index));
  return token;
}

std::optional<uint64_t> ParseRawToken(const std::string& token) {
  uint64_t index = 0;
  if (token.size() != sizeof(index)) return std::nullopt;
  std::memcpy(&index, token.data(), sizeof(index));
  return index;
}

}  // namespace mendel
