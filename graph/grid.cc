#include "graph/grid.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "graph/element_structure.h"

namespace mendel {
namespace {

std::map<std::string_view, GridStructure>& Structures() {
  static auto* structures = new std::map<std::string_view, GridStructure>();
  return *structures;
}

/// Links of `axis` that the restriction to its position p shows; nullopt when there are none.
std::optional<std::vector<int>> LinksAt(const OpDefinition& op, const NodeView& node, size_t axis,
                                        int64_t p) {
  const int64_t extent = node.outputs[0].shape[axis];
  Box box = Box::Whole(node.outputs[0].shape);
  box.begin[axis] = p;
  box.end[axis] = p + 1;
  const std::optional<Restriction> part = op.restrict(node, box);
  if (!part.has_value() || part->attrs != node.attrs) return std::nullopt;
  std::vector<int> links;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    const Shape& shape = node.inputs[k].shape;
    int link = -1;
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t begin = part->inputs[k].begin[d], end = part->inputs[k].end[d];
      if (begin == 0 && end == shape[d]) continue;
      if (link >= 0 || shape[d] != extent || begin != p || end != p + 1) return std::nullopt;
      link = static_cast<int>(d);
    }
    links.push_back(link);
  }
  return links;
}

Positions Hull(const Positions& wanted) {
  int64_t low = wanted[0], high = wanted[0];
  for (int64_t i = 1; i < wanted.size(); ++i) {
    low = std::min(low, wanted[i]);
    high = std::max(high, wanted[i]);
  }
  return Positions::Range(low, high - low + 1);
}

/// Free axes as wanted; the others as the hull of what is wanted, or whole.
std::optional<GridRestriction> ByBoxes(const OpDefinition& op, const GridRequest& request) {
  const NodeView& node = request.node;
  if (op.restrict == nullptr || request.output != 0) return std::nullopt;
  const Shape& shape = node.outputs[0].shape;
  std::vector<std::optional<std::vector<int>>> links;
  Box hull = Box::Whole(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    links.push_back(FreeAxis(op, node, d));
    if (links[d].has_value()) continue;
    const Positions range = Hull(request.wanted[d]);
    hull.begin[d] = range[0];
    hull.end[d] = range[0] + range.size();
  }
  std::optional<Restriction> part = op.restrict(node, hull);
  if (!part.has_value()) {
    for (size_t d = 0; d < shape.size(); ++d) {
      hull.begin[d] = 0;
      hull.end[d] = shape[d];
    }
    part = op.restrict(node, hull);
    if (!part.has_value()) return std::nullopt;
  }
  GridRestriction result;
  result.computed = GridOf(hull);
  result.attrs = part->attrs;
  for (const Box& box : part->inputs) result.inputs.push_back(GridOf(box));
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!links[d].has_value()) continue;
    result.computed[d] = request.wanted[d];
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const int link = (*links[d])[k];
      if (link >= 0) result.inputs[k][static_cast<size_t>(link)] = request.wanted[d];
    }
  }
  return result;
}

/// Operators that move elements of one input, and fill.
std::optional<GridRestriction> ByTaps(const OpDefinition& op, const GridRequest& request) {
  const ElementStructure* structure = FindElementStructure(op.name);
  if (structure == nullptr || structure->taps == nullptr) return std::nullopt;
  const auto taps = structure->taps(request.node, request.constants, request.output);
  if (!taps.has_value()) return std::nullopt;
  const size_t source = static_cast<size_t>(taps->input);
  if (taps->dims.size() != request.node.inputs[source].shape.size()) return std::nullopt;
  GridRestriction result = WholeRestriction(request.node, request.output);
  result.computed = request.wanted;
  result.moved = taps->input;
  for (size_t d = 0; d < taps->dims.size(); ++d) {
    const SeparableTaps::Dim& dim = taps->dims[d];
    if (dim.input_dim != static_cast<int>(d)) return std::nullopt;
    std::vector<int64_t> list;
    for (int64_t i = 0; i < request.wanted[d].size(); ++i) {
      const std::vector<Tap>& at = dim.taps[static_cast<size_t>(request.wanted[d][i])];
      if (at.size() > 1 || (at.size() == 1 && at[0].coefficient != 1)) return std::nullopt;
      if (at.empty() && !request.node.attrs.Has("value")) return std::nullopt;
      list.push_back(at.empty() ? kAbsent : at[0].position);
    }
    result.inputs[source][d] = Positions::List(std::move(list));
  }
  if (request.node.attrs.Has("value")) result.fill = request.node.attrs.Float("value");
  return result;
}

}  // namespace

const GridStructure* FindGridStructure(std::string_view op) {
  const auto found = Structures().find(op);
  return found == Structures().end() ? nullptr : &found->second;
}

GridStructureRegistrar::GridStructureRegistrar(const GridStructure& structure) {
  MENDEL_CHECK(Structures().emplace(structure.op, structure).second);
}

GridRestriction WholeRestriction(const NodeView& node, int output) {
  GridRestriction result;
  result.computed = WholeGrid(node.outputs[static_cast<size_t>(output)].shape);
  for (const TensorType& input : node.inputs) result.inputs.push_back(WholeGrid(input.shape));
  result.attrs = node.attrs;
  result.output = output;
  return result;
}

std::optional<std::vector<int>> FreeAxis(const OpDefinition& op, const NodeView& node,
                                         size_t axis) {
  if (op.restrict == nullptr) return std::nullopt;
  const int64_t extent = node.outputs[0].shape[axis];
  if (extent == 1) return std::vector<int>(node.inputs.size(), -1);
  const auto first = LinksAt(op, node, axis, 0);
  if (!first.has_value() || first != LinksAt(op, node, axis, extent - 1)) return std::nullopt;
  return first;
}

std::optional<GridRestriction> RestrictToGrid(const OpDefinition& op, const GridRequest& request) {
  const GridStructure* structure = FindGridStructure(op.name);
  if (structure != nullptr && structure->restrict != nullptr) {
    if (auto result = structure->restrict(request); result.has_value()) return result;
  }
  if (auto result = ByTaps(op, request); result.has_value()) return result;
  return ByBoxes(op, request);
}

}  // namespace mendel
