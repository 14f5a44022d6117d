// Conv and ConvTranspose: the choice among oneDNN's implementations, weights packed into their
// layout.

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/cpu/kernels/bf16_split.h"
#include "kernels/cpu/kernels/depthwise.h"
#include "kernels/cpu/kernels/low_precision.h"
#include "kernels/cpu/kernels/pointwise.h"
#include "kernels/cpu/kernels/winograd.h"
#include "kernels/cpu/lowering/contraction.h"
#include "kernels/cpu/lowering/conv_layout.h"
#include "kernels/cpu/lowering/conv_problem.h"
#include "kernels/cpu/lowering/lower.h"
#include "kernels/cpu/lowering/lower_attention.h"
#include "kernels/cpu/lowering/lower_depthwise.h"
#include "kernels/cpu/lowering/lower_direct.h"
#include "kernels/cpu/lowering/lower_winograd.h"
#include "kernels/cpu/memory/weight_view.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

using dnnl::algorithm;
using dnnl::memory;

/// Returns the forms of the problem to try for an algorithm of low_precision.h. There may be none
/// for groups.
std::vector<ConvProblem> InLowPrecision(ConvProblem problem, std::string_view algorithm) {
  problem.operands = memory::data_type::bf16;
  if (algorithm == kBf16Algorithm) return {problem};
  if (problem.weights.size() > problem.src.size()) return {};
  std::vector<ConvProblem> forms;
  for (const int64_t block : {1, 16}) {  // oneDNN's transposed convolutions want blocks
    const SplitRowsOf rows{1, block};
    ConvProblem& form = forms.emplace_back(problem);
    form.split = rows;
    form.src[1] = form.weights[1] = 3 * rows.Channels(problem.src);
    if (!form.transposed) form.weight_strides[0] = form.weights[1] * form.weight_strides[1];
  }
  return forms;
}

constexpr std::string_view kWinograd = "winograd:";
constexpr std::string_view kDirect = "direct:";

/// An algorithm's name says how it differs from others: "2x3" of winograd:2x3, the implementation
/// of direct:....
algorithm WayOf(const std::string& name) {
  return name.compare(0, kWinograd.size(), kWinograd) == 0 ? algorithm::convolution_winograd
                                                           : algorithm::convolution_direct;
}

Accept AcceptNamed(const std::string& name) {
  if (WayOf(name) == algorithm::convolution_winograd) {
    return [tile = "wino_" + name.substr(kWinograd.size())](const std::string& implementation) {
      return implementation.find(tile) != std::string::npos;
    };
  }
  return [wanted = name.substr(std::min(name.size(), kDirect.size()))](
             const std::string& implementation) { return implementation == wanted; };
}

struct Choice {
  size_t post_ops = 0;
  Epilogue epilogue;
  Chosen chosen;
};

/// Chooses the implementation that fuses the most post-ops.
std::optional<Choice> ChooseWithPostOps(Lowering& lowering, const Group& group,
                                        const ConvProblem& base, algorithm way,
                                        const Accept& accept) {
  const Node& node = lowering.graph().node(group.nodes[0]);
  for (size_t count = group.post_ops.size() + 1; count-- > 0;) {
    std::optional<Epilogue> epilogue =
        MakeEpilogue(lowering, group, count, base.dst[1], Kernels::kOneDnn);
    if (!epilogue.has_value()) continue;
    ConvProblem problem = base;
    problem.has_bias = !epilogue->bias.empty() || node.inputs.size() > 2;
    std::optional<Chosen> chosen = ChooseFor(problem, way, epilogue->attributes, accept);
    if (chosen.has_value()) return Choice{count, std::move(*epilogue), std::move(*chosen)};
  }
  return std::nullopt;
}

