#include "kernels/cpu/lowering/conv_problem.h"

namespace mendel::cpu {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using Tag = memory::format_tag;

/// True when some outputs read nothing but padding: oneDNN 2.6's brgconv leaves the bias out there,
/// or crashes.
bool ReadsPaddingOnly(const ConvProblem& p) {
  const size_t first = p.weights.size() - p.strides.size();
  for (size_t d = 0; d < p.strides.size(); ++d) {
    const int64_t reach = (p.weights[first + d] - 1) * (p.dilations[d] + 1) + 1;
    if (p.pads_begin[d] >= reach || p.pads_end[d] >= reach) return true;
  }
  return false;
}

}  // namespace

ConvProblem ProblemOf(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  ConvProblem p;
  p.transposed = node.op->name == "ConvTranspose";
  p.src = graph.type(node.inputs[0]).shape;
  p.dst = node.outputs[0].shape;
  const Shape& w = graph.type(node.inputs[1]).shape;
  const size_t spatial = p.src.size() - 2;
  const int64_t group = node.attrs.Int("group");
  const Shape kernel(w.begin() + 2, w.end());
  const int64_t taps = NumElements(kernel);
  const Shape inner = RowMajorStrides(kernel);
  const int64_t out = p.dst[1] / group;
  const int64_t in = p.src[1] / group;
  p.weights = {out, in};
  p.weight_strides = p.transposed ? memory::dims{taps, out * taps} : memory::dims{in * taps, taps};
  if (group > 1) {
    p.weights.insert(p.weights.begin(), group);
    p.weight_strides.insert(p.weight_strides.begin(), in * out * taps);
  }
  p.weights.insert(p.weights.end(), kernel.begin(), kernel.end());
  p.weight_strides.insert(p.weight_strides.end(), inner.begin(), inner.end());
  p.strides = node.attrs.IntList("strides");
  p.dilations = node.attrs.IntList("dilations");
  for (int64_t& dilation : p.dilations) --dilation;
  const Ints& pads = node.attrs.IntList("pads");
  for (size_t d = 0; d < spatial; ++d) {
    p.pads_begin.push_back(pads[d]);
    if (!p.transposed) {
      p.pads_end.push_back(pads[spatial + d]);
      continue;
    }
    // oneDNN describes the convolution that this one is the transpose of. Output padding reduces
    // its padding.
    const int64_t reach = (kernel[d] - 1) * (p.dilations[d] + 1) + 1;
    p.pads_end.push_back((p.src[d + 2] - 1) * p.strides[d] + reach - p.dst[d + 2] - pads[d]);
  }
  return p;
}

std::optional<Chosen> ChooseFor(const ConvProblem& p, dnnl::algorithm way,
                                const dnnl::primitive_attr& attributes, const Accept& wanted) {
  const bool padding_only = ReadsPaddingOnly(p);
  const Accept accept = [&](const std::string& name) {
    return !(padding_only && name.find("brg") != std::string::npos) && wanted(name);
  };
  const memory::desc bias =
      p.has_bias ? memory::desc({p.dst[1]}, memory::data_type::f32, Tag::x) : memory::desc();
  const auto desc_of = [](const memory::dims& extents, const std::optional<Layout>& layout,
                          memory::data_type type) {
    return layout.has_value() ? DescOf(extents, *layout, type)
                              : memory::desc(extents, type, Tag::any);
  };
  const memory::desc src = p.split.has_value() ? DescOf(p.src, p.split->Source(p.src), p.operands)
                                               : desc_of(p.src, p.src_layout, p.operands);
  const memory::desc weights(p.weights, p.operands, Tag::any),
      dst = desc_of(p.dst, p.dst_layout, p.result);
  try {
    if (p.transposed) {
      const dnnl::deconvolution_forward::desc desc(
          dnnl::prop_kind::forward_inference, algorithm::deconvolution_direct, src, weights, bias,
          dst, p.strides, p.dilations, p.pads_begin, p.pads_end);
      return Choose<dnnl::deconvolution_forward>(desc, attributes, accept);
    }
    const dnnl::convolution_forward::desc desc(dnnl::prop_kind::forward_inference, way, src,
                                               weights, bias, dst, p.strides, p.dilations,
                                               p.pads_begin, p.pads_end);
    return Choose<dnnl::convolution_forward>(desc, attributes, accept);
  } catch (const dnnl::error&) {
    return std::nullopt;  // a geometry that oneDNN does not describe
  }
}

}  // namespace mendel::cpu
