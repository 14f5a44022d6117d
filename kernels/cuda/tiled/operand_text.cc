#include "kernels/cuda/tiled/operand_text.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "kernels/cuda/tiled/candidate.h"

namespace mendel::cuda {

int OperandTile::pitch() const { return across + padding; }

OperandText::OperandText(KernelCode& code, const Tile& tile, std::string_view real, OperandTile operand)
    : code_(code), tile_(tile), real_(real), operand_(std::move(operand)) {}

int64_t OperandText::SharedElements() const { return WholePacks(int64_t{2} * tile_.depth * operand_.pitch()); }
int OperandText::Units() const { return operand_.across * tile_.depth / operand_.lanes; }
int OperandText::Reads() const { return (Units() + tile_.threads() - 1) / tile_.threads(); }

void OperandText::Unrolled(const std::string& header) const {
  code_.Line("#pragma unroll");
  code_.Open(header);
}

void OperandText::OpenReads() const {
  const int first = (operand_.by_depth ? tile_.depth : operand_.across) / operand_.lanes;
  const std::string near = Scaled(Modulo("unit", first), operand_.lanes), far = Divided("unit", first);
  Unrolled(Cat("for (int i = 0; i < ", Reads(), "; ++i)"));
  code_.Line(Cat("const int unit = thread + i * ", tile_.threads(), ";"));
  code_.Line(Cat("const int across = ", operand_.by_depth ? far : near, ";"));
  code_.Line(Cat("const int depth = ", operand_.by_depth ? near : far, ";"));
}

/// "" where every read is of the tile.
std::string OperandText::InTile() const { return Units() % tile_.threads() == 0 ? "" : Cat("unit < ", Units()); }

void OperandText::DeclareRegisters() const { code_.Line(Cat(real_, " next_", operand_.name, "[", Reads() * operand_.lanes, "];")); }

void OperandText::Fetch(const std::string& k0, int64_t depth, const std::string& zero, const Shape& shape,
                        const PlaceOfElement& place, const ElementAtPosition& element) const {
  OpenReads();
  code_.Line(Cat("const ", code_.index_type(), " at = ", operand_.origin, " + across;"));
  code_.Line(Cat("const ", code_.index_type(), " k = ", k0, " + depth;"));
  Unrolled(Cat("for (int lane = 0; lane < ", operand_.lanes, "; ++lane)"));
  code_.Line(Cat("next_", operand_.name, "[i * ", operand_.lanes, " + lane] = ", zero, ";"));
  code_.Close();
  const std::string in_tile = InTile();
  code_.Open(Cat("if (", in_tile, in_tile.empty() ? "" : " && ", "at < ", operand_.limit, " && k < ", depth, ")"));
  if (operand_.lanes == 1) {
    std::string inside;
    const Position position = place("at", "k", inside);
    if (!inside.empty()) code_.Open(Cat("if (", inside, ")"));
    code_.Line(Cat("next_", operand_.name, "[i] = ", element(position), ";"));
    if (!inside.empty()) code_.Close();
  } else {
    FetchLanes(shape, place, element);
  }
  code_.Close();
  code_.Close();
}

void OperandText::FetchLanes(const Shape& shape, const PlaceOfElement& place, const ElementAtPosition& element) const {
  std::string inside;  // stays empty: elements that may not be there do not lie side by side
  const std::string first = code_.LetIndex(FlatOf(shape, place("at", "k", inside)));
  code_.BeginLanes(operand_.lanes, first, shape);
  code_.Line(Cat("const ", code_.index_type(), " f = ", first, " + lane;"));
  const std::string at = operand_.by_depth ? "at" : code_.LetIndex("at + lane");
  const std::string k = operand_.by_depth ? code_.LetIndex("k + lane") : "k";
  const std::string value = element(AsRoot(place(at, k, inside)));
  code_.Line(Cat("next_", operand_.name, "[i * ", operand_.lanes, " + lane] = ", value, ";"));
  code_.EndLanes(Cat("for (int lane = 0; lane < ", operand_.lanes, "; ++lane)"));
}

void OperandText::Stage() const {
  OpenReads();
  const std::string in_tile = InTile();
  code_.Open(in_tile.empty() ? "" : Cat("if (", in_tile, ")"));
  Unrolled(Cat("for (int lane = 0; lane < ", operand_.lanes, "; ++lane)"));
  const char* const row = operand_.by_depth ? "depth + lane" : "depth";
  const char* const column = operand_.by_depth ? "across" : "across + lane";
  const std::string value = Cat("next_", operand_.name, "[i * ", operand_.lanes, " + lane]");
  code_.Line(Cat(operand_.name, "[((buffer ^ 1) * ", tile_.depth, " + ", row, ") * ", operand_.pitch(), " + ", column,
                 "] = ", operand_.round.empty() ? value : Cat(operand_.round, "(", value, ")"), ";"));
  code_.Close();
  code_.Close();
  code_.Close();
}

void OperandText::Factors(const std::string& name, const std::string& own, int count) const {
  const int pack = std::min(count, real_ == "float" ? 4 : 2);  // 16 bytes
  const std::string type = Cat("Pack<", real_, ", ", pack, ">");
  code_.Line(Cat(real_, " ", name, "[", count, "];"));
  Unrolled(Cat("for (int i = 0; i < ", count, "; i += ", pack, ")"));
  code_.Line(Cat("const ", type, " part = *reinterpret_cast<const ", type, "*>(", operand_.name, " + (buffer * ", tile_.depth,
                 " + k) * ", operand_.pitch(), " + ", own, " + i);"));
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
