#include "verifier/axioms/piecewise.h"

#include <algorithm>
#include <cmath>

#include "verifier/axioms/exact.h"

namespace mendel {
namespace {

using MaybeNumber = std::optional<double>;
using MaybeLine = std::optional<Line>;

MaybeNumber Plus(double a, double b) { return exact::Sum(DType::kF64, a, b); }
MaybeNumber Times(double a, double b) { return exact::Product(DType::kF64, a, b); }

MaybeNumber At(const Line& line, double x) {
  const MaybeNumber product = Times(line.slope, x);
  return product.has_value() ? Plus(*product, line.shift) : std::nullopt;
}

/// f with further edges, which must be all of f's.
std::optional<Piecewise> Refined(const Piecewise& f, const std::vector<double>& edges) {
  Piecewise result{edges, {}, {}};
  size_t piece = 0;
  for (const double edge : edges) {
    result.lines.push_back(f.lines[piece]);
    const bool own = piece < f.edges.size() && f.edges[piece] == edge;
    const MaybeNumber value = own ? MaybeNumber(f.values[piece]) : At(f.lines[piece], edge);
    if (!value.has_value()) return std::nullopt;
    result.values.push_back(*value);
    piece += own ? 1 : 0;
  }
  result.lines.push_back(f.lines[piece]);
  return result;
}

std::vector<double> Union(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> all = a;
  all.insert(all.end(), b.begin(), b.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

/// Piece by piece and edge by edge.
template <class OfLines, class OfNumbers>
std::optional<Piecewise> Combined(const Piecewise& f, const Piecewise& g, OfLines of_lines,
                                  OfNumbers of_numbers) {
  const std::vector<double> edges = Union(f.edges, g.edges);
  const std::optional<Piecewise> x = Refined(f, edges), y = Refined(g, edges);
  if (!x.has_value() || !y.has_value()) return std::nullopt;
  Piecewise result{edges, {}, {}};
  for (size_t k = 0; k <= edges.size(); ++k) {
    const MaybeLine line = of_lines(x->lines[k], y->lines[k]);
    if (!line.has_value()) return std::nullopt;
    result.lines.push_back(*line);
  }
  for (size_t k = 0; k < edges.size(); ++k) {
    const MaybeNumber value = of_numbers(x->values[k], y->values[k]);
    if (!value.has_value()) return std::nullopt;
    result.values.push_back(*value);
  }
  return result;
}

MaybeLine ScaledLine(const Line& line, double factor) {
  const MaybeNumber slope = Times(line.slope, factor), shift = Times(line.shift, factor);
  return slope.has_value() && shift.has_value() ? MaybeLine({*slope, *shift}) : std::nullopt;
}

/// A point of piece k, not at its ends.
double Inside(const Piecewise& f, size_t k) {
  const bool first = k == 0, last = k == f.edges.size();
  if (first && last) return 0;
  if (first) return f.edges[0] - 1;
  return last ? f.edges[k - 1] + 1 : (f.edges[k - 1] + f.edges[k]) / 2;
}

}  // namespace

std::optional<Piecewise> Sum(const Piecewise& f, const Piecewise& g) {
  const auto lines = [](const Line& a, const Line& b) -> MaybeLine {
    const MaybeNumber slope = Plus(a.slope, b.slope), shift = Plus(a.shift, b.shift);
    return slope.has_value() && shift.has_value() ? MaybeLine({*slope, *shift}) : std::nullopt;
  };
  return Combined(f, g, lines, &Plus);
}

std::optional<Piecewise> Product(const Piecewise& f, const Piecewise& g) {
  const auto lines = [](const Line& a, const Line& b) -> MaybeLine {
    if (a.slope == 0) return ScaledLine(b, a.shift);
    return b.slope == 0 ? ScaledLine(a, b.shift) : std::nullopt;
  };
  return Combined(f, g, lines, &Times);
}

std::optional<Piecewise> IsNegative(const Piecewise& f) {
  std::vector<double> edges = f.edges;
  for (size_t k = 0; k < f.lines.size(); ++k) {
    const Line& line = f.lines[k];
    if (line.slope == 0) continue;
    const MaybeNumber root = exact::Quotient(DType::kF64, -line.shift, line.slope);
    if (!root.has_value()) return std::nullopt;
    const bool above = k == 0 || *root > f.edges[k - 1];
    const bool below = k == f.edges.size() || *root < f.edges[k];
    if (above && below) edges.push_back(*root);
  }
  std::optional<Piecewise> sign = Refined(f, Union(edges, {}));
  if (!sign.has_value()) return std::nullopt;
  for (size_t k = 0; k < sign->lines.size(); ++k) {
    Line& line = sign->lines[k];
    // No root lies inside of a piece, and one rounding changes no sign.
    const double value = std::fma(line.slope, Inside(*sign, k), line.shift);
    if (value == 0 && (line.slope != 0 || line.shift != 0)) return std::nullopt;
    line = {0, value < 0 ? 1.0 : 0.0};
  }
  for (double& value : sign->values) value = value < 0 ? 1 : 0;
  return sign;
}

std::optional<Piecewise> Choice(const Piecewise& condition, const Piecewise& f,
                                const Piecewise& g) {
  const auto minus = [](const Piecewise& x) { return Product(x, Piecewise::Of({0, -1})); };
  // c f + (1 - c) g for a c of 0 and 1.
  const auto yes = Product(condition, f), unless = minus(condition);
  const auto no = unless.has_value() ? Sum(*unless, Piecewise::Of({0, 1})) : std::nullopt;
  const auto rest = no.has_value() ? Product(*no, g) : std::nullopt;
  return yes.has_value() && rest.has_value() ? Sum(*yes, *rest) : std::nullopt;
}

std::optional<Piecewise> Continuous(const Piecewise& f) {
  Piecewise result{{}, {f.lines[0]}, {}};
  for (size_t k = 0; k < f.edges.size(); ++k) {
    const double edge = f.edges[k];
    if (At(f.lines[k], edge) != f.values[k] || At(f.lines[k + 1], edge) != f.values[k])
      return std::nullopt;
    if (f.lines[k] == f.lines[k + 1]) continue;
    result.edges.push_back(edge);
    result.values.push_back(f.values[k]);
    result.lines.push_back(f.lines[k + 1]);
  }
  return result;
}

}  // namespace mendel