/// Constant weights times the epilogue's scale.
ScaledWeights Scaled(Lowering& lowering, const Node& node, const std::vector<double>& scale) {
  const Shape& shape = lowering.shape(node.inputs[1]);
  const int64_t taps = NumElements(shape) / (shape[0] * shape[1]);
  const WeightView weights = lowering.folded().View(node.inputs[1]);
  if (node.op->name != "ConvTranspose") return {weights, scale, shape[1] * taps};
  const int64_t in = shape[0] / node.attrs.Int("group");
  std::vector<double> factors;
  for (int64_t row = 0; row < shape[0]; ++row) {
    const auto first = scale.begin() + row / in * shape[1];
    factors.insert(factors.end(), first, first + shape[1]);
  }
  return {weights, std::move(factors), taps};
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
Place PackWeights(Lowering& lowering, const Node& node, const ConvProblem& problem,
                  const std::vector<double>& scale, const memory::desc& wanted) {
  const auto stored = [&](memory::data_type type) {
    return memory::desc(problem.weights, type, problem.weight_strides);
  };
  if (problem.split.has_value()) {
    const Tensor parts = SplitWeights(ExactWeights(lowering, node, scale),
                                      problem.transposed ? 0 : 1, problem.src[1] / 3);
    return lowering.PackedWeights(parts, stored(memory::data_type::bf16), wanted);
  }
  const memory::desc plain = stored(memory::data_type::f32);
  if (scale.empty())
    return lowering.PackedWeights(lowering.folded().Rounded(node.inputs[1]), plain, wanted);
  return lowering.PackedWeights(Scaled(lowering, node, scale), plain, wanted);
}

Place PlaceSource(Lowering& lowering, ValueId value, const ConvProblem& problem,
                  const memory::desc& wanted) {
  if (problem.split.has_value()) return lowering.SplitIn(value, *problem.split);
  const Layout layout = Canonical(*LayoutOf(wanted), problem.src);
  return wanted.data_type() == memory::data_type::bf16 ? lowering.NarrowIn(value, layout)
                                                       : lowering.In(value, layout);
}

std::optional<Choice> ChooseOneDnn(Lowering& lowering, const Group& group,
                                   const ConvProblem& problem, Quality quality) {
  return ChooseWithPostOps(lowering, group, problem, algorithm::convolution_direct,
                           AcceptQuality(quality));
}

constexpr std::array kQualities = {Quality::kGenerated, Quality::kGemm, Quality::kAnything};

std::optional<Choice> ChooseDefault(Lowering& lowering, const Group& group,
                                    const ConvProblem& problem) {
  for (const Quality quality : kQualities) {
    std::optional<Choice> choice = ChooseOneDnn(lowering, group, problem, quality);
    if (choice.has_value()) return choice;
  }
  return std::nullopt;
}

std::optional<Choice> ChooseLow(Lowering& lowering, const Group& group, ConvProblem problem) {
  return ChooseLowPrecision(group, [&](memory::data_type result, Quality quality) {
    problem.result = result;
    return ChooseWithPostOps(lowering, group, problem, algorithm::convolution_direct,
                             AcceptQuality(quality));
  });
}

/// Chooses an algorithm by its name. Returns nullopt when none computes the bias and works with the
/// number of threads. `problem` becomes the algorithm's.
std::optional<Choice> ChooseNamed(Lowering& lowering, const Group& group, ConvProblem& problem,
                                  const std::string& name) {
  if (IsLayoutAlgorithm(name)) {
    const std::optional<ConvProblem> form = InLayout(problem, name);
    return form.has_value()
               ? ChooseWithPostOps(lowering, group, *form, algorithm::convolution_direct,
                                   AcceptQuality(QualityIn(name)))
               : std::nullopt;
  }
  if (name != kBf16Algorithm && name != kBf16x3Algorithm) {
    return ChooseWithPostOps(lowering, group, problem, WayOf(name), AcceptNamed(name));
  }
  if (!RunsLowPrecision(lowering.graph(), group.nodes[0], lowering.options().numerics, name))
    return std::nullopt;
  for (const ConvProblem& form : InLowPrecision(problem, name)) {
    std::optional<Choice> choice = ChooseLow(lowering, group, form);
    if (!choice.has_value()) continue;
    problem = form;
    return choice;
  }
  return std::nullopt;
}

/// Lowers to a native product, or to a direct or depthwise convolution, where there is one.
/// oneDNN's gemm over copied windows is several times slower. So are its transposed convolutions
/// without overlap.
absl::StatusOr<bool> LowerNative(Lowering& lowering, const Group& group) {
  for (const std::string& name : DirectAlgorithms(lowering.graph(), group.nodes[0])) {
    MENDEL_ASSIGN_OR_RETURN(const bool done, LowerDirect(lowering, group, name));
    if (done) return true;
  }
  return LowerDepthwise(lowering, group, std::string(kNativeDepthwise));
}

}  // namespace

bool ConvRunsIn(std::string_view algorithm, const Graph& graph, int32_t id) {
  if (graph.node(id).outputs[0].shape.size() > 5) return false;
  ConvProblem problem = ProblemOf(graph, id);
  problem.has_bias = true;
  const std::vector<ConvProblem> forms = InLowPrecision(problem, algorithm);
  return std::any_of(forms.begin(), forms.end(), [](const ConvProblem& form) {
    return ChooseFor(form, algorithm::convolution_direct, UserScratchpad(),
                     AcceptQuality(Quality::kGemm))
        .has_value();
  });
}

