// Conv by the fused Winograd kernels. This file decides which tiles F(m, r) a node is offered
// (Fitting), in which layouts, and which operations are fused; the search measures the tiles.
#include "kernels/cpu/lowering/lower_winograd.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "base/status.h"
#include "kernels/cpu/kernels/winograd.h"
#include "kernels/cpu/lowering/contraction.h"
#include "kernels/cpu/lowering/lower.h"
#include "kernels/cpu/lowering/native_lowering.h"
#include "kernels/cpu/lowering/native_post_ops.h"
#include "kernels/cpu/simd/native_isa.h"
#include "runtime/allowed_error.h"

namespace mendel::cpu {
namespace {

class WinogradKernel : public Kernel {
 public:
  struct Operands {
    Place src, weights, bias, dst;
    std::optional<Place> residual;
  };
  WinogradKernel(WinogradPlan plan, NativePostOps post_ops, Operands operands)
      : plan_(std::move(plan)), post_ops_(post_ops), operands_(std::move(operands)) {}

  absl::Status Run(const Bindings& bindings) override {
    RunWinograd(plan_, bindings.At<const float>(operands_.src),
                bindings.At<const float>(operands_.weights),
                post_ops_.At(bindings, operands_.bias, operands_.residual),
                bindings.At<float>(operands_.dst), reinterpret_cast<float*>(bindings.scratch));
    return absl::OkStatus();
  }

