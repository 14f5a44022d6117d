// Convolutions in oneDNN's terms.
#ifndef MENDEL_KERNELS_CPU_LOWERING_CONV_PROBLEM_H_
#define MENDEL_KERNELS_CPU_LOWERING_CONV_PROBLEM_H_

#include <cstdint>
#include <optional>

#include "kernels/cpu/kernels/bf16_split.h"
#include "kernels/cpu/lowering/contraction.h"
#include "kernels/cpu/lowering/layout.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace mendel::cpu {

/// One convolution's geometry in oneDNN's terms.
struct ConvProblem {
  bool transposed = false;
  dnnl::memory::dims src, weights, dst, strides, dilations, pads_begin, pads_end;
  dnnl::memory::dims
      weight_strides;  ///< of the graph's weights, read with the dimensions `weights`
  bool has_bias = false;
  dnnl::memory::data_type operands = dnnl::memory::data_type::f32,
                          result = dnnl::memory::data_type::f32;
  std::optional<Layout> src_layout, dst_layout;  ///< none: as oneDNN likes it
  std::optional<SplitRowsOf> split;              ///< bf16x3: three times the channels
};

/// Returns the problem of a Conv or ConvTranspose node in f32, without a bias. Layouts are left
/// open.
ConvProblem ProblemOf(const Graph& graph, int32_t id);

/// First acceptable implementation, or nullopt. `way` does not matter to transposed convolutions.
std::optional<Chosen> ChooseFor(const ConvProblem& p, dnnl::algorithm way,
                                const dnnl::primitive_attr& attributes, const Accept& wanted);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_CONV_PROBLEM_H_
