// ReduceSum and its kin: a block of threads a row.

#include <limits>
#include <utility>

#include "base/status.h"
#include "kernels/cuda/fusion/operator_text.h"

namespace mendel::cuda::texts::reductions {
namespace {

using Names = std::vector<std::string>;
using Term = std::function<std::string(const std::string&)>;

std::pair<Shape, Ints> Geometry(const NodeView& view) {
  return {view.inputs[0].shape, view.attrs.IntList("axes")};
}

OperatorText Reduce(std::string op, std::function<Names(const RowAt&)> statistics) {
  return {.op = std::move(op), .row = {.geometry = &Geometry, .statistics = std::move(statistics)}};
}

std::string Zero(const RowAt& row) { return LiteralOf(row.dtype(), 0.0); }

/// The sum of `term` of all elements.
std::string Sum(const RowAt& row, const Term& term) { return row.Over("SumOf", Zero(row), term); }
std::string Itself(const std::string& x) { return x; }
std::string Square(const std::string& x) { return Cat("Times(", x, ", ", x, ")"); }

/// The extreme of nothing, from which every element takes over.
std::string Lowest(const RowAt& row, bool negative) {
  if (IsFloat(row.dtype()))
    return LiteralOf(row.dtype(), negative ? -std::numeric_limits<double>::infinity()
                                           : std::numeric_limits<double>::infinity());
  return LiteralOf(row.dtype(), negative ? std::numeric_limits<int64_t>::min()
                                         : std::numeric_limits<int64_t>::max());
}

/// `function` of the sum of `term`.
std::function<Names(const RowAt&)> OfSum(const Term& term, const char* function) {
  return [term, function](const RowAt& row) {
    const std::string sum = Sum(row, term);
    return Names{row.code.Let(RealName(row.dtype()), Cat(function, "(", sum, ")"))};
  };
}

Names LogSumExp(const RowAt& row) {
  const std::string_view real = RealName(row.dtype());
  const std::string largest = row.Over("MaxOf", Lowest(row, true), &Itself);
  // Infinite or not a number: no shift.
  const std::string shift = row.code.Let(
      real, Cat(largest, " - ", largest, " == ", Zero(row), " ? ", largest, " : ", Zero(row)));
  const std::string sum =
      Sum(row, [&](const std::string& x) { return Cat("Exp(", x, " - ", shift, ")"); });
  return {row.code.Let(real, Cat(shift, " + Log(", sum, ")"))};
}

Names Mean(const RowAt& row) {
  const std::string sum = Sum(row, &Itself);
  return {row.code.Let(RealName(row.dtype()),
                       Cat("Quotient(", sum, ", ", LiteralOf(row.dtype(), row.Count()), ")"))};
}

std::vector<OperatorText> Texts() {
  const auto sum_of = [](const Term& term) {
    return [term](const RowAt& row) { return Names{Sum(row, term)}; };
  };
  return {
      Reduce("ReduceL1", sum_of([](const std::string& x) { return Cat("Abs(", x, ")"); })),
      Reduce("ReduceL2", OfSum(&Square, "Sqrt")),
      Reduce("ReduceLogSum", OfSum(&Itself, "Log")),
      Reduce("ReduceLogSumExp", &LogSumExp),
      Reduce("ReduceMax",
             [](const RowAt& row) { return Names{row.Over("MaxOf", Lowest(row, true), &Itself)}; }),
      Reduce("ReduceMean", &Mean),
      Reduce(
          "ReduceMin",
          [](const RowAt& row) { return Names{row.Over("MinOf", Lowest(row, false), &Itself)}; }),
      Reduce("ReduceProd",
             [](const RowAt& row) {
               return Names{row.Over("ProductOf", LiteralOf(row.dtype(), 1.0), &Itself)};
             }),
      Reduce("ReduceSum", sum_of(&Itself)),
      Reduce("ReduceSumSquare", sum_of(&Square)),
  };
}

MENDEL_REGISTER_OPERATOR_TEXTS(Texts());

}  // namespace
}  // namespace mendel::cuda::texts::reductions
