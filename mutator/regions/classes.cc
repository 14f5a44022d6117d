#include "mutator/regions/classes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "graph/grid.h"

namespace mendel {
namespace {

constexpr int64_t kMaxExtent = 4096;               // longer axes count as all different
constexpr int64_t kMaxLiteral = int64_t{1} << 20;  // elements of literals that are compared

/// Classes of positions by any key.
template <class Key>
AxisClasses ByKey(int64_t extent, const std::function<Key(int64_t)>& key_of) {
  std::map<Key, int64_t> firsts;
  AxisClasses classes;
  for (int64_t p = 0; p < extent; ++p)
    classes.push_back(firsts.try_emplace(key_of(p), p).first->second);
  if (static_cast<int64_t>(firsts.size()) == extent) classes.clear();
  return classes;
}

bool Repeats(const ValueClasses& classes) {
  return std::any_of(classes.begin(), classes.end(),
                     [](const auto& axis) { return !axis.empty(); });
}

/// Positions whose slices have equal bytes.
ValueClasses ClassesOfLiteral(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  ValueClasses result(shape.size());
  if (tensor.size() > kMaxLiteral) return result;
  const std::vector<double> values = tensor.ToDoubles();
  if (std::any_of(values.begin(), values.end(), [](double v) { return std::isnan(v); }))
    return result;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 2 || shape[d] > kMaxExtent) continue;
    const int64_t inner = RowMajorStrides(shape)[d], outer = tensor.size() / shape[d] / inner;
    result[d] = ByKey<std::vector<double>>(shape[d], [&](int64_t p) {
      std::vector<double> slice;
      for (int64_t o = 0; o < outer; ++o) {
        const auto begin = values.begin() + (o * shape[d] + p) * inner;
        slice.insert(slice.end(), begin, begin + inner);
      }
      return slice;
    });
  }
  return result;
}

/// A pool's attributes as far as they matter to one window. The order of its elements does not
/// matter, so that all padding may come first. A maximum depends on the elements alone.
Attributes OfOneWindow(const Node& pool, Attributes attrs) {
  if (pool.op->name == "MaxPool") return {};
  std::vector<int64_t> pads = attrs.IntList("pads");
  const size_t rank = pads.size() / 2;
  for (size_t d = 0; d < rank; ++d) pads[d] += std::exchange(pads[rank + d], 0);
  attrs.Set("pads", std::move(pads));
  return attrs;
}

/// One output of one node.
class OutputClasses {
 public:
  OutputClasses(const Graph& graph, int32_t id, int output,
                const std::vector<std::vector<ValueClasses>>& known)
      : node_(graph.node(id)),
        types_(graph.InputTypes(id)),
        stored_(StoredInputs(graph, id)),
        output_(output) {
    for (ValueId input : node_.inputs) {
      inputs_.push_back(&known[static_cast<size_t>(input.node)][static_cast<size_t>(input.output)]);
    }
  }

