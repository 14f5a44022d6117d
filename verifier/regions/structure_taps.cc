// Structure of operators whose output positions read weighted taps of one dimension: Resize, Pad,
// Gather, Split (graph/element_structure.h).
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "verifier/regions/structure.h"

namespace mendel {
namespace {

/// Longest period looked for; quadratic work is kept off long dimensions.
constexpr int64_t kMaxPeriod = 64;
constexpr int64_t kMaxWork = int64_t{1} << 18;

/// A tap as the structure sees it: two output positions with equal lists of these differ by
/// translation at most.
struct Seen {
  double coefficient = 0;
  size_t segment = 0;   ///< segment of the input's breaks
  int64_t residue = 0;  ///< residue of the input's period
  bool operator==(const Seen&) const = default;
};

/// The division of one output dimension into segments and residue classes.
struct Division {
  int64_t period = 1;
  std::vector<int64_t> breaks;
  std::set<int64_t>
      displacements;  ///< positions of the input for one period; empty: nothing ever repeats
  int64_t representatives = 0;
};

class Line {
 public:
  Line(const SeparableTaps::Dim& dim, const ValueStructure& input) : taps_(dim.taps) {
    const size_t d = static_cast<size_t>(dim.input_dim);
    for (const auto& taps : taps_) {
      std::vector<Seen> seen;
      for (const Tap& tap : taps) {
        size_t segment = 0;
        while (segment < input.breaks[d].size() && tap.position >= input.breaks[d][segment].at)
          ++segment;
        seen.push_back({tap.coefficient, segment, tap.position % input.periods[d]});
      }
      seen_.push_back(std::move(seen));
    }
  }

  /// The division with the fewest representatives.
  Division Best() const {
    const int64_t extent = static_cast<int64_t>(taps_.size());
    Division best = With(1);
    const int64_t most =
        std::min({kMaxPeriod, extent - 1, kMaxWork / std::max<int64_t>(1, extent)});
    for (int64_t period = 2; period <= most && period < best.representatives; ++period) {
      Division other = With(period);
      if (other.representatives < best.representatives) best = std::move(other);
    }
    return best;
  }

 private:
  /// The move of the taps at `t` in one period; nullopt when they are no translation of those a
  /// period before.
  std::optional<int64_t> Moved(int64_t t, int64_t period) const {
    const size_t now = static_cast<size_t>(t);
    const size_t before = static_cast<size_t>(t - period);
    if (!(seen_[now] == seen_[before])) return std::nullopt;
    if (taps_[now].empty()) return 0;
    const int64_t displacement = taps_[now][0].position - taps_[before][0].position;
    for (size_t k = 0; k < taps_[now].size(); ++k) {
      if (taps_[now][k].position - taps_[before][k].position != displacement) return std::nullopt;
    }
    return displacement;
  }

  Division With(int64_t period) const {
    Division division;
    division.period = period;
    const int64_t extent = static_cast<int64_t>(taps_.size());
    std::vector<std::optional<int64_t>> steady(
        static_cast<size_t>(period));  // displacement of each residue class
    int64_t begin = 0;
    for (int64_t t = period; t < extent; ++t) {
      if (t - period < begin) continue;
      const std::optional<int64_t> moved = Moved(t, period);
      std::optional<int64_t>& expected = steady[static_cast<size_t>(t % period)];
      if (moved.has_value() && (!expected.has_value() || expected == moved)) {
        expected = moved;
        division.displacements.insert(*moved);
        continue;
      }
      division.breaks.push_back(t);
      division.representatives += std::min(period, t - begin);
      begin = t;
      std::fill(steady.begin(), steady.end(), std::nullopt);
    }
    division.representatives += std::min(period, extent - begin);
    return division;
  }

  const std::vector<std::vector<Tap>>& taps_;
  std::vector<std::vector<Seen>> seen_;
};

}  // namespace

ValueStructure StructureByTaps(const SeparableTaps& taps, const Shape& shape,
                               const ValueStructure& input, int32_t node) {
  ValueStructure out(shape);
  out.InheritReasons({&input});
  std::vector<DisplacementClass> classes;
  for (const DisplacementClass& one : input.classes) {
    DisplacementClass& still = classes.emplace_back();
    for (const auto& [source, columns] : one) still[source] = Columns(shape.size());
  }
  const std::vector<DisplacementClass> inputs(input.classes.begin(), input.classes.end());
  std::vector<size_t> origin(classes.size());  // classes[k] comes from inputs[origin[k]]
  std::iota(origin.begin(), origin.end(), 0);
  bool literal = false;
  for (size_t j = 0; j < shape.size(); ++j) {
    const SeparableTaps::Dim& dim = taps.dims[j];
    const size_t d = static_cast<size_t>(dim.input_dim);
    const Division division = Line(dim, input).Best();
    const Cause cause{node, "border or seam of what is repeated"};
    for (int64_t at : division.breaks) {
      // A break of the input that is read one to one keeps its cause.
      const Break* inherited = nullptr;
      for (const Break& one : input.breaks[d]) {
        const auto& read = dim.taps[static_cast<size_t>(at)];
        if (!read.empty() && read[0].position == one.at) inherited = &one;
      }
      out.breaks[j].push_back({at, inherited == nullptr ? cause : inherited->cause});
    }
    const bool inherits = division.period == input.periods[d];
    out.Repeat(j, division.period, inherits ? input.period_causes[d] : Cause{node, "interleaving"});
    literal = literal || std::any_of(dim.taps.begin(), dim.taps.end(),
                                     [](const auto& list) { return list.empty(); });
    std::vector<DisplacementClass> next;
    std::vector<size_t> next_origin;
    for (int64_t displacement : division.displacements) {
      for (size_t k = 0; k < classes.size(); ++k) {
        DisplacementClass moved = classes[k];
        for (auto& [source, columns] : moved) {
          AddScaled(columns[j], displacement / input.periods[d], inputs[origin[k]].at(source)[d]);
          Canonicalize(columns[j]);
        }
        next.push_back(std::move(moved));
        next_origin.push_back(origin[k]);
      }
    }
    if (next.empty()) continue;  // every position on its own
    classes = std::move(next);
    origin = std::move(next_origin);
  }
  out.classes = {classes.begin(), classes.end()};
  if (literal) out.classes.insert(DisplacementClass{});
  out.Normalize();
  return out;
}

}  // namespace mendel
