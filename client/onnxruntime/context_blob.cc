#include "client/onnxruntime/context_blob.h"

#include <charconv>
#include <utility>

#include "base/hash.h"
#include "base/status.h"

namespace mendel::ort {
namespace {

// The first line of the bytes, then the SHA-256 of the rest and a line for each piece with its
// size.
constexpr std::string_view kMagic = "mendel part 1\n";

void AddPiece(const std::string& piece, std::string& bytes) {
  bytes += Cat(piece.size(), "\n");
  bytes += piece;
}

absl::StatusOr<std::string_view> TakeLine(std::string_view& bytes) {
  const size_t end = bytes.find('\n');
  if (end == std::string_view::npos) return InvalidInput("the compiled part is cut off");
  const std::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(end + 1);
  return line;
}

absl::StatusOr<std::string> TakePiece(std::string_view& bytes) {
  MENDEL_ASSIGN_OR_RETURN(const std::string_view line, TakeLine(bytes));
  size_t size = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), size);
  if (error != std::errc() || end != line.data() + line.size() || size > bytes.size())
    return InvalidInput("the compiled part is damaged: a piece has no size that fits");
  std::string piece(bytes.substr(0, size));
  bytes.remove_prefix(size);
  return piece;
}

}  // namespace

std::string EncodeContext(const ContextBlob& blob) {
  std::string pieces;
  AddPiece(blob.model, pieces);
  for (const std::string& plan : blob.plans) AddPiece(plan, pieces);
  return Cat(kMagic, Sha256Hex(pieces), "\n", pieces);
}

absl::StatusOr<ContextBlob> DecodeContext(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) {
    return InvalidInput(
        "this is no part that this version of Mendel compiled: write the EPContext "
        "model anew from the original model");
  }
  bytes.remove_prefix(kMagic.size());
  MENDEL_ASSIGN_OR_RETURN(const std::string_view hash, TakeLine(bytes));
  if (Sha256Hex(bytes) != hash)
    return InvalidInput("the compiled part is damaged: its hash differs");
  ContextBlob blob;
  MENDEL_ASSIGN_OR_RETURN(blob.model, TakePiece(bytes));
  while (!bytes.empty()) {
    MENDEL_ASSIGN_OR_RETURN(std::string plan, TakePiece(bytes));
    blob.plans.push_back(std::move(plan));
  }
  return blob;
}

}  // namespace mendel::ort
