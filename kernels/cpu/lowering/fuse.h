// Groups of nodes that are computed together.
#ifndef MENDEL_KERNELS_CPU_LOWERING_FUSE_H_
#define MENDEL_KERNELS_CPU_LOWERING_FUSE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "kernels/cpu/lowering/fold.h"
#include "oneapi/dnnl/dnnl.hpp"
#include "runtime/backend.h"

namespace mendel::cpu {

/// An activation as oneDNN's eltwise post-op.
struct Activation {
  dnnl::algorithm algorithm = dnnl::algorithm::eltwise_relu;
  float alpha = 0;
  float beta = 0;
};
/// nullopt when the node is not an activation that oneDNN knows.
std::optional<Activation> ActivationOf(const Node& node);

/// One operation applied to a contraction's result.
struct PostOp {
  enum class Kind {
    kScale,       ///< times the constant `operand`, one element a channel or one in all
    kDivide,      ///< divided by such a constant
    kShift,       ///< plus such a constant
    kUnshift,     ///< minus such a constant
    kNormalize,   ///< BatchNormalization with constant parameters
    kResidual,    ///< plus a value of the same type
    kActivation,  ///< `activation`
  };
  Kind kind = Kind::kActivation;
  std::vector<int32_t>
      nodes;  ///< the nodes that this post-op computes, the last one's value being the result
  ValueId operand;
  Activation activation;
};

/// A contraction's source that its kernel computes while reading it. It has one factor and summand
/// a channel, then perhaps a ReLU; or one factor an image and channel that is computed at run time.
struct PreparedSource {
  ValueId source;
  std::vector<double> factor, summand;
  bool relu = false;
  /// The factor of an image and channel, [N, C, 1, ...]; then nothing else.
  std::optional<ValueId> gate = {};
  std::vector<int32_t> nodes;  ///< that compute it
};

/// AttentionChain is the part of an attention before its second product: softmax(t), t = scale * Q
/// K and its terms.
struct AttentionChain {
  /// A summand of the scores or, of dtype bool, a condition: where it is not `kept`, the score
  /// becomes `other`. Broadcast to them.
  struct Term {
    ValueId operand;
    bool condition = false;
    bool kept = true;
    double other = 0;
  };
  int32_t product = -1;        ///< Q K
  std::vector<int32_t> nodes;  ///< from it to the softmax and what replaces its NaNs, ascending
  double scale = 1;
  std::vector<Term> terms;  ///< in order, after the scale
  bool zero_nan = false;    ///< weights that are NaN become zero
};

struct IntegerProduct;  // integer_product.h
struct CodeFunction;    // code_function.h

/// Nodes that become one step, ascending. A contraction (Conv, ConvTranspose, MatMul) with its
/// post_ops, or elementwise nodes. No value inside is read outside, except the last node's.
struct Group {
  std::vector<int32_t> nodes;
  bool contraction = false;
  std::vector<PostOp> post_ops;
  std::optional<PreparedSource> prepared = {};   ///< only by kernels that say so
  std::optional<AttentionChain> attention = {};  ///< computed with the product, likewise
  /// At most one: the pointwise convolution that makes the source, likewise.
  std::vector<Group> expansion = {};
  /// Values of each image and channel of the group's value, computed with it, likewise.
  std::optional<ValueId> mean = {};
  std::shared_ptr<const IntegerProduct> integer = {};  ///< computed in integers
  std::shared_ptr<const CodeFunction> function = {};   ///< its value, read from a table
  bool narrow = false;  ///< the group's value may be kept in bf16 (low_precision.h)
};

/// Groups by their last node. Every elementwise or contraction node is in exactly one group; other
/// nodes are in none. So are `unread` nodes, which nothing reads because integer products and
/// functions of codes read the codes instead; they need no step.
std::vector<std::optional<Group>> FindGroups(const Graph& graph, Folded& folded,
                                             const CompileOptions& options,
                                             std::set<int32_t>& unread);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_FUSE_H_
