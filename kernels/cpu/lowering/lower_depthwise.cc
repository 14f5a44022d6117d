#include "kernels/cpu/lowering/lower_depthwise.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/status.h"
#include "kernels/cpu/kernels/depthwise.h"
#include "kernels/cpu/kernels/pointwise.h"
#include "kernels/cpu/lowering/contraction.h"
#include "kernels/cpu/lowering/lower_direct.h"
#include "kernels/cpu/lowering/native_lowering.h"

namespace mendel::cpu {
namespace {

struct DepthwisePlaces {
  Place src, weights, bias, dst;
  std::optional<Place> residual;
  std::optional<Place> product_weights, product_bias;
  std::optional<Place> means;

  std::vector<Place> Touched() const {
    std::vector<Place> touched = {src, weights, bias, dst};
    for (const std::optional<Place>& place : {residual, product_weights, product_bias, means}) {
      if (place.has_value()) touched.push_back(*place);
    }
    return touched;
  }
};

class DepthwiseKernel : public Kernel {
 public:
  DepthwiseKernel(DepthwisePlan plan, NativePostOps product, NativePostOps post_ops,
                  DepthwisePlaces places)
      : plan_(std::move(plan)),
        product_(product),
        post_ops_(post_ops),
        places_(std::move(places)) {}

  absl::Status Run(const Bindings& bindings) override {
    DepthwiseOperands operands;
    operands.src = bindings.At<const float>(places_.src);
    operands.weights = bindings.At<const float>(places_.weights);
    operands.dst = bindings.At<float>(places_.dst);
    if (places_.means.has_value()) operands.means = bindings.At<float>(*places_.means);
    WinogradEpilogue product{};
    if (places_.product_weights.has_value()) {
      operands.product_weights = bindings.At<const float>(*places_.product_weights);
      product = product_.At(bindings, *places_.product_bias, std::nullopt);
    }
    RunDepthwise(plan_, operands, product, post_ops_.At(bindings, places_.bias, places_.residual),
                 reinterpret_cast<float*>(bindings.scratch));
    return absl::OkStatus();
  }

 private:
  DepthwisePlan plan_;
  NativePostOps product_, post_ops_;
  DepthwisePlaces places_;
};

bool IsDepthwise(const Graph& graph, int32_t id) {
  constexpr int64_t kMostTaps = 64;  // in a column
  // Positions of the rows that one output row reads: 16 MB of four vectors.
  constexpr int64_t kMostHeld = int64_t{1} << 16;
  const Node& node = graph.node(id);
  if (node.op->name != "Conv" || node.outputs[0].dtype != DType::kF32 ||
      NumElements(node.outputs[0]) == 0)
    return false;
  const Shape& src = graph.type(node.inputs[0]).shape;
  const Shape& dst = node.outputs[0].shape;
  const Shape& weights = graph.type(node.inputs[1]).shape;
  if (src.size() < 3 || src.size() > 4 || NumElements(src) == 0 || NumElements(weights) == 0)
    return false;
  const int64_t group = node.attrs.Int("group");
  if (group < 2 || src[1] != group || dst[1] != group || weights[2] > kMostTaps) return false;
  const int64_t reach =
      src.size() == 3 ? 1 : (weights[2] - 1) * node.attrs.IntList("dilations")[0] + 1;
  const Ints& pads = node.attrs.IntList("pads");
  if (reach * (src.back() + pads[src.size() - 3]) > kMostHeld) return false;
  return std::all_of(pads.begin(), pads.end(), [](int64_t pad) { return pad >= 0; });
}

/// Returns the pointwise convolution without stride that computes the only value that `node` reads,
/// perhaps through elementwise nodes.
std::optional<int32_t> FindExpansion(const Graph& graph, const Node& node) {
  ValueId value = node.inputs[0];
  constexpr int kMostPostOps = 4;
  for (int k = 0; k <= kMostPostOps; ++k) {
    const Node& maker = graph.node(value.node);
    if (graph.IsOutput(value.node) || maker.outputs.size() != 1 || maker.inputs.empty())
      return std::nullopt;
    if (maker.op->name != "Conv") {
      value = maker.inputs[0];  // of a gate: its sigmoid or what that reads
      continue;
    }
    const std::vector<std::string> names = DirectAlgorithms(graph, value.node);
    const Ints& strides = maker.attrs.IntList("strides");
    const bool dense =
        std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride == 1; });
    if (names.empty() || names[0] != kNativePointwise || !dense) return std::nullopt;
    return value.node;
  }
  return std::nullopt;
}

