// Conv and ConvTranspose: the choice among oneDNN's implementations, weights packed into their layout.

#include <algorithm>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/cpu/bf16_split.h"
#include "kernels/cpu/contraction.h"
#include "kernels/cpu/low_precision.h"
#include "kernels/cpu/lower.h"
#include "kernels/cpu/lower_attention.h"
#include "kernels/cpu/lower_depthwise.h"
#include "kernels/cpu/lower_direct.h"
#include "kernels/cpu/threads.h"
#include "kernels/cpu/weight_view.h"
#include "kernels/cpu/winograd.h"

namespace mendel::cpu {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using Tag = memory::format_tag;

/// One convolution's geometry in oneDNN's terms.
struct Problem {
  bool transposed = false;
  memory::dims src, weights, dst, strides, dilations, pads_begin, pads_end;
  memory::dims weight_strides;  ///< of the graph's weights, read with the dimensions `weights`
  bool has_bias = false;
  memory::data_type operands = memory::data_type::f32, result = memory::data_type::f32;
  std::optional<SplitRowsOf> split;  ///< bf16x3: three times the channels
};

Problem ProblemOf(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  Problem p;
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
    // oneDNN sees the convolution that this one is the transpose of; output padding is padding that it lacks.
    const int64_t reach = (kernel[d] - 1) * (p.dilations[d] + 1) + 1;
    p.pads_end.push_back((p.src[d + 2] - 1) * p.strides[d] + reach - p.dst[d + 2] - pads[d]);
  }
  return p;
}

/// The problem by an algorithm of low_precision.h, in the forms to try; it may have none for groups.
std::vector<Problem> InLowPrecision(Problem problem, std::string_view algorithm) {
  problem.operands = memory::data_type::bf16;
  if (algorithm == kBf16Algorithm) return {problem};
  if (problem.weights.size() > problem.src.size()) return {};
  std::vector<Problem> forms;
  for (const int64_t block : {1, 16}) {  // oneDNN's transposed convolutions want blocks
    const SplitRowsOf rows{1, block};
    Problem& form = forms.emplace_back(problem);
    form.split = rows;
    form.src[1] = form.weights[1] = 3 * rows.Channels(problem.src);
    if (!form.transposed) form.weight_strides[0] = form.weights[1] * form.weight_strides[1];
  }
  return forms;
}

/// True when some outputs read nothing but padding: oneDNN 2.6's brgconv leaves the bias out there, or crashes.
bool ReadsPaddingOnly(const Problem& p) {
  const size_t first = p.weights.size() - p.strides.size();
  for (size_t d = 0; d < p.strides.size(); ++d) {
    const int64_t reach = (p.weights[first + d] - 1) * (p.dilations[d] + 1) + 1;
    if (p.pads_begin[d] >= reach || p.pads_end[d] >= reach) return true;
  }
  return false;
}

std::optional<Chosen> ChooseFor(const Problem& p, algorithm way, const dnnl::primitive_attr& attributes, const Accept& wanted) {
  const bool padding_only = ReadsPaddingOnly(p);
  const Accept accept = [&](const std::string& name) {
    return !(padding_only && name.find("brg") != std::string::npos) && wanted(name);
  };
  const memory::desc bias = p.has_bias ? memory::desc({p.dst[1]}, memory::data_type::f32, Tag::x) : memory::desc();
  const memory::desc src =
      p.split.has_value() ? DescOf(p.src, p.split->Source(p.src), p.operands) : memory::desc(p.src, p.operands, Tag::any);
  const memory::desc weights(p.weights, p.operands, Tag::any), dst(p.dst, p.result, Tag::any);
  try {
    if (p.transposed) {
      const dnnl::deconvolution_forward::desc desc(dnnl::prop_kind::forward_inference, algorithm::deconvolution_direct, src,
                                                   weights, bias, dst, p.strides, p.dilations, p.pads_begin, p.pads_end);
      return Choose<dnnl::deconvolution_forward>(desc, attributes, accept);
    }
    const dnnl::convolution_forward::desc desc(dnnl::prop_kind::forward_inference, way, src, weights, bias, dst, p.strides,
                                               p.dilations, p.pads_begin, p.pads_end);
    return Choose<dnnl::convolution_forward>(desc, attributes, accept);
  } catch (const dnnl::error&) {
    return std::nullopt;  // a geometry that oneDNN does not describe
  }
}

