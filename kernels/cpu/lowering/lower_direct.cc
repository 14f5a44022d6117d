// Conv, ConvTranspose and MatMul by the direct kernels: which nodes, in which layouts, and the
// operations fused to them.
#include "kernels/cpu/lowering/lower_direct.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/status.h"
#include "kernels/cpu/kernels/pointwise.h"
#include "kernels/cpu/kernels/strassen.h"
#include "kernels/cpu/lowering/contraction.h"
#include "kernels/cpu/lowering/direct_emit.h"
#include "kernels/cpu/lowering/native_lowering.h"
#include "kernels/cpu/lowering/native_post_ops.h"

namespace mendel::cpu {
namespace {

/// `Plan`: PointwisePlan or StrassenPlan.
template <class Plan,
          void (*kRun)(const Plan&, const PointwiseOperands&, const WinogradEpilogue&, float*)>
class ProductKernel : public Kernel {
 public:
  ProductKernel(Plan plan, NativePostOps post_ops, DirectOperands operands)
      : plan_(std::move(plan)), post_ops_(post_ops), operands_(std::move(operands)) {}

  absl::Status Run(const Bindings& bindings) override {
    PointwiseInput input{};
    if (operands_.factor.has_value()) {
      input.factor = bindings.At<const float>(*operands_.factor);
      if (operands_.summand.has_value())
        input.summand = bindings.At<const float>(*operands_.summand);
      input.floor = operands_.floor;
    }
    const PointwiseOperands operands{bindings.At<const float>(operands_.src),
                                     bindings.At<const float>(operands_.weights), &input,
                                     bindings.At<float>(operands_.dst)};
    kRun(plan_, operands, post_ops_.At(bindings, operands_.bias, operands_.residual),
         reinterpret_cast<float*>(bindings.scratch));
    return absl::OkStatus();
  }

