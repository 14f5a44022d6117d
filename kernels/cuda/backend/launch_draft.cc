#include "kernels/cuda/backend/launch_draft.h"

#include <algorithm>
#include <map>

namespace mendel::cuda {
namespace {

bool Meet(const std::set<ValueId>& a, const std::set<ValueId>& b) {
  return std::any_of(a.begin(), a.end(), [&](ValueId value) { return b.count(value) > 0; });
}

}  // namespace

bool Conflict(const ValueUse& a, const ValueUse& b) {
  return Meet(a.writes, b.writes) || Meet(a.writes, b.reads) || Meet(a.reads, b.writes);
}

std::vector<int> LevelsOf(std::span<const ValueUse> drafts) {
  std::map<ValueId, int> after_writes, after_uses;  // the first level that may read, that may write
  std::vector<int> levels;
  for (const ValueUse& use : drafts) {
    int level = 0;
    for (const ValueId value : use.reads) level = std::max(level, after_writes[value]);
    for (const ValueId value : use.writes) level = std::max(level, after_uses[value]);
    for (const ValueId value : use.reads) after_uses[value] = std::max(after_uses[value], level + 1);
    for (const ValueId value : use.writes) after_writes[value] = after_uses[value] = level + 1;
    levels.push_back(level);
  }
  return levels;
}

}  // namespace mendel::cuda