constexpr std::string_view kWinograd = "winograd:";
constexpr std::string_view kDirect = "direct:";

/// What distinguishes an algorithm's name from others: "2x3" of winograd:2x3, the implementation of direct:....
algorithm WayOf(const std::string& name) {
  return name.compare(0, kWinograd.size(), kWinograd) == 0 ? algorithm::convolution_winograd : algorithm::convolution_direct;
}

Accept AcceptNamed(const std::string& name) {
  if (WayOf(name) == algorithm::convolution_winograd) {
    return [tile = "wino_" + name.substr(kWinograd.size())](const std::string& implementation) {
      return implementation.find(tile) != std::string::npos;
    };
  }
  return [wanted = name.substr(std::min(name.size(), kDirect.size()))](const std::string& implementation) {
    return implementation == wanted;
  };
}

struct Choice {
  size_t posts = 0;
  Epilogue epilogue;
  Chosen chosen;
};

/// As many posts as one implementation fuses.
std::optional<Choice> ChooseWithPosts(Lowering& lowering, const Group& group, const Problem& base, algorithm way,
                                      const Accept& accept) {
  const Node& node = lowering.graph().node(group.nodes[0]);
  for (size_t count = group.posts.size() + 1; count-- > 0;) {
    std::optional<Epilogue> epilogue = MakeEpilogue(lowering, group, count, base.dst[1]);
    if (!epilogue.has_value()) continue;
    Problem problem = base;
    problem.has_bias = !epilogue->bias.empty() || node.inputs.size() > 2;
    std::optional<Chosen> chosen = ChooseFor(problem, way, epilogue->attributes, accept);
    if (chosen.has_value()) return Choice{count, std::move(*epilogue), std::move(*chosen)};
  }
  return std::nullopt;
}

/// Constant weights times the epilogue's scale, rounded once.
Tensor ScaledWeights(Lowering& lowering, const Node& node, const std::vector<double>& scale) {
  if (scale.empty()) return lowering.folded().Rounded(node.inputs[1]);
  const Shape& shape = lowering.shape(node.inputs[1]);
  const int64_t taps = NumElements(shape) / (shape[0] * shape[1]);
  const WeightView weights = lowering.folded().View(node.inputs[1]);
  if (node.op->name != "ConvTranspose") return ScaledTensor(shape, weights, scale, shape[1] * taps);
  const int64_t in = shape[0] / node.attrs.Int("group");
  std::vector<double> factors;
  for (int64_t row = 0; row < shape[0]; ++row) {
    const auto first = scale.begin() + row / in * shape[1];
    factors.insert(factors.end(), first, first + shape[1]);
  }
  return ScaledTensor(shape, weights, factors, taps);
}

/// The same before rounding.
HostValue ExactWeights(Lowering& lowering, const Node& node, const std::vector<double>& scale) {
  HostValue weights = lowering.folded().Exact(node.inputs[1]);
  if (scale.empty()) return weights;
  const Shape& shape = weights.type.shape;
  const size_t taps = weights.scalars.size() / static_cast<size_t>(shape[0] * shape[1]);
  const bool transposed = node.op->name == "ConvTranspose";
  const size_t out = static_cast<size_t>(shape[1]);
  const size_t in = static_cast<size_t>(shape[0] / node.attrs.Int("group"));
  for (size_t i = 0; i < weights.scalars.size(); ++i) {
    const size_t row = i / taps / static_cast<size_t>(shape[1]);
    weights.scalars[i] *= transposed ? scale[row / in * out + i / taps % out] : scale[row];
  }
  return weights;
}