/// True for the mean of each image and channel, in rows that the kernel sums.
bool IsMeanOfPositions(const Graph& graph, int32_t id) {
  constexpr int64_t kLongestRow = 1024;  // longer ones would be summed in f32 too far
  const Node& node = graph.node(id);
  if (node.op->name != "ReduceMean" || node.outputs[0].dtype != DType::kF32) return false;
  const Shape& shape = graph.type(node.inputs[0]).shape;
  const Ints& axes = node.attrs.IntList("axes");
  const std::set<int64_t> reduced(axes.begin(), axes.end());
  return reduced.size() + 2 == shape.size() && *reduced.begin() == 2 && shape.back() <= kLongestRow;
}

/// Geometry, without layouts.
DepthwisePlan PlanOf(const Graph& graph, const Node& node) {
  DepthwisePlan plan;
  plan.isa = DirectIsaHere();
  plan.batch = node.outputs[0].shape[0];
  plan.channels = node.outputs[0].shape[1];
  DescribeWindow(graph, node, plan);
  return plan;
}

Place PackedConstant(Lowering& lowering, int64_t floats, ValueId weights,
                     const std::function<void(const WeightView&, float*)>& pack) {
  return lowering.Constant("", floats * static_cast<int64_t>(sizeof(float)), [&](std::byte* to) {
    pack(lowering.folded().View(weights), reinterpret_cast<float*>(to));
  });
}

DepthwisePlan PlanIn(Lowering& lowering, const Group& group, ValueId source, const Layout& from,
                     ValueId result, const Layout& to) {
  DepthwisePlan plan = PlanOf(lowering.graph(), lowering.graph().node(group.nodes[0]));
  plan.src = OwnStrides(from, lowering.shape(source), plan.isa->lanes);
  plan.dst = OwnStrides(to, lowering.shape(result), plan.isa->lanes);
  plan.src_padded = from.block_dim == 1;
  plan.padded = to.block_dim == 1;
  plan.averaged = group.mean.has_value();
  if (!group.expansion.empty()) plan.inputs = lowering.shape(source)[1];
  CutDepthwise(plan, lowering.options().threads);
  return plan;
}

/// Places the constants of the first product; returns its post-ops.
NativePostOps PlaceProduct(Lowering& lowering, const Group& expansion, const DepthwisePlan& plan,
                           DepthwisePlaces& places) {
  const NativeFused expanded = *NativeFuse(lowering, expansion, plan.channels);
  places.product_weights = PackedConstant(
      lowering, plan.ProductWeightFloats(), lowering.graph().node(expansion.nodes[0]).inputs[1],
      [&](const WeightView& weights, float* at) {
        PackProductWeights(plan, weights, expanded.epilogue.scale, at);
      });
  places.product_bias =
      OwnVector(lowering, expanded.epilogue.bias, plan.Vectors() * plan.isa->lanes);
  return expanded.post_ops;
}

/// Returns the algorithm of this file that is chosen for the group and applies to it; "" when there
/// is none. Nodes in `taken` have no steps of their own.
std::string NamedAlgorithm(const Lowering& lowering, const std::set<int32_t>& taken,
                           const std::optional<Group>& group) {
  if (!group.has_value() || !group->contraction || taken.count(group->nodes[0]) != 0) return "";
  const auto named = lowering.options().algorithms.find(group->nodes[0]);
  if (named == lowering.options().algorithms.end()) return "";
  const std::vector<std::string> names = DepthwiseAlgorithms(lowering.graph(), group->nodes[0]);
  return std::find(names.begin(), names.end(), named->second) == names.end() ? "" : named->second;
}

}  // namespace

std::vector<std::string> DepthwiseAlgorithms(const Graph& graph, int32_t id) {
  if (DirectIsaHere() == nullptr || !IsDepthwise(graph, id) ||
      !HasConstantWeights(graph, graph.node(id)))
    return {};
  std::vector<std::string> names = {std::string(kNativeDepthwise)};
  if (FindExpansion(graph, graph.node(id)).has_value())
    names.emplace_back(kNativeExpandedDepthwise);
  return names;
}

