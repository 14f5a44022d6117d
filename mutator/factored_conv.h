// Convolutions whose stored weights are exactly sums of products, as two convolutions.
//
// Some dimensions of the window are `along`, the others around. Weights are cut into blocks;
// each, as a matrix of rows (input channel, taps around) and columns (output channel, taps along),
// is a product through `rank`. Then
//
//   Conv(x, w[O, C/g, K..])  =  Conv(Conv(x, u[blocks * rank, .., taps around]), v[O, .., taps
//   along])
//
// where the first convolution has the window's strides, dilations and padding around, the second
// one those along.
#ifndef MENDEL_MUTATOR_FACTORED_CONV_H_
#define MENDEL_MUTATOR_FACTORED_CONV_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "mutator/low_rank.h"

namespace mendel {

/// A block contains one output channel, one input channel, or a whole group (a dense convolution is
/// one).
enum class FactorBlocks : int64_t { kOutputs = 0, kInputs = 1, kGroups = 2 };

struct ConvFactoring {
  FactorBlocks blocks = FactorBlocks::kGroups;
  std::vector<bool> along;  ///< an entry a spatial dimension
  /// Groups of the convolution, and channels of a group.
  int64_t group = 1, outputs = 0, inputs = 0;
  int64_t count = 0, block_outputs = 0, block_inputs = 0;  ///< blocks, channels of a block
  /// Products of numbers an output position: before, and after if the rank is 1.
  double before = 0, after_one = 0;

  double After(size_t rank) const { return static_cast<double>(rank) * after_one; }
};

/// The literal weights of a convolution of run-time data with no bias or one that is a weight
/// (mutator/low_rank.h: StoredKernelOf); null for other nodes.
const Tensor* LiteralKernel(const Graph& graph, int32_t node);

ConvFactoring FactoringOf(const Graph& graph, int32_t conv, FactorBlocks blocks,
                          const std::vector<bool>& along);

/// Factors of every block through one rank; nullopt where there are none that need at most
/// `worthwhile` of the arithmetic before. A rank above 128 is not looked for.
std::optional<std::vector<MatrixFactors>> FactorKernel(const Tensor& weights,
                                                       const ConvFactoring& factoring,
                                                       double worthwhile);

/// The program of one convolution as two of these factors; bias and the scale of a folded batch
/// normalization go to the second.
absl::StatusOr<Graph> EmitFactored(const Graph& subprogram, const ConvFactoring& factoring,
                                   const std::vector<MatrixFactors>& factors);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_FACTORED_CONV_H_
