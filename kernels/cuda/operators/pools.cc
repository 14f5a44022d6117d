// Pools: a thread an element.

#include <limits>

#include "base/status.h"
#include "graph/pooling.h"
#include "kernels/cuda/operators/windows.h"

namespace mendel::cuda::texts::pools {
namespace {

using Names = std::vector<std::string>;

Names Spatial(const Position& position) {
  return Names(position.at.begin() + 2, position.at.end());
}

std::string ElementAtPlaces(const ElementAt& at, const Names& places) {
  Names from = {at.position.at[0], at.position.at[1]};
  from.insert(from.end(), places.begin(), places.end());
  return at.In(0, from);
}

std::string MaxPoolElement(const ElementAt& at) {
  const std::string lowest = IsFloat(at.dtype())
                                 ? at.Literal(-std::numeric_limits<double>::infinity())
                                 : LiteralOf(at.dtype(), std::numeric_limits<int64_t>::min());
  const std::string best = at.code.Variable(at.real(), lowest);
  const OpenTaps open = OpenWindow(at.code, PoolWindows(at.view), Spatial(at.position));
  const std::string x = ElementAtPlaces(at, open.places);
  at.code.Line(Cat(best, " = Max(", best, ", ", x, ");"));
  CloseAll(at.code, open);
  return best;
}

std::string AveragePoolElement(const ElementAt& at) {
  const std::vector<Window> windows = PoolWindows(at.view);
  const bool with_padding = at.view.attrs.Int("count_include_pad") != 0;
  const std::string sum = at.code.Variable(at.real(), at.Literal(0));
  const std::string count = at.code.Variable("int", "0");
  const OpenTaps open =
      OpenWindow(at.code, windows, Spatial(at.position), [&](const Names& places) {
        if (!with_padding) return;
        std::string counted;
        for (size_t d = 0; d < windows.size(); ++d) {
          counted +=
              Cat(d == 0 ? "" : " && ", places[d], " < ", windows[d].input + windows[d].pad_end);
        }
        at.code.Line(Cat("if (", counted, ") ++", count, ";"));
      });
  if (!with_padding) at.code.Line(Cat("++", count, ";"));
  const std::string x = ElementAtPlaces(at, open.places);
  at.code.Line(Cat(sum, " += ", x, ";"));
  CloseAll(at.code, open);
  return Cat(sum, " / static_cast<", at.real(), ">(", count, " > 1 ? ", count, " : 1)");
}

std::string LpPoolElement(const ElementAt& at) {
  const int64_t p = at.view.attrs.Int("p");
  const std::string sum = at.code.Variable(at.real(), at.Literal(0));
  const OpenTaps open = OpenWindow(at.code, PoolWindows(at.view), Spatial(at.position));
  const std::string x = ElementAtPlaces(at, open.places);
  const std::string base = p % 2 == 0 ? x : at.code.Let(at.real(), Cat("Abs(", x, ")"));
  std::string power = base;
  for (int64_t k = 1; k < p; ++k) power = at.code.Let(at.real(), Cat(power, " * ", base));
  at.code.Line(Cat(sum, " += ", power, ";"));
  CloseAll(at.code, open);
  if (p == 1) return sum;
  return p == 2 ? Cat("Sqrt(", sum, ")")
                : Cat("Power(", sum, ", ", at.Literal(1 / static_cast<double>(p)), ")");
}

MENDEL_REGISTER_OPERATOR_TEXTS({
    {.op = "AveragePool", .reads = Reads::kMany, .element = &AveragePoolElement, .windowed = true},
    {.op = "LpPool", .reads = Reads::kMany, .element = &LpPoolElement, .windowed = true},
    {.op = "MaxPool",
     .reads = Reads::kMany,
     .element = &MaxPoolElement,
     .windowed = true,
     .chooses = true},
});

}  // namespace
}  // namespace mendel::cuda::texts::pools
