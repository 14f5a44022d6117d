#include "runtime/kind_regions.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace mendel {
namespace {

/// Sets of numbers, each with its least one as its name.
class DisjointSets {
 public:
  explicit DisjointSets(size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), int32_t{0});
  }
  int32_t Find(int32_t member) {
    int32_t& parent = parent_[static_cast<size_t>(member)];
    if (parent != member) parent = Find(parent);
    return parent;
  }
  void Join(int32_t a, int32_t b) {
    a = Find(a), b = Find(b);
    parent_[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
  }

 private:
  std::vector<int32_t> parent_;
};

}  // namespace

std::vector<std::vector<int32_t>> ConnectedCalls(
    const Graph& graph, const std::set<int32_t>& calls, const std::function<bool(int32_t)>& passes,
    const std::function<bool(ValueId, int32_t reader)>& joins) {
  const auto belongs = [&](int32_t id) { return calls.count(id) > 0 || passes(id); };
  DisjointSets sets(graph.nodes().size());
  std::map<ValueId, int32_t> reader;  // one of those that belong
  for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
    if (!belongs(id)) continue;
    for (const ValueId input : graph.node(id).inputs) {
      if (!joins(input, id)) continue;
      sets.Join(id, reader.try_emplace(input, id).first->second);
      if (belongs(input.node)) sets.Join(id, input.node);
    }
  }
  std::map<int32_t, std::vector<int32_t>> by_name;
  for (const int32_t call : calls) by_name[sets.Find(call)].push_back(call);
  std::vector<std::vector<int32_t>> regions;
  for (auto& [name, members] : by_name) regions.push_back(std::move(members));
  std::sort(regions.begin(), regions.end());
  return regions;
}

}  // namespace mendel
