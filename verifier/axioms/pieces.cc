// Functions that are lines between a few positions, however they are put together: x Sign(x),
// Where(x < 6, Relu(x), 6), Relu(x) + Relu(-x).

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "verifier/axioms/clips.h"
#include "verifier/axioms/exact.h"
#include "verifier/axioms/piecewise.h"
#include "verifier/axioms/rules.h"

namespace mendel {
namespace {

constexpr std::array<AxiomDescription, 1> kPiecesAxioms = {{
    {"pieces of a line",
     "sums, products, extremes, signs and choices of lines of one x, as one clip of x or one "
     "absolute value",
     "The function is followed piece by piece, with exact numbers, and has no step."},
}};

using MaybePieces = std::optional<Piecewise>;

constexpr int kMostNested = 8;
constexpr size_t kMostEdges = 8;
constexpr int kMostRead = 200;

/// Reads a value as a function of one other value, its base.
class PieceReader {
 public:
  PieceReader(const Terms& t, ValueId root) : t_(t), root_(root) {}

  MaybePieces Read(ValueId v, int nested) {
    if (const std::optional<double> number = t_.Number(v))
      return std::isfinite(*number) ? MaybePieces(Piecewise::Of({0, *number})) : std::nullopt;
    const std::optional<ValueId> base = base_;
    if (nested > 0 && ++read_ < kMostRead) {
      MaybePieces pieces = OfOperator(v, nested - 1);
      if (pieces.has_value() && pieces->edges.size() <= kMostEdges) return pieces;
    }
    base_ = base;
    return OfBase(v);
  }

  const std::optional<ValueId>& base() const { return base_; }
  /// A Where was read, which may choose a number where its comparison is one of NaN.
  bool chooses() const { return chooses_; }

 private:
  MaybePieces OfBase(ValueId v) {
    if (v == root_ || !IsFloat(t_.dtype(v)) || t_.shape(v) != t_.shape(root_)) return std::nullopt;
    if (base_.has_value() && *base_ != v) return std::nullopt;
    base_ = v;
    return Piecewise::Of({1, 0});
  }

  MaybePieces OfOperator(ValueId v, int nested) {
    const std::string_view op = t_.node(v).op->name;
    if (op == "Where" && t_.Is(t_.in(v, 0), "Less")) return OfWhere(v, nested);
    const size_t operands = t_.node(v).inputs.size();
    if (!IsOneOf(op) || operands < 1 || operands > 2) return std::nullopt;
    const MaybePieces f = Read(t_.in(v, 0), nested);
    const MaybePieces g = operands == 2 && f.has_value() ? Read(t_.in(v, 1), nested) : f;
    if (!f.has_value() || !g.has_value()) return std::nullopt;
    if (op == "Clip") return Clipped(*f, t_.node(v).attrs);
    return operands == 2 ? OfTwoPieces(op, *f, *g) : OfPieces(op, *f);
  }

  static bool IsOneOf(std::string_view op) {
    constexpr std::array<std::string_view, 9> kOperators = {"Abs", "Add", "Clip", "Max", "Min",
                                                            "Mul", "Neg", "Relu", "Sign"};
    return op == "Sub" || std::find(kOperators.begin(), kOperators.end(), op) != kOperators.end();
  }

  MaybePieces OfWhere(ValueId v, int nested) {
    const ValueId less = t_.in(v, 0);
    if (!IsFloat(t_.dtype(t_.in(less, 0)))) return std::nullopt;
    std::array<MaybePieces, 4> read;
    const std::array<ValueId, 4> values = {t_.in(less, 0), t_.in(less, 1), t_.in(v, 1),
                                           t_.in(v, 2)};
    for (size_t k = 0; k < values.size(); ++k) {
      read[k] = Read(values[k], nested);
      if (!read[k].has_value()) return std::nullopt;
    }
    chooses_ = true;
    const MaybePieces below = Below(*read[0], *read[1]);
    return below.has_value() ? Choice(*below, *read[2], *read[3]) : std::nullopt;
  }

  static MaybePieces Minus(const Piecewise& f) { return Product(f, Piecewise::Of({0, -1})); }
  static MaybePieces Difference(const Piecewise& f, const Piecewise& g) {
    const MaybePieces minus = Minus(g);
    return minus.has_value() ? Sum(f, *minus) : std::nullopt;
  }
  /// 1 where f < g.
  static MaybePieces Below(const Piecewise& f, const Piecewise& g) {
    const MaybePieces difference = Difference(f, g);
    return difference.has_value() ? IsNegative(*difference) : std::nullopt;
  }
  static MaybePieces Larger(const Piecewise& f, const Piecewise& g) {
    const MaybePieces below = Below(f, g);
    return below.has_value() ? Choice(*below, g, f) : std::nullopt;
  }
  static MaybePieces Smaller(const Piecewise& f, const Piecewise& g) {
    const MaybePieces below = Below(f, g);
    return below.has_value() ? Choice(*below, f, g) : std::nullopt;
  }

  static MaybePieces OfTwoPieces(std::string_view op, const Piecewise& f, const Piecewise& g) {
    if (op == "Add") return Sum(f, g);
    if (op == "Sub") return Difference(f, g);
    if (op == "Mul") return Product(f, g);
    if (op == "Max") return Larger(f, g);
    return op == "Min" ? Smaller(f, g) : std::nullopt;
  }

