// Softmax and the normalizations: a block of threads a row, which is read once, or where it is long
// two or three times, and written once.

#include <limits>

#include "base/status.h"
#include "kernels/cuda/fusion/operator_text.h"

namespace mendel::cuda::texts::normalizations {
namespace {

using Names = std::vector<std::string>;

Names SoftmaxStatistics(const RowAt& row) {
  const std::string lowest = LiteralOf(row.dtype(), -std::numeric_limits<double>::infinity());
  const std::string shift = row.Over("MaxOf", lowest, [](const std::string& x) { return x; });
  const std::string sum = row.Over("SumOf", LiteralOf(row.dtype(), 0.0), [&](const std::string& x) {
    return Cat("Exp(", x, " - ", shift, ")");
  });
  return {shift, sum};
}

std::string SoftmaxElement(const RowAt&, const Names& statistics, const std::string& x,
                           const Position&) {
  return Cat("Exp(", x, " - ", statistics[0], ") / ", statistics[1]);
}

Names LogSoftmaxStatistics(const RowAt& row) {
  const Names softmax = SoftmaxStatistics(row);
  return {softmax[0], row.code.Let(RealName(row.dtype()), Cat("Log(", softmax[1], ")"))};
}

std::string LogSoftmaxElement(const RowAt&, const Names& statistics, const std::string& x,
                              const Position&) {
  return Cat(x, " - ", statistics[0], " - ", statistics[1]);
}

std::pair<Shape, Ints> Line(const NodeView& view) {
  return {view.inputs[0].shape, {view.attrs.Int("axis")}};
}

/// Mean and reciprocal standard deviation, in two passes as the definition has them.
Names Moments(const RowAt& row) {
  const std::string_view real = RealName(row.dtype());
  const std::string zero = LiteralOf(row.dtype(), 0.0), count = LiteralOf(row.dtype(), row.Count());
  const std::string sum = row.Over("SumOf", zero, [](const std::string& x) { return x; });
  const std::string mean = row.code.Let(real, Cat(sum, " / ", count));
  const std::string squares = row.Over("SumOf", zero, [&](const std::string& x) {
    return Cat("(", x, " - ", mean, ") * (", x, " - ", mean, ")");
  });
  const std::string epsilon = LiteralOf(row.dtype(), row.view.attrs.Float("epsilon"));
  return {mean, row.code.Let(real, Cat(LiteralOf(row.dtype(), 1.0), " / Sqrt(", squares, " / ",
                                       count, " + ", epsilon, ")"))};
}

std::string Normalized(const RowAt& row, const Names& moments, const std::string& x,
                       const Position& scale, const Position& bias) {
  const std::vector<ValueId>& inputs = row.code.graph().node(row.node).inputs;
  std::string result =
      Cat("(", x, " - ", moments[0], ") * ", moments[1], " * ", row.code.Element(inputs[1], scale));
  if (inputs.size() > 2) result += Cat(" + ", row.code.Element(inputs[2], bias));
  return result;
}

/// One scale and one bias a channel.
std::string PerChannel(const RowAt& row, const Names& moments, const std::string& x,
                       const Position& at) {
  const Position channel{{at.at[1]}};
  return Normalized(row, moments, x, channel, channel);
}

/// Scale and bias of any shape that broadcasts.
std::string PerElement(const RowAt& row, const Names& moments, const std::string& x,
                       const Position& at) {
  const auto broadcast = [&](size_t input) {
    Position position;
    if (input >= row.view.inputs.size()) return position;
    const Shape& shape = row.view.inputs[input].shape;
    const size_t skip = at.at.size() - shape.size();
    for (size_t d = 0; d < shape.size(); ++d) {
      position.at.push_back(shape[d] == 1 ? "0" : at.at[skip + d]);
      position.root.push_back(shape[d] == 1 ? FromRoot{} : at.RootOf(skip + d));
    }
    return position;
  };
  return Normalized(row, moments, x, broadcast(1), broadcast(2));
}

Ints AxesFrom(size_t first, size_t rank) {
  Ints axes;
  for (size_t d = first; d < rank; ++d) axes.push_back(static_cast<int64_t>(d));
  return axes;
}

std::pair<Shape, Ints> Trailing(const NodeView& view) {
  const Shape& shape = view.inputs[0].shape;
  return {shape, AxesFrom(static_cast<size_t>(view.attrs.Int("axis")), shape.size())};
}

std::pair<Shape, Ints> Plane(const NodeView& view) {
  const Shape& shape = view.inputs[0].shape;
  return {shape, AxesFrom(2, shape.size())};
}

/// Channels as groups of channels.
std::pair<Shape, Ints> Group(const NodeView& view) {
  const Shape& shape = view.inputs[0].shape;
  const int64_t groups = view.attrs.Int("num_groups");
  Shape grouped = {shape[0], groups, shape[1] / groups};
  int64_t plane = 1;
  for (size_t d = 2; d < shape.size(); ++d) plane *= shape[d];
  grouped.push_back(plane);
  return {grouped, {2, 3}};
}

MENDEL_REGISTER_OPERATOR_TEXTS({
    {.op = "GroupNormalization",
     .row = {.geometry = &Group, .statistics = &Moments, .element = &PerChannel}},
    {.op = "InstanceNormalization",
     .row = {.geometry = &Plane, .statistics = &Moments, .element = &PerChannel}},
    {.op = "LayerNormalization",
     .row = {.geometry = &Trailing, .statistics = &Moments, .element = &PerElement}},
    {.op = "LogSoftmax",
     .row = {.geometry = &Line,
             .statistics = &LogSoftmaxStatistics,
             .element = &LogSoftmaxElement}},
    {.op = "Softmax",
     .row = {.geometry = &Line, .statistics = &SoftmaxStatistics, .element = &SoftmaxElement}},
});

}  // namespace
}  // namespace mendel::cuda::texts::normalizations
