#include "graph/random_graph.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "graph/window.h"

namespace mendel {
namespace {

constexpr int64_t kMaxValueElements = 600;  // keeps thousands of exhaustive comparisons quick

size_t Pick(Rng& rng, size_t count) { return static_cast<size_t>(rng.Below(count)); }

/// Builds onto one GraphBuilder. Every method returns nullopt when the operator does not fit the
/// value.
class Grower {
 public:
  Grower(Rng& rng, GraphBuilder& builder) : rng_(rng), builder_(builder) {}

  const Shape& shape(ValueId value) const { return builder_.type(value).shape; }

  std::optional<ValueId> Add(std::string_view op, std::vector<ValueId> inputs,
                             Attributes attrs = {}) {
    const auto value = builder_.Add(op, std::move(inputs), std::move(attrs));
    if (!value.ok() || NumElements(shape(*value)) > kMaxValueElements ||
        NumElements(shape(*value)) == 0)
      return std::nullopt;
    return *value;
  }

  ValueId Weight(const Shape& shape) {
    std::vector<double> values(static_cast<size_t>(NumElements(shape)));
    for (double& value : values) value = rng_.Normal();
    return builder_.Constant(Tensor::FromDoubles({DType::kF32, shape}, values),
                             Cat("w", rng_.Below(1000000000)));
  }

  /// Small integers, so that exact arithmetic stays small; `changes` of them differ from 2.
  ValueId Literal(const Shape& shape, int changes) {
    std::vector<double> values(static_cast<size_t>(NumElements(shape)), 2);
    for (int k = 0; k < changes; ++k)
      values[Pick(rng_, values.size())] = static_cast<double>(rng_.Between(-1, 3));
    return builder_.Constant(Tensor::FromDoubles({DType::kF32, shape}, values));
  }

  std::optional<ValueId> Conv(ValueId x) {
    const Shape& in = shape(x);
    if (in.size() < 3) return std::nullopt;
    const int64_t group = rng_.Flip(0.3) ? in[1] : 1;
    Shape kernel = {group * rng_.Between(1, 2), in[1] / group};
    Attributes attrs = WindowAttributes(in.size() - 2, kernel);
    attrs.Set("group", group);
    std::vector<ValueId> inputs = {x, Weight(kernel)};
    if (rng_.Flip(0.3)) inputs.push_back(Weight({kernel[0]}));
    return Add("Conv", inputs, attrs);
  }

  std::optional<ValueId> Pool(ValueId x) {
    const Shape& in = shape(x);
    if (in.size() < 3) return std::nullopt;
    Shape kernel;
    Attributes attrs = WindowAttributes(in.size() - 2, kernel);
    attrs.Set("kernel_shape", kernel);
    if (rng_.Flip()) return Add("MaxPool", {x}, attrs);
    attrs.Set("count_include_pad", rng_.Between(0, 1));
    return Add("AveragePool", {x}, attrs);
  }

  std::optional<ValueId> Transpose(ValueId x) {
    Ints perm(shape(x).size());
    std::iota(perm.begin(), perm.end(), 0);
    for (size_t d = perm.size(); d > 1; --d) std::swap(perm[d - 1], perm[Pick(rng_, d)]);
    return Add("Transpose", {x}, {{"perm", perm}});
  }

  /// Merges two neighboring dimensions, splits one, or both.
  std::optional<ValueId> Reshape(ValueId x) {
    Shape target = shape(x);
    if (target.size() > 1 && rng_.Flip(0.7)) {
      const size_t d = Pick(rng_, target.size() - 1);
      target[d] *= target[d + 1];
      target.erase(target.begin() + static_cast<int64_t>(d) + 1);
    }
    if (!target.empty() && target.size() < 5 && rng_.Flip(0.7)) {
      const size_t d = Pick(rng_, target.size());
      for (int64_t factor : {2, 3, 5}) {
        if (target[d] % factor != 0) continue;
        const bool outer = rng_.Flip();
        const int64_t rest = target[d] / factor;
        target[d] = outer ? factor : rest;
        target.insert(target.begin() + static_cast<int64_t>(d) + 1, outer ? rest : factor);
        break;
      }
    }
    return Add("Reshape", {x}, {{"shape", target}});
  }

