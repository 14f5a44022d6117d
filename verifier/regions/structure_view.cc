// Structure of views that merge and cut dimensions: Reshape.
#include <algorithm>
#include <numeric>
#include <utility>

#include "graph/view_cut.h"
#include "verifier/regions/structure.h"

namespace mendel {
namespace {

/// One dimension while a view regroups: as in ValueStructure, with the displacements of every class
/// and source.
struct Axis {
  int64_t extent = 1;
  int64_t period = 1;
  Cause period_cause;
  std::vector<Break> breaks;
  std::vector<Step> steps;  ///< steps of one period, over all (class, source)
};

int64_t Representatives(const Axis& axis) {
  int64_t sum = 0;
  int64_t begin = 0;
  for (const Break& one : axis.breaks) {
    sum += std::min(one.at - begin, axis.period);
    begin = one.at;
  }
  return sum + std::min(axis.extent - begin, axis.period);
}

/// Is a step along `outer` whole periods along `inner` with the same displacement, inner.extent
/// positions in all?
bool Continues(const Axis& outer, const Axis& inner) {
  if (outer.period != 1 || inner.extent % inner.period != 0 || !inner.breaks.empty()) return false;
  for (size_t k = 0; k < outer.steps.size(); ++k) {
    Step scaled;
    AddScaled(scaled, inner.extent / inner.period, inner.steps[k]);
    Canonicalize(scaled);
    if (scaled != outer.steps[k]) return false;
  }
  return true;
}

/// Every row, one position of `outer`, is a segment of its own and as `inner` inside.
Axis MergeRows(const Axis& outer, const Axis& inner, int32_t node) {
  Axis merged{outer.extent * inner.extent, inner.period, inner.period_cause, {}, inner.steps};
  for (int64_t row = 0; row < outer.extent; ++row) {
    if (row > 0) merged.breaks.push_back({row * inner.extent, {node, "row of a view"}});
    for (const Break& one : inner.breaks)
      merged.breaks.push_back({row * inner.extent + one.at, one.cause});
  }
  return merged;
}

/// Every position of `inner` is a residue class of its own, which moves from row to row as `outer`
/// does.
Axis MergeColumns(const Axis& outer, const Axis& inner, int32_t node) {
  Axis merged{outer.extent * inner.extent,
              outer.period * inner.extent,
              {node, "interleaving view"},
              {},
              outer.steps};
  for (const Break& one : outer.breaks) merged.breaks.push_back({one.at * inner.extent, one.cause});
  return merged;
}

/// Positions (i, j) as i * inner.extent + j, with the fewest representatives.
Axis Merge(const Axis& outer, const Axis& inner, int32_t node) {
  if (outer.extent == 1) return inner;
  if (inner.extent == 1) return outer;
  if (Continues(outer, inner)) {
    Axis merged{outer.extent * inner.extent, inner.period, inner.period_cause, {}, inner.steps};
    for (const Break& one : outer.breaks)
      merged.breaks.push_back({one.at * inner.extent, one.cause});
    return merged;
  }
  if (outer.extent * Representatives(inner) <= inner.extent * Representatives(outer))
    return MergeRows(outer, inner, node);
  return MergeColumns(outer, inner, node);
}

/// One dimension as the factors [first, last), outermost first.
std::vector<Axis> SplitAxis(const Axis& axis, const std::vector<int64_t>& factors, size_t first,
                            size_t last) {
  std::vector<Axis> parts(last - first);
  int64_t inner = axis.extent;
  for (size_t k = 0; k < parts.size(); ++k) {
    parts[k].extent = factors[first + k];
    inner /= parts[k].extent;
    parts[k].period = axis.period / std::gcd(axis.period, inner);
    parts[k].period_cause = axis.period_cause;
    parts[k].steps = axis.steps;
    const int64_t periods = inner * parts[k].period / axis.period;
    for (Step& step : parts[k].steps) {
      for (int64_t& s : step) s *= periods;
    }
  }
  for (const Break& one : axis.breaks) {
    // The border before it cuts the innermost factor whose digit is not zero; the digits outside it
    // are isolated rows.
    int64_t rest = one.at;
    int64_t size = axis.extent;
    for (Axis& part : parts) {
      size /= part.extent;
      const int64_t digit = rest / size;
      rest %= size;
      part.breaks.push_back({digit, one.cause});
      if (rest == 0) break;
      part.breaks.push_back({digit + 1, one.cause});
    }
  }
  for (Axis& part : parts) {
    const auto before = [](const Break& a, const Break& b) { return a.at < b.at; };
    const auto same = [](const Break& a, const Break& b) { return a.at == b.at; };
    std::stable_sort(part.breaks.begin(), part.breaks.end(), before);
    part.breaks.erase(std::unique(part.breaks.begin(), part.breaks.end(), same), part.breaks.end());
    std::erase_if(part.breaks,
                  [&](const Break& cut) { return cut.at <= 0 || cut.at >= part.extent; });
  }
  return parts;
}

/// The dimensions of a view made of those of what it views; those that cannot be derived stand
/// alone at every position.
std::vector<Axis> RegroupAxes(const std::vector<Axis>& axes, const Shape& from, int32_t node,
                              ValueStructure& out) {
  constexpr std::string_view kUneven = "a view regroups dimensions without common factors";
  std::vector<Axis> result;
  for (const ViewGroup& group : GroupView(from, out.shape)) {
    if (!group.refined) {
      out.unknown.insert(std::string(kUneven));
      for (size_t d = group.to_begin; d < group.to_end; ++d)
        result.push_back({out.shape[d], out.shape[d], {node, kUneven}, {}, {}});
      continue;
    }
    std::vector<Axis> parts(group.factors.size());
    for (size_t d = 0; d < group.from_runs.size(); ++d) {
      const auto [first, last] = group.from_runs[d];
      const std::vector<Axis> split =
          SplitAxis(axes[group.from_begin + d], group.factors, first, last);
      std::copy(split.begin(), split.end(), parts.begin() + static_cast<int64_t>(first));
    }
    for (const auto& [first, last] : group.to_runs) {
      Axis merged;
      for (size_t k = last; k-- > first;) merged = Merge(parts[k], merged, node);
      result.push_back(std::move(merged));
    }
  }
  return result;
}

}  // namespace

ValueStructure StructureOfView(const Shape& shape, const ValueStructure& input, int32_t node) {
  ValueStructure out(shape);
  out.InheritReasons({&input});
  std::vector<Axis> axes(input.shape.size());
  for (size_t d = 0; d < axes.size(); ++d) {
    axes[d] = {input.shape[d], input.periods[d], input.period_causes[d], input.breaks[d], {}};
    for (const DisplacementClass& one : input.classes) {
      for (const auto& [source, columns] : one) axes[d].steps.push_back(columns[d]);
    }
  }
  const std::vector<Axis> result = RegroupAxes(axes, input.shape, node, out);
  for (size_t d = 0; d < shape.size(); ++d) {
    out.breaks[d] = result[d].breaks;
    out.Repeat(d, result[d].period, result[d].period_cause);
  }
  size_t slot = 0;
  for (const DisplacementClass& one : input.classes) {
    DisplacementClass moved;
    for (const auto& [source, columns] : one) {
      Columns& list = moved[source] = Columns(shape.size());
      for (size_t d = 0; d < shape.size(); ++d) {
        if (slot < result[d].steps.size()) list[d] = result[d].steps[slot];
      }
      ++slot;
    }
    out.classes.insert(std::move(moved));
  }
  out.Normalize();
  return out;
}

}  // namespace mendel
