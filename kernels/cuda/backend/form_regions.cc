#include "kernels/cuda/backend/form_regions.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "graph/rewrite.h"
#include "kernels/cuda/backend/stored_forms.h"

namespace mendel::cuda {
namespace {

/// Sets of numbers, each with its least one as its name.
class DisjointSets {
 public:
  explicit DisjointSets(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), int32_t{0}); }
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

std::vector<std::vector<int32_t>> FormRegions(const Graph& graph, const std::set<int32_t>& calls) {
  const std::vector<bool> constant = ConstantExpressions(graph);
  const auto count = static_cast<int32_t>(graph.nodes().size());
  const auto belongs = [&](int32_t id) {
    const Node& node = graph.node(id);
    return !constant[static_cast<size_t>(id)] && (calls.count(id) > 0 || IsComputedInAnyForm(node) || IsWindowed(node));
  };
  DisjointSets sets(graph.nodes().size());
  std::map<ValueId, int32_t> reader;  // one of those that belong
  for (int32_t id = 0; id < count; ++id) {
    if (!belongs(id)) continue;
    for (const ValueId input : graph.node(id).inputs) {
      if (constant[static_cast<size_t>(input.node)]) continue;
      // Broadcast operands are no reason to compute the rest in their form.
      const bool has_own_shape = calls.count(id) > 0 || IsWindowed(graph.node(id));
      if (!has_own_shape && graph.type(input).shape != graph.node(id).outputs[0].shape) continue;
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

}  // namespace mendel::cuda
