// Softmax, LogSoftmax and LayerNormalization by oneDNN. Native kernels: softmax of other axes than
// the last, which oneDNN computes one element at a time; LayerNormalization with parameters that
// are broadcast otherwise; LRN.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/cpu/kernels/lines.h"
#include "kernels/cpu/kernels/lrn.h"
#include "kernels/cpu/kernels/moments.h"
#include "kernels/cpu/kernels/typed.h"
#include "kernels/cpu/lowering/lower.h"
#include "kernels/cpu/simd/unroll.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

using dnnl::memory;

constexpr size_t kVectorBytes = 16;  // what every machine has
#include "kernels/cpu/simd/lane_moments.inc"

template <class Descriptor>
void EmitPrimitive(Lowering& lowering, int32_t id, const Descriptor& chosen,
                   std::vector<PrimitiveArgument> arguments,
                   std::optional<std::pair<Place, Place>> in_place) {
  std::vector<Place> touched;
  for (const PrimitiveArgument& argument : arguments) touched.push_back(argument.place);
  lowering.Emit({id}, chosen.impl_info_str(),
                MakePrimitiveKernel(chosen, std::move(arguments), chosen.scratchpad_desc()),
                touched, static_cast<int64_t>(chosen.scratchpad_desc().get_size()),
                std::move(in_place));
}

}  // namespace

absl::StatusOr<bool> LowerSoftmax(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const ValueId input = node.inputs[0];
  const Shape& shape = lowering.shape(input);
  if (lowering.type(input).dtype != DType::kF32 || shape.empty()) return false;
  const int64_t axis = node.attrs.Int("axis");
  const Lines lines = {DType::kF32, NumElements(Shape(shape.begin(), shape.begin() + axis)),
                       shape[static_cast<size_t>(axis)],
                       NumElements(Shape(shape.begin() + axis + 1, shape.end()))};
  if (lines.inner > 1) {
    const Place from = lowering.Plain(input);
    const Place to = lowering.Allocate({id, 0}, PlainLayout(shape));
    lowering.Emit({id}, "softmax lines",
                  MakeSoftmaxKernel(lines, from, to, node.op->name == "LogSoftmax"), {from, to}, 0,
                  std::pair{to, from});
    return true;
  }
  const auto way =
      node.op->name == "Softmax" ? dnnl::algorithm::softmax_accurate : dnnl::algorithm::softmax_log;
  const memory::desc desc = DescOf(shape, PlainLayout(shape));
  const dnnl::softmax_v2_forward::primitive_desc chosen(
      dnnl::softmax_v2_forward::desc(dnnl::prop_kind::forward_inference, way, desc, desc,
                                     static_cast<int>(axis)),
      UserScratchpad(), Engine());
  const Place from = lowering.Plain(input);
  const Place to = lowering.Allocate({id, 0}, PlainLayout(shape));
  EmitPrimitive(lowering, id, chosen, {{DNNL_ARG_SRC, desc, from}, {DNNL_ARG_DST, desc, to}},
                std::pair{to, from});
  return true;
}

namespace {

/// Rows of which scale and bias are broadcast in any way; row-major.
class LayerNormKernel : public Kernel {
 public:
  /// `parameters`: scale, and perhaps bias, with their strides along the dimensions of `shape`.
  LayerNormKernel(Shape shape, int64_t count, double epsilon, Place from, Place to,
                  std::vector<std::pair<Place, Shape>> parameters)
      : shape_(std::move(shape)),
        count_(count),
        epsilon_(epsilon),
        from_(std::move(from)),
        to_(std::move(to)),
        parameters_(std::move(parameters)) {}

