// Softmax, LogSoftmax and LayerNormalization by oneDNN; LRN.

#include <cstring>
#include <utility>

#include "base/status.h"
#include "kernels/cpu/lower.h"
#include "kernels/cpu/lrn.h"

namespace mendel::cpu {
namespace {

using dnnl::memory;

template <class Descriptor>
void EmitPrimitive(Lowering& lowering, int32_t id, dnnl::primitive primitive, const Descriptor& chosen,
                   std::vector<PrimitiveArgument> arguments, std::optional<std::pair<Place, Place>> in_place) {
  std::vector<Place> touched;
  for (const PrimitiveArgument& argument : arguments) touched.push_back(argument.place);
  lowering.Emit({id}, chosen.impl_info_str(),
                MakePrimitiveKernel(std::move(primitive), std::move(arguments), chosen.scratchpad_desc()), touched,
                static_cast<int64_t>(chosen.scratchpad_desc().get_size()), std::move(in_place));
}

}  // namespace

absl::StatusOr<bool> LowerSoftmax(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const ValueId input = node.inputs[0];
  const Shape& shape = lowering.shape(input);
  if (lowering.type(input).dtype != DType::kF32 || shape.empty()) return false;
  const auto way = node.op->name == "Softmax" ? dnnl::algorithm::softmax_accurate : dnnl::algorithm::softmax_log;
  const memory::desc desc = DescOf(shape, PlainLayout(shape));
  const dnnl::softmax_v2_forward::primitive_desc chosen(
      dnnl::softmax_v2_forward::desc(dnnl::prop_kind::forward_inference, way, desc, desc, static_cast<int>(node.attrs.Int("axis"))),
      UserScratchpad(), Engine());
  const Place from = lowering.Plain(input);
  const Place to = lowering.Allocate({id, 0}, PlainLayout(shape));
  EmitPrimitive(lowering, id, dnnl::softmax_v2_forward(chosen), chosen, {{DNNL_ARG_SRC, desc, from}, {DNNL_ARG_DST, desc, to}},
                std::pair{to, from});
  return true;
}

absl::StatusOr<bool> LowerLayerNorm(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const ValueId input = node.inputs[0];
  const Shape& shape = lowering.shape(input);
  const size_t axis = static_cast<size_t>(node.attrs.Int("axis"));
  if (lowering.type(input).dtype != DType::kF32 || axis >= shape.size()) return false;
  const Shape normalised(shape.begin() + static_cast<int64_t>(axis), shape.end());
  const int64_t count = NumElements(normalised);
  for (size_t k = 1; k < node.inputs.size(); ++k) {
    // One element a normalised position; leading ones do not matter.
    Shape own = lowering.shape(node.inputs[k]);
    while (own.size() > normalised.size() && own.front() == 1) own.erase(own.begin());
    if (own != normalised) return false;
  }
  const memory::desc desc({NumElements(shape) / count, count}, memory::data_type::f32, memory::format_tag::ab);
  const memory::desc vector({count}, memory::data_type::f32, memory::format_tag::a);
  auto flags = dnnl::normalization_flags::use_scale;
  if (node.inputs.size() > 2) flags |= dnnl::normalization_flags::use_shift;
  const dnnl::layer_normalization_forward::primitive_desc chosen(
      dnnl::layer_normalization_forward::desc(dnnl::prop_kind::forward_inference, desc,
                                              static_cast<float>(node.attrs.Float("epsilon")), flags),
      UserScratchpad(), Engine());
  const Place from = lowering.Plain(input);
  std::vector<PrimitiveArgument> arguments = {{DNNL_ARG_SRC, desc, from}, {DNNL_ARG_SCALE, vector, lowering.Plain(node.inputs[1])}};
  if (node.inputs.size() > 2) arguments.push_back({DNNL_ARG_SHIFT, vector, lowering.Plain(node.inputs[2])});
  const Place to = lowering.Allocate({id, 0}, PlainLayout(shape));
  arguments.push_back({DNNL_ARG_DST, desc, to});
  EmitPrimitive(lowering, id, dnnl::layer_normalization_forward(chosen), chosen, std::move(arguments), std::nullopt);
  return true;
}

absl::StatusOr<bool> LowerLrn(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const Shape& shape = lowering.shape(node.inputs[0]);
  if (lowering.type(node.inputs[0]).dtype != DType::kF32) return false;
  LrnProblem problem;
  problem.from = lowering.Plain(node.inputs[0]);
  problem.to = lowering.Allocate({id, 0}, PlainLayout(shape));
  problem.images = shape[0];
  problem.channels = shape[1];
  problem.plane = NumElements(Shape(shape.begin() + 2, shape.end()));
  problem.size = node.attrs.Int("size");
  problem.alpha = node.attrs.Float("alpha");
  problem.beta = node.attrs.Float("beta");
  problem.bias = node.attrs.Float("bias");
  lowering.Emit({id}, "lrn", MakeLrnKernel(problem), {problem.from, problem.to});
  return true;
}

}  // namespace mendel::cpu
