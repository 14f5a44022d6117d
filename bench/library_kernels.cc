#include "bench/library_kernels.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/status.h"
#include "graph/types.h"
#include "kernels/cpu/lowering/layout.h"
#include "kernels/cpu/primitive.h"
#include "kernels/cpu/threads.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace mendel {
namespace {

using cpu::Layout;
using dnnl::algorithm;
using dnnl::memory;
constexpr auto kForward = dnnl::prop_kind::forward_inference;

/// A primitive for a node whose first input and output lie in these ways, and the plain tensors
/// that it reads besides, by argument.
struct Chosen {
  dnnl::primitive primitive;
  std::string implementation;
  std::map<int, Tensor> others;
};
struct Operands {
  const Node& node;
  memory::desc from, to;
  std::vector<Tensor> parameters;  ///< values of the inputs after the first
};
using MakePrimitive = std::optional<Chosen> (*)(const Operands& operands);

template <class Primitive>
Chosen Choose(const typename Primitive::desc& desc) {
  const typename Primitive::primitive_desc chosen(desc, cpu::Engine());
  return {Primitive(chosen), chosen.impl_info_str(), {}};
}

std::optional<Chosen> MakeResampling(const Operands& o) {
  const Attributes& attrs = o.node.attrs;
  if (attrs.Str("coordinate_transformation_mode") != "half_pixel" || attrs.Int("antialias") != 0)
    return std::nullopt;
  const bool linear = attrs.Str("mode") == "linear";
  if (!linear && attrs.Str("mode") != "nearest") return std::nullopt;
  const algorithm way = linear ? algorithm::resampling_linear : algorithm::resampling_nearest;
  return Choose<dnnl::resampling_forward>({kForward, way, o.from, o.to});
}

/// oneDNN normalizes over all images: of one image that is an instance normalization. Parameters:
/// scale and shift.
std::optional<Chosen> MakeInstanceNormalization(const Operands& o) {
  using Flags = dnnl::normalization_flags;
  if (o.from.dims()[0] != 1) return std::nullopt;
  Chosen chosen = Choose<dnnl::batch_normalization_forward>(
      {kForward, o.from, static_cast<float>(o.node.attrs.Float("epsilon")),
       Flags::use_scale | Flags::use_shift});
  chosen.others = {{DNNL_ARG_SCALE, o.parameters[0]}, {DNNL_ARG_SHIFT, o.parameters[1]}};
  return chosen;
}

template <algorithm kWay>
std::optional<Chosen> MakeReduction(const Operands& o) {
  return Choose<dnnl::reduction>({kWay, o.from, o.to, 0.0f, 0.0f});
}

template <algorithm kWay>
std::optional<Chosen> MakeElementwise(const Operands& o) {
  return Choose<dnnl::eltwise_forward>({kForward, kWay, o.from, 0.0f, 0.0f});
}

std::optional<Chosen> MakeLrn(const Operands& o) {
  const Attributes& attrs = o.node.attrs;
  return Choose<dnnl::lrn_forward>({kForward, algorithm::lrn_across_channels, o.from,
                                    attrs.Int("size"), static_cast<float>(attrs.Float("alpha")),
                                    static_cast<float>(attrs.Float("beta")),
                                    static_cast<float>(attrs.Float("bias"))});
}

const std::map<std::string, MakePrimitive>& Primitives() {
  static const std::map<std::string, MakePrimitive> primitives = {
      {"Gelu", &MakeElementwise<algorithm::eltwise_gelu_erf>},
      {"InstanceNormalization", &MakeInstanceNormalization},
      {"LRN", &MakeLrn},
      {"ReduceMax", &MakeReduction<algorithm::reduction_max>},
      {"ReduceMean", &MakeReduction<algorithm::reduction_mean>},
      {"ReduceSum", &MakeReduction<algorithm::reduction_sum>},
      {"Resize", &MakeResampling},
      {"Sigmoid", &MakeElementwise<algorithm::eltwise_logistic>},
      {"Tanh", &MakeElementwise<algorithm::eltwise_tanh>},
  };
  return primitives;
}

/// A primitive with its memory.
struct Call {
  dnnl::primitive primitive;
  std::unordered_map<int, memory> arguments;
  std::vector<Tensor> held;  ///< that arguments point into
  dnnl::stream stream{cpu::Engine()};
  int threads = 1;
  TensorType type;  ///< type of the output

