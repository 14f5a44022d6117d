#include "verifier/regions/displacement.h"

#include <algorithm>
#include <utility>

namespace mendel {

void AddScaled(Step& sum, int64_t factor, const Step& step) {
  sum.resize(std::max(sum.size(), step.size()), 0);
  for (size_t s = 0; s < step.size(); ++s) sum[s] += factor * step[s];
}

void Canonicalize(Step& step) {
  if (std::all_of(step.begin(), step.end(), [](int64_t s) { return s == 0; })) step.clear();
}

void MergeInto(DisplacementClass& a, const DisplacementClass& b, std::set<size_t>& conflicts) {
  for (const auto& [source, columns] : b) {
    const auto [it, fresh] = a.emplace(source, columns);
    if (fresh) continue;
    for (size_t j = 0; j < columns.size(); ++j) {
      if (it->second[j] != columns[j]) conflicts.insert(j);
    }
  }
}

DisplacementClass Joint(const std::vector<DisplacementClass>& classes,
                        std::set<size_t>& conflicts) {
  DisplacementClass joint;
  for (const DisplacementClass& one : classes) MergeInto(joint, one, conflicts);
  return joint;
}

std::vector<std::map<int32_t, Step>> GroupsAlong(
    const std::vector<const DisplacementClass*>& classes, size_t dim) {
  std::vector<std::map<int32_t, Step>> moves;
  for (const DisplacementClass* one : classes) {
    std::map<int32_t, Step> move;
    for (const auto& [source, columns] : *one) move[source] = columns[dim];
    moves.push_back(std::move(move));
  }
  std::stable_sort(moves.begin(), moves.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::vector<std::map<int32_t, Step>> groups;
  for (const auto& move : moves) {
    const auto agrees = [&](const auto& other) {
      return std::all_of(move.begin(), move.end(), [&](const auto& entry) {
        const auto it = other.find(entry.first);
        return it == other.end() || it->second == entry.second;
      });
    };
    const auto it = std::find_if(groups.begin(), groups.end(), agrees);
    if (it == groups.end()) {
      groups.push_back(move);
    } else {
      it->insert(move.begin(), move.end());
    }
  }
  return groups;
}

}  // namespace mendel
