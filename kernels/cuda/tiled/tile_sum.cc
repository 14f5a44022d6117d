#include "kernels/cuda/tiled/tile_sum.h"

#include <algorithm>
#include <array>

#include "base/status.h"

namespace mendel::cuda {
namespace {

void Unrolled(KernelCode& code, const std::string& header) {
  code.Line("#pragma unroll");
  code.Open(header);
}

/// Declares the array `name` of a kept side's factors, as OperandText::Factors does.
void KeptFactors(KernelCode& code, std::string_view real, const SummedSide& side,
                 const std::string& name, const std::string& own, int count) {
  const int pack = std::min(count, real == "float" ? 4 : 2);  // 16 bytes
  const std::string type = Cat("Pack<", real, ", ", pack, ">");
  code.Line(Cat(real, " ", name, "[", count, "];"));
  Unrolled(code, Cat("for (int i = 0; i < ", count, "; i += ", pack, ")"));
  code.Line(Cat("const ", type, " part = *reinterpret_cast<const ", type, "*>(", side.kept,
                " + (k0 + k) * ", side.pitch, " + ", own, " + i);"));
  Unrolled(code, Cat("for (int j = 0; j < ", pack, "; ++j)"));
  code.Line(Cat(name, "[i + j] = part.v[j];"));
  code.Close();
  code.Close();
}

void Multiply(KernelCode& code, const Tile& tile, std::string_view real, const SummedSide& left,
              const SummedSide& right) {
  const auto factors = [&](const SummedSide& side, const char* name, const char* own, int count) {
    side.text.has_value() ? side.text->Factors(name, own, count)
                          : KeptFactors(code, real, side, name, own, count);
  };
  Unrolled(code, Cat("for (int k = 0; k < ", tile.depth, "; ++k)"));
  factors(left, "a", "thread_row", tile.thread_rows);
  factors(right, "b", "thread_column", tile.thread_columns);
  Unrolled(code, Cat("for (int i = 0; i < ", tile.thread_rows, "; ++i)"));
  Unrolled(code, Cat("for (int j = 0; j < ", tile.thread_columns, "; ++j)"));
  code.Line("sum[i][j] = Plus(sum[i][j], Times(a[i], b[j]));");
  code.Close();
  code.Close();
  code.Close();
}

}  // namespace

void WriteTileSum(KernelCode& code, const Tile& tile, std::string_view real,
                  const std::string& zero, int64_t depth, const SummedSide& left,
                  const SummedSide& right) {
  const std::array sides = {&left, &right};
  code.Line(Cat(real, " sum[", tile.thread_rows, "][", tile.thread_columns, "];"));
  Unrolled(code, Cat("for (int i = 0; i < ", tile.thread_rows * tile.thread_columns, "; ++i)"));
  code.Line(Cat("sum[i / ", tile.thread_columns, "][i % ", tile.thread_columns, "] = ", zero, ";"));
  code.Close();
  for (const SummedSide* side : sides) {
    if (side->text.has_value()) side->text->DeclareRegisters();
  }
  code.Line("int buffer = 1;");
  const std::string next = Cat("k0 + ", tile.depth), more = Cat("if (", next, " < ", depth, ")");
  code.Open(Cat("for (", code.index_type(), " k0 = -", tile.depth, "; k0 < ", depth,
                "; k0 += ", tile.depth, ")"));
  code.Open(more);
  for (const SummedSide* side : sides) {
    if (side->text.has_value())
      side->text->Fetch(next, depth, zero, side->shape, side->place, side->element);
  }
  code.Close();
  code.Open("if (k0 >= 0)");
  Multiply(code, tile, real, left, right);
  code.Close();
  code.Open(more);
  for (const SummedSide* side : sides) {
    if (side->text.has_value()) side->text->Stage();
  }
  code.Close();
  code.Line("__syncthreads();");
  code.Line("buffer ^= 1;");
  code.Close();
}

}  // namespace mendel::cuda