std::set<int32_t> ClaimExpansions(Lowering& lowering, const std::set<int32_t>& taken,
                                  std::vector<std::optional<Group>>& groups) {
  const Graph& graph = lowering.graph();
  std::set<int32_t> claimed;
  for (std::optional<Group>& group : groups) {
    if (NamedAlgorithm(lowering, taken, group) != kNativeExpandedDepthwise) continue;
    const int32_t root = group->nodes[0];
    const ValueId input = graph.node(root).inputs[0];
    std::optional<Group>& maker = groups[static_cast<size_t>(input.node)];
    const bool alone = maker.has_value() && maker->contraction && maker->integer == nullptr &&
                       !maker->prepared.has_value() && maker->expansion.empty() &&
                       graph.OnlyUser(input.node) >= 0 && taken.count(maker->nodes[0]) == 0;
    if (!alone || maker->nodes[0] != FindExpansion(graph, graph.node(root))) continue;
    const std::optional<NativeFused> fused = NativeFuse(lowering, *maker, lowering.shape(input)[1]);
    if (!fused.has_value() || fused->count != maker->post_ops.size() ||
        fused->epilogue.residual.has_value())
      continue;
    claimed.insert(maker->nodes.begin(), maker->nodes.end());
    group->expansion.push_back(std::move(*maker));
    maker.reset();
  }
  return claimed;
}

std::set<int32_t> ClaimMeans(Lowering& lowering, const std::set<int32_t>& taken,
                             std::vector<std::optional<Group>>& groups) {
  const Graph& graph = lowering.graph();
  std::set<int32_t> claimed;
  for (std::optional<Group>& group : groups) {
    if (NamedAlgorithm(lowering, taken, group).empty()) continue;
    const std::optional<NativeFused> fused =
        NativeFuse(lowering, *group, lowering.shape({group->nodes[0], 0})[1]);
    if (!fused.has_value() || fused->count != group->post_ops.size()) continue;
    for (const int32_t user : graph.users(group->nodes.back())) {
      if (!IsMeanOfPositions(graph, user)) continue;
      group->mean = ValueId{user, 0};
      claimed.insert(user);
      break;
    }
  }
  return claimed;
}

absl::StatusOr<bool> LowerDepthwise(Lowering& lowering, const Group& group,
                                    const std::string& name) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.node(group.nodes[0]);
  const std::vector<std::string> names = DepthwiseAlgorithms(graph, group.nodes[0]);
  if (std::find(names.begin(), names.end(), name) == names.end()) return false;
  const std::optional<NativeFused> fused = NativeFuse(lowering, group, node.outputs[0].shape[1]);
  if (!fused.has_value()) return false;
  const Node* product =
      group.expansion.empty() ? nullptr : &graph.node(group.expansion[0].nodes[0]);
  const ValueId source = product == nullptr ? node.inputs[0] : product->inputs[0];
  const ValueId result = ResultOf(group, fused->count);
  const int64_t lanes = DirectIsaHere()->lanes;
  const auto [from, to] = OwnLayouts(lowering, source, result, fused->epilogue.residual.has_value(),
                                     lanes, /*parts=*/true);
  DepthwisePlan plan = PlanIn(lowering, group, source, from, result, to);
  DepthwisePlaces places;
  NativePostOps product_post_ops;
  places.src = lowering.In(source, from);
  if (product != nullptr)
    product_post_ops = PlaceProduct(lowering, group.expansion[0], plan, places);
  places.weights = PackedConstant(lowering, plan.WeightFloats(), node.inputs[1],
                                  [&](const WeightView& weights, float* at) {
                                    PackDepthwiseWeights(plan, weights, fused->epilogue.scale, at);
                                  });
  places.bias = OwnVector(lowering, fused->epilogue.bias, plan.Vectors() * lanes);
  if (fused->epilogue.residual.has_value())
    places.residual = lowering.In(*fused->epilogue.residual, to);
  places.dst = lowering.Allocate(result, to);
  if (plan.averaged)
    places.means = lowering.Allocate(*group.mean, PlainLayout(lowering.shape(*group.mean)));
  std::vector<int32_t> nodes = NodesOf(group, fused->count);
  if (product != nullptr)
    nodes.insert(nodes.end(), group.expansion[0].nodes.begin(), group.expansion[0].nodes.end());
  if (plan.averaged) nodes.push_back(group.mean->node);
  std::sort(nodes.begin(), nodes.end());
  const int64_t scratch = plan.ScratchBytes();
  const std::string full =
      Cat(product == nullptr ? kNativeDepthwise : kNativeExpandedDepthwise, ":", plan.isa->name);
  lowering.Emit(
      nodes, full,
      std::make_unique<DepthwiseKernel>(std::move(plan), product_post_ops, fused->post_ops, places),
      places.Touched(), scratch);
  MENDEL_RETURN_IF_ERROR(LowerRest(lowering, group, fused->count));
  return true;
}

}  // namespace mendel::cpu