  std::optional<ValueId> SliceDim(ValueId x, size_t d, int64_t begin, int64_t end,
                                  int64_t step = 1) {
    const Shape& in = shape(x);
    Ints starts(in.size(), 0);
    Ints ends = in;
    Ints steps(in.size(), 1);
    starts[d] = begin;
    ends[d] = end;
    steps[d] = step;
    return Add("Slice", {x}, {{"starts", starts}, {"ends", ends}, {"steps", steps}});
  }
  std::optional<ValueId> Flip(ValueId x, size_t d) {
    return SliceDim(x, d, shape(x)[d] - 1, -1, -1);
  }

  std::optional<ValueId> RandomSlice(ValueId x) {
    if (shape(x).empty()) return std::nullopt;
    const size_t d = Pick(rng_, shape(x).size());
    const int64_t extent = shape(x)[d];
    if (rng_.Flip(0.3)) return Flip(x, d);
    const int64_t begin = rng_.Between(0, extent - 1);
    const int64_t step = rng_.Between(1, 2);
    return SliceDim(x, d, begin, rng_.Between(begin + 1, extent), step);
  }

  /// Sum or product of two or three parts of one value along one dimension: shifted, flipped,
  /// constant or strided.
  std::optional<ValueId> Shifted(ValueId x) {
    if (shape(x).empty()) return std::nullopt;
    const size_t d = Pick(rng_, shape(x).size());
    const int64_t extent = shape(x)[d];
    const int64_t length = rng_.Between(1, std::max<int64_t>(1, extent / 2 + 1));
    std::optional<ValueId> result;
    for (int64_t parts = rng_.Between(2, 3); parts > 0; --parts) {
      const int64_t begin = rng_.Between(0, extent - length);
      std::optional<ValueId> part = SliceDim(x, d, begin, begin + length);
      const uint64_t kind = rng_.Below(6);
      if (part.has_value() && kind == 0) part = Flip(*part, d);
      if (part.has_value() && kind == 1) part = SliceDim(x, d, begin, begin + 1);
      if (kind == 2 && 2 * length <= extent + 1) part = SliceDim(x, d, 0, 2 * length - 1, 2);
      if (part.has_value() && rng_.Flip(0.2)) part = Add("Relu", {*part});
      if (!part.has_value()) return std::nullopt;
      result = !result.has_value() ? part : Add(rng_.Flip(0.6) ? "Add" : "Mul", {*result, *part});
      if (!result.has_value()) return std::nullopt;
    }
    return result;
  }

  std::optional<ValueId> WithConstant(ValueId x) {
    Shape other = shape(x);
    for (int64_t& extent : other) extent = rng_.Flip(0.4) ? 1 : extent;
    const ValueId constant =
        rng_.Flip() ? Weight(other) : Literal(other, static_cast<int>(rng_.Between(0, 1)));
    return Add(rng_.Flip() ? "Add" : "Mul", {x, constant});
  }

  std::optional<ValueId> MatMul(ValueId x) {
    if (shape(x).size() < 2) return std::nullopt;
    return Add("MatMul", {x, Weight({shape(x).back(), rng_.Between(1, 4)})});
  }

  std::optional<ValueId> Concat(ValueId x, ValueId y) {
    if (shape(x).empty() || shape(x).size() != shape(y).size()) return std::nullopt;
    return Add("Concat", {x, y}, {{"axis", static_cast<int64_t>(Pick(rng_, shape(x).size()))}});
  }

  std::optional<ValueId> Nonlinear(ValueId x) {
    const uint64_t kind = rng_.Below(8);
    if (kind == 0) return Add("Div", {x, Weight({})});
    if (kind == 1) return Add("Sigmoid", {x});
    if (kind == 2)
      return Add(
          "Softmax", {x},
          {{"axis", static_cast<int64_t>(Pick(rng_, std::max<size_t>(1, shape(x).size())))}});
    return Add("Relu", {x});
  }