 private:
  Plan plan_;
  NativePostOps post_ops_;
  DirectOperands operands_;
};

bool IsConvolution(const Node& node) {
  return node.op->name == "Conv" || node.op->name == "ConvTranspose";
}

/// A transposed convolution is a product when the outputs of neighboring positions touch but do
/// not overlap.
bool IsPointwiseConv(const Graph& graph, const Node& node) {
  const Shape& src = graph.type(node.inputs[0]).shape;
  const Shape& dst = node.outputs[0].shape;
  const Shape& weights = graph.type(node.inputs[1]).shape;
  if (src.size() > 5 || node.attrs.Int("group") != 1) return false;
  for (int64_t pad : node.attrs.IntList("pads")) {
    if (pad != 0) return false;
  }
  const bool transposed = node.op->name == "ConvTranspose";
  for (size_t d = 2; d < src.size(); ++d) {
    const int64_t stride = node.attrs.IntList("strides")[d - 2];
    if (!transposed && weights[d] != 1) return false;
    if (!transposed) continue;
    const bool touches = weights[d] == stride && node.attrs.IntList("dilations")[d - 2] == 1 &&
                         dst[d] == src[d] * stride;
    if (!touches) return false;
  }
  return true;
}

/// One flat product: rows of the left side times one matrix.
bool IsFlatProduct(const Graph& graph, const Node& node) {
  const Shape& left = graph.type(node.inputs[0]).shape;
  const Shape& right = graph.type(node.inputs[1]).shape;
  if (left.size() < 2 || right.size() < 2) return false;
  return NumElements(Shape(right.begin(), right.end() - 2)) == 1 && left.size() >= right.size();
}

/// True when some input of the graph has an influence: these kernels want constant weights.
bool DependsOnInput(const Graph& graph, int32_t id, std::set<int32_t>& seen) {
  if (IsInput(graph.node(id))) return true;
  if (!seen.insert(id).second) return false;
  for (ValueId input : graph.node(id).inputs) {
    if (DependsOnInput(graph, input.node, seen)) return true;
  }
  return false;
}

bool IsPointwise(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  if (node.op->name == "MatMul") return IsDirectF32(graph, node) && IsFlatProduct(graph, node);
  return IsConvolution(node) && IsDirectF32(graph, node) && IsPointwiseConv(graph, node);
}

/// A Conv's [out, in, 1...], a ConvTranspose's [in, out, phases...] or a MatMul's [in, out]
/// weights.
WeightMatrix MatrixOf(std::string_view op, const WeightView& values, int64_t in, int64_t out,
                      int64_t phases) {
  if (op == "Conv") return {values, 0, in, 1};
  return {values, 1, phases, out * phases};
}

/// Positions and strides of a convolution; of a transposed one the phases, too.
void DescribeConv(const Graph& graph, const Node& node, PointwisePlan& plan) {
  const Shape& src = graph.type(node.inputs[0]).shape;
  const Shape& dst = node.outputs[0].shape;
  const bool transposed = node.op->name == "ConvTranspose";
  plan.batch = dst[0];
  plan.channels_in = src[1];
  plan.channels_out = dst[1];
  for (size_t d = 2; d < src.size(); ++d) {
    const size_t at = OwnDim(src, d - 2);
    const int64_t stride = node.attrs.IntList("strides")[d - 2];
    const int64_t step = plan.dst.d[at];
    plan.extent[at] = transposed ? src[d] : dst[d];
    if (!transposed) {
      plan.src.d[at] *= stride;
      continue;
    }
    plan.dst.d[at] *= stride;
    std::vector<int64_t> phases;
    for (const int64_t phase : plan.phases) {
      for (int64_t k = 0; k < stride; ++k) phases.push_back(phase + k * step);
    }
    plan.phases = std::move(phases);
  }
}

/// Packs the weights with `pack` and emits the step.
template <auto kRun, class Plan, class Pack>
absl::Status EmitProduct(Lowering& lowering, const Group& group, const NativeFused& fused,
                         std::string_view name, Plan plan, DirectOperands operands,
                         const PointwisePlan& product, Pack* pack) {
  const Node& node = lowering.graph().node(group.nodes[0]);
  const WeightMatrix weights =
      MatrixOf(node.op->name, lowering.folded().View(node.inputs[1]), product.channels_in,
               product.channels_out, static_cast<int64_t>(product.phases.size()));
  operands.weights =
      lowering.DeferredConstant(plan.WeightFloats() * static_cast<int64_t>(sizeof(float)),
                                [plan, weights, scale = fused.epilogue.scale, pack](std::byte* to) {
                                  pack(plan, weights, scale, reinterpret_cast<float*>(to));
                                });
  return EmitDirect<ProductKernel<Plan, kRun>>(lowering, group, fused, name, std::move(plan),
                                               std::move(operands));
}

absl::StatusOr<bool> LowerPointwise(Lowering& lowering, const Group& group,
                                    const std::string& name) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.node(group.nodes[0]);
  const Shape& src = graph.type(node.inputs[0]).shape;
  const bool product = node.op->name == "MatMul";
  PointwisePlan plan;
  plan.isa = DirectIsaHere();
  const int64_t lanes = plan.isa->lanes;
  const std::optional<NativeFused> fused = NativeFuse(
      lowering, group, product ? node.outputs[0].shape.back() : node.outputs[0].shape[1]);
  if (!fused.has_value()) return false;
  DirectOperands operands;
  if (product) {
    plan.channels_in = src.back();
    plan.channels_out = node.outputs[0].shape.back();
    plan.extent[2] = NumElements(src) / src.back();
    plan.src = {0, lanes, {0, 0, plan.channels_in}};
    plan.dst = {0, lanes, {0, 0, plan.channels_out}};
    operands = PrepareDirect(lowering, group, *fused, PlainLayout(src),
                             PlainLayout(node.outputs[0].shape), plan.channels_out, lanes);
  } else {
    const auto [from, to] =
        OwnLayouts(lowering, SourceOf(lowering, group), ResultOf(group, fused->count),
                   fused->epilogue.residual.has_value(), lanes,
                   /*parts=*/true);
    plan.src = OwnStrides(from, src, lanes);
    plan.dst = OwnStrides(to, src, lanes);
    plan.padded = to.block_dim == 1;
    plan.gated = group.prepared.has_value() && group.prepared->gate.has_value();
    plan.prepared = group.prepared.has_value() && !plan.gated;
    if (plan.prepared && group.prepared->relu) plan.floor = 0;
    DescribeConv(graph, node, plan);
    operands = PrepareDirect(lowering, group, *fused, from, to, plan.channels_out, lanes);
  }
  CutPointwise(plan, lowering.options().threads);
  operands.floor = plan.floor;
  if (name == kNativeStrassen) {
    StrassenPlan strassen = CutStrassen(plan);
    MENDEL_RETURN_IF_ERROR(EmitProduct<&RunStrassen>(lowering, group, *fused, name,
                                                     std::move(strassen), std::move(operands), plan,
                                                     PackStrassenWeights));
  } else {
    MENDEL_RETURN_IF_ERROR(EmitProduct<&RunPointwise>(
        lowering, group, *fused, name, plan, std::move(operands), plan, PackPointwiseWeights));
  }
  return true;
}

}  // namespace

