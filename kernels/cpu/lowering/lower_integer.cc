#include "kernels/cpu/lowering/lower_integer.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "kernels/cpu/lowering/conv_problem.h"

namespace mendel::cpu {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using Type = memory::data_type;

Type TypeOf(DType dtype) {
  if (dtype == DType::kU8) return Type::u8;
  return dtype == DType::kI8 ? Type::s8 : Type::f32;
}

memory::desc Rows(const memory::dims& dims, Type type) {
  return {dims, type, memory::dims(RowMajorStrides(dims))};
}

dnnl::primitive_attr AttributesOf(const IntegerProduct& product, int channel_dim) {
  dnnl::primitive_attr attributes = UserScratchpad();
  attributes.set_output_scales(1 << channel_dim, product.scale);
  if (product.runtime_zero.has_value()) {
    attributes.set_zero_points(DNNL_ARG_SRC, 0, {DNNL_RUNTIME_S32_VAL});
  } else if (product.source_zero != 0) {
    attributes.set_zero_points(DNNL_ARG_SRC, 0, {product.source_zero});
  }
  if (product.result_zero != 0) attributes.set_zero_points(DNNL_ARG_DST, 0, {product.result_zero});
  dnnl::post_ops operations;
  for (const Activation& activation : product.activations)
    operations.append_eltwise(1, activation.algorithm, activation.alpha, activation.beta);
  if (product.rounds) operations.append_eltwise(1, algorithm::eltwise_round, 0, 0);
  attributes.set_post_ops(operations);
  return attributes;
}

/// Dimensions of a product of two matrices: those of the left operand's batch are its rows.
struct Matrices {
  memory::dims left, right, out;
};
Matrices MatricesOf(const Graph& graph, int32_t root) {
  const Shape& right = graph.type(graph.node(root).inputs[1]).shape;
  const int64_t rows = NumElements(graph.node(root).outputs[0]) / right[1];
  return {{rows, right[0]}, {right[0], right[1]}, {rows, right[1]}};
}

memory::desc StoredWeights(const Graph& graph, int32_t root) {
  if (graph.node(root).op->name == "MatMul") return Rows(MatricesOf(graph, root).right, Type::s8);
  const ConvProblem problem = ProblemOf(graph, root);
  return {problem.weights, Type::s8, problem.weight_strides};
}

Place Floats(Lowering& lowering, const std::vector<float>& values) {
  const int64_t bytes = static_cast<int64_t>(values.size() * sizeof(float));
  return lowering.Constant("", bytes, [&](std::byte* to) {
    std::memcpy(to, values.data(), static_cast<size_t>(bytes));
  });
}

}  // namespace

bool SumsInt8Exactly() {
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto has = [isa](dnnl::cpu_isa wanted) {
    return (isa & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
  };
  return has(dnnl::cpu_isa::avx512_core_vnni) || has(dnnl::cpu_isa::avx2_vnni);
}

std::optional<Chosen> ChooseInteger(const Graph& graph, int32_t root,
                                    const IntegerProduct& product) {
  const Type source = TypeOf(graph.type(product.source).dtype), result = TypeOf(product.result);
  const Accept accept = AcceptQuality(Quality::kGemm);
  const bool bias = !product.bias.empty();
  try {
    if (graph.node(root).op->name == "MatMul") {
      const Matrices m = MatricesOf(graph, root);
      const dnnl::matmul::desc desc(
          Rows(m.left, source), memory::desc(m.right, Type::s8, memory::format_tag::any),
          bias ? Rows({1, m.out[1]}, Type::f32) : memory::desc(), Rows(m.out, result));
      return Choose<dnnl::matmul>(desc, AttributesOf(product, 1), accept);
    }
    const ConvProblem p = ProblemOf(graph, root);
    const auto last = [](const memory::dims& dims, Type type) {
      return DescOf(dims, ChannelsLastLayout(dims), type);
    };
    const dnnl::convolution_forward::desc desc(
        dnnl::prop_kind::forward_inference, algorithm::convolution_direct, last(p.src, source),
        memory::desc(p.weights, Type::s8, memory::format_tag::any),
        bias ? memory::desc({p.dst[1]}, Type::f32, memory::format_tag::x) : memory::desc(),
        last(p.dst, result), p.strides, p.dilations, p.pads_begin, p.pads_end);
    return Choose<dnnl::convolution_forward>(desc, AttributesOf(product, 1), accept);
  } catch (const dnnl::error&) {
    return std::nullopt;  // a geometry that oneDNN does not describe
  }
}

absl::Status LowerIntegerProduct(Lowering& lowering, const Group& group) {
  const IntegerProduct& product = *group.integer;
  if (product.native != nullptr) return LowerNativeInteger(lowering, group);
  const Graph& graph = lowering.graph();
  const int32_t root = group.nodes[0];
  const Chosen& chosen = *product.chosen;
  const ValueId result{group.nodes.back(), 0};
  const bool conv = graph.node(root).op->name == "Conv";
  const auto layout = [&](ValueId value) {
    const Shape& shape = lowering.shape(value);
    return conv ? Canonical(ChannelsLastLayout(shape), shape) : PlainLayout(shape);
  };
  std::vector<PrimitiveArgument> arguments = {
      {DNNL_ARG_SRC, chosen.src, lowering.In(product.source, layout(product.source))}};
  std::vector<std::byte> bytes;
  for (const int16_t weight : product.weights->integers)
    bytes.push_back(static_cast<std::byte>(weight));
  const Tensor weights({DType::kI8, graph.type(graph.node(root).inputs[1]).shape},
                       std::move(bytes));
  arguments.push_back(
      {DNNL_ARG_WEIGHTS, chosen.weights,
       lowering.PackedWeights(weights, StoredWeights(graph, root), chosen.weights)});
  if (!product.bias.empty())
    arguments.push_back({DNNL_ARG_BIAS, chosen.bias, Floats(lowering, product.bias)});
  if (product.runtime_zero.has_value()) {
    arguments.push_back({DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC,
                         memory::desc({1}, Type::s32, memory::format_tag::x),
                         lowering.Plain(*product.runtime_zero)});
  }
  arguments.push_back({DNNL_ARG_DST, chosen.dst, lowering.Allocate(result, layout(result))});
  std::vector<Place> touched;
  for (const PrimitiveArgument& argument : arguments) touched.push_back(argument.place);
  lowering.Emit(group.nodes, Cat("int8 ", chosen.implementation),
                MakePrimitiveKernel(chosen.primitive, std::move(arguments), chosen.scratchpad),
                touched, static_cast<int64_t>(chosen.scratchpad.get_size()));
  return absl::OkStatus();
}

}  // namespace mendel::cpu