 private:
  WinogradPlan plan_;
  NativePostOps post_ops_;
  Operands operands_;
};

/// The graph's spatial dimensions in the plan's order, those with taps last; -1: missing.
using Order = std::array<int, 3>;

int64_t TapsAlong(const Shape& weights, int dim) {
  return dim < 0 ? 1 : weights[static_cast<size_t>(dim) + 2];
}

Order OrderOf(const Shape& weights) {
  const int spatial = static_cast<int>(weights.size()) - 2;
  Order order;
  for (int d = 0; d < 3; ++d) order[static_cast<size_t>(d)] = std::max(-1, d + spatial - 3);
  std::stable_partition(order.begin(), order.end(),
                        [&](int dim) { return TapsAlong(weights, dim) == 1; });
  return order;
}

/// Extents, paddings and dilations; nullopt when the node is not of the kind.
std::optional<WinogradPlan> Describe(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  if (node.op->name != "Conv" || node.outputs[0].dtype != DType::kF32 ||
      NumElements(node.outputs[0]) == 0)
    return std::nullopt;
  const Shape& src = graph.type(node.inputs[0]).shape;
  const Shape& dst = node.outputs[0].shape;
  if (dst.size() > 5 || node.attrs.Int("group") != 1 || NumElements(src) == 0) return std::nullopt;
  for (int64_t stride : node.attrs.IntList("strides")) {
    if (stride != 1) return std::nullopt;
  }
  WinogradPlan plan;
  plan.batch = dst[0];
  plan.channels_in = src[1];
  plan.problem.channels_out = dst[1];
  const Order order = OrderOf(graph.type(node.inputs[1]).shape);
  for (size_t d = 0; d < 3; ++d) {
    const bool missing = order[d] < 0;
    const size_t own = missing ? 0 : static_cast<size_t>(order[d]);
    plan.problem.in[d] = missing ? 1 : src[own + 2];
    plan.problem.out[d] = missing ? 1 : dst[own + 2];
    plan.problem.pad[d] = missing ? 0 : node.attrs.IntList("pads")[own];
    plan.problem.step[d] = missing ? 1 : node.attrs.IntList("dilations")[own];
  }
  return plan;
}

/// "4" of F(4x4, 3x3), "2x4x4" of an algorithm with different tiles.
std::string TileName(const WinogradTransforms& transforms) {
  std::string name;
  bool same = true;
  int largest = 0;
  for (int d = 0; d < 3; ++d) {
    if (transforms.r[d] == 1) continue;
    same = same && (largest == 0 || largest == transforms.m[d]);
    largest = transforms.m[d];
    name += Cat(name.empty() ? "" : "x", transforms.m[d]);
  }
  return same ? Cat(largest) : name;
}

/// Cost of a pair of channels: multiplications and the reading of weights. On every machine at
/// hand, reading a weight from memory costs about as much as multiplying it twenty times.
int64_t Cost(int64_t points, int64_t tiles) {
  constexpr int64_t kReading = 20;
  return points * (tiles + kReading);
}

int64_t DirectCost(const WinogradPlan& plan) {
  int64_t outputs = plan.batch;
  int64_t taps = 1;
  for (size_t d = 0; d < 3; ++d) {
    outputs *= plan.problem.out[d];
    taps *= plan.transforms->r[d];
  }
  return Cost(taps, outputs);
}

/// Number of outputs that the tiles compute, those outside the tensor included.
int64_t Computed(const WinogradPlan& plan) {
  return plan.tiles * plan.transforms->m[0] * plan.transforms->m[1] * plan.transforms->m[2];
}

/// Drops tiles of unequal sides for a square kernel, except the best one, which stays only if it
/// computes fewer outputs than the square tile of its longer side. The square tile saves more
/// products. In three dimensions the smaller tile also saves weights, which count there.
void DropWasteful(std::vector<WinogradPlan>& sorted) {
  const std::vector<WinogradPlan> all = sorted;
  bool kept = false;
  std::erase_if(sorted, [&](const WinogradPlan& plan) {
    const WinogradTransforms& tile = *plan.transforms;
    if (tile.r[0] != 1 || tile.r[1] != tile.r[2] || tile.m[1] == tile.m[2]) return false;
    const int side = std::max(tile.m[1], tile.m[2]);
    const bool wasteful = std::any_of(all.begin(), all.end(), [&](const WinogradPlan& other) {
      return other.transforms->m[1] == side && other.transforms->m[2] == side &&
             Computed(other) <= Computed(plan);
    });
    const bool stays = !kept && !wasteful;
    kept = kept || stays;
    return !stays;
  });
}

/// A kernel's bound covers the worst output for the worst data, sums of one sign. The error of a
/// whole plan is measured. So one layer may exceed the error that the class allows a plan, by this
/// factor at most.
constexpr double kLayerError = 2;

/// Returns the algorithms for a node in a class as plans without strides, the largest expected gain
/// first. Plans without an expected gain are left out: the weights of large tiles in three
/// dimensions would fill the memory only to lose.
std::vector<WinogradPlan> Fitting(const Graph& graph, int32_t id, Numerics numerics) {
  std::vector<WinogradPlan> fitting;
  const WinogradIsa* isa = WinogradIsaHere();
  std::optional<WinogradPlan> plan = Describe(graph, id);
  if (isa == nullptr || !plan.has_value() || numerics == Numerics::kStrict) return fitting;
  const Shape& weights = graph.type(graph.node(id).inputs[1]).shape;
  const Order order = OrderOf(weights);
  for (int k = 0; k < isa->transform_count; ++k) {
    bool fits = WinogradErrorBound(isa->transforms[k], plan->channels_in) <=
                kLayerError * AllowedError(numerics);
    for (size_t d = 0; d < 3; ++d)
      fits = fits && TapsAlong(weights, order[d]) == isa->transforms[k].r[d];
    plan->isa = isa;
    plan->transforms = &isa->transforms[k];
    if (!fits) continue;
    CutIntoTiles(*plan, 1);
    if (Cost(plan->points, plan->tiles) < DirectCost(*plan)) fitting.push_back(*plan);
  }
  std::stable_sort(fitting.begin(), fitting.end(),
                   [](const WinogradPlan& a, const WinogradPlan& b) {
                     return Cost(a.points, a.tiles) < Cost(b.points, b.tiles);
                   });
  DropWasteful(fitting);
  return fitting;
}

WinogradStrides StridesOf(const Layout& layout, const Order& order, int64_t lanes) {
  WinogradStrides strides{};
  strides.n = layout.strides[0];
  strides.c = layout.block_dim == 1 ? layout.strides[1] : lanes * layout.strides[1];
  for (size_t d = 0; d < 3; ++d)
    strides.d[d] = order[d] < 0 ? 0 : layout.strides[static_cast<size_t>(order[d]) + 2];
  return strides;
}

Place Weights(Lowering& lowering, const WinogradPlan& plan, ValueId weights,
              const std::vector<double>& scale) {
  return lowering.DeferredConstant(
      plan.WeightFloats() * static_cast<int64_t>(sizeof(float)),
      [plan, scale, values = lowering.folded().View(weights)](std::byte* to) {
        PackWinogradWeights(plan, values, scale, reinterpret_cast<float*>(to));
      });
}

Place Bias(Lowering& lowering, const WinogradPlan& plan, const std::vector<double>& bias) {
  return OwnVector(lowering, bias, plan.OutputVectors() * plan.isa->lanes);
}

absl::Status EmitWinograd(Lowering& lowering, const Group& group, size_t count,
                          const Epilogue& epilogue, const NativePostOps& post_ops,
                          WinogradPlan plan) {
  const Node& node = lowering.graph().node(group.nodes[0]);
  const ValueId result = ResultOf(group, count);
  const auto [src_layout, dst_layout] =
      OwnLayouts(lowering, node.inputs[0], result, epilogue.residual.has_value(), plan.isa->lanes);
  const Order order = OrderOf(lowering.shape(node.inputs[1]));
  plan.problem.src = StridesOf(src_layout, order, plan.isa->lanes);
  plan.problem.dst = StridesOf(dst_layout, order, plan.isa->lanes);
  CutIntoTiles(plan, lowering.options().threads);
  WinogradKernel::Operands operands;
  operands.src = lowering.In(node.inputs[0], src_layout);
  operands.weights = Weights(lowering, plan, node.inputs[1], epilogue.scale);
  operands.bias = Bias(lowering, plan, epilogue.bias);
  if (epilogue.residual.has_value())
    operands.residual = lowering.In(*epilogue.residual, dst_layout);
  operands.dst = lowering.Allocate(result, dst_layout);
  std::vector<Place> touched = {operands.src, operands.weights, operands.bias, operands.dst};
  std::optional<std::pair<Place, Place>> in_place;
  if (operands.residual.has_value()) {
    touched.push_back(*operands.residual);
    if (operands.residual->buffer != operands.src.buffer)
      in_place = {operands.dst, *operands.residual};
  }
  const std::string name = Cat(kNativeWinograd, TileName(*plan.transforms), ":", plan.isa->name);
  const int64_t scratch = plan.ScratchBytes();
  lowering.Emit(NodesOf(group, count), name,
                std::make_unique<WinogradKernel>(std::move(plan), post_ops, std::move(operands)),
                touched, scratch, in_place);
  return LowerRest(lowering, group, count);
}

}  // namespace

const WinogradIsa* WinogradIsaHere() { return NativeKernelsHere(&WinogradAvx2, &WinogradAvx512); }

std::vector<std::string> WinogradAlgorithms(const Graph& graph, int32_t node, Numerics numerics) {
  std::vector<std::string> names;
  for (const WinogradPlan& plan : Fitting(graph, node, numerics))
    names.push_back(Cat(kNativeWinograd, TileName(*plan.transforms)));
  return names;
}

absl::StatusOr<bool> LowerWinograd(Lowering& lowering, const Group& group,
                                   const std::string& name) {
  const Graph& graph = lowering.graph();
  const int32_t root = group.nodes[0];
  const Node& node = graph.node(root);
  for (size_t k = 1; k < node.inputs.size(); ++k) {
    if (!lowering.folded().IsConstant(node.inputs[k])) return false;
  }
  for (WinogradPlan& plan : Fitting(graph, root, lowering.options().numerics)) {
    if (Cat(kNativeWinograd, TileName(*plan.transforms)) != name) continue;
    for (size_t count = group.post_ops.size() + 1; count-- > 0;) {
      const std::optional<Epilogue> epilogue =
          MakeEpilogue(lowering, group, count, plan.problem.channels_out, Kernels::kNative);
      const std::optional<NativePostOps> post_ops =
          epilogue.has_value() ? NativePostOpsOf(*epilogue) : std::nullopt;
      if (!post_ops.has_value()) continue;
      MENDEL_RETURN_IF_ERROR(
          EmitWinograd(lowering, group, count, *epilogue, *post_ops, std::move(plan)));
      return true;
    }
  }
  return false;
}

}  // namespace mendel::cpu
