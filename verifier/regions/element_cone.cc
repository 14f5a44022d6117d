#include "verifier/regions/element_cone.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace mendel {
namespace {

/// Different boxes of one value that are followed.
constexpr size_t kMostBoxes = 8;
/// Positions of a box that are tried.
constexpr int64_t kMostPositions = 1 << 13;

/// The extents of the operands' boxes that a box of `extents` along dimension d needs, at whatever
/// position it is; nullopt if the operator needs everything.
std::optional<std::vector<Shape>> ExtentsAlong(const NodeView& view, const OpDefinition& op,
                                               size_t d, int64_t extent) {
  std::vector<Shape> largest;
  for (const TensorType& type : view.inputs) largest.emplace_back(type.shape.size(), 0);
  Box box = Box::Whole(view.outputs[0].shape);
  const int64_t last = box.end[d] - extent;
  for (int64_t at = 0; at <= last; ++at) {
    box.begin[d] = at;
    box.end[d] = at + extent;
    const std::optional<Restriction> reads = op.restrict(view, box);
    if (!reads.has_value()) return std::nullopt;
    for (size_t k = 0; k < largest.size(); ++k) {
      if (reads->inputs[k].Volume() == 0 && !largest[k].empty()) continue;
      const Shape extents = reads->inputs[k].Extents();
      for (size_t j = 0; j < extents.size(); ++j)
        largest[k][j] = std::max(largest[k][j], extents[j]);
    }
  }
  return largest;
}

/// A larger box needs all that a smaller one does: the elements read lie in the boxes of every
/// dimension taken alone.
std::vector<Shape> ExtentsOf(const NodeView& view, const OpDefinition& op, const Shape& extents) {
  std::vector<Shape> result;
  for (const TensorType& type : view.inputs) result.push_back(type.shape);
  const bool empty = std::any_of(view.inputs.begin(), view.inputs.end(),
                                 [](const TensorType& type) { return NumElements(type) == 0; });
  if (op.restrict == nullptr || view.outputs.size() != 1 || empty) return result;
  int64_t positions = 0;
  for (const int64_t extent : view.outputs[0].shape) positions += extent;
  if (positions > kMostPositions) return result;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] >= view.outputs[0].shape[d]) continue;
    const auto along = ExtentsAlong(view, op, d, extents[d]);
    if (!along.has_value()) continue;
    for (size_t k = 0; k < result.size(); ++k) {
      for (size_t j = 0; j < result[k].size(); ++j)
        result[k][j] = std::min(result[k][j], (*along)[k][j]);
    }
  }
  return result;
}

}  // namespace

const std::vector<Shape>& ElementCone::InputExtents(int32_t number, const Shape& extents) {
  const auto [it, fresh] = inputs_.try_emplace({number, extents});
  const NumberedNode& node = numbering_.NodeOf(number);
  if (!fresh) return it->second;
  if (!reads_all_(number)) return it->second = ExtentsOf(View(node), *node.node->op, extents);
  for (const TensorType& type : node.input_types) it->second.push_back(type.shape);
  return it->second;
}

std::map<int32_t, double> ElementCone::Needed(const std::vector<int32_t>& cone,
                                              const std::vector<int32_t>& roots, int whole_axis) {
  std::map<int32_t, Boxes> boxes;
  for (const int32_t root : roots) {
    const Shape& shape = numbering_.TypeOf(root).shape;
    Shape extents(shape.size(), 1);
    if (whole_axis >= 0) {
      const size_t axis = static_cast<size_t>(whole_axis);
      if (shape == numbering_.TypeOf(roots.front()).shape)
        extents[axis] = shape[axis];
      else
        extents = shape;
    }
    boxes[root][extents] += 1;
  }
  std::map<int32_t, double> needed;
  for (auto number = cone.rbegin(); number != cone.rend(); ++number) {
    Boxes& of_number = boxes[*number];
    const Shape& shape = numbering_.TypeOf(*number).shape;
    const double all = static_cast<double>(NumElements(shape));
    double elements = 0;
    for (const auto& [extents, count] : of_number)
      elements += count * static_cast<double>(NumElements(extents));
    if (elements >= all || of_number.size() > kMostBoxes) of_number = {{shape, 1}};
    needed[*number] = std::min(elements, all);
    const NumberedNode& node = numbering_.NodeOf(*number);
    for (const auto& [extents, count] : of_number) {
      const std::vector<Shape>& inputs = InputExtents(*number, extents);
      for (size_t k = 0; k < inputs.size(); ++k) {
        const int32_t operand = node.inputs[k];
        if (free_[static_cast<size_t>(operand)] || NumElements(inputs[k]) == 0) continue;
        // A view of the operand reads a box that need not be one of the operand: all of it counts.
        const Shape& own = numbering_.TypeOf(operand).shape;
        boxes[operand][node.input_types[k].shape == own ? inputs[k] : own] += count;
      }
    }
  }
  return needed;
}

}  // namespace mendel
