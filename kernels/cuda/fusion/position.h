// Positions in tensors as C expressions.
#ifndef MENDEL_KERNELS_CUDA_FUSION_POSITION_H_
#define MENDEL_KERNELS_CUDA_FUSION_POSITION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/types.h"

namespace mendel::cuda {

/// A coordinate that is `step` times coordinate `dim` of the kernel's result, plus `shift`. dim -1:
/// something else.
struct FromRoot {
  int dim = -1;
  int64_t step = 1, shift = 0;
};

/// One expression a dimension: a variable, a number, or something in parentheses.
struct Position {
  std::vector<std::string> at;
  /// root[d] relates at[d] to the coordinates of the kernel's result. Empty: none is related.
  std::vector<FromRoot> root = {};
  /// If it is not empty, the variable that contains the row-major number of this position in its
  /// tensor.
  std::string flat = "";

  FromRoot RootOf(size_t d) const { return root.empty() ? FromRoot{} : root[d]; }
};

/// `at` with its coordinate d, x there, replaced by step * x + shift, in a tensor of another shape.
Position Moved(Position at, size_t d, int64_t step, int64_t shift);

/// The coordinates from `begin` to before `end` in dimension `dim`. A condition that all positions
/// of a tensor meet needs no extent.
struct Extent {
  size_t dim = 0;
  int64_t begin = 0, end = 0;
};

/// a + b, a * factor and a / divisor, a % divisor, simplified where a side is a number that allows
/// it.
std::string Added(const std::string& a, const std::string& b);
std::string Added(const std::string& a, int64_t b);
std::string Scaled(const std::string& a, int64_t factor);
std::string Divided(const std::string& a, int64_t divisor);
std::string Modulo(const std::string& a, int64_t divisor);
/// Row-major number of the position in a tensor of `shape`.
std::string FlatOf(const Shape& shape, const Position& position);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_FUSION_POSITION_H_
