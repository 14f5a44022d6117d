// Elementwise groups: which operators, in which layout, and their operands.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "kernels/cpu/kernels/code_sum.h"
#include "kernels/cpu/kernels/elementwise.h"
#include "kernels/cpu/lowering/lower.h"
#include "kernels/cpu/lowering/small_integers.h"
#include "kernels/cpu/lowering/tile_call.h"
#include "kernels/cpu/lowering/tile_peephole.h"

namespace mendel::cpu {
namespace {

constexpr size_t kMaxOperands = 36;

std::string_view TileName(const Node& node) {
  if (node.op->name == "Gelu")
    return node.attrs.Str("approximate") == "tanh" ? "GeluTanh" : "GeluErf";
  if (node.op->name == "BatchNormalization") return "ScaleShift";
  if (node.op->name != "Cast") return node.op->name;
  const DType to = node.outputs[0].dtype;
  if (to == DType::kBool) return "CastBool";
  if (to == DType::kU8) return "CastU8";
  if (to == DType::kI8) return "CastI8";
  return to == DType::kI32 ? "CastI32" : "Cast";
}

std::array<float, 4> Parameters(const Node& node) {
  const auto value = [&](std::string_view name) {
    return static_cast<float>(node.attrs.Float(name));
  };
  if (node.op->name == "Clip") return {value("min"), value("max")};
  if (node.op->name == "Selu") return {value("alpha"), value("gamma")};
  if (node.op->name == "IsInf") {
    return {static_cast<float>(node.attrs.Int("detect_negative")),
            static_cast<float>(node.attrs.Int("detect_positive"))};
  }
  return {node.attrs.Has("alpha") ? value("alpha") : 0.0f,
          node.attrs.Has("beta") ? value("beta") : 0.0f};
}

bool AllConstant(const Folded& folded, const Node& node, size_t first) {
  return std::all_of(node.inputs.begin() + static_cast<int64_t>(first), node.inputs.end(),
                     [&](ValueId input) { return folded.IsConstant(input); });
}

/// Builds the tile program of one group.
class Builder {
 public:
  Builder(Lowering& lowering, std::span<const int32_t> nodes)
      : lowering_(lowering),
        nodes_(nodes),
        result_{nodes.back(), 0},
        rank_(lowering.shape(result_).size()) {}

  absl::StatusOr<bool> Emit() {
    const Layout layout = ChooseLayout();
    const std::optional<std::vector<PhysicalDim>> order =
        PhysicalOrder(layout, lowering_.shape(result_));
    if (!order.has_value()) return false;
    order_ = *order;
    for (const PhysicalDim& step : order_) program_.extents.push_back(step.extent);
    if (!CollectOperands(layout)) return false;
    if (program_.operands.size() + nodes_.size() > kMaxRegisters) return false;
    program_.registers = static_cast<int>(program_.operands.size());
    for (int32_t node : nodes_) AddCall(node);
    program_.result = registers_.at(result_);
    program_.output_dtype = lowering_.type(result_).dtype;
    FuseQuantization(program_, Numbers());
    program_.output = lowering_.Allocate(result_, layout);
    std::vector<Place> touched = {program_.output};
    for (const TileOperand& operand : program_.operands) touched.push_back(operand.place);
    const auto in_place = InPlace();
    std::string name = nodes_.size() == 1 ? Cat("tile ", lowering_.graph().node(nodes_[0]).op->name)
                                          : "tile chain";
    std::unique_ptr<Kernel> kernel = MakeCodeSumKernel(program_);
    if (kernel != nullptr) {
      name = "sum of codes";
    } else {
      kernel = MakeElementwiseKernel(std::move(program_));
    }
    lowering_.Emit({nodes_.begin(), nodes_.end()}, name, std::move(kernel), touched, 0, in_place);
    lowering_.MarkElementwise();
    return true;
  }

 private:
  bool Inside(ValueId value) const {
    return std::find(nodes_.begin(), nodes_.end(), value.node) != nodes_.end();
  }

  Layout ChooseLayout() {
    const Shape& shape = lowering_.shape(result_);
    for (int32_t node : nodes_) {
      for (ValueId input : lowering_.graph().node(node).inputs) {
        if (Inside(input) || lowering_.folded().IsConstant(input) ||
            lowering_.shape(input) != shape)
          continue;
        if (const std::optional<Place> within = lowering_.Within(input))
          return BlockedLayout(shape, within->layout.block);
        const Layout layout = lowering_.Any(input).layout;
        if (PhysicalOrder(layout, shape).has_value()) return layout;
      }
    }
    return PlainLayout(shape);
  }

  bool AddOperand(ValueId value, Place place, const Shape& shape, DType dtype) {
    const std::optional<Shape> strides = StridesAlong(order_, place.layout, shape, rank_);
    if (!strides.has_value()) return false;
    registers_[value] = static_cast<int>(program_.operands.size());
    program_.operands.push_back({std::move(place), *strides, dtype});
    return program_.operands.size() <= kMaxOperands;
  }

  bool CollectOperands(const Layout& layout) {
    for (int32_t id : nodes_) {
      const Node& node = lowering_.graph().node(id);
      const bool normalize = node.op->name == "BatchNormalization";
      for (size_t k = 0; k < (normalize ? 1 : node.inputs.size()); ++k) {
        const ValueId value = node.inputs[k];
        if (Inside(value) || registers_.count(value) != 0) continue;
        const Shape& shape = lowering_.shape(value);
        const DType dtype = lowering_.type(value).dtype;
        if (AddOperand(value, lowering_.WithinOrAny(value), shape, dtype)) continue;
        if (program_.operands.size() > kMaxOperands) return false;
        const Place place = shape == lowering_.shape(result_) ? lowering_.In(value, layout)
                                                              : lowering_.Plain(value);
        if (!AddOperand(value, place, shape, dtype)) return false;
      }
      if (normalize && !AddScaleShift(id, node)) return false;
    }
    return true;
  }