absl::StatusOr<bool> LowerConv(Lowering& lowering, const Group& group) {
  const Graph& graph = lowering.graph();
  const int32_t root = group.nodes[0];
  const Node& node = graph.node(root);
  if (graph.type(node.inputs[0]).shape.size() > 5) return false;
  ConvProblem problem = ProblemOf(graph, root);
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
      const std::vector<std::string> known =
          ConvAlgorithms(graph, root, lowering.options().numerics);
      if (std::find(known.begin(), known.end(), named->second) == known.end()) {
        return InvalidInput("node '", node.name, "' (", node.op->name, " ", root,
                            ") has no algorithm '", named->second, "' here");
      }
      // The algorithm is known, but declined with this bias or number of threads. The step's kernel
      // name shows the one that runs instead.
      choice = ChooseDefault(lowering, group, problem);
    }
  } else {
    const Quality slower = problem.transposed ? Quality::kGenerated : Quality::kGemm;
    for (size_t k = 0; k < kQualities.size() && !choice.has_value(); ++k) {
      if (kQualities[k] == slower) {
        MENDEL_ASSIGN_OR_RETURN(const bool native, LowerNative(lowering, group));
        if (native) return true;
      }
      choice = ChooseOneDnn(lowering, group, problem, kQualities[k]);
    }
  }
  if (!choice.has_value()) return false;
  const Chosen& chosen = choice->chosen;
  Operands operands;
  operands.src = PlaceSource(lowering, node.inputs[0], problem, chosen.src);
  if (lowering.folded().IsConstant(node.inputs[1])) {
    operands.weights = PackWeights(lowering, node, problem, choice->epilogue.scale, chosen.weights);
  } else {
    const memory::desc stored(problem.weights, memory::data_type::f32, problem.weight_strides);
    operands.weights = lowering.Reordered(lowering.Plain(node.inputs[1]), stored, chosen.weights,
                                          "weights of " + node.name);
  }
  if (node.inputs.size() > 2 && !lowering.folded().IsConstant(node.inputs[2])) {
    operands.dynamic_bias = lowering.Plain(node.inputs[2]);
  }
  MENDEL_RETURN_IF_ERROR(
      EmitContraction(lowering, group, choice->post_ops, choice->epilogue, chosen, operands));
  return true;
}

std::vector<std::string> ConvAlgorithms(const Graph& graph, int32_t id, Numerics numerics) {
  const Node& node = graph.node(id);
  std::vector<std::string> names = AttentionAlgorithms(graph, id);
  const auto append = [&](const std::vector<std::string>& more) {
    names.insert(names.end(), more.begin(), more.end());
  };
  append(LoopAlgorithms(graph, id, numerics));
  append(LowPrecisionAlgorithms(graph, id, numerics));
  if (numerics != Numerics::kStrict) append(StrassenAlgorithms(graph, id));
  append(DirectAlgorithms(graph, id));
  append(DepthwiseAlgorithms(graph, id));
  if (node.op->name != "Conv" || node.outputs[0].dtype != DType::kF32 ||
      NumElements(node.outputs[0]) == 0)
    return names;
  if (node.outputs[0].shape.size() > 5) return names;
  const ConvProblem problem = ProblemOf(graph, id);
  const LayoutOffers in_layouts = OffersInLayouts(problem);
  // The walk looks at every implementation and declines each one.
  std::vector<std::string> direct;
  ChooseFor(problem, algorithm::convolution_direct, UserScratchpad(), [&](const std::string& name) {
    if (!IsReference(name) && !IsGemm(name)) direct.push_back(name);
    return false;
  });
  // The first implementation is the default. Only others for the same instruction set can be
  // better, and some of them have their layout's name.
  const auto isa = [](const std::string& name) {
    return name.substr(std::min(name.size(), name.find_last_of(':')));
  };
  for (size_t k = 1; k < direct.size(); ++k) {
    const bool repeated = std::find(direct.begin(), direct.begin() + static_cast<int64_t>(k),
                                    direct[k]) != direct.begin() + static_cast<int64_t>(k);
    const bool in_layout = in_layouts.implementations.count(direct[k]) != 0;
    if (!repeated && !in_layout && isa(direct[k]) == isa(direct[0]))
      names.push_back(Cat(kDirect, direct[k]));
  }
  append(in_layouts.names);
  if (numerics == Numerics::kStrict) return names;
  const std::vector<std::string> own = WinogradAlgorithms(graph, id, numerics);
  names.insert(names.end(), own.begin(), own.end());
  // oneDNN offers Winograd depending on the number of threads, which is not known here.
  for (const int threads : {1, 2, 8}) {
    const ThreadScope scope(threads);
    ChooseFor(problem, algorithm::convolution_winograd, UserScratchpad(),
              [&](const std::string& name) {
                const size_t at = name.find("wino_");
                const std::string found =
                    at == std::string::npos ? "" : Cat(kWinograd, name.substr(at + 5, 3));
                if (!found.empty() && std::find(names.begin(), names.end(), found) == names.end())
                  names.push_back(found);
                return false;
              });
  }
  // Algorithms that save arithmetic come first: a search that runs out of time has then measured
  // the best ones.
  std::stable_partition(names.begin(), names.end(), [](const std::string& name) {
    return name.compare(0, 4, "bf16") == 0 || name.compare(0, 8, "winograd") == 0;
  });
  return names;
}

}  // namespace mendel::cpu