  double Run() {
    const cpu::ThreadScope scope(threads);
    const auto start = std::chrono::steady_clock::now();
    primitive.execute(stream, arguments);
    stream.wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  Tensor Output() {
    std::vector<double> values(static_cast<size_t>(NumElements(type)));
    std::vector<float> plain(values.size());
    const memory to(cpu::DescOf(type.shape, cpu::PlainLayout(type.shape)), cpu::Engine(),
                    plain.data());
    Reorder(arguments.at(DNNL_ARG_DST), to);
    values.assign(plain.begin(), plain.end());
    return Tensor::FromDoubles(type, values);
  }
  void Reorder(memory from, memory to) {
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
  }
};

memory View(const Tensor& tensor) {
  const Shape& shape = tensor.type().shape;
  return {cpu::DescOf(shape, cpu::PlainLayout(shape)), cpu::Engine(),
          const_cast<std::byte*>(tensor.bytes().data())};
}

LibraryKernel Kernel(Chosen chosen, const Operands& operands, const Tensor& source,
                     const TensorType& type, int threads, const std::string& layout) {
  const auto call = std::make_shared<Call>();
  call->primitive = std::move(chosen.primitive);
  call->threads = threads;
  call->type = type;
  memory from(operands.from, cpu::Engine());
  call->Reorder(View(source), from);
  call->arguments.emplace(DNNL_ARG_SRC, from);
  call->arguments.emplace(DNNL_ARG_DST, memory(operands.to, cpu::Engine()));
  for (auto& [argument, tensor] : chosen.others) {
    call->arguments.emplace(argument, View(tensor));
    call->held.push_back(std::move(tensor));  // moves the handle: the bytes stay where they are
  }
  return {Cat(chosen.implementation, ", ", layout),
          [call]() -> absl::StatusOr<double> { return call->Run(); },
          [call] { return call->Output(); }};
}

/// The node that is neither an input nor a constant; nullopt where there are several.
std::optional<int32_t> OnlyNode(const Graph& graph) {
  std::optional<int32_t> only;
  for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
    if (graph.node(id).inputs.empty()) continue;
    if (only.has_value()) return std::nullopt;
    only = id;
  }
  return only;
}

}  // namespace

std::vector<LibraryKernel> LibraryKernelsFor(const Graph& graph, std::span<const Tensor> inputs,
                                             int threads) {
  const std::optional<int32_t> id = OnlyNode(graph);
  const auto found = id.has_value() ? Primitives().find(std::string(graph.node(*id).op->name))
                                    : Primitives().end();
  if (found == Primitives().end()) return {};
  const Node& node = graph.node(*id);
  const TensorType& type = node.outputs[0];
  const Shape& shape = graph.type(node.inputs[0]).shape;
  const std::vector<Tensor> parameters(inputs.begin() + 1, inputs.end());
  const std::vector<std::pair<std::string, Layout (*)(const Shape&)>> layouts = {
      {"row-major", &cpu::PlainLayout},
      {"channels-last", &cpu::ChannelsLastLayout},
      {"blocks of 8", [](const Shape& own) { return cpu::BlockedLayout(own, 8); }},
      {"blocks of 16", [](const Shape& own) { return cpu::BlockedLayout(own, 16); }}};
  std::vector<LibraryKernel> kernels;
  for (const auto& [name, layout] : layouts) {
    const Operands operands{node, cpu::DescOf(shape, layout(shape)),
                            cpu::DescOf(type.shape, layout(type.shape)), parameters};
    const cpu::ThreadScope scope(threads);
    try {
      std::optional<Chosen> chosen = found->second(operands);
      if (!chosen.has_value() || cpu::IsReference(chosen->implementation)) continue;
      kernels.push_back(Kernel(*std::move(chosen), operands, inputs[0], type, threads, name));
    } catch (const dnnl::error&) {
      continue;  // a layout that oneDNN does not take
    }
  }
  return kernels;
}

}  // namespace mendel