  ValueClasses All() const {
    const Shape& shape = node_.outputs[static_cast<size_t>(output_)].shape;
    ValueClasses result(shape.size());
    const auto whole = Restrict(WholeGrid(shape));
    if (!whole.has_value()) return result;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] > 1 && shape[d] <= kMaxExtent) result[d] = Along(d, shape, *whole);
    }
    return result;
  }

 private:
  NodeView View() const { return {types_, node_.attrs, node_.outputs}; }
  std::optional<GridRestriction> Restrict(const Grid& wanted) const {
    return RestrictToGrid(*node_.op, {View(), stored_, output_, wanted});
  }
  bool ReadsTwice() const {
    return std::set<ValueId>(node_.inputs.begin(), node_.inputs.end()).size() < node_.inputs.size();
  }
  const AxisClasses& InputClasses(size_t input, size_t axis) const {
    return (*inputs_[input])[axis];
  }

  AxisClasses Along(size_t d, const Shape& shape, const GridRestriction& whole) const {
    if (whole.moved >= 0 && ExtentsOf(whole.inputs[static_cast<size_t>(whole.moved)]) == shape) {
      const size_t source = static_cast<size_t>(whole.moved);
      return ByKey<int64_t>(shape[d], [&](int64_t p) {
        return FirstOf(InputClasses(source, d), whole.inputs[source][d][p]);
      });
    }
    const bool repeats = std::any_of(inputs_.begin(), inputs_.end(),
                                     [](const ValueClasses* classes) { return Repeats(*classes); });
    const auto links = output_ == 0 ? FreeAxis(*node_.op, View(), d) : std::nullopt;
    if (links.has_value()) return ByLinks(shape[d], *links);
    // Nothing repeats behind operators of different elements, unless neighbors read the same or one
    // value is read twice.
    if (!repeats && !ReadsTwice() && !(KeyAt(d, shape, 0) == KeyAt(d, shape, 1))) return {};
    std::map<std::vector<int64_t>, std::vector<std::pair<Attributes, int64_t>>> firsts;
    AxisClasses classes;
    int64_t different = 0;
    for (int64_t p = 0; p < shape[d]; ++p) {
      Key key = KeyAt(d, shape, p);
      auto& same = firsts[std::move(key.first)];
      const auto found = std::find_if(same.begin(), same.end(),
                                      [&](const auto& entry) { return entry.first == key.second; });
      classes.push_back(found == same.end() ? p : found->second);
      if (found != same.end()) continue;
      same.emplace_back(std::move(key.second), p);
      ++different;
    }
    return different == shape[d] ? AxisClasses() : classes;
  }

  AxisClasses ByLinks(int64_t extent, const std::vector<int>& links) const {
    for (size_t k = 0; k < links.size(); ++k) {
      if (links[k] >= 0 && InputClasses(k, static_cast<size_t>(links[k])).empty()) return {};
    }
    return ByKey<std::vector<int64_t>>(extent, [&](int64_t p) {
      std::vector<int64_t> key;
      for (size_t k = 0; k < links.size(); ++k) {
        if (links[k] >= 0)
          key.push_back(FirstOf(InputClasses(k, static_cast<size_t>(links[k])), p));
      }
      return key;
    });
  }

  /// The operands of the elements at position p, by value, and the way they are computed: two
  /// inputs of a Concat may be one value.
  using Key = std::pair<std::vector<int64_t>, Attributes>;
  Key KeyAt(size_t d, const Shape& shape, int64_t p) const {
    Grid wanted = WholeGrid(shape);
    wanted[d] = Positions::Range(p, 1);
    const auto part = Restrict(wanted);
    if (!part.has_value()) return {{p}, {}};
    const ValueId moved =
        part->moved < 0 ? ValueId{} : node_.inputs[static_cast<size_t>(part->moved)];
    Key key{{-2, part->output, moved.node, moved.output},
            IsPool() ? OfOneWindow(node_, part->attrs) : part->attrs};
    const std::vector<int64_t> computed = part->computed[d].ToList();
    key.first.push_back(std::find(computed.begin(), computed.end(), p) - computed.begin());
    for (size_t k = 0; k < part->inputs.size(); ++k) {
      if (NumElements(ExtentsOf(part->inputs[k])) == 0) continue;  // left out
      key.first.insert(key.first.end(), {node_.inputs[k].node, node_.inputs[k].output});
      for (size_t axis = 0; axis < part->inputs[k].size(); ++axis) {
        const std::vector<int64_t> read = FirstsRead(k, axis, part->inputs[k][axis]);
        key.first.push_back(static_cast<int64_t>(read.size()));
        key.first.insert(key.first.end(), read.begin(), read.end());
      }
    }
    return key;
  }

  /// The elements that are read along an axis, by value. Empty: all of them, in their order.
  std::vector<int64_t> FirstsRead(size_t input, size_t axis, const Positions& read) const {
    std::vector<int64_t> firsts;
    if (!IsPool() && read.IsWhole(types_[input].shape[axis])) return firsts;
    for (int64_t i = 0; i < read.size(); ++i)
      firsts.push_back(FirstOf(InputClasses(input, axis), read[i]));
    if (IsPool()) std::sort(firsts.begin(), firsts.end());
    if (IsPool() && node_.op->name == "MaxPool")
      firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
    return firsts;
  }
  bool IsPool() const { return output_ == 0 && node_.attrs.Has("kernel_shape"); }

  const Node& node_;
  std::vector<TensorType> types_;
  std::vector<const Tensor*> stored_;
  int output_;
  std::vector<const ValueClasses*> inputs_;
};

bool HasEmpty(const Graph& graph, const Node& node) {
  const auto empty = [](const TensorType& type) { return NumElements(type) == 0; };
  return std::any_of(node.outputs.begin(), node.outputs.end(), empty) ||
         std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId value) { return empty(graph.type(value)); });
}

}  // namespace

int64_t CountClasses(const AxisClasses& classes, int64_t extent) {
  if (classes.empty()) return extent;
  return static_cast<int64_t>(std::set<int64_t>(classes.begin(), classes.end()).size());
}

int64_t FirstOf(const AxisClasses& classes, int64_t position) {
  return classes.empty() || position == kAbsent ? position : classes[static_cast<size_t>(position)];
}

Positions FirstsOf(const AxisClasses& classes, const Positions& positions) {
  if (positions.IsRange() && positions.step() > 0 && classes.empty()) return positions;
  std::set<int64_t> firsts;
  for (int64_t i = 0; i < positions.size(); ++i) firsts.insert(FirstOf(classes, positions[i]));
  firsts.erase(kAbsent);
  return Positions::List({firsts.begin(), firsts.end()});
}

std::vector<const Tensor*> StoredInputs(const Graph& graph, int32_t node) {
  std::vector<const Tensor*> stored;
  for (ValueId value : graph.node(node).inputs) {
    const Node& producer = graph.node(value.node);
    stored.push_back(IsConstant(producer) ? &ConstantValue(producer) : nullptr);
  }
  return stored;
}

std::vector<std::vector<ValueClasses>> RepeatedElements(const Graph& graph) {
  std::vector<std::vector<ValueClasses>> known(graph.nodes().size());
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const int32_t id = static_cast<int32_t>(i);
    const Node& node = graph.node(id);
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      ValueClasses classes(node.outputs[k].shape.size());
      if (IsConstant(node)) {
        if (SymbolName(node).empty()) classes = ClassesOfLiteral(ConstantValue(node));
      } else if (!IsInput(node) && !HasEmpty(graph, node)) {
        classes = OutputClasses(graph, id, static_cast<int>(k), known).All();
      }
      known[i].push_back(std::move(classes));
    }
  }
  return known;
}

}  // namespace mendel
