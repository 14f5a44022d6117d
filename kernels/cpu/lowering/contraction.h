// Code shared by convolutions and matrix products: the operations fused to them, as scales in the
// weights, a bias and post-ops.
#ifndef MENDEL_KERNELS_CPU_LOWERING_CONTRACTION_H_
#define MENDEL_KERNELS_CPU_LOWERING_CONTRACTION_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cpu/lowering/fuse.h"
#include "kernels/cpu/lowering/lowering.h"

namespace mendel::cpu {

/// Epilogue of the first `count` post-ops of a group. Factors and summands before any activation go
/// into the weights and the bias. The others become oneDNN post-ops in the graph's order.
struct Epilogue {
  std::vector<double> scale;  ///< one a channel; empty: none
  std::vector<double>
      bias;  ///< one a channel, the contraction's own constant bias included; empty: none
  dnnl::primitive_attr attributes;
  std::optional<ValueId> residual;
};
/// The kernels that an epilogue is for. oneDNN's for AVX-512 take no factor and summand after an
/// activation.
enum class Kernels { kOneDnn, kNative };
/// nullopt when the post-ops do not fit: more than one residual or activation.
std::optional<Epilogue> MakeEpilogue(Lowering& lowering, const Group& group, size_t count,
                                     int64_t channels, Kernels kernels);

/// Accept returns true when an implementation will do, given its impl_info_str.
using Accept = std::function<bool(const std::string& implementation)>;

/// A primitive chosen for a contraction, which can be created.
struct Chosen {
  dnnl::primitive_desc_base primitive;
  std::string implementation;
  dnnl::memory::desc src, weights, bias, dst, scratchpad;
};

/// First acceptable implementation of a descriptor, or nullopt. D is the operation's class (its
/// desc and primitive_desc).
template <class D>
std::optional<Chosen> Choose(const typename D::desc& desc, const dnnl::primitive_attr& attributes,
                             const Accept& accept) {
  try {
    typename D::primitive_desc candidate(desc, attributes, Engine());
    do {
      const std::string name = candidate.impl_info_str();
      if (!accept(name) || !LayoutOf(candidate.src_desc()).has_value() ||
          !LayoutOf(candidate.dst_desc()).has_value())
        continue;
      const D created(candidate);  // oneDNN also describes what it cannot create; the library keeps
                                   // what it created
      return Chosen{candidate,
                    name,
                    candidate.src_desc(),
                    candidate.weights_desc(),
                    candidate.bias_desc(),
                    candidate.dst_desc(),
                    candidate.scratchpad_desc()};
    } while (candidate.next_impl());
  } catch (const dnnl::error&) {
    // oneDNN does not implement this with these formats and post-ops.
  }
  return std::nullopt;
}

/// Quality limits the search for an implementation that fuses everything. Generated kernels come
/// first, then oneDNN's im2col, then its reference code.
enum class Quality { kGenerated, kGemm, kAnything };
Accept AcceptQuality(Quality quality);

/// Memory operands of a chosen contraction whose weights and source have been placed.
struct Operands {
  Place src;
  Place weights;
  std::optional<Place> dynamic_bias;
};
/// Emits the step for the first `count` post_op-ops and elementwise steps for the others.
absl::Status EmitContraction(Lowering& lowering, const Group& group, size_t count,
                             const Epilogue& epilogue, const Chosen& chosen,
                             const Operands& operands);

/// The contraction and its first `count` post_op-ops, and their value.
std::vector<int32_t> NodesOf(const Group& group, size_t count);
inline ValueId ResultOf(const Group& group, size_t count) {
  return {NodesOf(group, count).back(), 0};
}
/// Elementwise steps for the post_op-ops after the first `count`.
absl::Status LowerRest(Lowering& lowering, const Group& group, size_t count);

absl::StatusOr<bool> LowerConv(Lowering& lowering, const Group& group);
absl::StatusOr<bool> LowerMatMul(Lowering& lowering, const Group& group);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_CONTRACTION_H_
