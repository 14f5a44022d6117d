// Piecewise linear functions of one variable, with or without jumps.
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

/// All numbers are exact: an operation returns nullopt if doubles cannot represent its result.
struct Piecewise {
  std::vector<double> edges;   ///< ascending
  std::vector<Line> lines;     ///< edges.size() + 1 lines, from left to right
  std::vector<double> values;  ///< at the edges

  static Piecewise Of(Line line) { return {{}, {line}, {}}; }
};

std::optional<Piecewise> Sum(const Piecewise& f, const Piecewise& g);
/// Returns nullopt unless one of the two is constant on every piece.
std::optional<Piecewise> Product(const Piecewise& f, const Piecewise& g);
/// 1 where f < 0, 0 elsewhere.
std::optional<Piecewise> IsNegative(const Piecewise& f);
/// f where `condition` is not 0, g elsewhere; the condition is constant on every piece.
std::optional<Piecewise> Choice(const Piecewise& condition, const Piecewise& f, const Piecewise& g);
/// Removes edges where the line does not change; nullopt if f is discontinuous.
std::optional<Piecewise> Continuous(const Piecewise& f);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_AXIOMS_PIECEWISE_H_
