#include "mutator/zero_blocks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "graph/positions.h"

namespace mendel {
namespace {

constexpr double kWorthwhile = 0.75;  // of the numbers of the matrix
constexpr size_t kMostBlocks = 16;

}  // namespace

std::vector<ZeroBlock> ZeroBlocksOf(int64_t rows, int64_t columns,
                                    const std::function<bool(int64_t, int64_t)>& is_zero) {
  std::vector<int64_t> parent(static_cast<size_t>(rows + columns));
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](int64_t at) {
    while (parent[static_cast<size_t>(at)] != at) {
      parent[static_cast<size_t>(at)] =
          parent[static_cast<size_t>(parent[static_cast<size_t>(at)])];
      at = parent[static_cast<size_t>(at)];
    }
    return at;
  };
  int64_t parts = rows + columns;
  for (int64_t i = 0; i < rows; ++i) {
    // One number that is not zero joins a row to what came before, if that is one part.
    const bool is_one = parts == 1 + rows - i;
    for (int64_t j = 0; j < columns; ++j) {
      if (is_zero(i, j)) continue;
      const int64_t row = root(i), column = root(rows + j);
      if (row != column) --parts;
      parent[static_cast<size_t>(row)] = column;
      if (is_one) break;
    }
  }
  std::map<int64_t, ZeroBlock> by_root;
  for (int64_t i = 0; i < rows; ++i) by_root[root(i)].rows.push_back(i);
  for (int64_t j = 0; j < columns; ++j) by_root[root(rows + j)].columns.push_back(j);
  std::vector<ZeroBlock> blocks;
  for (auto& [id, block] : by_root) {
    if (!block.rows.empty() && !block.columns.empty()) blocks.push_back(std::move(block));
  }
  std::sort(blocks.begin(), blocks.end(),
            [](const ZeroBlock& a, const ZeroBlock& b) { return a.columns[0] < b.columns[0]; });
  return blocks;
}

bool AreWorthwhile(const std::vector<ZeroBlock>& blocks, int64_t rows, int64_t columns) {
  double left = 0;
  for (const ZeroBlock& block : blocks)
    left += static_cast<double>(block.rows.size() * block.columns.size());
  return !blocks.empty() && blocks.size() <= kMostBlocks &&
         left <= kWorthwhile * static_cast<double>(rows * columns);
}

std::vector<int64_t> OrderOf(const std::vector<ZeroBlock>& blocks, int64_t columns) {
  std::vector<int64_t> order(static_cast<size_t>(columns), kAbsent);
  int64_t next = 0;
  for (const ZeroBlock& block : blocks) {
    for (const int64_t column : block.columns) order[static_cast<size_t>(column)] = next++;
  }
  return order;
}

}  // namespace mendel
