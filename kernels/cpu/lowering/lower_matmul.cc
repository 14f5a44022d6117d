// MatMul: packed constant operands, bias and post-ops fused, batches broadcast.

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "kernels/cpu/kernels/bf16_split.h"
#include "kernels/cpu/kernels/low_precision.h"
#include "kernels/cpu/kernels/pointwise.h"
#include "kernels/cpu/lowering/contraction.h"
#include "kernels/cpu/lowering/lower.h"
#include "kernels/cpu/lowering/lower_attention.h"
#include "kernels/cpu/lowering/lower_direct.h"
#include "kernels/cpu/memory/cache_size.h"
#include "kernels/cpu/memory/weight_view.h"
#include "kernels/cpu/simd/native_isa.h"

namespace mendel::cpu {
namespace {

using dnnl::memory;

/// Operand dimensions as oneDNN gets them: of one rank, leading ones added. A constant or shared
/// right side with a batch on the left makes one flat product.
struct Problem {
  memory::dims left, right, out;
  bool flat = false;
};

Problem ProblemOf(const Graph& graph, const Node& node) {
  Problem p{graph.type(node.inputs[0]).shape, graph.type(node.inputs[1]).shape,
            node.outputs[0].shape, false};
  const size_t rank = p.out.size();
  p.left.insert(p.left.begin(), rank - p.left.size(), 1);
  p.right.insert(p.right.begin(), rank - p.right.size(), 1);
  const auto batch = [&](const memory::dims& dims) {
    return NumElements(Shape(dims.begin(), dims.end() - 2));
  };
  const bool right_shared = batch(p.right) == 1 && batch(p.left) == batch(p.out);
  if (right_shared) {
    p.flat = true;
    p.left = {batch(p.left) * p.left[rank - 2], p.left.back()};
    p.right = {p.right[rank - 2], p.right.back()};
    p.out = {p.left[0], p.right[1]};
  } else if (batch(p.left) == batch(p.out) && batch(p.right) == batch(p.out)) {
    p.left = {batch(p.left), p.left[rank - 2], p.left.back()};
    p.right = {batch(p.right), p.right[rank - 2], p.right.back()};
    p.out = {batch(p.out), p.out[rank - 2], p.out.back()};
  }
  return p;
}

/// One row times a matrix that fits a second-level cache. The native kernel then reads weights as
/// fast as the cache yields them; from memory, oneDNN's kernels read faster.
bool IsSmallRow(const Problem& p) {
  return p.flat && p.left[0] == 1 &&
         p.right[0] * p.right[1] * static_cast<int64_t>(sizeof(float)) <= SecondLevelCacheBytes();
}

/// oneDNN's gemm packs the matrix in every call. With few rows that takes much of its time; the
/// native kernel has packed the matrix before. With AVX2 the gemm never comes out faster below a
/// thousand rows.
bool IsFewRows(const Problem& p) {
  const int64_t most = NativeIsaHere() == NativeIsa::kAvx2 ? 512 : 64;
  return p.flat && p.left[0] > 1 && p.left[0] <= most;
}

constexpr auto kF32 = memory::data_type::f32;
constexpr auto kBf16 = memory::data_type::bf16;

memory::desc Plain(const memory::dims& dims, memory::data_type type = kF32) {
  return {dims, type, memory::dims(RowMajorStrides(dims))};
}
memory::desc AnyFormat(const memory::dims& dims, memory::data_type type = kF32) {
  return {dims, type, memory::format_tag::any};
}

/// Returns the operand where it lies, when that is a transposed or strided view of the same rank;
/// otherwise row-major.
std::pair<Place, memory::desc> Operand(Lowering& lowering, ValueId value, const memory::dims& dims,
                                       bool as_it_lies) {
  const Place any = lowering.Any(value);
  const Shape& shape = lowering.shape(value);
  as_it_lies = as_it_lies && IsNested(any.layout, shape);
  if (as_it_lies && any.layout.block_dim < 0 && shape.size() == dims.size())
    return {any, DescOf(shape, any.layout)};
  // A transposed view whose batch dimensions collapse.
  if (as_it_lies && any.layout.block_dim < 0 && dims.size() == 3 && shape.size() > 3) {
    const size_t rank = shape.size();
    int64_t stride = any.layout.strides[rank - 3];
    int64_t span = stride * shape[rank - 3];
    bool collapses = true;
    for (size_t d = rank - 3; d-- > 0;) {
      collapses = collapses && (shape[d] == 1 || any.layout.strides[d] == span);
      span *= shape[d];
    }
    const memory::dims strides = {stride, any.layout.strides[rank - 2],
                                  any.layout.strides[rank - 1]};
    if (collapses) return {any, memory::desc(dims, kF32, strides)};
  }
  return {lowering.Plain(value), Plain(dims)};
}

/// Constant columns times the epilogue's scale, not rounded.
HostValue ScaledColumns(Lowering& lowering, ValueId value, const std::vector<double>& scale) {
  HostValue weights = lowering.folded().Exact(value);
  for (size_t i = 0; !scale.empty() && i < weights.scalars.size(); ++i)
    weights.scalars[i] *= scale[i % scale.size()];
  return weights;
}

/// The same weights, rounded once and packed.
Place PackColumns(Lowering& lowering, ValueId value, const std::vector<double>& scale,
                  const memory::desc& plain, const memory::desc& wanted) {
  if (scale.empty()) return lowering.PackedWeights(lowering.folded().Rounded(value), plain, wanted);
  return lowering.PackedWeights(ScaledWeights{lowering.folded().View(value), scale, 1}, plain,
                                wanted);
}

struct ProductChoice {
  size_t post_ops = 0;
  Epilogue epilogue;
  Chosen chosen;
};

std::optional<ProductChoice> ChooseWithPostOps(Lowering& lowering, const Group& group,
                                               const Problem& p, const memory::desc& left,
                                               const memory::desc& right, memory::data_type result,
                                               const Accept& accept) {
  for (size_t count = group.post_ops.size() + 1; count-- > 0;) {
    std::optional<Epilogue> epilogue =
        MakeEpilogue(lowering, group, count, p.out.back(), Kernels::kOneDnn);
    if (!epilogue.has_value()) continue;
    memory::desc bias;
    if (!epilogue->bias.empty()) {
      memory::dims dims(p.out.size(), 1);
      dims.back() = p.out.back();
      bias = Plain(dims);
    }
    try {
      const dnnl::matmul::desc desc(left, right, bias, Plain(p.out, result));
      std::optional<Chosen> chosen = Choose<dnnl::matmul>(desc, epilogue->attributes, accept);
      if (chosen.has_value()) return ProductChoice{count, std::move(*epilogue), std::move(*chosen)};
    } catch (const dnnl::error&) {
      continue;  // a combination that oneDNN does not describe
    }
  }
  return std::nullopt;
}

/// The problem by an algorithm of low_precision.h.
Problem InLowPrecision(Problem p, std::string_view algorithm) {
  const int64_t times = algorithm == kBf16x3Algorithm ? 3 : 1;
  p.left.back() *= times;
  p.right[p.right.size() - 2] *= times;
  return p;
}

absl::StatusOr<bool> LowerLowPrecision(Lowering& lowering, const Group& group,
                                       std::string_view algorithm) {
  const Node& node = lowering.graph().node(group.nodes[0]);
  const Problem p = InLowPrecision(ProblemOf(lowering.graph(), node), algorithm);
  const memory::desc left = Plain(p.left, kBf16);
  const std::optional<ProductChoice> choice =
      ChooseLowPrecision(group, [&](memory::data_type result, Quality quality) {
        return ChooseWithPostOps(lowering, group, p, left, AnyFormat(p.right, kBf16), result,
                                 AcceptQuality(quality));
      });
  if (!choice.has_value()) return false;
  const Shape& source = lowering.shape(node.inputs[0]);
  const std::vector<double>& scale = choice->epilogue.scale;
  const memory::desc& wanted = choice->chosen.weights;
  Operands operands;
  if (algorithm == kBf16x3Algorithm) {
    const Shape& right = lowering.shape(node.inputs[1]);
    const Tensor parts = SplitWeights(ScaledColumns(lowering, node.inputs[1], scale),
                                      right.size() - 2, source.back());
    operands.src = lowering.SplitIn(node.inputs[0], {source.size() - 1, 1});
    operands.weights = lowering.PackedWeights(parts, Plain(p.right, kBf16), wanted);
  } else {
    operands.src = lowering.NarrowIn(node.inputs[0], PlainLayout(source));
    operands.weights = PackColumns(lowering, node.inputs[1], scale, Plain(p.right), wanted);
  }
  MENDEL_RETURN_IF_ERROR(EmitContraction(lowering, group, choice->post_ops, choice->epilogue,
                                         choice->chosen, operands));
  return true;
}

}  // namespace

bool MatMulRunsIn(std::string_view algorithm, const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  if (graph.type(node.inputs[0]).shape.size() < 2 || graph.type(node.inputs[1]).shape.size() < 2)
    return false;
  const Problem p = InLowPrecision(ProblemOf(graph, node), algorithm);
  memory::dims bias(p.out.size(), 1);
  bias.back() = p.out.back();
  try {
    const dnnl::matmul::desc desc(Plain(p.left, kBf16), AnyFormat(p.right, kBf16), Plain(bias),
                                  Plain(p.out));
    return Choose<dnnl::matmul>(desc, UserScratchpad(), AcceptQuality(Quality::kGemm)).has_value();
  } catch (const dnnl::error&) {
    return false;  // a combination that oneDNN does not describe
  }
}

absl::StatusOr<bool> LowerMatMul(Lowering& lowering, const Group& group) {
  const Node& node = lowering.graph().node(group.nodes[0]);
  if (group.attention.has_value()) {
    MENDEL_RETURN_IF_ERROR(LowerAttention(lowering, group));
    return true;
  }
  if (const auto named = lowering.options().algorithms.find(group.nodes[0]);
      named != lowering.options().algorithms.end()) {
    MENDEL_ASSIGN_OR_RETURN(const bool direct, LowerDirect(lowering, group, named->second));
    if (direct) return true;
    if (RunsLowPrecision(lowering.graph(), group.nodes[0], lowering.options().numerics,
                         named->second)) {
      MENDEL_ASSIGN_OR_RETURN(const bool low, LowerLowPrecision(lowering, group, named->second));
      if (low) return true;
    }
    const std::vector<std::string> known =
        ConvAlgorithms(lowering.graph(), group.nodes[0], lowering.options().numerics);
    if (!named->second.empty() &&
        std::find(known.begin(), known.end(), named->second) == known.end()) {
      return InvalidInput("node '", node.name, "' (MatMul ", group.nodes[0], ") has no algorithm '",
                          named->second, "' here");
    }
  }
  const Problem p = ProblemOf(lowering.graph(), node);
  if (IsSmallRow(p)) {
    MENDEL_ASSIGN_OR_RETURN(const bool direct,
                            LowerDirect(lowering, group, std::string(kNativePointwise)));
    if (direct) return true;
  }
  const bool packed = lowering.folded().IsConstant(node.inputs[1]);
  for (const Quality quality : {Quality::kGenerated, Quality::kGemm, Quality::kAnything}) {
    if (quality == Quality::kGemm && IsFewRows(p)) {
      MENDEL_ASSIGN_OR_RETURN(const bool direct,
                              LowerDirect(lowering, group, std::string(kNativePointwise)));
      if (direct) return true;
    }
    for (const bool as_it_lies : {true, false}) {
      // An operand must be copied only when its copy is chosen: operands where they lie come first.
      const bool view = as_it_lies && !lowering.folded().IsConstant(node.inputs[0]);
      const auto left_now = Operand(lowering, node.inputs[0], p.left, view && !p.flat);
      std::pair<Place, memory::desc> right_now;
      if (!packed) right_now = Operand(lowering, node.inputs[1], p.right, as_it_lies && !p.flat);
      std::optional<ProductChoice> choice = ChooseWithPostOps(
          lowering, group, p, left_now.second, packed ? AnyFormat(p.right) : right_now.second, kF32,
          AcceptQuality(quality));
      if (!choice.has_value()) continue;
      Operands operands{left_now.first, right_now.first, std::nullopt};
      if (packed) {
        operands.weights = PackColumns(lowering, node.inputs[1], choice->epilogue.scale,
                                       Plain(p.right), choice->chosen.weights);
      }
      MENDEL_RETURN_IF_ERROR(EmitContraction(lowering, group, choice->post_ops, choice->epilogue,
                                             choice->chosen, operands));
      return true;
    }
  }
  return false;
}

}  // namespace mendel::cpu
