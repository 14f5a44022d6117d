// Positions in tensors as C expressions.
#ifndef MENDEL_KERNELS_CUDA_FUSION_POSITION_H_
#define MENDEL_KERNELS_CUDA_FUSION_POSITION_H_

#include <string>
#include <vector>

#include "graph/types.h"

namespace mendel::cuda {

/// One expression a dimension: a variable, a number, or something in parentheses.
struct Position {
  std::vector<std::string> at;
  /// The coordinate of the kernel's result that at[d] is; -1: something else. May be empty: all are something else.
  std::vector<int> root = {};
  /// Where not empty: the variable that holds the row-major number of this position in its tensor.
  std::string flat = "";

  int RootOf(size_t d) const { return root.empty() ? -1 : root[d]; }
};

/// a + b, a * factor and a / divisor, a % divisor, simplified where a side is a number that allows it.
std::string Added(const std::string& a, const std::string& b);
std::string Added(const std::string& a, int64_t b);
std::string Scaled(const std::string& a, int64_t factor);
std::string Divided(const std::string& a, int64_t divisor);
std::string Modulo(const std::string& a, int64_t divisor);
/// Row-major number of the position in a tensor of `shape`.
std::string FlatOf(const Shape& shape, const Position& position);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_FUSION_POSITION_H_
