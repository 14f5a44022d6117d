// Weight views: values of a graph that are boxes of a stored constant, and the cuts that they make.
#ifndef MENDEL_VERIFIER_WEIGHTS_WEIGHT_VIEWS_H_
#define MENDEL_VERIFIER_WEIGHTS_WEIGHT_VIEWS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace mendel {

/// A box of a constant with its dimensions in another order: dimension d of the value is dimension
/// perm[d] of the constant.
struct WeightView {
  int32_t constant = 0;
  Box box;
  Ints perm;
};

/// By node and output: the views of large float constants. Nodes that make views of views are views
/// themselves.
class WeightViews {
 public:
  WeightViews(const Graph& graph, int64_t least_elements);

  /// Null when the value is none.
  const WeightView* Find(ValueId value) const;
  bool IsView(int32_t node) const { return !views_[static_cast<size_t>(node)].empty(); }

  /// Calls `use(value, view, reader)` for every reader that is no view itself, and with null for a
  /// graph output.
  template <class Use>
  void ForEachRead(Use&& use) const {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (IsView(static_cast<int32_t>(i))) continue;
      for (ValueId value : graph_.nodes()[i].inputs) {
        if (const WeightView* view = Find(value)) use(value, *view, &graph_.nodes()[i]);
      }
    }
    for (const GraphOutput& output : graph_.outputs()) {
      if (const WeightView* view = Find(output.value)) use(output.value, *view, nullptr);
    }
  }

 private:
  void Follow(int32_t id);

  const Graph& graph_;
  std::vector<std::vector<WeightView>> views_;
};

/// Cuts of constants of one type: by dimension, positions from 0 to the extent.
using CutPositions = std::vector<std::set<int64_t>>;

/// The cuts of both graphs by type of constant; only types that are cut and whose every reader can
/// do with cells.
std::map<std::string, CutPositions> CutsOf(const Graph& a, const WeightViews& of_a, const Graph& b,
                                           const WeightViews& of_b);

/// Intervals between the positions from `begin` to `end`, which are positions.
std::vector<std::pair<int64_t, int64_t>> IntervalsOf(const std::set<int64_t>& positions,
                                                     int64_t begin, int64_t end);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_WEIGHTS_WEIGHT_VIEWS_H_
