// Convolutions that read a window of positions by own direct kernels: which nodes, in which
// layouts.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/cpu/kernels/direct_conv.h"
#include "kernels/cpu/kernels/grouped.h"
#include "kernels/cpu/lowering/direct_emit.h"
#include "kernels/cpu/lowering/lower_direct.h"
#include "kernels/cpu/lowering/native_lowering.h"
#include "kernels/cpu/lowering/native_post_ops.h"

namespace mendel::cpu {
namespace {

/// `Plan`: GroupedPlan or DirectConvPlan.
template <class Plan, void (*kRun)(const Plan&, const float*, const float*, const WinogradEpilogue&,
                                   float*, float*)>
class WindowKernel : public Kernel {
 public:
  WindowKernel(Plan plan, NativePostOps post_ops, DirectOperands operands)
      : plan_(std::move(plan)), post_ops_(post_ops), operands_(std::move(operands)) {}

  absl::Status Run(const Bindings& bindings) override {
    kRun(plan_, bindings.At<const float>(operands_.src),
         bindings.At<const float>(operands_.weights),
         post_ops_.At(bindings, operands_.bias, operands_.residual),
         bindings.At<float>(operands_.dst), reinterpret_cast<float*>(bindings.scratch));
    return absl::OkStatus();
  }

 private:
  Plan plan_;
  NativePostOps post_ops_;
  DirectOperands operands_;
};

/// Rows of taps: all dimensions but the last.
bool RowsFit(const Graph& graph, const Node& node) {
  const Shape& weights = graph.type(node.inputs[1]).shape;
  return NumElements(Shape(weights.begin() + 2, weights.end() - 1)) <= kMostTapRows;
}

bool IsGrouped(const Graph& graph, const Node& node, int64_t lanes) {
  const int64_t inputs = graph.type(node.inputs[0]).shape[1];
  const int64_t group = node.attrs.Int("group");
  return group > 1 && inputs == node.outputs[0].shape[1] && GroupsFit(inputs / group, lanes);
}

/// Fewer channels would leave most of a vector empty.
bool IsDirect(const Graph& graph, const Node& node, int64_t lanes) {
  const int64_t inputs = graph.type(node.inputs[0]).shape[1];
  return node.attrs.Int("group") == 1 && inputs >= lanes && node.outputs[0].shape[1] >= lanes;
}

/// Extents and strides of a plan.
template <class Plan>
std::pair<Layout, Layout> Describe(Lowering& lowering, const Group& group, const NativeFused& fused,
                                   Plan& plan) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.node(group.nodes[0]);
  const int64_t lanes = plan.isa->lanes;
  auto layouts = OwnLayouts(lowering, node.inputs[0], ResultOf(group, fused.count),
                            fused.epilogue.residual.has_value(), lanes);
  plan.batch = node.outputs[0].shape[0];
  plan.src = OwnStrides(layouts.first, graph.type(node.inputs[0]).shape, lanes);
  plan.dst = OwnStrides(layouts.second, node.outputs[0].shape, lanes);
  DescribeWindow(graph, node, plan);
  return layouts;
}

/// Packs the weights with `pack` and emits the step.
template <auto kRun, class Plan, class Pack>
absl::Status EmitWindow(Lowering& lowering, const Group& group, const NativeFused& fused,
                        std::string_view name, Plan plan, const std::pair<Layout, Layout>& layouts,
                        Pack* pack) {
  const Node& node = lowering.graph().node(group.nodes[0]);
  DirectOperands operands = PrepareDirect(lowering, group, fused, layouts.first, layouts.second,
                                          node.outputs[0].shape[1], plan.isa->lanes);
  operands.weights = lowering.DeferredConstant(
      plan.WeightFloats() * static_cast<int64_t>(sizeof(float)),
      [plan, scale = fused.epilogue.scale, pack, values = lowering.folded().View(node.inputs[1])](
          std::byte* to) { pack(plan, values, scale, reinterpret_cast<float*>(to)); });
  return EmitDirect<WindowKernel<Plan, kRun>>(lowering, group, fused, name, std::move(plan),
                                              std::move(operands));
}

}  // namespace

std::vector<std::string> WindowAlgorithms(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  const bool known =
      node.op->name == "Conv" && IsDirectF32(graph, node) && node.outputs[0].shape.size() <= 5;
  if (!known || !RowsFit(graph, node)) return {};
  const int64_t lanes = DirectIsaHere()->lanes;
  if (IsGrouped(graph, node, lanes)) return {std::string(kNativeGrouped)};
  if (IsDirect(graph, node, lanes)) return {std::string(kNativeDirect)};
  return {};
}

absl::StatusOr<bool> LowerWindow(Lowering& lowering, const Group& group, const std::string& name) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.node(group.nodes[0]);
  const std::optional<NativeFused> fused = NativeFuse(lowering, group, node.outputs[0].shape[1]);
  if (!fused.has_value()) return false;
  const int threads = lowering.options().threads;
  if (name == kNativeGrouped) {
    GroupedPlan plan;
    plan.isa = DirectIsaHere();
    plan.channels = node.outputs[0].shape[1];
    plan.inputs = graph.type(node.inputs[1]).shape[1];
    const auto layouts = Describe(lowering, group, *fused, plan);
    CutGrouped(plan, threads);
    MENDEL_RETURN_IF_ERROR(EmitWindow<&RunGrouped>(lowering, group, *fused, name, std::move(plan),
                                                   layouts, PackGroupedWeights));
    return true;
  }
  DirectConvPlan plan;
  plan.isa = DirectIsaHere();
  plan.channels_in = graph.type(node.inputs[0]).shape[1];
  plan.channels_out = node.outputs[0].shape[1];
  const auto layouts = Describe(lowering, group, *fused, plan);
  CutDirectConv(plan, threads);
  MENDEL_RETURN_IF_ERROR(EmitWindow<&RunDirectConv>(lowering, group, *fused, name, std::move(plan),
                                                    layouts, PackDirectConvWeights));
  return true;
}

}  // namespace mendel::cpu
