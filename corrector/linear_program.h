// A program that is one convolution between views, seen as linear: what each of its outputs reads.
#ifndef MENDEL_CORRECTOR_LINEAR_PROGRAM_H_
#define MENDEL_CORRECTOR_LINEAR_PROGRAM_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/window.h"

namespace mendel {

/// Output of a graph = views and elementwise operators of (Conv(views(input), w, b)).
struct LinearProgram {
  int32_t conv = -1;
  int32_t input = -1;            ///< the Input node that the convolution reads
  std::vector<int32_t> tail;     ///< elementwise operators after it, in order
  std::vector<Window> windows;   ///< windows of the convolution, spatial dimensions
  Shape source;                  ///< extents of the input
  Shape conv_in, conv_out, out;  ///< extents
  /// For image and spatial position of the convolution's input, row-major: the input's position in
  /// image and space, plus one; 0 for zeros.
  std::vector<int64_t> reads;
  /// For image and spatial position of the output: position of the convolution's output in image
  /// and space.
  std::vector<int64_t> from;
};

/// FailedPrecondition says what else the program does.
absl::StatusOr<LinearProgram> AnalyzeLinear(const Graph& graph);

/// FailedPrecondition unless both are convolutions with equal weights of the same input, the
/// original's without views.
absl::Status CheckAlike(const Graph& original, const LinearProgram& f, const Graph& mutant,
                        const LinearProgram& g);

/// The program without its tail: what reaches the output before any elementwise operator.
/// `after_conv` may put something in place of the convolution's result.
absl::StatusOr<ValueId> EmitWithoutTail(
    const Graph& graph, const LinearProgram& program, const std::vector<ValueId>& inputs,
    GraphBuilder& builder,
    const std::function<absl::StatusOr<ValueId>(ValueId)>& after_conv = nullptr);
/// The tail applied to `value`.
absl::StatusOr<ValueId> EmitTailOf(const Graph& graph, const LinearProgram& program, ValueId value,
                                   GraphBuilder& builder);
/// The weight expression `value` and all that it depends on.
absl::StatusOr<ValueId> CopyWeights(const Graph& graph, ValueId value, GraphBuilder& builder);

/// Operators whose output elements are single elements of input 0, or zeros.
bool IsView(const Node& node);
/// For each image and spatial position of what the views `path` (first to last) make of a value of
/// extents `operand`, in channel 0: the position of its operand's image and space, plus `bias`;
/// zeros are 0 (refused when `bias` is). FailedPrecondition where the views mix channels.
absl::StatusOr<std::vector<int64_t>> TraceViews(const Graph& graph, const Shape& operand,
                                                const std::vector<int32_t>& path, int64_t bias);
/// Elementwise operators whose constants differ between channels at most may be applied in another
/// layout, or to a part.
bool TailMoves(const Graph& graph, const LinearProgram& program);
/// Extents without the channel dimension.
Shape WithoutChannels(const Shape& shape);

}  // namespace mendel

#endif  // MENDEL_CORRECTOR_LINEAR_PROGRAM_H_