  std::optional<ValueId> Step(ValueId x, ValueId y) {
    switch (rng_.Below(12)) {
      case 0:
      case 1:
        return Conv(x);
      case 2:
        return Pool(x);
      case 3:
        return Transpose(x);
      case 4:
        return Reshape(x);
      case 5:
        return RandomSlice(x);
      case 6:
        return Shifted(x);
      case 7:
        return WithConstant(x);
      case 8:
        return MatMul(x);
      case 9:
        return Concat(x, rng_.Flip() ? x : y);
      case 10:
        return Nonlinear(x);
      default: {
        const ValueId other = rng_.Flip() ? x : y;
        return Add(rng_.Flip() ? "Add" : "Mul", {x, other});
      }
    }
  }

 private:
  /// Appends a random window to `kernel` and returns its strides, dilations and pads.
  Attributes WindowAttributes(size_t spatial, Shape& kernel) {
    Ints strides, dilations, pads(2 * spatial);
    for (size_t d = 0; d < spatial; ++d) {
      const int64_t size = rng_.Between(1, 3);
      kernel.push_back(size);
      strides.push_back(rng_.Flip(0.7) ? 1 : 2);
      dilations.push_back(rng_.Flip(0.7) ? 1 : 2);
      pads[d] = rng_.Between(0, size - 1);
      pads[spatial + d] = rng_.Between(0, size - 1);
    }
    return {{"strides", strides}, {"dilations", dilations}, {"pads", pads}};
  }

  Rng& rng_;
  GraphBuilder& builder_;
};

/// A value of the same type that differs from `x` in some way.
std::optional<ValueId> Change(Rng& rng, Grower& grow, ValueId x) {
  const Shape shape = grow.shape(x);
  if (shape.empty()) return grow.Add("Mul", {x, grow.Literal({}, 1)});
  const size_t d = Pick(rng, shape.size());
  const int64_t cut = rng.Between(0, shape[d]);
  switch (rng.Below(5)) {
    case 0:
      return grow.Flip(x, d);
    case 1: {  // rotated
      if (cut == 0 || cut == shape[d]) return x;
      const auto head = grow.SliceDim(x, d, 0, cut);
      const auto tail = grow.SliceDim(x, d, cut, shape[d]);
      return head && tail ? grow.Add("Concat", {*tail, *head}, {{"axis", static_cast<int64_t>(d)}})
                          : std::nullopt;
    }
    case 2: {  // one box scaled
      Box box = Box::Whole(shape);
      for (size_t k = 0; k < shape.size(); ++k) {
        if (rng.Flip(0.4)) continue;
        box.begin[k] = rng.Between(0, shape[k] - 1);
        box.end[k] = rng.Between(box.begin[k] + 1, shape[k]);
      }
      const Ints steps(shape.size(), 1);
      const auto part =
          grow.Add("Slice", {x}, {{"starts", box.begin}, {"ends", box.end}, {"steps", steps}});
      const auto scaled = part ? grow.Add("Mul", {*part, grow.Literal({}, 1)}) : std::nullopt;
      return scaled ? grow.Add("Patch", {x, *scaled}, {{"boxes", Boxes{box}}}) : std::nullopt;
    }
    case 3:
      return grow.Add("Mul", {x, grow.Literal(shape, 1)});
    default: {  // last positions along d repeat the first
      if (cut == 0 || cut == shape[d]) return x;
      const auto head = grow.SliceDim(x, d, 0, cut);
      const auto again = grow.SliceDim(x, d, 0, shape[d] - cut);
      return head && again
                 ? grow.Add("Concat", {*head, *again}, {{"axis", static_cast<int64_t>(d)}})
                 : std::nullopt;
    }
  }
}

/// The convolution with all images stacked along the first spatial dimension: wrong at the seams.
std::optional<ValueId> StackedConv(Grower& grow, const Node& node,
                                   const std::vector<ValueId>& inputs) {
  const Shape x = grow.shape(inputs[0]);
  const Shape y = node.outputs[0].shape;
  if (x[0] == 1 || x[2] != y[2]) return std::nullopt;
  const auto swap = [&](ValueId value) {
    Ints perm(x.size());
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[0], perm[1]);
    return grow.Add("Transpose", {value}, {{"perm", perm}});
  };
  Shape stacked = x;
  stacked[0] = 1;
  stacked[2] *= x[0];
  const auto channels = swap(inputs[0]);
  const auto merged =
      channels ? grow.Add("Reshape", {*channels}, {{"shape", stacked}}) : std::nullopt;
  std::vector<ValueId> operands = inputs;
  if (merged) operands[0] = *merged;
  const auto conv = merged ? grow.Add("Conv", operands, node.attrs) : std::nullopt;
  Shape split = y;
  std::swap(split[0], split[1]);
  const auto apart = conv ? grow.Add("Reshape", {*conv}, {{"shape", split}}) : std::nullopt;
  return apart ? swap(*apart) : std::nullopt;
}

}  // namespace

