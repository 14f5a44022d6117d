#include "kernels/cpu/lowering.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/shared_bytes.h"

namespace mendel::cpu {
namespace {

using DataType = dnnl::memory::data_type;

std::string NameOf(const Graph& graph, int32_t node) {
  const Node& n = graph.node(node);
  return n.name.empty() ? Cat(n.op->name, " ", node) : n.name;
}

std::string Key(const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted) {
  return std::string(reinterpret_cast<const char*>(&plain.data), sizeof(plain.data)) +
         std::string(reinterpret_cast<const char*>(&wanted.data), sizeof(wanted.data));
}

/// True when parts along `axis` are not contiguous.
bool IsOfSeveral(const Shape& whole, int64_t axis) {
  return std::any_of(whole.begin(), whole.begin() + axis, [](int64_t extent) { return extent != 1; });
}

}  // namespace

Lowering::Lowering(const Graph& graph, const CompileOptions& options)
    : graph_(graph), options_(options), folded_(graph), output_taken_(graph.outputs().size(), false) {
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
  for (const GraphOutput& output : graph.outputs()) program_.outputs.push_back(graph.type(output.value));
  FindConcatSlots();
}

int Lowering::AddBuffer(Buffer buffer) {
  program_.buffers.push_back(std::move(buffer));
  return static_cast<int>(program_.buffers.size()) - 1;
}

Place Lowering::Any(ValueId value) {
  std::vector<Place>& places = places_[value];
  if (const auto narrow = narrow_.find(value); places.empty() && narrow != narrow_.end() && !narrow->second.empty()) {
    const Place from = narrow->second.front();
    EmitReorder(value, from, DataType::bf16, Allocate(value, from.layout), DataType::f32);
  }
  if (const std::optional<Place> within = Within(value); places.empty() && within.has_value()) {
    const Place to = Allocate(value, BlockedLayout(shape(value), within->layout.block));
    Emit({}, "copy", MakeCopyKernel({BlockedCopy(*within, to, shape(value))}, DTypeSize(type(value).dtype)), {*within, to});
    program_.steps.back().info.name = Cat("copy of ", NameOf(graph_, value.node));
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

Place Lowering::In(ValueId value, const Layout& layout) {
  const Shape& extents = shape(value);
  // One placement may have several descriptions, of which a reader wants its own: its strides are what it goes by.
  if (const std::optional<Place> within = Within(value); within.has_value() && SamePlacement(within->layout, layout, extents)) {
    return {within->buffer, within->offset, layout};
  }
  const Place source = Any(value);
  for (const Place& place : places_[value]) {
    if (SamePlacement(place.layout, layout, extents)) return {place.buffer, place.offset, layout};
  }
  const bool f32 = type(value).dtype == DType::kF32;
  if (f32 && folded_.IsConstant(value)) {
    Place packed = PackedWeights(folded_.Rounded(value), DescOf(extents, source.layout), DescOf(extents, layout));
    packed.layout = layout;
    places_[value].push_back(packed);
    return packed;
  }
  const bool nested = IsNested(source.layout, extents);
  if (!nested && layout.block_dim >= 0) {
    Plain(value);
    return In(value, layout, places_[value].back());
  }
  return In(value, layout, source);
}

Place Lowering::In(ValueId value, const Layout& layout, Place source) {
  const Shape& extents = shape(value);
  const Place to = Allocate(value, layout);
  if (type(value).dtype == DType::kF32 && IsNested(source.layout, extents)) {
    EmitReorder(value, source, DataType::f32, to, DataType::f32);
  } else {
    MENDEL_CHECK(source.layout.block_dim < 0 && layout.block_dim < 0);
    StridedCopy copy{source, to, extents, source.layout.strides, layout.strides};
    Emit({}, "copy", MakeCopyKernel({copy}, DTypeSize(type(value).dtype)), {source, to});
    program_.steps.back().info.name = Cat("reorder of ", NameOf(graph_, value.node));
  }
  return to;
}

void Lowering::EmitReorder(ValueId value, const Place& from, DataType from_type, const Place& to, DataType to_type) {
  const dnnl::memory::desc source = DescOf(shape(value), from.layout, from_type);
  const dnnl::memory::desc target = DescOf(shape(value), to.layout, to_type);
  const dnnl::reorder::primitive_desc desc(Engine(), source, Engine(), target, UserScratchpad());
  Emit({}, Cat("reorder ", desc.impl_info_str()),
       MakePrimitiveKernel(dnnl::reorder(desc), {{DNNL_ARG_FROM, source, from}, {DNNL_ARG_TO, target, to}}, desc.scratchpad_desc()),
       {from, to}, static_cast<int64_t>(desc.scratchpad_desc().get_size()));
  program_.steps.back().info.name = Cat("reorder of ", NameOf(graph_, value.node));
}

Place Lowering::NarrowIn(ValueId value, const Layout& layout) {
  const Shape& extents = shape(value);
  for (const Place& place : narrow_[value]) {
    if (SamePlacement(place.layout, layout, extents)) return place;
  }
  const bool narrow = !narrow_[value].empty() && IsNested(narrow_[value].front().layout, extents);
  Place source = narrow ? narrow_[value].front() : Any(value);
  if (!narrow && !IsNested(source.layout, extents)) source = Plain(value);
  const Place to = AllocateNarrow(value, layout);
  EmitReorder(value, source, narrow ? DataType::bf16 : DataType::f32, to, DataType::bf16);
  return to;
}

Place Lowering::SplitIn(ValueId value, const SplitRowsOf& rows) {
  const auto [known, fresh] = split_.try_emplace({value, rows});
  if (!fresh) return known->second;
  const Shape& extents = shape(value);
  Place source = Any(value);
  std::optional<SplitPlan> plan;
  for (const Place& place : places_[value]) {
    if (plan.has_value()) break;
    plan = PlanSplit(place.layout, extents, rows);
    source = place;
  }
  if (!plan.has_value()) {
    source = In(value, rows.Source(extents));
    plan = PlanSplit(source.layout, extents, rows);
  }
  const Place to = Temporary(3 * plan->images * plan->positions * plan->channels * DTypeSize(DType::kBF16));
  known->second = to;
  Emit({}, "split into bf16", MakeSplitKernel(*plan, source, to), {source, to});
  program_.steps.back().info.name = Cat("split of ", NameOf(graph_, value.node));
  return to;
}

Place Lowering::AllocateNarrow(ValueId value, const Layout& layout) {
  Place place = Temporary(Span(layout, shape(value)) * DTypeSize(DType::kBF16));
  place.layout = layout;
  narrow_[value].push_back(place);
  return place;
}

std::optional<size_t> Lowering::FreeOutput(ValueId value) const {
  for (size_t k = 0; k < graph_.outputs().size(); ++k) {
    if (graph_.outputs()[k].value == value && !output_taken_[k]) return k;
  }
  for (int32_t user : graph_.users(value.node)) {
    if (!graph_.node(user).op->is_view || graph_.node(user).inputs[0] != value) continue;
    if (const std::optional<size_t> output = FreeOutput({user, 0}); output.has_value()) return output;
  }
  return std::nullopt;
}

bool Lowering::IsOnlyPatched(ValueId value, int32_t patch) const {
  const std::vector<ValueId>& operands = graph_.node(patch).inputs;
  if (operands[0] != value || std::count(operands.begin(), operands.end(), value) != 1) return false;
  // A part may be read for what is added to it, before the Patch.
  const auto read_before = [&](int32_t user) {
    if (graph_.node(user).op->name != "Slice") return false;
    bool added = false;
    while (user != patch && graph_.users(user).size() == 1 && !graph_.IsOutput(user)) {
      user = graph_.users(user)[0];
      added = added || graph_.node(user).op->name == "Add";
    }
    return user == patch && added;
  };
  const std::vector<int32_t>& users = graph_.users(value.node);
  return std::all_of(users.begin(), users.end(), [&](int32_t user) { return user == patch || read_before(user); });
}

std::optional<size_t> Lowering::FreePatchedOutput(ValueId value) const {
  const Node& node = graph_.node(value.node);
  if (graph_.IsOutput(value.node) || node.outputs.size() != 1) return std::nullopt;
  const std::vector<int32_t>& users = graph_.users(value.node);
  if (users.size() == 1 && graph_.node(users[0]).op->is_view) return FreePatchedOutput({users[0], 0});
  for (int32_t user : users) {
    if (graph_.node(user).op->name != "Patch") continue;
    if (!IsOnlyPatched(value, user)) return std::nullopt;
    const std::optional<size_t> output = FreeOutput({user, 0});
    return output.has_value() ? output : FreePatchedOutput({user, 0});
  }
  return std::nullopt;
}

std::optional<Place> Lowering::InOutputOf(ValueId base, ValueId patched) const {
  const auto places = places_.find(base);
  if (places == places_.end() || !IsOnlyPatched(base, patched.node)) return std::nullopt;
  // `base` may be a view of a value that is an output itself.
  const auto becomes = [&](ValueId output) {
    while (output != patched && (graph_.node(output.node).op->is_view || graph_.node(output.node).op->name == "Patch")) {
      output = graph_.node(output.node).inputs[0];
    }
    return output == patched;
  };
  for (const Place& place : places->second) {
    const Buffer& buffer = program_.buffers[static_cast<size_t>(place.buffer)];
    if (buffer.kind == BufferKind::kOutput && becomes(graph_.outputs()[buffer.external].value)) return place;
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

std::optional<Place> Lowering::InConcat(ValueId value, const Layout& layout) {
  const auto slot = slots_.find(value);
  if (slot == slots_.end()) return std::nullopt;
  const ConcatSlot& part = slot->second;
  const Shape& whole = shape(part.whole);
  const size_t axis = static_cast<size_t>(part.axis);
  if (IsOfSeveral(whole, part.axis)) return std::nullopt;
  Layout whole_layout = PlainLayout(whole);
  if (!IsPlain(layout, shape(value))) {
    const bool aligned = layout.block_dim == 1 && axis == 1 && part.channel % layout.block == 0 && whole[1] % layout.block == 0 &&
                         shape(value)[1] % layout.block == 0;
    if (!aligned || !SamePlacement(layout, BlockedLayout(shape(value), layout.block), shape(value))) return std::nullopt;
    whole_layout = BlockedLayout(whole, layout.block);
  }
  auto target = concats_.find(part.whole);
  if (target == concats_.end()) {
    const Place room = Allocate(part.whole, whole_layout);
    places_[part.whole].pop_back();  // it has no elements yet
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
  const bool aligned = std::all_of(parts.begin(), parts.end(), [&](ValueId one) { return shape(one)[1] % block == 0; });
  if (!IsOfSeveral(whole, part.axis) || !aligned) return std::nullopt;
  auto target = concats_.find(part.whole);
  if (target == concats_.end()) {
    std::optional<Place> room = RoomWithin(part.whole, block);
    if (!room.has_value()) {
      room = Allocate(part.whole, BlockedLayout(whole, block));
      places_[part.whole].pop_back();  // it has no elements yet
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

void Lowering::Alias(ValueId value, Place place) { places_[value].push_back(std::move(place)); }

Place Lowering::Temporary(int64_t bytes) {
  Buffer buffer;
  buffer.bytes = bytes;
  return {AddBuffer(std::move(buffer)), 0, {}};
}

Place Lowering::Constant(const std::string& key, int64_t bytes, const std::function<void(std::byte*)>& fill) {
  if (const auto known = constants_.find(key); !key.empty() && known != constants_.end()) return known->second;
  auto fresh = std::make_shared<AlignedBytes>(bytes);
  fill(fresh->data());
  auto memory = Share(std::move(fresh));
  Buffer buffer;
  buffer.kind = BufferKind::kConstant;
  buffer.bytes = bytes;
  buffer.constant = memory->data();
  buffer.owner = std::move(memory);
  buffer.packed = true;
  const Place place{AddBuffer(std::move(buffer)), 0, {}};
  if (!key.empty()) constants_.emplace(key, place);
  return place;
}

Place Lowering::PackedWeights(const Tensor& tensor, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted) {
  const auto key = std::make_tuple(tensor.bytes().data(), Key(plain, wanted));
  if (const auto known = packed_.find(key); known != packed_.end()) return known->second;
  Place place;
  if (plain == wanted) {
    const auto kept = std::make_shared<const Tensor>(tensor);
    Buffer buffer;
    buffer.kind = BufferKind::kConstant;
    buffer.bytes = ByteSize(tensor.type());
    buffer.constant = kept->bytes().data();
    buffer.owner = kept;
    place.buffer = AddBuffer(std::move(buffer));
  } else {
    place = Constant("", static_cast<int64_t>(wanted.get_size()), [&](std::byte* to) {
      dnnl::memory source(plain, Engine(), const_cast<std::byte*>(tensor.bytes().data()));
      dnnl::memory target(wanted, Engine(), to);
      dnnl::stream stream(Engine());
      dnnl::reorder(source, target).execute(stream, source, target);
      stream.wait();
    });
  }
  kept_.push_back(tensor);  // the key is its address
  packed_.emplace(key, place);
  return place;
}

Place Lowering::Reordered(const Place& from, const dnnl::memory::desc& desc, const dnnl::memory::desc& wanted,
                          const std::string& name) {
  if (desc == wanted) return from;
  const Place to = Temporary(static_cast<int64_t>(wanted.get_size()));
  dnnl::reorder::primitive_desc reorder(Engine(), desc, Engine(), wanted, UserScratchpad());
  Emit({}, Cat("reorder ", reorder.impl_info_str()),
       MakePrimitiveKernel(dnnl::reorder(reorder), {{DNNL_ARG_FROM, desc, from}, {DNNL_ARG_TO, wanted, to}},
                           reorder.scratchpad_desc()),
       {from, to}, static_cast<int64_t>(reorder.scratchpad_desc().get_size()));
  program_.steps.back().info.name = name;
  return to;
}

void Lowering::Emit(const std::vector<int32_t>& nodes, std::string implementation, std::unique_ptr<Kernel> kernel,
                    const std::vector<Place>& places, int64_t scratch, std::optional<std::pair<Place, Place>> in_place) {
  ProgramStep step;
  step.info.nodes = nodes;
  step.info.kernel = std::move(implementation);
  if (!nodes.empty()) step.info.name = NameOf(graph_, nodes.front());
  for (int32_t node : nodes) {
    step.info.flops += WithView(graph_, node, [&](const NodeView& view) { return CostOf(*graph_.node(node).op, view).flops; });
  }
  step.kernel = std::move(kernel);
  for (const Place& place : places) step.buffers.push_back(place.buffer);
  step.scratch = scratch;
  if (in_place.has_value() && in_place->first.offset == 0 && in_place->second.offset == 0) {
    step.in_place = {in_place->first.buffer, in_place->second.buffer};
  }
  program_.steps.push_back(std::move(step));
}

Program Lowering::Finish() {
  for (size_t k = 0; k < graph_.outputs().size(); ++k) {
    const ValueId value = graph_.outputs()[k].value;
    const Place from = Plain(value);
    const Buffer& holder = program_.buffers[static_cast<size_t>(from.buffer)];
    if (holder.kind == BufferKind::kOutput && holder.external == k) continue;
    Buffer buffer;
    buffer.kind = BufferKind::kOutput;
    buffer.bytes = ByteSize(type(value));
    buffer.external = k;
    const Place to{AddBuffer(std::move(buffer)), 0, from.layout};
    const Shape flat = {NumElements(shape(value))};
    Emit({}, "copy", MakeCopyKernel({{from, to, flat, {1}, {1}}}, DTypeSize(type(value).dtype)), {from, to});
    program_.steps.back().info.name = Cat("output ", graph_.outputs()[k].name);
  }
  if (options_.copy_constants) CopyConstants();
  return std::move(program_);
}

void Lowering::CopyConstants() {
  for (Buffer& buffer : program_.buffers) {
    if (buffer.kind != BufferKind::kConstant || buffer.packed) continue;
    auto copy = std::make_shared<AlignedBytes>(buffer.bytes);
    std::copy_n(buffer.constant, buffer.bytes, copy->data());
    const auto kept = Share(std::move(copy));
    buffer.constant = kept->data();
    buffer.owner = kept;
    buffer.packed = true;
  }
}

void Lowering::FindConcatSlots() {
  std::vector<int32_t> concats;
  for (size_t i = 0; i < graph_.nodes().size(); ++i) {
    const int32_t id = static_cast<int32_t>(i);
    const Node& node = graph_.node(id);
    if (node.op->name != "Concat" || folded_.IsConstant({id, 0}) || NumElements(node.outputs[0]) == 0) continue;
    const int64_t axis = node.attrs.Int("axis");
    const Shape& whole = node.outputs[0].shape;
    const bool several = axis == 1 && whole.size() >= 3;
    if (!several && IsOfSeveral(whole, axis)) continue;
    // A concatenation that begins with all parts of an earlier one continues it (DenseNet).
    size_t prefix = 0;
    for (int32_t earlier : concats) {
      const Node& other = graph_.node(earlier);
      const size_t parts = other.inputs.size();
      const bool begins = parts > prefix && parts < node.inputs.size() && other.attrs.Int("axis") == axis &&
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