  absl::Status Run(const Bindings& bindings) override {
    const float* scale = bindings.At<float>(parameters_[0].first);
    const float* bias = parameters_.size() > 1 ? bindings.At<float>(parameters_[1].first) : nullptr;
    ParallelRange(NumElements(shape_) / count_, GrainOf(4 * count_),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t row = begin; row < end; ++row) {
                      const float* x = bindings.At<float>(from_) + row * count_;
                      float* y = bindings.At<float>(to_) + row * count_;
                      const Moments moments = MomentsOfRow(x, count_);
                      const double factor =
                          1 / std::sqrt(moments.squares / static_cast<double>(count_) + epsilon_);
                      for (int64_t k = 0; k < count_; ++k) {
                        double value = (static_cast<double>(x[k]) - moments.mean) * factor;
                        value *= static_cast<double>(
                            scale[OffsetOf(shape_, parameters_[0].second, row * count_ + k)]);
                        if (bias != nullptr)
                          value += static_cast<double>(
                              bias[OffsetOf(shape_, parameters_[1].second, row * count_ + k)]);
                        y[k] = static_cast<float>(value);
                      }
                    }
                  });
    return absl::OkStatus();
  }

 private:
  Shape shape_;
  int64_t count_;
  double epsilon_;
  Place from_, to_;
  std::vector<std::pair<Place, Shape>> parameters_;
};

void EmitLayerNorm(Lowering& lowering, int32_t id, int64_t count) {
  const Node& node = lowering.graph().node(id);
  const Shape& shape = lowering.shape(node.inputs[0]);
  const Place from = lowering.Plain(node.inputs[0]);
  std::vector<std::pair<Place, Shape>> parameters;
  std::vector<Place> touched = {from};
  for (size_t k = 1; k < node.inputs.size(); ++k) {
    const Shape& own = lowering.shape(node.inputs[k]);
    const Shape dense = RowMajorStrides(own);
    Shape strides(shape.size(), 0);
    for (size_t d = 0; d < own.size(); ++d) {
      if (own[d] != 1) strides[shape.size() - own.size() + d] = dense[d];
    }
    parameters.emplace_back(lowering.Plain(node.inputs[k]), strides);
    touched.push_back(parameters.back().first);
  }
  const Place to = lowering.Allocate({id, 0}, PlainLayout(shape));
  touched.push_back(to);
  lowering.Emit({id}, "layer norm",
                std::make_unique<LayerNormKernel>(shape, count, node.attrs.Float("epsilon"), from,
                                                  to, std::move(parameters)),
                touched);
}

}  // namespace

absl::StatusOr<bool> LowerLayerNorm(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const ValueId input = node.inputs[0];
  const Shape& shape = lowering.shape(input);
  const size_t axis = static_cast<size_t>(node.attrs.Int("axis"));
  if (lowering.type(input).dtype != DType::kF32 || axis >= shape.size()) return false;
  const Shape normalized(shape.begin() + static_cast<int64_t>(axis), shape.end());
  const int64_t count = NumElements(normalized);
  for (size_t k = 1; k < node.inputs.size(); ++k) {
    // One element a normalized position; leading ones do not matter.
    Shape own = lowering.shape(node.inputs[k]);
    while (own.size() > normalized.size() && own.front() == 1) own.erase(own.begin());
    if (own != normalized) {
      EmitLayerNorm(lowering, id, count);
      return true;
    }
  }
  const memory::desc desc({NumElements(shape) / count, count}, memory::data_type::f32,
                          memory::format_tag::ab);
  const memory::desc vector({count}, memory::data_type::f32, memory::format_tag::a);
  auto flags = dnnl::normalization_flags::use_scale;
  if (node.inputs.size() > 2) flags |= dnnl::normalization_flags::use_shift;
  const dnnl::layer_normalization_forward::primitive_desc chosen(
      dnnl::layer_normalization_forward::desc(dnnl::prop_kind::forward_inference, desc,
                                              static_cast<float>(node.attrs.Float("epsilon")),
                                              flags),
      UserScratchpad(), Engine());
  const Place from = lowering.Plain(input);
  std::vector<PrimitiveArgument> arguments = {
      {DNNL_ARG_SRC, desc, from}, {DNNL_ARG_SCALE, vector, lowering.Plain(node.inputs[1])}};
  if (node.inputs.size() > 2)
    arguments.push_back({DNNL_ARG_SHIFT, vector, lowering.Plain(node.inputs[2])});
  const Place to = lowering.Allocate({id, 0}, PlainLayout(shape));
  arguments.push_back({DNNL_ARG_DST, desc, to});
  EmitPrimitive(lowering, id, chosen, std::move(arguments), std::nullopt);
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