Graph RandomGraph(Rng& rng, int steps) {
  GraphBuilder builder("random");
  Grower grow(rng, builder);
  std::vector<ValueId> values;
  for (int64_t k = rng.Between(1, 2); k > 0; --k) {
    const Shape shape = {rng.Between(1, 3), rng.Between(1, 2), rng.Between(2, 8),
                         rng.Between(1, 4)};
    values.push_back(builder.Input(Cat("x", k), {DType::kF32, shape}));
  }
  while (steps-- > 0) {
    const ValueId x = rng.Flip(0.7) ? values.back() : values[Pick(rng, values.size())];
    const std::optional<ValueId> value = grow.Step(x, values[Pick(rng, values.size())]);
    if (value.has_value()) values.push_back(*value);
  }
  builder.Output("y", values.back());
  if (rng.Flip(0.2)) builder.Output("z", values[Pick(rng, values.size())]);
  auto graph = builder.Build();
  MENDEL_CHECK(graph.ok());
  return *std::move(graph);
}

Graph RandomMutant(Rng& rng, const Graph& graph) {
  GraphBuilder builder("mutant");
  Grower grow(rng, builder);
  std::vector<ValueId> where(graph.nodes().size());
  std::vector<size_t> candidates;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (!IsConstant(graph.nodes()[i]) && graph.nodes()[i].outputs.size() == 1)
      candidates.push_back(i);
  }
  const size_t chosen = candidates[Pick(rng, candidates.size())];
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    std::vector<ValueId> inputs;
    for (ValueId value : node.inputs)
      inputs.push_back({where[static_cast<size_t>(value.node)].node, value.output});
    std::optional<ValueId> changed;
    if (node.op->name == "Conv" && (i == chosen || rng.Flip(0.2)))
      changed = StackedConv(grow, node, inputs);
    if (!changed.has_value()) {
      const auto copy = builder.CopyNode(node, inputs);
      MENDEL_CHECK(copy.ok());
      changed = {*copy, 0};
      if (i == chosen && rng.Flip(0.9))
        changed = Change(rng, grow, *changed).value_or(ValueId{*copy, 0});
    }
    where[i] = *changed;
  }
  for (const GraphOutput& output : graph.outputs()) {
    builder.Output(output.name,
                   {where[static_cast<size_t>(output.value.node)].node, output.value.output});
  }
  auto mutant = builder.Build();
  MENDEL_CHECK(mutant.ok());
  return *std::move(mutant);
}

std::vector<HostValue> RandomInputs(Rng& rng, const Graph& graph) {
  std::vector<HostValue> values;
  for (int32_t id : graph.inputs()) {
    HostValue value{graph.node(id).outputs[0], {}, {}};
    for (int64_t k = NumElements(value.type); k > 0; --k) {
      if (IsFloat(value.type.dtype)) {
        value.scalars.push_back(rng.Normal());
      } else {
        value.integers.push_back(rng.Between(0, value.type.dtype == DType::kBool ? 1 : 3));
      }
    }
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace mendel
