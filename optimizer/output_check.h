// The output check decides whether two programs that should compute the same do so in numbers: what
// is measured must also be right.
#ifndef MENDEL_OPTIMIZER_OUTPUT_CHECK_H_
#define MENDEL_OPTIMIZER_OUTPUT_CHECK_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "runtime/backend.h"

namespace mendel {

using OutputBytes = std::vector<std::vector<std::byte>>;

struct OutputDifference {
  /// Largest over all elements, relative to the largest finite element of the same output; infinite
  /// where only one of two elements is finite. Of integral outputs: the share of unequal elements.
  double error = 0;
  bool wrong = false;
  std::string output;  ///< the one that is furthest beyond its tolerance
};

/// Difference that rounding may make: reassociated sums (strict), bilinear algorithms (default), or
/// operands rounded to bf16 (twice what the numeric gate allows each of two programs), never less
/// than a few units in the last place of `dtype`. Integral outputs follow from rounded numbers
/// (ArgMax), so a few of many elements may differ. This finds broken kernels; how good the numbers
/// are is for the numeric gate, which knows the exact ones.
double OutputTolerance(DType dtype, Numerics numerics);

/// Buffers in the order of graph.outputs(), of exactly the types' sizes.
OutputDifference CompareOutputs(const Graph& graph, const OutputBytes& want,
                                const OutputBytes& have, Numerics numerics);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_OUTPUT_CHECK_H_
