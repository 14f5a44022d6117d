#include "kernels/cpu/lowering/lowering.h"

#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "kernels/cpu/kernels/copy.h"
#include "kernels/cpu/lowering/node_name.h"
#include "kernels/cpu/lowering/side_by_side.h"

namespace mendel::cpu {

Lowering::Lowering(const Graph& graph, const CompileOptions& options)
    : graph_(graph),
      options_(options),
      paired_loops_(LoopsSideBySide(graph, options.threads)),
      folded_(graph),
      output_taken_(graph.outputs().size(), false) {
  program_.threads = options.threads;
  program_.cpus = options.cpus;
  for (int32_t input : graph.inputs()) {
    const TensorType& type = graph.node(input).outputs[0];
    Buffer buffer;
    buffer.kind = BufferKind::kInput;
    buffer.bytes = ByteSize(type);
    buffer.external = program_.inputs.size();
    program_.inputs.push_back(type);
    places_[{input, 0}] = {{AddBuffer(std::move(buffer)), 0, PlainLayout(type.shape)}};
  }
  for (const GraphOutput& output : graph.outputs())
    program_.outputs.push_back(graph.type(output.value));
  FindConcatSlots();
}

int Lowering::AddBuffer(Buffer buffer) {
  program_.buffers.push_back(std::move(buffer));
  return static_cast<int>(program_.buffers.size()) - 1;
}

Place Lowering::Any(ValueId value) {
  std::vector<Place>& places = places_[value];
  if (const auto narrow = narrow_.find(value);
      places.empty() && narrow != narrow_.end() && !narrow->second.empty()) {
    const Place from = narrow->second.front();
    EmitReorder(value, from, dnnl::memory::data_type::bf16, Allocate(value, from.layout),
                dnnl::memory::data_type::f32);
  }
  if (const std::optional<Place> within = Within(value); places.empty() && within.has_value()) {
    const Place to = Allocate(value, BlockedLayout(shape(value), within->layout.block));
    Emit({}, "copy",
         MakeCopyKernel({BlockedCopy(*within, to, shape(value))}, DTypeSize(type(value).dtype)),
         {*within, to});
    program_.steps.back().info.name = Cat("copy of ", NodeName(graph_, value.node));
  }
  if (IsStepped(value)) {
    // With three dimensions the second one is as often a sequence as it is channels.
    const bool channels = shape(value).size() >= 4 && ChannelsAreNearest(stepped_.at(value).dims);
    return *FromView(value,
                     channels ? ChannelsLastLayout(shape(value)) : PlainLayout(shape(value)));
  }
  if (places.empty()) {
    MENDEL_CHECK(folded_.IsConstant(value));
    const auto tensor = std::make_shared<const Tensor>(folded_.Rounded(value));
    Buffer buffer;
    buffer.kind = BufferKind::kConstant;
    buffer.bytes = ByteSize(tensor->type());
    buffer.constant = tensor->bytes().data();
    buffer.packed = !mendel::IsConstant(graph_.node(value.node));
    buffer.owner = tensor;
    places.push_back({AddBuffer(std::move(buffer)), 0, PlainLayout(tensor->shape())});
  }
  return places.front();
}

Place Lowering::Unblocked(ValueId value) {
  const Place any = Any(value);
  return any.layout.block_dim < 0 ? any : Plain(value);
}

std::optional<Place> Lowering::Blocked(ValueId value) const {
  const auto places = places_.find(value);
  if (places == places_.end()) return std::nullopt;
  for (const Place& place : places->second) {
    if (place.layout.block_dim == 1) return place;
  }
  return std::nullopt;
}

Place Lowering::Allocate(ValueId value, const Layout& layout) {
  if (layout.block_dim == 1 && !IsDense(layout, shape(value))) {
    const std::optional<Place> room = RoomWithin(value, layout.block);
    MENDEL_CHECK(room.has_value() && SamePlacement(room->layout, layout, shape(value)));
    within_[value] = *room;
    return *room;
  }
  if (const auto known = concats_.find(value); known != concats_.end()) {
    if (SamePlacement(known->second.layout, layout, shape(value))) {
      places_[value].push_back({known->second.buffer, known->second.offset, layout});
      return places_[value].back();
    }
  }
  if (IsPlain(layout, shape(value))) {
    std::optional<size_t> output = FreeOutput(value);
    if (!output.has_value()) output = FreePatchedOutput(value);
    if (output.has_value()) {
      output_taken_[*output] = true;
      Buffer buffer;
      buffer.kind = BufferKind::kOutput;
      buffer.bytes = ByteSize(type(value));
      buffer.external = *output;
      places_[value].push_back({AddBuffer(std::move(buffer)), 0, layout});
      return places_[value].back();
    }
  }
  if (const std::optional<Place> part = InConcat(value, layout); part.has_value()) {
    places_[value].push_back(*part);
    return *part;
  }
  Place place = Temporary(Span(layout, shape(value)) * DTypeSize(type(value).dtype));
  place.layout = layout;
  places_[value].push_back(place);
  return place;
}

void Lowering::Alias(ValueId value, Place place) { places_[value].push_back(std::move(place)); }

Place Lowering::Temporary(int64_t bytes) {
  Buffer buffer;
  buffer.bytes = bytes;
  return {AddBuffer(std::move(buffer)), 0, {}};
}

void Lowering::Emit(const std::vector<int32_t>& nodes, std::string implementation,
                    std::unique_ptr<Kernel> kernel, const std::vector<Place>& places,
                    int64_t scratch, std::optional<std::pair<Place, Place>> in_place) {
  ProgramStep step;
  step.info.nodes = nodes;
  step.info.kernel = std::move(implementation);
  if (!nodes.empty()) step.info.name = NodeName(graph_, nodes.front());
  for (int32_t node : nodes) {
    step.info.flops += WithView(graph_, node, [&](const NodeView& view) {
      return CostOf(*graph_.node(node).op, view).flops;
    });
  }
  step.kernel = std::move(kernel);
  for (const Place& place : places) step.buffers.push_back(place.buffer);
  step.scratch = scratch;
  if (in_place.has_value() && in_place->first.offset == 0 && in_place->second.offset == 0) {
    step.in_place = {in_place->first.buffer, in_place->second.buffer};
  }
  program_.steps.push_back(std::move(step));
}

void Lowering::MayRunBesideAnother(const std::vector<Place>& reads,
                                   const std::vector<Place>& writes) {
  Accesses accesses;
  for (const Place& place : reads) accesses.reads.push_back(place.buffer);
  for (const Place& place : writes) accesses.writes.push_back(place.buffer);
  program_.steps.back().beside = std::move(accesses);
}

}  // namespace mendel::cpu
