#include "graph/running_sums.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace mendel {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 24;
constexpr size_t kLeastBounds = 3;  // of a triangle

/// Elements `begin`, `begin + step`, .. of a tensor.
struct Line {
  int64_t begin = 0;
  int64_t step = 1;
  int64_t count = 0;
};

/// nullopt: zeros lie between, or some number is not `scale`, which the first number sets.
std::optional<RowRun> RunOf(const Tensor& tensor, const Line& line, double& scale) {
  RowRun run;
  for (int64_t k = 0; k < line.count; ++k) {
    const double value = tensor.DoubleAt(line.begin + k * line.step);
    if (value == 0) continue;
    if (scale == 0) scale = value;
    const bool first = run.end == 0;
    if (value != scale || (!first && run.end != k)) return std::nullopt;
    if (first) run.begin = k;
    run.end = k + 1;
  }
  return run;
}

/// True for the dimensions of one matrix.
bool IsMatrix(const Shape& shape) {
  if (shape.size() < 2 || NumElements(shape) > kMostElements) return false;
  return std::all_of(shape.begin(), shape.end() - 2, [](int64_t extent) { return extent == 1; });
}

}  // namespace

std::optional<RowRuns> RowRunsOf(const Tensor& tensor, bool transposed) {
  const Shape& shape = tensor.shape();
  if (!IsFloat(tensor.dtype()) || !IsMatrix(shape)) return std::nullopt;
  int64_t rows = shape[shape.size() - 2], columns = shape.back(), row_step = columns, step = 1;
  if (transposed) {
    std::swap(rows, columns);
    std::swap(row_step, step);
  }
  RowRuns result;
  for (int64_t i = 0; i < rows; ++i) {
    const auto run = RunOf(tensor, {i * row_step, step, columns}, result.scale);
    if (!run.has_value() || !std::isfinite(result.scale)) return std::nullopt;
    result.runs.push_back(*run);
  }
  return result;
}

std::optional<RunningSums> RunningSumsOf(const Tensor& tensor, bool transposed) {
  const auto rows = RowRunsOf(tensor, transposed);
  if (!rows.has_value() || rows->runs.empty()) return std::nullopt;
  const Shape& shape = tensor.shape();
  const int64_t columns = transposed ? shape[shape.size() - 2] : shape.back();
  RunningSums prefixes{rows->scale, false, {}}, suffixes{rows->scale, true, {}};
  bool is_prefix = true, is_suffix = true;
  for (const RowRun& run : rows->runs) {
    const bool empty = run.end == 0;
    is_prefix = is_prefix && (empty || run.begin == 0);
    is_suffix = is_suffix && (empty || run.end == columns);
    prefixes.bounds.push_back(run.end);
    suffixes.bounds.push_back(empty ? columns : run.begin);
  }
  if (!is_prefix && !is_suffix) return std::nullopt;
  RunningSums& found = is_prefix ? prefixes : suffixes;
  const auto [least, most] = std::minmax_element(found.bounds.begin(), found.bounds.end());
  if (*least == *most) return std::nullopt;
  return found;
}

bool IsTriangle(const Tensor& tensor) {
  const auto sums = RunningSumsOf(tensor);
  if (!sums.has_value()) return false;
  const int64_t columns = tensor.shape().back();
  std::optional<int64_t> diagonal;
  for (size_t i = 0; i < sums->bounds.size(); ++i) {
    if (sums->bounds[i] > 0 && sums->bounds[i] < columns)
      diagonal = sums->bounds[i] - static_cast<int64_t>(i);
  }
  for (size_t i = 0; diagonal.has_value() && i < sums->bounds.size(); ++i) {
    const int64_t expected = std::clamp<int64_t>(static_cast<int64_t>(i) + *diagonal, 0, columns);
    if (sums->bounds[i] != expected) return false;
  }
  return std::set<int64_t>(sums->bounds.begin(), sums->bounds.end()).size() >= kLeastBounds &&
         diagonal.has_value();
}

}  // namespace mendel
