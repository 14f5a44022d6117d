// Products of two factors as convolutions.

#include <algorithm>
#include <numeric>

#include "mutator/index/realize.h"

namespace mendel {
namespace {

/// One window: dimension `dim` of x is  gcd * (stride * p + dilation * k) + others.
struct ConvWindow {
  size_t dim = 0;
  Iterator p = 0, k = 0;
  int64_t stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;
  bool flipped = false;  ///< k runs backwards in x
  Iterator z = 0;        ///< what stands for the window in x
};

struct Matched {
  size_t x = 0;  ///< factor
  std::vector<ConvWindow> windows;
  std::vector<Iterator> batch, group, out, channels;
};

size_t Count(const IndexTerm& term, size_t factor, Iterator i) {
  const auto places = OccurrencesOf(term, i);
  return static_cast<size_t>(std::count_if(places.begin(), places.end(),
                                           [&](const auto& at) { return at.factor == factor; }));
}

/// The window of one dimension of x: the only pair (p of the result, k of w) of it; the first where
/// there are several.
std::optional<ConvWindow> FindWindow(const Product& product, size_t x, size_t dim) {
  const IndexTerm& term = product.term;
  const IndexForm& form = term.factors[x].index[dim];
  if (form.divisor != 1) return std::nullopt;
  for (const auto& [p, stride] : form.affine.terms) {
    const bool output =
        std::find(product.order.begin(), product.order.end(), p) != product.order.end();
    if (!output || Uses(term.factors[1 - x], p) || stride < 1 || Count(term, x, p) != 1) continue;
    for (const auto& [k, dilation] : form.affine.terms) {
      const bool sum = std::find(term.sums.begin(), term.sums.end(), k) != term.sums.end();
      if (!sum || !Uses(term.factors[1 - x], k) || Count(term, x, k) != 1) continue;
      const int64_t step = std::gcd(stride, dilation);
      ConvWindow window{dim, p, k, stride / step, dilation / step};
      window.flipped = dilation < 0;
      if (window.flipped) window.dilation = -window.dilation;
      return window;
    }
  }
  return std::nullopt;
}

bool IsWindowIterator(const Matched& match, Iterator i) {
  return std::any_of(match.windows.begin(), match.windows.end(),
                     [&](const ConvWindow& w) { return w.p == i || w.k == i; });
}

/// Positions behind the channels become windows of one tap where nothing moves a window.
void TakePositions(const Product& product, Matched& match, Extents& extents) {
  const IndexTerm& term = product.term;
  const Factor& image = term.factors[match.x];
  if (!product.weights[1 - match.x] || product.weights[match.x]) return;
  for (size_t d = image.index.size(); d-- > 0;) {
    const IndexForm& form = image.index[d];
    if (form.divisor != 1 || form.affine.terms.size() != 1) break;
    const auto [p, stride] = *form.affine.terms.begin();
    const bool output =
        std::find(product.order.begin(), product.order.end(), p) != product.order.end();
    if (!output || stride < 1 || Uses(term.factors[1 - match.x], p) || Count(term, match.x, p) != 1)
      break;
    extents.push_back(1);
    match.windows.insert(match.windows.begin(),
                         {d, p, static_cast<Iterator>(extents.size() - 1), stride, 1});
  }
}

std::optional<Matched> MatchWindows(const Product& product, size_t x, Extents& extents) {
  const IndexTerm& term = product.term;
  Matched match;
  match.x = x;
  for (size_t d = 0; d < term.factors[x].index.size(); ++d) {
    const auto window = FindWindow(product, x, d);
    if (window.has_value() && !IsWindowIterator(match, window->p) &&
        !IsWindowIterator(match, window->k)) {
      match.windows.push_back(*window);
    }
  }
  if (match.windows.empty() && product.pointwise && !term.sums.empty())
    TakePositions(product, match, extents);
  if (match.windows.empty() || match.windows.size() > 3) return std::nullopt;
  for (const Iterator sum : term.sums) {
    if (IsWindowIterator(match, sum)) continue;
    if (!Uses(term.factors[0], sum) || !Uses(term.factors[1], sum)) return std::nullopt;
    match.channels.push_back(sum);
  }
  for (const Iterator i : product.order) {
    const bool in_x = Uses(term.factors[x], i), in_w = Uses(term.factors[1 - x], i);
    if (IsWindowIterator(match, i) || (!in_x && !in_w)) continue;
    (in_x && in_w ? match.group : in_x ? match.batch : match.out).push_back(i);
  }
  return match;
}

/// Replaces the window in the form by an iterator z over the positions that lie inside [0, extent)
/// for some value of the others; what is left of the window's range on either side is the
/// convolution's padding. False when nothing lies inside.
bool TakeWindow(Affine& form, int64_t extent, ConvWindow& window, Extents& extents) {
  const int64_t step = form.Coefficient(window.p) / window.stride;
  const int64_t taps = extents[static_cast<size_t>(window.k)];
  Affine rest = form;
  rest.terms.erase(window.p);
  rest.terms.erase(window.k);
  if (window.flipped) rest.constant -= step * window.dilation * (taps - 1);
  const int64_t positions = window.stride * (extents[static_cast<size_t>(window.p)] - 1) +
                            window.dilation * (taps - 1) + 1;
  const Range range = RangeOf(rest, extents);
  const int64_t low = std::max<int64_t>(0, CeilDiv(-range.high, step));
  int64_t high = std::min(positions - 1, FloorDiv(extent - 1 - range.low, step));
  if (low > high) return false;
  window.pad_begin = low;
  window.pad_end = positions - 1 - high;
  // Positions that no window reads stay where they do not add a window.
  if (window.pad_end == 0) {
    const int64_t inside = FloorDiv(extent - 1 - range.high, step);
    high = std::max(high, std::min(inside, positions + window.stride - 2));
  }
  extents.push_back(high - low + 1);
  window.z = static_cast<Iterator>(extents.size() - 1);
  form = rest + Affine::Of(window.z, step, step * low);
  return true;
}

/// Conv's operand: the lists of iterators in order, each list but the last one dimension, and those
/// of the last one each.
ValueId ConvOperand(Emitter& e, ValueId tensor, const Factor& factor,
                    const std::vector<std::vector<Iterator>>& lists,
                    const std::vector<Iterator>& spatial, const Extents& extents) {
  std::vector<Iterator> order;
  Shape shape;
  for (const std::vector<Iterator>& list : lists) {
    int64_t count = 1;
    for (const Iterator i : list) count *= extents[static_cast<size_t>(i)];
    shape.push_back(count);
    order.insert(order.end(), list.begin(), list.end());
  }
  for (const Iterator i : spatial) shape.push_back(extents[static_cast<size_t>(i)]);
  order.insert(order.end(), spatial.begin(), spatial.end());
  return ReshapeTo(e, EmitView(e, tensor, factor.index, order, extents), shape);
}

std::vector<Iterator> Joined(const std::vector<Iterator>& a, const std::vector<Iterator>& b) {
  std::vector<Iterator> all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

/// The product's bias a channel, where it varies over channels only.
std::optional<ValueId> TakeBias(Emitter& e, const Product& product, const Matched& match,
                                const Extents& extents) {
  if (product.bias == nullptr || !product.bias->has_value()) return std::nullopt;
  const std::vector<Iterator> channels = Joined(match.group, match.out);
  const IndexedValue bias = **product.bias;
  Shape whole;
  int64_t count = 1;
  for (const Iterator i : channels) {
    whole.push_back(extents[static_cast<size_t>(i)]);
    count *= whole.back();
  }
  for (const Iterator i : bias.dims) {
    if (std::find(channels.begin(), channels.end(), i) == channels.end()) return std::nullopt;
  }
  product.bias->reset();
  ValueId value = Arranged(e, bias, channels);
  if (e.shape(value) != whole) value = e.Op("Expand", {value}, {{"shape", whole}});
  return ReshapeTo(e, value, {count});
}

IndexedValue EmitMatched(Emitter& e, const Product& product, const Matched& match, const Factor& x,
                         const Extents& extents) {
  Factor w = product.term.factors[1 - match.x];
  std::vector<Iterator> taps, positions, results;
  Ints strides, dilations, pads(2 * match.windows.size());
  for (size_t d = 0; d < match.windows.size(); ++d) {
    const ConvWindow& window = match.windows[d];
    taps.push_back(window.k);
    positions.push_back(window.z);
    results.push_back(window.p);
    strides.push_back(window.stride);
    dilations.push_back(window.dilation);
    pads[d] = window.pad_begin;
    pads[match.windows.size() + d] = window.pad_end;
    if (!window.flipped) continue;
    const Affine turned = Affine::Of(window.k, -1, extents[static_cast<size_t>(window.k)] - 1);
    for (IndexForm& form : w.index) form.affine = form.affine.Substituted(window.k, turned);
  }
  const ValueId image =
      ConvOperand(e, product.operands[match.x], x,
                  {match.batch, Joined(match.group, match.channels)}, positions, extents);
  const ValueId kernel =
      ConvOperand(e, product.operands[1 - match.x], w,
                  {Joined(match.group, match.out), match.channels}, taps, extents);
  int64_t groups = 1;
  for (const Iterator i : match.group) groups *= extents[static_cast<size_t>(i)];
  std::vector<ValueId> operands = {image, kernel};
  if (const auto bias = TakeBias(e, product, match, extents)) operands.push_back(*bias);
  IndexedValue result{
      e.Op("Conv", operands,
           {{"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"group", groups}}),
      Joined(match.batch, Joined(match.group, Joined(match.out, results)))};
  Shape shape;
  for (const Iterator i : result.dims) shape.push_back(extents[static_cast<size_t>(i)]);
  result.value = ReshapeTo(e, result.value, shape);
  return result;
}

}  // namespace

std::optional<IndexedValue> EmitConv(Emitter& e, const Product& product) {
  for (size_t side = 0; side < 2; ++side) {
    Extents extents = product.extents;
    std::optional<Matched> match = MatchWindows(product, side, extents);
    if (!match.has_value()) continue;
    Factor x = product.term.factors[side];
    const Shape shape = e.shape(product.operands[side]);
    const bool taken =
        std::all_of(match->windows.begin(), match->windows.end(), [&](ConvWindow& window) {
          return TakeWindow(x.index[window.dim].affine, shape[window.dim], window, extents);
        });
    if (taken) return EmitMatched(e, product, *match, x, extents);
  }
  return std::nullopt;
}

}  // namespace mendel