bool DependsOnInput(const Graph& graph, int32_t node) {
  std::set<int32_t> seen;
  return DependsOnInput(graph, node, seen);
}

bool HasConstantWeights(const Graph& graph, const Node& node) {
  std::set<int32_t> seen;
  for (size_t k = 1; k < node.inputs.size(); ++k) {
    if (DependsOnInput(graph, node.inputs[k].node, seen)) return false;
  }
  return true;
}

std::vector<std::string> DirectAlgorithms(const Graph& graph, int32_t node) {
  const DirectIsa* isa = DirectIsaHere();
  if (isa == nullptr) return {};
  const bool contraction = IsConvolution(graph.node(node)) || graph.node(node).op->name == "MatMul";
  if (!contraction || !HasConstantWeights(graph, graph.node(node))) return {};
  if (IsPointwise(graph, node)) return {std::string(kNativePointwise)};
  return WindowAlgorithms(graph, node);
}

std::vector<std::string> StrassenAlgorithms(const Graph& graph, int32_t id) {
  // Smaller products lose more by the sums than they gain. So do 1x1 convolutions, for which
  // oneDNN's kernels are nearer to the peak.
  constexpr int64_t kFewestInputs = 512, kFewestOutputs = 192, kFewestPositions = 32;
  const std::vector<std::string> direct = DirectAlgorithms(graph, id);
  const Node& node = graph.node(id);
  if (direct.empty() || direct[0] != kNativePointwise || node.op->name != "MatMul") return {};
  const Shape& dst = node.outputs[0].shape;
  const int64_t in = graph.type(node.inputs[0]).shape.back(), out = dst.back();
  if (in < kFewestInputs || out < kFewestOutputs || NumElements(dst) / out < kFewestPositions)
    return {};
  return {std::string(kNativeStrassen)};
}

absl::StatusOr<bool> LowerDirect(Lowering& lowering, const Group& group, const std::string& name) {
  const int32_t root = group.nodes[0];
  const bool strassen = name == kNativeStrassen && lowering.options().numerics != Numerics::kStrict;
  const std::vector<std::string> names = strassen ? StrassenAlgorithms(lowering.graph(), root)
                                                  : DirectAlgorithms(lowering.graph(), root);
  if (names.empty() || names[0] != name) return false;
  if (name == kNativePointwise || name == kNativeStrassen)
    return LowerPointwise(lowering, group, name);
  return LowerWindow(lowering, group, name);
}

}  // namespace mendel::cpu
