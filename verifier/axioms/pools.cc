// Max pools: compositions that are one pool, and functions that commute with them.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "graph/pooling.h"
#include "verifier/axioms/clips.h"
#include "verifier/axioms/limits.h"
#include "verifier/axioms/rules.h"
#include "verifier/axioms/scaled.h"

namespace mendel {
namespace {

constexpr std::array<AxiomDescription, 2> kPoolsAxioms = {{
    {"pool of a pool", "MaxPool(MaxPool(x)) = MaxPool(x) with the windows of the composition",
     "Every composite window is checked to be the union of the inner windows that it stands for; "
     "none is empty."},
    {"pool of an increasing function",
     "MaxPool(f(x)) = f(MaxPool(x)), f(x) = c x, x + d, Clip(x), Round(x), Floor(x), Ceil(x), "
     "Cast(x)",
     "Functions that do not decrease commute with the largest element. No window lies wholly in "
     "padding, and no integer wraps."},
}};

/// Positions of the input that output `o` reads along one dimension; windows without dilation read
/// a range.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  bool empty() const { return begin >= end; }
};
Range RangeAt(const Window& window, int64_t o) {
  const int64_t first = window.Position(o, 0);
  return {std::max<int64_t>(0, first), std::min(window.input, first + window.kernel)};
}

std::vector<Window> WindowsOfPool(const Terms& t, ValueId v) {
  const std::vector<TensorType> types = t.InputTypes(v);
  return PoolWindows({types, t.node(v).attrs, t.node(v).outputs});
}

bool NoWindowIsEmpty(const Terms& t, ValueId v) {
  const std::vector<Window> windows = WindowsOfPool(t, v);
  for (size_t d = 0; d < windows.size(); ++d) {
    for (int64_t o = 0; o < t.shape(v)[d + 2]; ++o) {
      bool reads = false;
      for (int64_t k = 0; k < windows[d].kernel && !reads; ++k) {
        const int64_t at = windows[d].Position(o, k);
        reads = at >= 0 && at < windows[d].input;
      }
      if (!reads) return false;
    }
  }
  return true;
}

/// Larger composites are left alone; inference has a limit too.
constexpr int64_t kLargestKernel = 1 << 12;

/// The window that reads what `outer` reads through `inner`, or nullopt if there is none. `mid` and
/// `out` are the extents of the two outputs.
std::optional<Window> Composite(const Window& inner, const Window& outer, int64_t mid,
                                int64_t out) {
  if (inner.dilation != 1 || outer.dilation != 1) return std::nullopt;
  Window both;
  both.input = inner.input;
  both.stride = inner.stride * outer.stride;
  both.kernel = inner.kernel + (outer.kernel - 1) * inner.stride;
  both.pad_begin = inner.pad_begin + inner.stride * outer.pad_begin;
  both.pad_end = (out - 1) * both.stride + both.kernel - both.input - both.pad_begin;
  if (both.pad_end < 0) both.pad_end = 0;
  if (both.kernel > kLargestKernel || both.stride > kLargestKernel || both.OutputExtent() != out)
    return std::nullopt;
  for (int64_t o = 0; o < out; ++o) {
    const Range middle =
        RangeAt({mid, outer.kernel, outer.stride, 1, outer.pad_begin, outer.pad_end}, o);
    if (middle.empty()) return std::nullopt;
    Range read = RangeAt(inner, middle.begin);
    for (int64_t m = middle.begin; m < middle.end; ++m) {
      const Range part = RangeAt(inner, m);
      if (part.empty() || part.begin > read.end) return std::nullopt;  // a hole between two windows
      read.end = std::max(read.end, part.end);
    }
    const Range whole = RangeAt(both, o);
    if (whole.begin != read.begin || whole.end != read.end) return std::nullopt;
  }
  return both;
}

std::optional<ValueId> PoolOfPool(Terms& t, ValueId v) {
  const ValueId inner = t.in(v, 0);
  if (!t.Is(inner, "MaxPool")) return std::nullopt;
  const std::vector<Window> first = WindowsOfPool(t, inner), second = WindowsOfPool(t, v);
  Ints kernel, strides, begins, ends;
  for (size_t d = 0; d < first.size(); ++d) {
    const auto window = Composite(first[d], second[d], t.shape(inner)[d + 2], t.shape(v)[d + 2]);
    if (!window.has_value()) return std::nullopt;
    kernel.push_back(window->kernel);
    strides.push_back(window->stride);
    begins.push_back(window->pad_begin);
    ends.push_back(window->pad_end);
  }
  Attributes attrs = t.node(v).attrs;
  begins.insert(begins.end(), ends.begin(), ends.end());
  attrs.Set("dilations", Ints(first.size(), 1));
  attrs.Set("kernel_shape", std::move(kernel));
  attrs.Set("strides", std::move(strides));
  attrs.Set("pads", std::move(begins));
  attrs.Set("ceil_mode", int64_t{0});
  return t.Op("MaxPool", {t.in(inner, 0)}, std::move(attrs));
}

bool IsStep(const Terms& t, ValueId v) {
  return t.Is(v, "Round") || t.Is(v, "Floor") || t.Is(v, "Ceil");
}

/// A cast that does not decrease: to a float, or of numbers to integers that contain them all.
bool IsIncreasingCast(const Terms& t, ValueId v) {
  if (!t.Is(v, "Cast")) return false;
  for (const DType dtype : {t.dtype(v), t.dtype(t.in(v, 0))}) {
    if (dtype == DType::kBool || IsStorageOnly(dtype)) return false;
  }
  return IsFloat(t.dtype(v)) ||
         (t.IsDefined(t.in(v, 0)) && LimitsOf(t, t.in(v, 0)).Within(LimitsOfDType(t.dtype(v))));
}

/// A sum of integers and a number that does not wrap.
bool IsShiftOfIntegers(const Terms& t, ValueId v) {
  if (!t.Is(v, "Add") || !IsIntegral(t.dtype(v)) || t.dtype(v) == DType::kBool) return false;
  const std::optional<double> shift =
      t.shape(t.in(v, 1)).empty() ? t.Number(t.in(v, 1)) : std::nullopt;
  if (!shift.has_value()) return false;
  const Limits of_x = LimitsOf(t, t.in(v, 0));
  return Limits{of_x.low + *shift, of_x.high + *shift}.Within(LimitsOfDType(t.dtype(v)));
}

std::optional<ValueId> PoolOfIncreasing(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  const auto pool = [&](ValueId y) { return t.Op("MaxPool", {y}, Attributes(t.node(v).attrs)); };
  std::optional<Interval> limited = AsInterval(t, x);
  const std::optional<Scaled> scale = AsScaled(t, x);
  const bool scaled = scale.has_value() && scale->kind != Scaled::Kind::kNegated;
  const bool shifted =
      (t.Is(x, "Add") && t.Scalar(t.in(x, 1)).has_value()) || IsShiftOfIntegers(t, x);
  const bool applied = (IsStep(t, x) && IsFloat(t.dtype(x))) || IsIncreasingCast(t, x);
  if ((!limited.has_value() && !scaled && !shifted && !applied) || !NoWindowIsEmpty(t, v))
    return std::nullopt;
  if (scaled) return Scale(t, pool(scale->x), *scale);
  if (shifted) {
    const ValueId shift = t.in(x, 1);
    return t.Add(pool(t.in(x, 0)), shift);
  }
  if (applied) {
    // A step or a cast decides: no rounded literal stands for a constant in its operand.
    const std::string op(t.node(x).op->name);
    const Attributes attrs = t.node(x).attrs;
    const bool may_round = t.MayRound();
    t.AllowRounding(false);
    const ValueId result = t.Op(op, {pool(t.in(x, 0))}, attrs);
    t.AllowRounding(may_round);
    return result;
  }
  limited->x = pool(limited->x);
  return Limit(t, *limited);
}

constexpr std::array<AxiomRule, 2> kPoolsRules = {{
    {"pool of an increasing function", "MaxPool", &PoolOfIncreasing, Elements::kAny},
    {"pool of a pool", "MaxPool", &PoolOfPool, Elements::kAny},
}};

}  // namespace

AxiomGroup PoolAxioms() { return {kPoolsAxioms, kPoolsRules}; }

}  // namespace mendel