/// Rounded once, and packed for the problem.
Place PackWeights(Lowering& lowering, const Node& node, const Problem& problem, const std::vector<double>& scale,
                  const memory::desc& wanted) {
  const auto stored = [&](memory::data_type type) { return memory::desc(problem.weights, type, problem.weight_strides); };
  if (problem.split.has_value()) {
    const Tensor parts = SplitWeights(ExactWeights(lowering, node, scale), problem.transposed ? 0 : 1, problem.src[1] / 3);
    return lowering.PackedWeights(parts, stored(memory::data_type::bf16), wanted);
  }
  return lowering.PackedWeights(ScaledWeights(lowering, node, scale), stored(memory::data_type::f32), wanted);
}

Place PlaceSource(Lowering& lowering, ValueId value, const Problem& problem, const memory::desc& wanted) {
  if (problem.split.has_value()) return lowering.SplitIn(value, *problem.split);
  const Layout layout = Canonical(*LayoutOf(wanted), problem.src);
  return wanted.data_type() == memory::data_type::bf16 ? lowering.NarrowIn(value, layout) : lowering.In(value, layout);
}

std::optional<Choice> ChooseDefault(Lowering& lowering, const Group& group, const Problem& problem) {
  for (const Quality quality : {Quality::kGenerated, Quality::kGemm, Quality::kAnything}) {
    std::optional<Choice> choice = ChooseWithPosts(lowering, group, problem, algorithm::convolution_direct, AcceptQuality(quality));
    if (choice.has_value()) return choice;
  }
  return std::nullopt;
}

std::optional<Choice> ChooseLow(Lowering& lowering, const Group& group, Problem problem) {
  return ChooseLowPrecision(group, [&](memory::data_type result, Quality quality) {
    problem.result = result;
    return ChooseWithPosts(lowering, group, problem, algorithm::convolution_direct, AcceptQuality(quality));
  });
}

/// By its name; nullopt: none that computes the bias and works with the number of threads. `problem` becomes the algorithm's.
std::optional<Choice> ChooseNamed(Lowering& lowering, const Group& group, Problem& problem, const std::string& name) {
  if (name != kBf16Algorithm && name != kBf16x3Algorithm) {
    return ChooseWithPosts(lowering, group, problem, WayOf(name), AcceptNamed(name));
  }
  if (!OffersLowPrecision(lowering.graph(), group.nodes[0], lowering.options().numerics, name)) return std::nullopt;
  for (const Problem& form : InLowPrecision(problem, name)) {
    std::optional<Choice> choice = ChooseLow(lowering, group, form);
    if (!choice.has_value()) continue;
    problem = form;
    return choice;
  }
  return std::nullopt;
}

}  // namespace

bool ConvRunsIn(std::string_view algorithm, const Graph& graph, int32_t id) {
  if (graph.node(id).outputs[0].shape.size() > 5) return false;
  Problem problem = ProblemOf(graph, id);
  problem.has_bias = true;
  const std::vector<Problem> forms = InLowPrecision(problem, algorithm);
  return std::any_of(forms.begin(), forms.end(), [](const Problem& form) {
    return ChooseFor(form, algorithm::convolution_direct, UserScratchpad(), AcceptQuality(Quality::kGemm)).has_value();
  });
}