  static MaybePieces OfPieces(std::string_view op, const Piecewise& f) {
    const Piecewise zero = Piecewise::Of({});
    if (op == "Relu") return Larger(f, zero);
    const MaybePieces minus = Minus(f);
    if (op == "Neg" || !minus.has_value()) return minus;
    if (op == "Abs") return Larger(f, *minus);
    const MaybePieces below = IsNegative(f), above = IsNegative(*minus);
    if (op != "Sign" || !below.has_value() || !above.has_value()) return std::nullopt;
    return Difference(*above, *below);
  }

  static MaybePieces Clipped(const Piecewise& f, const Attributes& attrs) {
    const double low = attrs.Float("min"), high = attrs.Float("max");
    if (!(low <= high)) return std::nullopt;
    const MaybePieces raised =
        std::isfinite(low) ? Larger(f, Piecewise::Of({0, low})) : MaybePieces(f);
    if (!raised.has_value() || !std::isfinite(high)) return raised;
    return Smaller(*raised, Piecewise::Of({0, high}));
  }

  const Terms& t_;
  const ValueId root_;
  int read_ = 0;
  bool chooses_ = false;
  std::optional<ValueId> base_;
};

/// a clip(x) + b (x - clip(x)), with x clipped on one side or on both; nullopt if a literal is no
/// number of the dtype.
std::optional<ValueId> WriteClip(Terms& t, ValueId x, const Piecewise& f) {
  const double outer = f.lines[0].slope, inner = f.lines[1].slope, edge = f.edges[0];
  const bool both = f.edges.size() == 2;
  const double high = both ? f.edges[1] : Interval::kInfinity;
  const std::optional<double> lower = exact::Sum(DType::kF64, f.lines[0].shift, -f.values[0]);
  if (!lower.has_value()) return std::nullopt;
  const std::optional<double> shift =
      both ? std::optional(f.lines[1].shift) : exact::Sum(DType::kF64, *lower, f.lines[1].shift);
  const auto held = [&](double number) { return RoundTo(t.dtype(x), number) == number; };
  if (!shift.has_value() || !held(*shift) || !held(outer) || !held(inner)) return std::nullopt;
  const auto times = [&](ValueId value, double factor) {
    return factor == 1 ? value : t.Mul(value, factor);
  };
  std::optional<ValueId> result;
  const ValueId clip = Limit(t, {edge, high, x});
  if (inner != 0) result = times(clip, inner);
  if (outer != 0) {
    const ValueId rest =
        times(both ? t.Sub(x, clip) : Limit(t, {-Interval::kInfinity, edge, x}), outer);
    result = result.has_value() ? t.Add(*result, rest) : rest;
  }
  return *shift == 0 ? *result : t.Add(*result, *shift);
}

/// a abs(x - edge) + b.
std::optional<ValueId> WriteAbsolute(Terms& t, ValueId x, const Piecewise& f) {
  const double slope = f.lines[1].slope, edge = f.edges[0], shift = f.values[0];
  for (const double number : {slope, edge, shift})
    if (RoundTo(t.dtype(x), number) != number) return std::nullopt;
  const ValueId absolute = t.Unary("Abs", edge == 0 ? x : t.Add(x, -edge));
  const ValueId scaled = slope == 1 ? absolute : t.Mul(absolute, slope);
  return shift == 0 ? scaled : t.Add(scaled, shift);
}

std::optional<ValueId> WritePieces(Terms& t, ValueId x, const Piecewise& f) {
  const size_t edges = f.edges.size();
  if (edges == 0) return f.lines[0] == Line{1, 0} ? std::optional(x) : std::nullopt;
  if (edges == 1 && f.lines[0].slope == -f.lines[1].slope) return WriteAbsolute(t, x, f);
  const bool written = edges == 1 || (edges == 2 && f.lines[0].slope == f.lines[2].slope);
  return written ? WriteClip(t, x, f) : std::nullopt;
}

std::optional<ValueId> Pieces(Terms& t, ValueId v) {
  if (t.Settles() || !IsFloat(t.dtype(v))) return std::nullopt;
  for (const ValueId input : t.node(v).inputs) {
    if (!t.Is(v, "Where") && IsConstantTerm(t, input)) return std::nullopt;
  }
  PieceReader reader(t, v);
  const MaybePieces read = reader.Read(v, kMostNested);
  if (!read.has_value() || !reader.base().has_value()) return std::nullopt;
  if (reader.chooses() && !t.IsDefined(*reader.base())) return std::nullopt;
  const MaybePieces pieces = Continuous(*read);
  if (!pieces.has_value()) return std::nullopt;
  t.Settle(true);
  const std::optional<ValueId> written = WritePieces(t, *reader.base(), *pieces);
  t.Settle(false);
  return written;
}

constexpr std::array<AxiomRule, 4> kPiecesRules = {{
    {"pieces of a line", "Add", &Pieces},
    {"pieces of a line", "Mul", &Pieces},
    {"pieces of a line", "Sub", &Pieces},
    {"pieces of a line", "Where", &Pieces, Elements::kAny},
}};

}  // namespace

AxiomGroup PieceAxioms() { return {kPiecesAxioms, kPiecesRules}; }

}  // namespace mendel
