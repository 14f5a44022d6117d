// Blocks of a stored matrix outside of which it is zero.
#ifndef MENDEL_MUTATOR_ZERO_BLOCKS_H_
#define MENDEL_MUTATOR_ZERO_BLOCKS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "graph/emitter.h"

namespace mendel {

/// Rows and columns, ascending, outside of which they have zeros only.
struct ZeroBlock {
  std::vector<int64_t> rows, columns;
};

/// The blocks of a matrix, by their first column: rows and columns are connected where `is_zero`
/// (row, column) is false.
std::vector<ZeroBlock> ZeroBlocksOf(int64_t rows, int64_t columns,
                                    const std::function<bool(int64_t, int64_t)>& is_zero);

/// True where computing the blocks alone is worthwhile: few, and a quarter of the matrix is zero.
bool AreWorthwhile(const std::vector<ZeroBlock>& blocks, int64_t rows, int64_t columns);

/// The place of each column in the blocks side by side; kAbsent where it is in none.
std::vector<int64_t> OrderOf(const std::vector<ZeroBlock>& blocks, int64_t columns);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_ZERO_BLOCKS_H_
