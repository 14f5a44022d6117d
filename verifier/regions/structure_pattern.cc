// Structure of operators with an access pattern: convolutions, pools, products, elementwise
// operators, slices (graph/access.h). A tap that crosses a border or a break makes a break.
// Dilation is DimAccess::step.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "base/status.h"
#include "verifier/regions/structure.h"

namespace mendel {
namespace {

constexpr size_t kMaxClasses = 48;

int64_t FloorDiv(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
int64_t CeilDiv(int64_t a, int64_t b) { return -FloorDiv(-a, b); }

/// Output dimensions that move the positions read along one input dimension.
std::vector<size_t> Moving(const DimAccess& access, const Shape& shape) {
  std::vector<size_t> moving;
  for (size_t j = 0; !access.whole && j < access.coefficients.size(); ++j) {
    if (access.coefficients[j] != 0 && shape[j] > 1) moving.push_back(j);
  }
  return moving;
}

/// Breaks of the output where the positions that it reads along input dimension `dim` cross a break
/// or the border.
void PullBreaks(const DimAccess& access, const ValueStructure& input, size_t dim, int32_t node,
                ValueStructure& out) {
  const std::vector<size_t> moving = Moving(access, out.shape);
  if (moving.empty()) return;
  const int64_t extent = input.shape[dim];
  int64_t low = access.offset + std::min<int64_t>(0, access.step * (access.count - 1));
  int64_t high = access.offset + std::max<int64_t>(0, access.step * (access.count - 1));
  for (size_t j : moving) {
    const int64_t reach = access.coefficients[j] * (out.shape[j] - 1);
    (reach < 0 ? low : high) += reach;
  }
  const bool inside = low >= 0 && high < extent;
  if (inside && input.breaks[dim].empty()) return;
  if (moving.size() > 1) {
    constexpr std::string_view kDiagonal = "positions are read diagonally across a break";
    for (size_t j : moving) out.BreakEverywhere(j, {node, kDiagonal});
    out.unknown.insert(std::string(kDiagonal));
    return;
  }
  const size_t j = moving[0];
  const int64_t step = access.coefficients[j];
  const auto pull = [&](int64_t border, Cause cause) {
    for (int64_t tap = 0; tap < access.count; ++tap) {
      const int64_t first = access.offset + access.step * tap;
      const int64_t at =
          step > 0 ? CeilDiv(border - first, step) : FloorDiv(first - border, -step) + 1;
      if (at > 0 && at < out.shape[j]) out.breaks[j].push_back({at, cause});
    }
  };
  for (const Break& one : input.breaks[dim]) pull(one.at, one.cause);
  pull(0, {node, "padding edge"});
  pull(extent, {node, "padding edge"});
  out.SortBreaks(j);
}

/// A step of one period of the output is whole periods of the input.
void PullPeriods(const DimAccess& access, const ValueStructure& input, size_t dim,
                 ValueStructure& out) {
  const int64_t period = input.periods[dim];
  if (period == 1) return;
  for (size_t j : Moving(access, out.shape)) {
    out.Repeat(j, period / std::gcd(period, access.coefficients[j]), input.period_causes[dim]);
  }
}

/// Classes of `input` as the output moves by its periods. Dense dimensions have no displacements.
std::vector<DisplacementClass> Mapped(const ValueStructure& input, const InputAccess& access,
                                      const ValueStructure& out) {
  std::vector<bool> dense;
  for (size_t j = 0; j < out.shape.size(); ++j) dense.push_back(out.Dense(j));
  std::vector<DisplacementClass> result;
  for (const DisplacementClass& one : input.classes) {
    DisplacementClass mapped;
    for (const auto& [source, columns] : one) {
      Columns moved(out.shape.size());
      for (size_t d = 0; d < access.dims.size(); ++d) {
        const DimAccess& dim = access.dims[d];
        for (size_t j = 0; !dim.whole && j < dim.coefficients.size(); ++j) {
          if (dense[j] || dim.coefficients[j] == 0) continue;
          AddScaled(moved[j], dim.coefficients[j] * out.periods[j] / input.periods[d], columns[d]);
        }
      }
      for (Step& step : moved) Canonicalize(step);
      mapped[source] = std::move(moved);
    }
    result.push_back(std::move(mapped));
  }
  return result;
}

/// Classes of the products of one term; condition (b): factors that read one source move alike.
std::optional<std::vector<DisplacementClass>> Products(
    const AccessPattern& pattern, const std::vector<std::vector<DisplacementClass>>& mapped,
    const std::vector<int>& term, std::set<size_t>& conflicts) {
  std::vector<DisplacementClass> products = {{}};
  for (int input : term) {
    const size_t k = static_cast<size_t>(input);
    const bool divided = k < 32 && (pattern.divided_inputs >> k & 1) != 0;  // condition (d)
    const std::vector<DisplacementClass> factors =
        divided ? std::vector<DisplacementClass>{Joint(mapped[k], conflicts)} : mapped[k];
    std::set<DisplacementClass> next;
    for (const DisplacementClass& product : products) {
      for (const DisplacementClass& factor : factors) {
        DisplacementClass merged = product;
        MergeInto(merged, factor, conflicts);
        next.insert(std::move(merged));
        if (next.size() > kMaxClasses) return std::nullopt;
      }
    }
    products.assign(next.begin(), next.end());
  }
  return products;
}

/// Classes of the whole sum; nullopt when there are too many.
std::optional<std::vector<DisplacementClass>> Combine(
    const AccessPattern& pattern, const std::vector<std::vector<DisplacementClass>>& mapped,
    std::set<size_t>& conflicts) {
  std::vector<DisplacementClass> classes;
  if (pattern.combine != AccessPattern::Combine::kProduct) {
    for (const auto& list : mapped) classes.insert(classes.end(), list.begin(), list.end());
    if (pattern.combine == AccessPattern::Combine::kOracle)
      classes = {Joint(classes, conflicts)};  // condition (c)
    return classes;
  }
  std::vector<std::vector<int>> terms = pattern.terms;
  if (terms.empty()) {
    terms.emplace_back(mapped.size());
    std::iota(terms[0].begin(), terms[0].end(), 0);
  }
  for (const std::vector<int>& term : terms) {
    const auto products = Products(pattern, mapped, term, conflicts);
    if (!products.has_value()) return std::nullopt;
    classes.insert(classes.end(), products->begin(), products->end());
  }
  return classes;
}

}  // namespace

ValueStructure StructureByPattern(const AccessPattern& pattern, const Shape& shape,
                                  const std::vector<const ValueStructure*>& inputs, int32_t node,
                                  const std::string& op) {
  ValueStructure out(shape);
  out.InheritReasons(inputs);
  for (size_t j = 0; j < std::min(shape.size(), pattern.breaks.size()); ++j) {
    for (int64_t at : pattern.breaks[j]) out.breaks[j].push_back({at, {node, "seam"}});
    out.SortBreaks(j);
  }
  for (size_t k = 0; k < inputs.size(); ++k) {
    for (size_t d = 0; d < pattern.inputs[k].dims.size(); ++d) {
      PullBreaks(pattern.inputs[k].dims[d], *inputs[k], d, node, out);
      PullPeriods(pattern.inputs[k].dims[d], *inputs[k], d, out);
    }
  }
  std::vector<std::vector<DisplacementClass>> mapped;
  for (size_t k = 0; k < inputs.size(); ++k)
    mapped.push_back(Mapped(*inputs[k], pattern.inputs[k], out));
  std::set<size_t> conflicts;
  const auto classes = Combine(pattern, mapped, conflicts);
  constexpr std::string_view kTooMany = "too many displacement classes";
  if (!classes.has_value())
    return UnknownStructure(shape, inputs, {node, kTooMany}, Cat(op, ": ", kTooMany));
  constexpr std::string_view kApart = "its operands move differently over one source";
  for (size_t j : conflicts) {
    if (out.Dense(j)) continue;
    out.BreakEverywhere(j, {node, kApart});
    out.unknown.insert(Cat(op, ": ", kApart));
  }
  out.classes = {classes->begin(), classes->end()};
  out.Normalize();
  if (out.classes.size() > kMaxClasses)
    return UnknownStructure(shape, inputs, {node, kTooMany}, Cat(op, ": ", kTooMany));
  return out;
}

}  // namespace mendel
