// Products with a constant matrix that sums become sums of slices.
//
//   before  MatMul(t, x), each row of t one number c over a run of columns, zero elsewhere
//   before  MatMul(x, t), each column of t one number c over a run of rows, zero elsewhere
//   after   c * x, its positions picked                      runs of one column: selections, shifts
//   after   c * ReduceSum of a slice of x, repeated          one run
//   after   c * ReduceSum of blocks of x, repeated           runs side by side
//   after   c * (x[0:] + x[1:] + ..), x padded with zeros    short windows that move by one step
//   after   the same by sums of 3, 9, .. positions            longer ones: fewer additions
//
// Exact, and for literals only. Running sums are a rule of their own (matmul_to_cum_sum).

#include <algorithm>
#include <map>
#include <optional>

#include "graph/positions.h"
#include "graph/running_sums.h"
#include "mutator/literal_product.h"
#include "mutator/regions/select.h"
#include "mutator/rule.h"

namespace mendel::rules::matmul_to_sums {
namespace {

constexpr int64_t kMostMoving = 64;  // positions of a moving window

/// Window w is the positions [first + w * step, first + w * step + length) that exist.
struct Windows {
  int64_t first = 0;
  int64_t step = 0;
  int64_t length = 0;
  int64_t count = 0;
};

struct Site {
  size_t axis = 0;  ///< of the operand, along which it is summed
  double scale = 0;
  Windows windows;
  std::vector<int64_t> window_of;  ///< of each row; kAbsent where it is zero
};

/// Windows that are exactly `runs`, which ascend. The first and the last ones may be cut by the
/// ends.
std::optional<Windows> WindowsOf(const std::vector<RowRun>& runs, int64_t extent) {
  Windows windows;
  windows.count = static_cast<int64_t>(runs.size());
  for (const RowRun& run : runs) windows.length = std::max(windows.length, run.end - run.begin);
  if (runs.size() > 1) {
    const size_t middle = runs.size() / 2;
    windows.step = runs[middle].begin > runs[middle - 1].begin
                       ? runs[middle].begin - runs[middle - 1].begin
                       : runs[middle].end - runs[middle - 1].end;
  }
  windows.first = runs[0].begin == 0 ? runs[0].end - windows.length : runs[0].begin;
  for (size_t w = 0; w < runs.size(); ++w) {
    const int64_t begin = windows.first + static_cast<int64_t>(w) * windows.step;
    const RowRun cut{std::max<int64_t>(0, begin), std::min(extent, begin + windows.length)};
    if (cut != runs[w]) return std::nullopt;
  }
  return windows;
}

bool AreBlocks(const Windows& windows, int64_t extent) {
  return (windows.count == 1 || windows.step == windows.length) && windows.first >= 0 &&
         windows.first + windows.count * windows.length <= extent;
}

/// Fills windows and rows of the site; false where the rows are no such windows.
bool ReadRows(const RowRuns& rows, int64_t extent, Site& site) {
  std::map<RowRun, int64_t> places;
  for (const RowRun& run : rows.runs) {
    if (run.end > 0) places.emplace(run, 0);
  }
  if (places.empty()) return false;
  const bool selects = std::all_of(places.begin(), places.end(), [](const auto& place) {
    return place.first.end - place.first.begin == 1;
  });
  std::vector<RowRun> runs;
  for (auto& [run, place] : places) {
    place = selects ? run.begin : static_cast<int64_t>(runs.size());
    runs.push_back(run);
  }
  for (const RowRun& run : rows.runs) site.window_of.push_back(run.end > 0 ? places[run] : kAbsent);
  site.scale = rows.scale;
  if (selects) {
    site.windows = {0, 1, 1, extent};
    return true;
  }
  const auto windows = WindowsOf(runs, extent);
  if (!windows.has_value()) return false;
  site.windows = *windows;
  return windows->length <= kMostMoving || AreBlocks(*windows, extent);
}

std::optional<Site> FindSite(const Graph& graph, int32_t id) {
  for (const LiteralProduct& product : LiteralProductsOf(graph, id)) {
    const auto rows = RowRunsOf(*product.matrix, product.transposed);
    if (!rows.has_value()) continue;
    Site site;
    site.axis = product.axis;
    const ValueId operand = graph.node(id).inputs[product.operand];
    if (ReadRows(*rows, graph.type(operand).shape[site.axis], site)) return site;
  }
  return std::nullopt;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  return FindSite(graph, node).has_value() ? std::vector<Match>{{{node}, {}}}
                                           : std::vector<Match>();
}

ValueId SumBlocks(Emitter& e, ValueId x, size_t axis, const Windows& windows) {
  const int64_t at = static_cast<int64_t>(axis);
  const int64_t end = windows.first + windows.count * windows.length;
  if (windows.first != 0 || end != e.shape(x)[axis]) x = e.Slice(x, at, windows.first, end);
  if (!IsBuilt(x)) return x;
  Shape blocks = e.shape(x), sums = blocks;
  sums[axis] = windows.count;
  blocks[axis] = windows.length;
  blocks.insert(blocks.begin() + at, windows.count);
  const ValueId sum =
      e.Op("ReduceSum", {e.Reshape(x, blocks)}, {{"axes", Ints{at + 1}}, {"keepdims", int64_t{0}}});
  return IsBuilt(sum) ? e.Reshape(sum, sums) : sum;
}

/// Adds `count` positions, `apart` from each other, from each start in [begin, end) on. `sum` is
/// what they are added to.
ValueId AddShifts(Emitter& e, ValueId sum, ValueId x, int64_t axis, int64_t begin, int64_t end,
                  int64_t step, int64_t count, int64_t apart) {
  for (int64_t k = 0; k < count; ++k) {
    const ValueId term = e.Slice(x, axis, begin + k * apart, end + k * apart, step);
    sum = IsBuilt(sum) ? e.Add(sum, term) : term;
  }
  return sum;
}

/// Operands and results of the chains of additions that SumShifts makes in base `radix`.
int64_t Traffic(int64_t length, int64_t radix) {
  int64_t traffic = 0, terms = 0;
  for (; length > 0; length /= radix) {
    terms += length % radix;
    if (length >= radix) traffic += radix + 1;
  }
  return traffic + (terms > 1 ? terms + 1 : 0);
}

/// The base of the least traffic. One that exceeds `length` adds the positions one by one.
int64_t BestRadix(int64_t length) {
  int64_t best = length + 1;
  for (int64_t radix = 2; radix < length; ++radix) {
    if (Traffic(length, radix) < Traffic(length, best)) best = radix;
  }
  return best;
}

/// The windows that begin at [begin, end). The digits of their length in some base are added as
/// sums of 1, radix, radix^2, .. positions, each of which is made of the one before.
ValueId SumShifts(Emitter& e, ValueId x, int64_t axis, int64_t begin, int64_t end,
                  const Windows& windows) {
  const int64_t radix = BestRadix(windows.length);
  ValueId sum;
  int64_t left = windows.length;
  for (int64_t size = 1; IsBuilt(x); size *= radix) {
    const int64_t digit = left / size % radix, added = windows.length - left;
    sum = AddShifts(e, sum, x, axis, begin + added, end + added, windows.step, digit, size);
    left -= digit * size;
    if (left == 0) break;
    const int64_t starts = e.shape(x)[static_cast<size_t>(axis)] - (radix - 1) * size;
    x = AddShifts(e, {}, x, axis, 0, starts, 1, radix, size);
  }
  return sum;
}

ValueId SumMoving(Emitter& e, ValueId x, size_t axis, const Windows& windows) {
  const int64_t at = static_cast<int64_t>(axis), extent = e.shape(x)[axis];
  const int64_t last = windows.first + (windows.count - 1) * windows.step;
  const int64_t before = std::max<int64_t>(0, -windows.first);
  x = e.PadZero(x, at, before, std::max<int64_t>(0, last + windows.length - extent));
  if (!IsBuilt(x)) return x;
  return SumShifts(e, x, at, windows.first + before, last + before + 1, windows);
}

/// The operand's sums over all windows, then the window of each row.
ValueId EmitSums(Emitter& e, ValueId x, const Site& site) {
  const int64_t extent = e.shape(x)[site.axis];
  if (site.windows.length > 1) {
    x = AreBlocks(site.windows, extent) ? SumBlocks(e, x, site.axis, site.windows)
                                        : SumMoving(e, x, site.axis, site.windows);
  }
  return PickAlong(e, x, site.axis, site.window_of);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  const int32_t id = subprogram.outputs()[0].value.node;
  const auto site = FindSite(subprogram, id);
  if (!site.has_value()) return absl::FailedPreconditionError("no sums of windows");
  Emitter e;
  const ValueId y = EmitSums(e, e.InputsOf(subprogram)[0], *site);
  return FinishScaled(e, y, site->scale, subprogram.node(id).outputs[0]);
}

/// Selections, windows that move, and blocks.
absl::StatusOr<Graph> Sample(Rng& rng) {
  const bool right = rng.Flip(), long_windows = rng.Between(0, 3) == 0;
  const int64_t length = long_windows ? rng.Between(6, 20) : rng.Between(1, 5),
                step = rng.Flip() ? length : rng.Between(0, 2);
  const int64_t first = rng.Between(-2, 1), repeats = rng.Between(1, 2);
  const int64_t rows = rng.Between(2, 6), columns = length + rng.Between(1, 5);
  const double scale = rng.Flip() ? 1 : 0.5 * static_cast<double>(rng.Between(-3, 3));
  const auto number = [&](int64_t row, int64_t column) {
    const int64_t begin = first + row / repeats * step;
    return column >= begin && column < begin + length ? scale : 0;
  };
  return SampleLiteralProduct(rng, right, rows, columns, number);
}

Rule Make() {
  Rule rule;
  rule.name = "matmul_to_sums";
  rule.family = "known numbers";
  rule.before = "MatMul(t, x), each row of t one number over a run of columns";
  rule.after = "x picked, or sums of its blocks or windows, scaled";
  rule.precondition = "t is a literal; runs are single columns, blocks, or move by one step";
  rule.loses_when = "the axis is short";
  rule.reads_values = true;
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::matmul_to_sums
