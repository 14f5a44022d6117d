// InstanceNormalization, GroupNormalization, and BatchNormalization that nothing else computes, in
// the input's layout.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/cpu/kernels/channel_norm.h"
#include "kernels/cpu/lowering/lower.h"

namespace mendel::cpu {
namespace {

bool Divides(int64_t group, int64_t lanes) { return group % lanes == 0 || lanes % group == 0; }

/// nullopt when the kernel cannot read this layout.
std::optional<ChannelGeometry> GeometryOf(const Layout& layout, const Shape& shape, int64_t group) {
  ChannelGeometry geometry;
  geometry.images = shape[0];
  geometry.channels = shape[1];
  geometry.plane = NumElements(Shape(shape.begin() + 2, shape.end()));
  if (IsPlain(layout, shape)) return geometry;
  const int64_t block = layout.block;
  const bool blocked =
      layout.block_dim == 1 && (block == 4 || block == 8 || block == 16) && shape[1] % block == 0;
  if (blocked && Divides(group, block) &&
      SamePlacement(layout, BlockedLayout(shape, block), shape)) {
    geometry.lanes = geometry.position_step = block;
    geometry.strip_step = geometry.plane * block;
    return geometry;
  }
  if (!SamePlacement(layout, ChannelsLastLayout(shape), shape)) return std::nullopt;
  for (const int64_t lanes : {16, 8, 4}) {
    if (shape[1] % lanes != 0 || !Divides(group, lanes)) continue;
    geometry.lanes = geometry.strip_step = lanes;
    geometry.position_step = shape[1];
    return geometry;
  }
  return std::nullopt;
}

int64_t ChannelsAGroup(const Node& node, int64_t channels) {
  return node.op->name == "GroupNormalization" ? channels / node.attrs.Int("num_groups") : 1;
}

}  // namespace

absl::StatusOr<bool> LowerChannelNorm(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const ValueId input = node.inputs[0];
  const Shape& shape = lowering.shape(input);
  if (lowering.type(input).dtype != DType::kF32) return false;
  ChannelNormProblem problem;
  problem.group = ChannelsAGroup(node, shape[1]);
  problem.epsilon = node.attrs.Float("epsilon");
  problem.from = lowering.Any(input);
  std::optional<ChannelGeometry> geometry = GeometryOf(problem.from.layout, shape, problem.group);
  if (!geometry.has_value()) {
    problem.from = lowering.Plain(input);
    geometry = GeometryOf(problem.from.layout, shape, problem.group);
  }
  problem.geometry = *geometry;
  problem.scale = lowering.Plain(node.inputs[1]);
  problem.bias = lowering.Plain(node.inputs[2]);
  std::vector<Place> touched = {problem.from, problem.scale, problem.bias};
  if (node.inputs.size() > 3) {
    problem.mean = lowering.Plain(node.inputs[3]);
    problem.variance = lowering.Plain(node.inputs[4]);
    touched.insert(touched.end(), {*problem.mean, *problem.variance});
  }
  problem.to = lowering.Allocate({id, 0}, problem.from.layout);
  // Parameters that are parts of the input are read after the first image is written.
  const bool apart = std::none_of(touched.begin() + 1, touched.end(), [&](const Place& place) {
    return place.buffer == problem.from.buffer;
  });
  touched.push_back(problem.to);
  std::optional<std::pair<Place, Place>> in_place;
  if (apart) in_place = {problem.to, problem.from};
  const std::string name =
      geometry->lanes == 0 ? "channel norm" : Cat("channel norm, lanes ", geometry->lanes);
  const int64_t scratch = ChannelNormScratch(problem.geometry);
  lowering.Emit({id}, name, MakeChannelNormKernel(std::move(problem)), touched, scratch, in_place);
  return true;
}

}  // namespace mendel::cpu
