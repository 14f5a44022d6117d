// Operators along one axis whose elements each look at the others: a thread an element, correct and
// slow.

#include "base/status.h"
#include "kernels/cuda/fusion/operator_text.h"

namespace mendel::cuda::texts::lines {
namespace {

using Names = std::vector<std::string>;

size_t AxisOf(const ElementAt& at) { return static_cast<size_t>(at.view.attrs.Int("axis")); }

/// The coordinate of the extreme of a line whose other coordinates are `line`'s; `better` compares
/// a new element with the best.
std::string Extreme(const ElementAt& at, Names line, const std::string& better) {
  const size_t axis = AxisOf(at);
  line[axis] = "0";
  const std::string best = at.code.Variable(RealName(at.dtype(0)), at.In(0, line));
  const std::string where = at.code.Variable(at.code.index_type(), "0");
  line[axis] = at.code.Loop(at.shape(0)[axis]);
  const std::string x = at.In(0, line);
  at.code.Open(Cat("if (", x, " ", better, " ", best, ")"));
  at.code.Line(Cat(best, " = ", x, ";"));
  at.code.Line(Cat(where, " = ", line[axis], ";"));
  at.code.Close();
  at.code.Close();
  return where;
}

std::string ArgElement(const ElementAt& at, const std::string& better) {
  Names line = at.position.at;
  if (at.view.attrs.Int("keepdims") == 0)
    line.insert(line.begin() + static_cast<std::ptrdiff_t>(AxisOf(at)), "0");
  return Extreme(at, line, better + (at.view.attrs.Int("select_last_index") != 0 ? "=" : ""));
}

std::string HardmaxElement(const ElementAt& at) {
  return Cat(Extreme(at, at.position.at, ">"), " == ", at.position.at[AxisOf(at)], " ? ",
             at.Literal(1), " : ", at.Literal(0));
}

std::string CumSumElement(const ElementAt& at) {
  const size_t axis = AxisOf(at);
  const bool reverse = at.view.attrs.Int("reverse") != 0,
             exclusive = at.view.attrs.Int("exclusive") != 0;
  const std::string sum = at.code.Variable(at.real(), at.Literal(0));
  Names line = at.position.at;
  line[axis] = at.code.Loop(at.shape(0)[axis]);
  at.code.Open(Cat("if (", line[axis], reverse ? " >" : " <", exclusive ? " " : "= ",
                   at.position.at[axis], ")"));
  const std::string x = at.In(0, line);
  at.code.Line(Cat(sum, " = Plus(", sum, ", ", x, ");"));
  at.code.Close();
  at.code.Close();
  return sum;
}

/// The element before which exactly as many come as the result's coordinate says; of equals the
/// earlier comes first.
std::string TopKElement(const ElementAt& at) {
  const size_t axis = AxisOf(at);
  const std::string_view real = RealName(at.dtype(0));
  const std::string less = at.view.attrs.Int("largest") != 0 ? " > " : " < ";
  const std::string result = at.code.Variable(at.real(), at.Literal(0));
  Names line = at.position.at;
  const std::string candidate = line[axis] = at.code.Loop(at.shape(0)[axis]);
  const std::string x = at.code.Let(real, at.In(0, line));
  const std::string rank = at.code.Variable(at.code.index_type(), "0");
  const std::string other = line[axis] = at.code.Loop(at.shape(0)[axis]);
  const std::string z = at.In(0, line);
  at.code.Line(Cat("if (", z, less, x, " || (", z, " == ", x, " && ", other, " < ", candidate,
                   ")) ++", rank, ";"));
  at.code.Close();
  at.code.Line(Cat("if (", rank, " == ", at.position.at[axis], ") ", result, " = ",
                   at.output == 0 ? x : candidate, ";"));
  at.code.Close();
  return result;
}

std::string LrnElement(const ElementAt& at) {
  const int64_t size = at.view.attrs.Int("size"), channels = at.shape(0)[1];
  const std::string x = at.In(0, at.position);
  const std::string squares = at.code.Variable(at.real(), at.Literal(0));
  const std::string tap = at.code.Loop(size);
  const std::string channel =
      at.code.LetIndex(Added(Added(at.position.at[1], tap), -((size - 1) / 2)));
  at.code.Open(Cat("if (", channel, " >= 0 && ", channel, " < ", channels, ")"));
  Names from = at.position.at;
  from[1] = channel;
  const std::string other = at.In(0, from);
  at.code.Line(Cat(squares, " += ", other, " * ", other, ";"));
  at.code.Close();
  at.code.Close();
  return Cat(x, " * Power(", at.Literal(at.view.attrs.Float("bias")), " + ",
             at.Literal(at.view.attrs.Float("alpha") / static_cast<double>(size)), " * ", squares,
             ", ", at.Literal(-at.view.attrs.Float("beta")), ")");
}

MENDEL_REGISTER_OPERATOR_TEXTS({
    {.op = "ArgMax",
     .reads = Reads::kMany,
     .element = [](const ElementAt& at) { return ArgElement(at, ">"); }},
    {.op = "ArgMin",
     .reads = Reads::kMany,
     .element = [](const ElementAt& at) { return ArgElement(at, "<"); }},
    {.op = "CumSum", .reads = Reads::kMany, .element = &CumSumElement},
    {.op = "Hardmax", .reads = Reads::kMany, .element = &HardmaxElement},
    {.op = "LRN", .reads = Reads::kMany, .element = &LrnElement},
    {.op = "TopK", .reads = Reads::kMany, .element = &TopKElement},
});

}  // namespace
}  // namespace mendel::cuda::texts::lines
