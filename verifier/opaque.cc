#include "verifier/opaque.h"

#include <optional>
#include <vector>

#include "base/element_stream.h"
#include "base/hash.h"
#include "graph/fill.h"
#include "graph/op_helpers.h"
#include "graph/text.h"

namespace mendel {
namespace {

/// Constants that keep the three kinds of oracles apart.
enum class Family : uint64_t { kWhole = 0x6f7061717565, kBox, kElement };

/// Elements of inputs that oracles of boxes may read in all, beside what the inputs and the output
/// hold.
constexpr int64_t kMaxRead = 1 << 18;
/// The cost of one box, in such elements.
constexpr int64_t kReadOfBox = 16;

const PrimeField& Field() { return FieldScope::Current(); }

std::array<uint64_t, 2> KeyOf(const KeyedHash& hash) {
  const Hash128 value = hash.Finish();
  return {value.high, value.low};
}

KeyedHash HashOf(std::array<uint64_t, 2> key, Family family, const OpDefinition& op,
                 const Attributes& attrs, int inputs) {
  KeyedHash hash(key);
  hash.Add(static_cast<uint64_t>(family));
  hash.Add(op.name);
  hash.Add(PrintAttributes(attrs));
  hash.Add(static_cast<uint64_t>(inputs));
  return hash;
}

/// visit(position) for all positions of a box, row-major.
template <class Visit>
void ForEachIn(const Box& box, const Visit& visit) {
  const Shape extents = box.Extents();
  Shape offset(extents.size(), 0), position = box.begin;
  for (int64_t left = box.Volume(); left > 0; --left) {
    visit(Index(position));
    NextIndex(extents, offset);
    for (size_t d = 0; d < offset.size(); ++d) position[d] = box.begin[d] + offset[d];
  }
}

/// Elements k of the stream of `key`, for a whole tensor or a box of it.
std::vector<uint64_t> Stream(std::array<uint64_t, 2> key, int64_t count) {
  std::vector<uint64_t> elements(static_cast<size_t>(count));
  FillElements(Field(), key, 0, elements);
  return elements;
}

void FillElementwise(std::array<uint64_t, 2> key, const OpDefinition& op, const NodeView& node,
                     const Reader<Fp>& in, std::span<Fp> out) {
  KeyedHash hash = HashOf(key, Family::kElement, op, node.attrs, in.size());
  for (const TensorType& input : node.inputs) hash.Add(static_cast<uint64_t>(input.dtype));
  const std::array<uint64_t, 2> function = KeyOf(hash);
  FillByPosition<Fp>(node.outputs[0].shape, out, [&](Index i) {
    KeyedHash call(function);
    for (int k = 0; k < in.size(); ++k) call.Add(in.Broadcast(k, i).value);
    return Fp{ElementOfHash(Field(), call.Finish())};
  });
}

/// The box at the origin that is as small as the operator lets outputs be cut; empty where it does
/// not.
std::optional<Box> SmallestBox(const OpDefinition& op, const NodeView& node) {
  if (op.restrict == nullptr || node.outputs.size() != 1) return std::nullopt;
  const Shape& shape = node.outputs[0].shape;
  const Box whole = Box::Whole(shape);
  if (whole.Volume() == 0) return std::nullopt;
  Box smallest = whole;
  for (size_t d = 0; d < shape.size(); ++d) {
    Box slice = whole;
    slice.end[d] = 1;
    if (op.restrict(node, slice).has_value()) smallest.end[d] = 1;
  }
  return smallest;
}

/// Boxes alike that cover the output, with what each reads; empty where the operator cannot be cut
/// so, or only at a high price.
struct Piece {
  Box box;
  Restriction reads;
};
std::vector<Piece> Pieces(const OpDefinition& op, const NodeView& node) {
  const std::optional<Box> first = SmallestBox(op, node);
  if (!first.has_value()) return {};
  int64_t allowed = kMaxRead + NumElements(node.outputs[0]);
  for (const TensorType& input : node.inputs) allowed += NumElements(input);
  const Shape extents = first->Extents();
  Shape grid = node.outputs[0].shape;
  for (size_t d = 0; d < grid.size(); ++d) grid[d] /= extents[d];
  std::vector<Piece> pieces;
  bool cut = true;
  ForEachIn(Box::Whole(grid), [&](Index at) {
    if (!cut) return;
    Box box = *first;
    for (size_t d = 0; d < grid.size(); ++d) {
      box.begin[d] = at[d] * extents[d];
      box.end[d] = box.begin[d] + extents[d];
    }
    std::optional<Restriction> reads = op.restrict(node, box);
    cut = reads.has_value();
    if (!cut) return;
    allowed -= kReadOfBox;
    for (const Box& input : reads->inputs) allowed -= input.Volume();
    cut = allowed >= 0;
    pieces.push_back({std::move(box), *std::move(reads)});
  });
  return cut ? pieces : std::vector<Piece>();
}

void FillPiece(std::array<uint64_t, 2> key, const OpDefinition& op, const NodeView& node,
               const Reader<Fp>& in, const Piece& piece, std::span<Fp> out) {
  KeyedHash hash = HashOf(key, Family::kBox, op, piece.reads.attrs, in.size());
  for (int k = 0; k < in.size(); ++k) {
    const Box& box = piece.reads.inputs[static_cast<size_t>(k)];
    hash.Add(TypeString({node.inputs[static_cast<size_t>(k)].dtype, box.Extents()}));
    ForEachIn(box, [&](Index i) { hash.Add(in(k, i).value); });
  }
  const std::vector<uint64_t> elements = Stream(KeyOf(hash), piece.box.Volume());
  const Shape strides = RowMajorStrides(node.outputs[0].shape);
  size_t next = 0;
  ForEachIn(piece.box, [&](Index i) {
    int64_t flat = 0;
    for (size_t d = 0; d < i.size(); ++d) flat += i[d] * strides[d];
    out[static_cast<size_t>(flat)] = {elements[next++]};
  });
}

void FillWhole(std::array<uint64_t, 2> key, const OpDefinition& op, const NodeView& node,
               const Reader<Fp>& in, int output, std::span<Fp> out) {
  KeyedHash hash = HashOf(key, Family::kWhole, op, node.attrs, in.size());
  for (int k = 0; k < in.size(); ++k) {
    const TensorType& type = node.inputs[static_cast<size_t>(k)];
    hash.Add(TypeString(type));
    for (int64_t i = 0; i < NumElements(type); ++i) hash.Add(in.Flat(k, i).value);
  }
  hash.Add(static_cast<uint64_t>(output));
  const std::vector<uint64_t> elements = Stream(KeyOf(hash), static_cast<int64_t>(out.size()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = {elements[i]};
}

}  // namespace

void FillOpaque(std::array<uint64_t, 2> key, const OpDefinition& op, const NodeView& node,
                const Reader<Fp>& in, int output, std::span<Fp> out) {
  if (op.restrict == &RestrictElementwise && node.outputs.size() == 1)
    return FillElementwise(key, op, node, in, out);
  const std::vector<Piece> pieces = Pieces(op, node);
  if (pieces.empty()) return FillWhole(key, op, node, in, output, out);
  for (const Piece& piece : pieces) FillPiece(key, op, node, in, piece, out);
}

}  // namespace mendel
