#include "kernels/cuda/tiled/operand_text.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "kernels/cuda/fusion/preamble.h"
#include "kernels/cuda/tiled/candidate.h"

namespace mendel::cuda {

OperandText::OperandText(KernelCode& code, const Tile& tile, std::string_view real,
                         OperandTile operand)
    : code_(code),
      tile_(tile),
      real_(real),
      operand_(std::move(operand)),
      word_products_(operand_.cores == nullptr ? 1 : operand_.cores->word_products),
      shared_{operand_.name, operand_.across, tile.depth / word_products_, operand_.padding,
              operand_.by_depth && (word_products_ > 1 || operand_.copied)} {}

/// A unit has one read, or one for each product of a word if a read's elements are of many words.
int OperandText::PairedReads() const {
  return operand_.by_depth && operand_.lanes > 1 ? 1 : word_products_;
}
int OperandText::Units() const { return operand_.across * tile_.depth / UnitElements(); }
int OperandText::Reads() const { return (Units() + tile_.threads() - 1) / tile_.threads(); }

void OperandText::Unrolled(const std::string& header) const {
  code_.Line("#pragma unroll");
  code_.Open(header);
}

void OperandText::OpenReads() const {
  const int along = operand_.by_depth ? UnitElements() : operand_.lanes;
  const int first = (operand_.by_depth ? tile_.depth : operand_.across) / along;
  const std::string near = Scaled(Modulo("unit", first), along);
  const std::string far = Scaled(Divided("unit", first), operand_.by_depth ? 1 : PairedReads());
  Unrolled(Cat("for (int i = 0; i < ", Reads(), "; ++i)"));
  code_.Line(Cat("const int unit = thread + i * ", tile_.threads(), ";"));
  code_.Line(Cat("const int across = ", operand_.by_depth ? far : near, ";"));
  code_.Line(Cat("const int depth = ", operand_.by_depth ? near : far, ";"));
}

/// The condition that a read is of the tile; "" if every read is.
std::string OperandText::InTile() const {
  return Units() % tile_.threads() == 0 ? "" : Cat("unit < ", Units());
}

void OperandText::DeclareRegisters() const {
  code_.Line(Cat(real_, " next_", operand_.name, "[", Reads() * UnitElements(), "];"));
}

/// The register of a unit's element: lane `lane` of read `read`.
std::string OperandText::Next(const std::string& read, const std::string& lane) const {
  return Cat("next_", operand_.name, "[",
             Added(Added(Scaled("i", UnitElements()), Scaled(read, operand_.lanes)), lane), "]");
}

void OperandText::Fetch(const std::string& k0, int64_t depth, const std::string& zero,
                        const Shape& shape, const PlaceOfElement& place,
                        const ElementAtPosition& element) const {
  OpenReads();
  code_.Line(Cat("const ", code_.index_type(), " at = ", operand_.origin, " + across;"));
  const bool several = PairedReads() > 1;
  const std::string read = several ? "read" : "0";
  if (several) Unrolled(Cat("for (int read = 0; read < ", PairedReads(), "; ++read)"));
  code_.Line(Cat("const ", code_.index_type(), " k = ", Added(Cat(k0, " + depth"), read), ";"));
  Unrolled(Cat("for (int lane = 0; lane < ", operand_.lanes, "; ++lane)"));
  code_.Line(Cat(Next(read, "lane"), " = ", zero, ";"));
  code_.Close();
  const std::string in_tile = InTile();
  code_.Open(Cat("if (", in_tile, in_tile.empty() ? "" : " && ", "at < ", operand_.limit,
                 " && k < ", depth, ")"));
  if (operand_.lanes == 1) {
    std::string inside;
    const Position position = place("at", "k", inside);
    if (!inside.empty()) code_.Open(Cat("if (", inside, ")"));
    code_.Line(Cat(Next(read, "0"), " = ", element(position), ";"));
    if (!inside.empty()) code_.Close();
  } else {
    FetchLanes(read, shape, place, element);
  }
  code_.Close();
  if (several) code_.Close();
  code_.Close();
}

void OperandText::FetchLanes(const std::string& read, const Shape& shape,
                             const PlaceOfElement& place, const ElementAtPosition& element) const {
  std::string inside;  // stays empty: elements that may not be there do not lie side by side
  const std::string first = code_.LetIndex(FlatOf(shape, place("at", "k", inside)));
  code_.BeginLanes(operand_.lanes, first, shape);
  code_.Line(Cat("const ", code_.index_type(), " f = ", first, " + lane;"));
  const std::string at = operand_.by_depth ? "at" : code_.LetIndex("at + lane");
  const std::string k = operand_.by_depth ? code_.LetIndex("k + lane") : "k";
  const std::string value = element(AsRoot(place(at, k, inside)));
  code_.Line(Cat(Next(read, "lane"), " = ", value, ";"));
  code_.EndLanes(Cat("for (int lane = 0; lane < ", operand_.lanes, "; ++lane)"));
}

void OperandText::Copy(const std::string& k0, int64_t depth, ValueId value,
                       const PlaceOfElement& place) const {
  OpenReads();
  const std::string in_tile = InTile(), index = code_.index_type();
  code_.Open(in_tile.empty() ? "" : Cat("if (", in_tile, ")"));
  code_.Line(Cat("const ", index, " at = ", operand_.origin, " + across;"));
  code_.Line(Cat("const ", index, " k = ", k0, " + depth;"));
  code_.Line(Cat("const bool there = at < ", operand_.limit, " && k < ", depth, ";"));
  std::string inside;
  const Position position = place("at", "k", inside);
  MENDEL_CHECK(inside.empty());  // elements that may not be there do not lie side by side
  const TensorType& type = code_.graph().type(value);
  code_.Line(Cat("const ", index, " from = there ? ", FlatOf(type.shape, position), " : 0;"));
  const std::string to = Cat("Pack<", word(), ", ", operand_.lanes / word_products_, ">");
  const std::string read = Cat("Pack<", StoredName(type.dtype), ", ", operand_.lanes, ">");
  const std::string first_word = Divided("depth", word_products_);
  code_.Line(Cat("CopyAsync(reinterpret_cast<", to, "*>(&",
                 shared_.At("(buffer ^ 1)", first_word, "across", "(across % 8)"),
                 "), reinterpret_cast<const ", read, "*>(", code_.Pointer(value),
                 " + from), there);"));
  code_.Close();
  code_.Close();
}

void OperandText::Stage() const {
  OpenReads();
  const std::string in_tile = InTile();
  code_.Open(in_tile.empty() ? "" : Cat("if (", in_tile, ")"));
  word_products_ == 1 ? StageElements() : StagePairs();
  code_.Close();
  code_.Close();
}

void OperandText::StageElements() const {
  Unrolled(Cat("for (int lane = 0; lane < ", operand_.lanes, "; ++lane)"));
  const char* const row = operand_.by_depth ? "depth + lane" : "depth";
  const char* const column = operand_.by_depth ? "across" : "across + lane";
  const std::string value = Next("0", "lane");
  code_.Line(Cat(shared_.At("(buffer ^ 1)", row, column, "(across % 8)"), " = ",
                 operand_.cores == nullptr ? value : Cat(operand_.cores->round, "(", value, ")"),
                 ";"));
  code_.Close();
}

/// A unit's words lie side by side in either order, and are written 16 bytes at a time.
void OperandText::StagePairs() const {
  const int words = UnitElements() / 2, pack = std::min(words, 4);
  const std::string type = Cat("Pack<", word(), ", ", pack, ">");
  Unrolled(Cat("for (int first = 0; first < ", words, "; first += ", pack, ")"));
  code_.Line(Cat(type, " words;"));
  Unrolled(Cat("for (int j = 0; j < ", pack, "; ++j)"));
  const bool beside = PairedReads() == 1;  // both products of a word in one read
  const std::string one = beside ? Next("0", "2 * (first + j)") : Next("0", "first + j");
  const std::string other = beside ? Next("0", "2 * (first + j) + 1") : Next("1", "first + j");
  code_.Line(Cat("words.v[j] = ", operand_.cores->round, "(", one, ", ", other, ");"));
  code_.Close();
  const std::string place =
      operand_.by_depth ? shared_.At("(buffer ^ 1)", "depth / 2 + first", "across", "(across % 8)")
                        : shared_.At("(buffer ^ 1)", "depth / 2", "across + first", "");
  code_.Line(Cat("*reinterpret_cast<", type, "*>(&", place, ") = words;"));
  code_.Close();
}

void OperandText::Factors(const std::string& name, const std::string& own, int count) const {
  const int pack = std::min(count, real_ == "float" ? 4 : 2);  // 16 bytes
  const std::string type = Cat("Pack<", real_, ", ", pack, ">");
  code_.Line(Cat(real_, " ", name, "[", count, "];"));
  Unrolled(Cat("for (int i = 0; i < ", count, "; i += ", pack, ")"));
  code_.Line(Cat("const ", type, " part = *reinterpret_cast<const ", type, "*>(", operand_.name,
                 " + (buffer * ", tile_.depth, " + k) * ", shared_.pitch(), " + ", own, " + i);"));
  Unrolled(Cat("for (int j = 0; j < ", pack, "; ++j)"));
  code_.Line(Cat(name, "[i + j] = part.v[j];"));
  code_.Close();
  code_.Close();
}

Position AsRoot(Position position) {
  position.flat = "f";
  position.root.clear();
  for (size_t d = 0; d < position.at.size(); ++d) position.root.push_back({static_cast<int>(d)});
  return position;
}

}  // namespace mendel::cuda
