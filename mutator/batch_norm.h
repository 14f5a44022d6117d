// A batch normalization as a scale and a shift of each channel.
#ifndef MENDEL_MUTATOR_BATCH_NORM_H_
#define MENDEL_MUTATOR_BATCH_NORM_H_

#include "graph/emitter.h"

namespace mendel {

/// y = factor * x + shift, both weight expressions of shape [C].
struct ChannelAffine {
  ValueId factor, shift;
};

/// True for a BatchNormalization with constant statistics.
bool IsConstantBatchNorm(const Graph& graph, int32_t node);
/// The affine map of such a node, by the operator itself: BatchNorm(1) without shift, BatchNorm(0).
ChannelAffine AffineOf(Emitter& e, const Graph& graph, int32_t node);

/// Conv or ConvTranspose with constant weights, read once.
bool IsFoldableConv(const Graph& graph, int32_t node);
/// Weights `w` of the convolution `conv` (of either kind) with every output channel times its entry
/// of `factor` [O].
ValueId ScaleOutputs(Emitter& e, const Node& conv, ValueId w, ValueId factor);
/// `factor` * Conv(x, ..) + `shift` (where given) as one convolution.
ValueId FoldedConv(Emitter& e, const Graph& graph, int32_t conv, ValueId x, ValueId factor,
                   const ValueId* shift);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_BATCH_NORM_H_
