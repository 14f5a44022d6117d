// An access pattern states which input elements an output element reads. The region analyzer uses
// it (docs/verifier.md, "Regions").
#ifndef MENDEL_GRAPH_ACCESS_H_
#define MENDEL_GRAPH_ACCESS_H_

#include <cstdint>
#include <vector>

#include "graph/types.h"

namespace mendel {

/// Along one dimension of an input, output element o reads the positions
///     sum_j coefficient[j] * o_j + offset + step * r,   r = 0 .. count-1.
/// Positions outside [0, extent) are absent (zero padding). `whole`: every position is read, for
/// any o.
struct DimAccess {
  std::vector<int64_t> coefficients;  ///< one an output dimension; empty means all zero
  int64_t offset = 0;
  int64_t step = 1;
  int64_t count = 1;
  bool whole = false;
};

/// The way all output elements read one input, valid within the pattern's own breaks.
struct InputAccess {
  std::vector<DimAccess> dims;  ///< one an input dimension
};

/// The structure of an operator's output elements as functions of its inputs' elements.
struct AccessPattern {
  enum class Combine {
    kSum,      ///< a sum of terms, each a constant times one element of one input (views, pools,
               ///< concat, add)
    kProduct,  ///< a sum of products; each product takes one element of every input of its term,
               ///< see `terms` (conv, matmul, mul)
    kOracle,   ///< a non-polynomial function of all elements read, jointly (relu, softmax over
               ///< `whole` dimensions)
    kReshape,  ///< output flat position = input flat position of input 0; `inputs` is empty
  };
  Combine combine = Combine::kSum;
  std::vector<InputAccess> inputs;
  /// The terms of a kProduct. Each term lists the inputs that its products multiply (convolution
  /// with a bias: {0, 1} and {2}). Empty: one term with all inputs.
  std::vector<std::vector<int>> terms;
  /// Bit k is set if a product of a kProduct divides by input k. All elements of input k that an
  /// output element reads form one denominator.
  uint32_t divided_inputs = 0;
  /// Positions along each output dimension where the structure changes: group seams, concat seams,
  /// borders where a coefficient changes. The order is free; 0 and the extent may be included.
  /// Padding edges may be missing: the analyzer derives them from the accesses. Missing dimensions
  /// have no breaks.
  std::vector<std::vector<int64_t>> breaks;
  /// For Concat: breaks along `selecting_dim` divide the output into blocks. Block b reads input
  /// selected_input[b] only. Empty: every position reads all inputs.
  int selecting_dim = -1;
  std::vector<int> selected_input;
};

}  // namespace mendel

#endif  // MENDEL_GRAPH_ACCESS_H_
