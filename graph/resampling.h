// The coefficients of Resize along one dimension: which input positions an output position is made
// of, and how much of each.
//
// Follows the ONNX operator (opset 19 on): coordinates by coordinate_transformation_mode, then
// nearest, linear or cubic interpolation over the input extended by its border elements. The
// formulas are evaluated in double precision; a coefficient that they give to the last bits of a
// rational number with a small denominator is that number, so that a whole and its tiles have the
// same coefficients.
#ifndef MENDEL_GRAPH_RESAMPLING_H_
#define MENDEL_GRAPH_RESAMPLING_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "graph/op_definition.h"

namespace mendel {

/// One output position. No taps: the extrapolation value.
struct ResampleTap {
  int64_t position;
  double coefficient;
  /// coefficient = numerator / denominator; a denominator of 0: the double as it is.
  int64_t numerator = 0;
  int64_t denominator = 0;
};
using ResampleTaps = std::vector<ResampleTap>;

/// Taps of every output position along dimension `dim`; attributes as inference has accepted them.
std::vector<ResampleTaps> ResampleDimension(const NodeView& node, size_t dim);

/// Every output position is the input position of the same number.
bool IsIdentity(const std::vector<ResampleTaps>& taps, int64_t input);

/// InvalidArgument unless modes, scales, roi and sizes are known, finite and fit the input.
absl::Status CheckResize(const TensorType& input, const Attributes& attrs);

}  // namespace mendel

#endif  // MENDEL_GRAPH_RESAMPLING_H_
