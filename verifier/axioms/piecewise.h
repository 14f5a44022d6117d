// Continuous and other functions of one number that are a line between each two of a few positions.
#ifndef MENDEL_VERIFIER_AXIOMS_PIECEWISE_H_
#define MENDEL_VERIFIER_AXIOMS_PIECEWISE_H_

#include <optional>
#include <vector>

namespace mendel {

/// slope x + shift.
struct Line {
  double slope = 0;
  double shift = 0;
  bool operator==(const Line&) const = default;
};

/// All numbers are exact: operations whose numbers no double holds give nothing.
struct Piecewise {
  std::vector<double> edges;   ///< ascending
  std::vector<Line> lines;     ///< one more: below the first edge, between, above the last
  std::vector<double> values;  ///< at the edges

  static Piecewise Of(Line line) { return {{}, {line}, {}}; }
};

std::optional<Piecewise> Sum(const Piecewise& f, const Piecewise& g);
/// Nothing unless one of both is constant on every piece.
std::optional<Piecewise> Product(const Piecewise& f, const Piecewise& g);
/// 1 where f < 0, 0 elsewhere.
std::optional<Piecewise> IsNegative(const Piecewise& f);
/// f where `condition` is not 0, g elsewhere; the condition is constant on every piece.
std::optional<Piecewise> Choice(const Piecewise& condition, const Piecewise& f, const Piecewise& g);
/// Without edges at which nothing changes; nothing where f has a step.
std::optional<Piecewise> Continuous(const Piecewise& f);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_AXIOMS_PIECEWISE_H_