  /// BatchNormalization's factor and summand, as operands under the node's otherwise unused outputs
  /// 1 and 2.
  bool AddScaleShift(int32_t id, const Node& node) {
    Folded& folded = lowering_.folded();
    HostValue factor = folded.Exact(node.inputs[1]);
    HostValue summand = folded.Exact(node.inputs[2]);
    const HostValue mean = folded.Exact(node.inputs[3]);
    const HostValue variance = folded.Exact(node.inputs[4]);
    for (size_t c = 0; c < factor.scalars.size(); ++c) {
      factor.scalars[c] /= std::sqrt(variance.scalars[c] + node.attrs.Float("epsilon"));
      summand.scalars[c] -= mean.scalars[c] * factor.scalars[c];
    }
    Shape shape(rank_ - 1, 1);
    shape[0] = static_cast<int64_t>(factor.scalars.size());
    int32_t output = 1;
    for (const HostValue* vector : {&factor, &summand}) {
      Place place = lowering_.Constant("", shape[0] * 4, [&](std::byte* to) {
        const Tensor rounded = vector->ToTensor();
        std::memcpy(to, rounded.bytes().data(), rounded.bytes().size());
      });
      place.layout = PlainLayout(shape);
      if (!AddOperand({id, output++}, place, shape, DType::kF32)) return false;
    }
    return true;
  }

  void AddCall(int32_t id) {
    const Node& node = lowering_.graph().node(id);
    if (KeepsNumbers(lowering_.graph(), node)) {
      registers_[{id, 0}] = registers_.at(node.inputs[0]);
      return;
    }
    TileCall call = TileCallOf(node);
    call.in.fill(registers_.at(node.inputs[0]));
    if (node.op->name == "BatchNormalization") {
      call.in = {registers_.at(node.inputs[0]), registers_.at({id, 1}), registers_.at({id, 2})};
    } else {
      for (size_t k = 0; k < node.inputs.size(); ++k) call.in[k] = registers_.at(node.inputs[k]);
    }
    call.out = program_.registers++;
    registers_[{id, 0}] = call.out;
    program_.calls.push_back(call);
  }

  /// Operands that are scalar constants, by register.
  std::map<int, float> Numbers() {
    std::map<int, float> numbers;
    for (const auto& [value, number] : registers_) {
      if (Inside(value) || !lowering_.folded().IsConstant(value)) continue;
      if (NumElements(lowering_.shape(value)) != 1) continue;
      numbers[number] = static_cast<float>(lowering_.folded().Rounded(value).DoubleAt(0));
    }
    return numbers;
  }

  /// The output may overwrite an operand that is read at the very positions being written, if
  /// nothing else lies there.
  std::optional<std::pair<Place, Place>> InPlace() const {
    const Shape& shape = lowering_.shape(result_);
    for (const TileOperand& candidate : program_.operands) {
      if (DTypeSize(candidate.dtype) != DTypeSize(program_.output_dtype) ||
          candidate.strides != RowMajorStrides(program_.extents))
        continue;
      const bool alone = std::count_if(program_.operands.begin(), program_.operands.end(),
                                       [&](const TileOperand& other) {
                                         return other.place.buffer == candidate.place.buffer;
                                       }) == 1;
      if (alone && SamePlacement(candidate.place.layout, program_.output.layout, shape))
        return {{program_.output, candidate.place}};
    }
    return std::nullopt;
  }

  Lowering& lowering_;
  std::span<const int32_t> nodes_;
  ValueId result_;
  size_t rank_;
  std::vector<PhysicalDim> order_;
  TileProgram program_;
  std::map<ValueId, int> registers_;
};

}  // namespace

TileCall TileCallOf(const Node& node) {
  TileCall call;
  call.name = TileName(node);
  call.function = FindTileFunction(call.name);
  call.parameters = Parameters(node);
  return call;
}

bool KeepsNumbers(const Graph& graph, const Node& node) {
  if (node.op->name != "Cast") return false;
  const DType from = graph.type(node.inputs[0]).dtype, to = node.outputs[0].dtype;
  return from == to || to == DType::kF32 || (to == DType::kI32 && IsIntegral(from));
}

bool IsElementwise(const Graph& graph, Folded& folded, int32_t id) {
  const Node& node = graph.node(id);
  if (FindTileFunction(TileName(node)) == nullptr || node.inputs.size() > 5) return false;
  if (node.op->name == "BatchNormalization" &&
      (!AllConstant(folded, node, 1) || node.outputs[0].shape.size() < 2))
    return false;
  if (NumElements(node.outputs[0]) == 0) return false;
  const std::vector<TensorType> inputs = graph.InputTypes(id);
  const auto plain = [](const TensorType& type) {
    return type.dtype == DType::kF32 || type.dtype == DType::kBool;
  };
  if (plain(node.outputs[0]) && std::all_of(inputs.begin(), inputs.end(), plain)) return true;
  return IsOnSmallIntegers(graph, folded, id);
}

absl::StatusOr<bool> LowerElementwise(Lowering& lowering, std::span<const int32_t> nodes) {
  for (int32_t node : nodes) {
    if (!IsElementwise(lowering.graph(), lowering.folded(), node)) return false;
  }
  return Builder(lowering, nodes).Emit();
}

}  // namespace mendel::cpu
