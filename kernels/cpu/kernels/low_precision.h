// Contractions whose operands are rounded to one or two numbers of bf16 and whose sums are f32, by
// oneDNN: what the numerics classes bf16 and high add.
#ifndef MENDEL_KERNELS_CPU_KERNELS_LOW_PRECISION_H_
#define MENDEL_KERNELS_CPU_KERNELS_LOW_PRECISION_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cpu/lowering/contraction.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace mendel::cpu {

/// The algorithm's name. Constant weights are rounded to bf16 when the program is made (from f32,
/// the epilogue's scales included), the source while it is reordered; both to nearest, ties to
/// even. Bias, residual and activation are f32. Numbers above bf16's largest become infinite;
/// denormal ones may be taken as zero.
inline constexpr std::string_view kBf16Algorithm = "bf16";
/// This algorithm belongs to the class high and applies to contractions without groups. Both
/// operands are sums of two numbers of bf16 (bf16_split.h); the product of the two small parts is
/// left out. It is one contraction of three times the depth, whose sums stay in registers.
/// Infinities and NaN are what they are in f32. Low parts below bf16's smallest normal number may
/// be taken as zero: numbers below 2^-110 keep eight bits.
inline constexpr std::string_view kBf16x3Algorithm = "bf16x3";

/// True where the processor multiplies bf16 (AVX512_BF16 or AMX) and oneDNN may use it. Emulation
/// by f32 is never offered.
bool MultipliesBf16();
/// True where it does so in tiles (AMX).
bool MultipliesBf16Tiles();

/// True when `numerics` allows one of those algorithms for an f32 Conv, ConvTranspose or MatMul
/// with constant weights. oneDNN must have more than reference code for it.
bool RunsLowPrecision(const Graph& graph, int32_t node, Numerics numerics,
                      std::string_view algorithm);
/// The names that are offered: `bf16x3` only where there are tiles. Without them three products of
/// bf16 were never as fast as one of f32 (docs/decisions/2026-11-22-numerics-classes.md).
std::vector<std::string> LowPrecisionAlgorithms(const Graph& graph, int32_t node,
                                                Numerics numerics);

/// lower_conv.cc and lower_matmul.cc: whether oneDNN has one of those algorithms for the
/// contraction with a bias.
bool ConvRunsIn(std::string_view algorithm, const Graph& graph, int32_t node);
bool MatMulRunsIn(std::string_view algorithm, const Graph& graph, int32_t node);

/// Sets Group::narrow where every reader of the group's value is a contraction that runs in bf16.
/// Such a reader would round it anyway, so that numbers do not change. Nodes in `taken` have no
/// steps of their own.
void MarkNarrow(const Lowering& lowering, const std::set<int32_t>& taken,
                std::vector<std::optional<Group>>& groups);

/// `choose(result, quality)` returns an optional choice with its number of fused post-ops. The
/// result is narrow only where everything is fused, because other post-ops read f32.
template <class ChooseResult>
auto ChooseLowPrecision(const Group& group, const ChooseResult& choose)
    -> decltype(choose(dnnl::memory::data_type::f32, Quality::kGenerated)) {
  using Type = dnnl::memory::data_type;
  for (const Type result : {Type::bf16, Type::f32}) {
    if (result == Type::bf16 && !group.narrow) continue;
    for (const Quality quality : {Quality::kGenerated, Quality::kGemm}) {
      auto choice = choose(result, quality);
      if (choice.has_value() && (result == Type::f32 || choice->post_ops == group.post_ops.size()))
        return choice;
    }
  }
  return std::nullopt;
}

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_LOW_PRECISION_H_
