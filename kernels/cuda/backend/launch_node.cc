#include "kernels/cuda/backend/launch_node.h"

#include <algorithm>
#include <map>
#include <utility>

namespace mendel::cuda {
namespace {

bool Meet(const std::set<ValueId>& a, const std::set<ValueId>& b) {
  return std::any_of(a.begin(), a.end(), [&](ValueId value) { return b.count(value) > 0; });
}

constexpr size_t kWindow = 48;  // nodes between two that may join

struct Launch {
  std::vector<size_t> nodes;
  ValueUse use;
  size_t pointers = 0;  // 0: it stays alone
};

void Join(Launch& launch, const Launch& other) {
  launch.nodes.insert(launch.nodes.end(), other.nodes.begin(), other.nodes.end());
  launch.pointers += other.pointers;
  launch.use.reads.insert(other.use.reads.begin(), other.use.reads.end());
  launch.use.writes.insert(other.use.writes.begin(), other.use.writes.end());
}

bool MayJoin(const Launch& one, const Launch& other, JoinLimits most) {
  return one.pointers > 0 && other.pointers > 0 &&
         one.nodes.size() + other.nodes.size() <= most.nodes &&
         one.pointers + other.pointers <= most.pointers;
}

/// Joins the launch at `at` with later ones; false when it went down to one of them, so that
/// another is at `at` now.
bool JoinFrom(std::vector<Launch>& launches, size_t at, JoinLimits most) {
  bool may_move_down = true;
  for (size_t k = at + 1; k < std::min(launches.size(), at + kWindow); ++k) {
    Launch &one = launches[at], &other = launches[k];
    const bool conflict = Conflict(one.use, other.use);
    if (!conflict && MayJoin(one, other, most)) {
      const auto stays = [&](const Launch& between) { return Conflict(between.use, other.use); };
      const auto begin = launches.begin() + static_cast<std::ptrdiff_t>(at),
                 there = launches.begin() + static_cast<std::ptrdiff_t>(k);
      if (std::none_of(begin + 1, there, stays)) {
        Join(one, other);
        launches.erase(there);
        --k;
        continue;
      }
      if (may_move_down) {
        Join(one, other);
        other = std::move(one);
        launches.erase(begin);
        return false;
      }
    }
    may_move_down = may_move_down && !conflict;
  }
  return true;
}

}  // namespace

bool Conflict(const ValueUse& a, const ValueUse& b) {
  return Meet(a.writes, b.writes) || Meet(a.writes, b.reads) || Meet(a.reads, b.writes);
}

std::vector<int> LevelsOf(std::span<const ValueUse> nodes) {
  std::map<ValueId, int> after_writes, after_uses;  // the first level that may read, that may write
  std::vector<int> levels;
  for (const ValueUse& use : nodes) {
    int level = 0;
    for (const ValueId value : use.reads) level = std::max(level, after_writes[value]);
    for (const ValueId value : use.writes) level = std::max(level, after_uses[value]);
    for (const ValueId value : use.reads)
      after_uses[value] = std::max(after_uses[value], level + 1);
    for (const ValueId value : use.writes) after_writes[value] = after_uses[value] = level + 1;
    levels.push_back(level);
  }
  return levels;
}

std::vector<size_t> DepthFirst(std::span<const ValueUse> nodes) {
  std::vector<std::vector<size_t>> before(nodes.size());
  std::vector<bool> is_followed(nodes.size(), false);
  for (size_t k = 0; k < nodes.size(); ++k) {
    for (size_t j = 0; j < k; ++j) {
      if (!Conflict(nodes[j], nodes[k])) continue;
      before[k].push_back(j);
      is_followed[j] = true;
    }
  }
  std::vector<size_t> order;
  std::vector<bool> is_there(nodes.size(), false);
  std::vector<std::pair<size_t, size_t>>
      open;  // a node, and how many of those before it have been seen to
  for (size_t last = 0; last < nodes.size(); ++last) {
    if (!is_followed[last]) open.emplace_back(last, 0);
    while (!open.empty()) {
      auto& [k, seen] = open.back();
      if (seen < before[k].size()) {
        const size_t next = before[k][seen++];
        if (!is_there[next]) open.emplace_back(next, 0);
        continue;
      }
      if (!is_there[k]) order.push_back(k);
      is_there[k] = true;
      open.pop_back();
    }
  }
  return order;
}

std::vector<std::vector<size_t>> JoinNodes(std::span<const ValueUse> nodes,
                                           std::span<const size_t> pointers, JoinLimits most) {
  std::vector<Launch> launches;
  for (size_t k = 0; k < nodes.size(); ++k) launches.push_back({{k}, nodes[k], pointers[k]});
  for (size_t at = 0; at < launches.size();) {
    if (launches[at].pointers == 0 || JoinFrom(launches, at, most)) ++at;
  }
  std::vector<std::vector<size_t>> joined;
  for (Launch& launch : launches) joined.push_back(std::move(launch.nodes));
  return joined;
}

}  // namespace mendel::cuda
