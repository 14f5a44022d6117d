#include "graph/window_grid.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "graph/pooling.h"

namespace mendel {
namespace {

/// Outputs `wanted`, a range, from every input position between the first and the last that they
/// read.
std::optional<WindowGrid> CutToRange(const Window& window, const Positions& wanted, bool trims) {
  const int64_t first_output = wanted[0], last_output = wanted[wanted.size() - 1];
  const auto lives = [&](int64_t tap) {
    for (int64_t i = 0; i < wanted.size(); ++i) {
      const int64_t at = window.Position(wanted[i], tap);
      if (at >= 0 && at < window.input) return true;
    }
    return false;
  };
  int64_t first_tap = 0, end_tap = window.kernel;
  while (trims && first_tap < end_tap && !lives(first_tap)) ++first_tap;
  while (trims && first_tap < end_tap && !lives(end_tap - 1)) --end_tap;
  if (first_tap == end_tap) return std::nullopt;
  WindowGrid cut{wanted, {}, first_tap, window};
  cut.window.kernel = end_tap - first_tap;
  const int64_t hop = wanted.size() > 1 ? wanted.step() * window.stride : 0;
  const int64_t unit = std::gcd(hop, cut.window.kernel > 1 ? window.dilation : 0);
  const int64_t step = std::max<int64_t>(1, unit);
  const int64_t low = window.Position(first_output, first_tap);
  const int64_t count = (window.Position(last_output, end_tap - 1) - low) / step + 1;
  const int64_t before = low < 0 ? (-low + step - 1) / step : 0;
  const int64_t end =
      low >= window.input ? 0 : std::min(count, (window.input - 1 - low) / step + 1);
  if (before >= end) return std::nullopt;
  cut.input = Positions::Range(low + before * step, end - before, step);
  cut.window.input = end - before;
  cut.window.stride = hop == 0 ? 1 : hop / step;
  cut.window.dilation = cut.window.kernel == 1 ? 1 : window.dilation / step;
  cut.window.pad_begin = before;
  cut.window.pad_end = count - end;
  return cut;
}

/// One window behind the other, each with its own copies of what it reads.
WindowGrid SpreadWindows(const Window& window, const Positions& wanted) {
  std::vector<int64_t> list;
  for (int64_t i = 0; i < wanted.size(); ++i) {
    for (int64_t tap = 0; tap < window.kernel; ++tap) {
      const int64_t at = window.Position(wanted[i], tap);
      list.push_back(at < 0 || at >= window.input ? kAbsent : at);
    }
  }
  WindowGrid spread{wanted, Positions::List(std::move(list)), 0, window};
  spread.window = {spread.input.size(), window.kernel, window.kernel, 1, 0, 0};
  return spread;
}

}  // namespace

std::optional<WindowGrid> RestrictWindow(const Window& window, const Positions& wanted, bool trims,
                                         bool absent) {
  constexpr double kWasted = 1.4;  // read or computed needlessly before windows are spread
  const int64_t count = wanted.size();
  const Positions hull = Positions::Range(wanted[0], wanted[count - 1] - wanted[0] + 1);
  const auto range = CutToRange(window, wanted.IsRange() ? wanted : hull, trims);
  if (!range.has_value()) return std::nullopt;
  const int64_t spread_size = count * window.kernel;
  const bool dense =
      wanted.IsRange()
          ? static_cast<double>(range->input.size()) <= kWasted * static_cast<double>(spread_size)
          : static_cast<double>(hull.size()) <= kWasted * static_cast<double>(count);
  if (dense) return range;
  const WindowGrid spread = SpreadWindows(window, wanted);
  const std::vector<int64_t> list = spread.input.ToList();
  if (!absent && std::find(list.begin(), list.end(), kAbsent) != list.end()) return range;
  return spread;
}

std::optional<GridRestriction> RestrictPoolGrid(const GridRequest& request, bool count_padding) {
  const NodeView& node = request.node;
  GridRestriction result = WholeRestriction(node, 0);
  result.computed[0] = result.inputs[0][0] = request.wanted[0];
  result.computed[1] = result.inputs[0][1] = request.wanted[1];
  const std::vector<Window> windows = PoolWindows(node);
  const size_t rank = windows.size();
  Ints strides(rank), dilations(rank), pads(2 * rank);
  for (size_t d = 0; d < rank; ++d) {
    const auto cut = RestrictWindow(windows[d], request.wanted[d + 2], false, false);
    if (!cut.has_value()) return std::nullopt;
    const int64_t last = cut->computed[cut->computed.size() - 1];
    const int64_t end = windows[d].Position(last, windows[d].kernel - 1) + 1;
    if (count_padding && end > windows[d].input + windows[d].pad_end) return std::nullopt;
    result.computed[d + 2] = cut->computed;
    result.inputs[0][d + 2] = cut->input;
    strides[d] = cut->window.stride;
    dilations[d] = cut->window.dilation;
    pads[d] = cut->window.pad_begin;
    pads[rank + d] = cut->window.pad_end;
  }
  result.attrs.Set("strides", strides);
  result.attrs.Set("dilations", dilations);
  result.attrs.Set("pads", pads);
  result.attrs.Set("ceil_mode", int64_t{0});
  return result;
}

}  // namespace mendel
