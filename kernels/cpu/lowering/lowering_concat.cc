// Operands of a Concat that are computed directly in the Concat's buffer.

#include <algorithm>

#include "base/check.h"
#include "kernels/cpu/lowering/lowering.h"

namespace mendel::cpu {
namespace {

/// True when parts along `axis` are not contiguous.
bool IsOfSeveral(const Shape& whole, int64_t axis) {
  return std::any_of(whole.begin(), whole.begin() + axis,
                     [](int64_t extent) { return extent != 1; });
}

}  // namespace

std::optional<Place> Lowering::Within(ValueId value) const {
  const auto place = within_.find(value);
  return place == within_.end() ? std::nullopt : std::optional(place->second);
}

Place Lowering::WithinOrAny(ValueId value) {
  const std::optional<Place> within = Within(value);
  return within.has_value() ? *within : Any(value);
}

std::optional<Layout> Lowering::LayoutWithin(ValueId value, int64_t block) {
  const std::optional<Place> room = RoomWithin(value, block);
  return room.has_value() ? std::optional(room->layout) : std::nullopt;
}

std::optional<Place> Lowering::InConcat(ValueId value, const Layout& layout) {
  const auto slot = slots_.find(value);
  if (slot == slots_.end()) return std::nullopt;
  const ConcatSlot& part = slot->second;
  const Shape& whole = shape(part.whole);
  const size_t axis = static_cast<size_t>(part.axis);
  if (IsOfSeveral(whole, part.axis)) return std::nullopt;
  Layout whole_layout = PlainLayout(whole);
  if (!IsPlain(layout, shape(value))) {
    const bool aligned = layout.block_dim == 1 && axis == 1 && part.channel % layout.block == 0 &&
                         whole[1] % layout.block == 0 && shape(value)[1] % layout.block == 0;
    if (!aligned || !SamePlacement(layout, BlockedLayout(shape(value), layout.block), shape(value)))
      return std::nullopt;
    whole_layout = BlockedLayout(whole, layout.block);
  }
  auto target = concats_.find(part.whole);
  if (target == concats_.end()) {
    const Place room = Allocate(part.whole, whole_layout);
    places_[part.whole].pop_back();  // allocated, but not computed yet
    target = concats_.emplace(part.whole, room).first;
  }
  if (!SamePlacement(target->second.layout, whole_layout, whole)) return std::nullopt;
  Place place = target->second;
  // Dimensions before the axis have extent one: a part is contiguous.
  place.offset += part.channel * (NumElements(whole) / whole[axis]) * DTypeSize(type(value).dtype);
  place.layout = layout;
  return place;
}

std::optional<Place> Lowering::RoomWithin(ValueId value, int64_t block) {
  const auto slot = slots_.find(value);
  if (slot == slots_.end()) return std::nullopt;
  const ConcatSlot& part = slot->second;
  const Shape& whole = shape(part.whole);
  const std::vector<ValueId>& parts = graph_.node(part.whole.node).inputs;
  const bool aligned = std::all_of(parts.begin(), parts.end(),
                                   [&](ValueId one) { return shape(one)[1] % block == 0; });
  if (!IsOfSeveral(whole, part.axis) || !aligned) return std::nullopt;
  auto target = concats_.find(part.whole);
  if (target == concats_.end()) {
    std::optional<Place> room = RoomWithin(part.whole, block);
    if (!room.has_value()) {
      room = Allocate(part.whole, BlockedLayout(whole, block));
      places_[part.whole].pop_back();  // allocated, but not computed yet
    }
    target = concats_.emplace(part.whole, *room).first;
  }
  Place place = target->second;
  if (place.layout.block_dim != 1 || place.layout.block != block) return std::nullopt;
  place.offset += part.channel / block * place.layout.strides[1] * DTypeSize(type(value).dtype);
  return place;
}

bool Lowering::IsConcatPart(ValueId value) const {
  const auto slot = slots_.find(value);
  return slot != slots_.end() && slot->second.axis == 1;
}

void Lowering::FindConcatSlots() {
  std::vector<int32_t> concats;
  for (size_t i = 0; i < graph_.nodes().size(); ++i) {
    const int32_t id = static_cast<int32_t>(i);
    const Node& node = graph_.node(id);
    if (node.op->name != "Concat" || folded_.IsConstant({id, 0}) ||
        NumElements(node.outputs[0]) == 0)
      continue;
    const int64_t axis = node.attrs.Int("axis");
    const Shape& whole = node.outputs[0].shape;
    const bool several = axis == 1 && whole.size() >= 3;
    if (!several && IsOfSeveral(whole, axis)) continue;
    // A concatenation that begins with all parts of an earlier one continues it (DenseNet).
    size_t prefix = 0;
    for (int32_t earlier : concats) {
      const Node& other = graph_.node(earlier);
      const size_t parts = other.inputs.size();
      const bool begins = parts > prefix && parts < node.inputs.size() &&
                          other.attrs.Int("axis") == axis &&
                          std::equal(other.inputs.begin(), other.inputs.end(), node.inputs.begin());
      if (!begins || slots_.count({earlier, 0}) != 0) continue;
      prefix = parts;
      slots_[{earlier, 0}] = {{id, 0}, 0, axis};
    }
    int64_t channel = 0;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const ValueId part = node.inputs[k];
      const bool computed = !folded_.IsConstant(part) && !IsInput(graph_.node(part.node));
      if (k >= prefix && computed) slots_.try_emplace(part, ConcatSlot{{id, 0}, channel, axis});
      channel += shape(part)[static_cast<size_t>(axis)];
    }
    concats.push_back(id);
  }
}

}  // namespace mendel::cpu