absl::StatusOr<bool> LowerConv(Lowering& lowering, const Group& group) {
  const Graph& graph = lowering.graph();
  const int32_t root = group.nodes[0];
  const Node& node = graph.node(root);
  if (graph.type(node.inputs[0]).shape.size() > 5) return false;
  Problem problem = ProblemOf(graph, root);
  const auto named = lowering.options().algorithms.find(root);
  std::optional<Choice> choice;
  if (named != lowering.options().algorithms.end() && !named->second.empty()) {
    MENDEL_ASSIGN_OR_RETURN(const bool own, LowerWinograd(lowering, group, named->second));
    if (own) return true;
    MENDEL_ASSIGN_OR_RETURN(const bool direct, LowerDirect(lowering, group, named->second));
    if (direct) return true;
    MENDEL_ASSIGN_OR_RETURN(const bool depthwise, LowerDepthwise(lowering, group, named->second));
    if (depthwise) return true;
    choice = ChooseNamed(lowering, group, problem, named->second);
    if (!choice.has_value()) {
      const std::vector<std::string> known = ConvAlgorithms(graph, root, lowering.options().numerics);
      if (std::find(known.begin(), known.end(), named->second) == known.end()) {
        return InvalidInput("node '", node.name, "' (", node.op->name, " ", root, ") has no algorithm '", named->second, "' here");
      }
      // Known, but declined with this bias or number of threads: the step's kernel shows what runs instead.
      choice = ChooseDefault(lowering, group, problem);
    }
  } else {
    choice = ChooseDefault(lowering, group, problem);
  }
  if (!choice.has_value()) return false;
  const Chosen& chosen = choice->chosen;
  Operands operands;
  operands.src = PlaceSource(lowering, node.inputs[0], problem, chosen.src);
  if (lowering.folded().IsConstant(node.inputs[1])) {
    operands.weights = PackWeights(lowering, node, problem, choice->epilogue.scale, chosen.weights);
  } else {
    const memory::desc stored(problem.weights, memory::data_type::f32, problem.weight_strides);
    operands.weights = lowering.Reordered(lowering.Plain(node.inputs[1]), stored, chosen.weights, "weights of " + node.name);
  }
  if (node.inputs.size() > 2 && !lowering.folded().IsConstant(node.inputs[2])) {
    operands.dynamic_bias = lowering.Plain(node.inputs[2]);
  }
  MENDEL_RETURN_IF_ERROR(EmitContraction(lowering, group, choice->posts, choice->epilogue, chosen, operands));
  return true;
}

std::vector<std::string> ConvAlgorithms(const Graph& graph, int32_t id, Numerics numerics) {
  const Node& node = graph.node(id);
  std::vector<std::string> names = AttentionAlgorithms(graph, id);
  const auto append = [&](const std::vector<std::string>& more) { names.insert(names.end(), more.begin(), more.end()); };
  append(LowPrecisionAlgorithms(graph, id, numerics));
  if (numerics != Numerics::kStrict) append(StrassenAlgorithms(graph, id));
  append(DirectAlgorithms(graph, id));
  append(DepthwiseAlgorithms(graph, id));
  if (node.op->name != "Conv" || node.outputs[0].dtype != DType::kF32 || NumElements(node.outputs[0]) == 0) return names;
  if (node.outputs[0].shape.size() > 5) return names;
  const Problem problem = ProblemOf(graph, id);
  // Walking: every implementation is looked at and declined.
  std::vector<std::string> direct;
  ChooseFor(problem, algorithm::convolution_direct, UserScratchpad(), [&](const std::string& name) {
    if (!IsReference(name) && !IsGemm(name)) direct.push_back(name);
    return false;
  });
  // The first is the default. Of the others only those for the same instruction set can be better.
  const auto isa = [](const std::string& name) { return name.substr(std::min(name.size(), name.find_last_of(':'))); };
  for (size_t k = 1; k < direct.size(); ++k) {
    const bool repeated =
        std::find(direct.begin(), direct.begin() + static_cast<int64_t>(k), direct[k]) != direct.begin() + static_cast<int64_t>(k);
    if (!repeated && isa(direct[k]) == isa(direct[0])) names.push_back(Cat(kDirect, direct[k]));
  }
  if (numerics == Numerics::kStrict) return names;
  const std::vector<std::string> own = WinogradAlgorithms(graph, id, numerics);
  names.insert(names.end(), own.begin(), own.end());
  // oneDNN offers Winograd or not by the number of threads, which is not known here.
  for (const int threads : {1, 2, 8}) {
    const ThreadScope scope(threads);
    ChooseFor(problem, algorithm::convolution_winograd, UserScratchpad(), [&](const std::string& name) {
      const size_t at = name.find("wino_");
      const std::string found = at == std::string::npos ? "" : Cat(kWinograd, name.substr(at + 5, 3));
      if (!found.empty() && std::find(names.begin(), names.end(), found) == names.end()) names.push_back(found);
      return false;
    });
  }
  // Those that save arithmetic first: a search that runs out of time has then looked at the best ones.
  std::stable_partition(names.begin(), names.end(), [](const std::string& name) {
    return name.compare(0, 4, "bf16") == 0 || name.compare(0, 8, "winograd") == 0;
  });
  return names;
}

}  // namespace mendel::cpu
