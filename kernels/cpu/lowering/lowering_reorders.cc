// Values in other layouts and narrower types than those they were computed in.

#include <optional>
#include <string_view>

#include "base/check.h"
#include "base/status.h"
#include "kernels/cpu/kernels/copy.h"
#include "kernels/cpu/lowering/lowering.h"
#include "kernels/cpu/lowering/node_name.h"

namespace mendel::cpu {
namespace {

using DataType = dnnl::memory::data_type;

/// Names the last step, which computes no node. It keeps the node whose value it converts until all
/// steps are there (ChargeConversions).
void NameConversion(std::string_view what, const Graph& graph, ValueId value, Program& program) {
  Step& step = program.steps.back().info;
  step.name = Cat(what, " of ", NodeName(graph, value.node));
  step.requested_by = {value.node};
}

/// The type by which oneDNN's reorders move elements unchanged.
std::optional<DataType> MovedAs(DType dtype) {
  if (dtype == DType::kF32) return DataType::f32;
  if (dtype == DType::kI32) return DataType::s32;
  if (dtype == DType::kI8) return DataType::s8;
  if (dtype == DType::kU8 || dtype == DType::kBool) return DataType::u8;
  return std::nullopt;
}

}  // namespace

Place Lowering::In(ValueId value, const Layout& layout) {
  const Shape& extents = shape(value);
  // One placement may have several descriptions. A reader gets its own one, whose strides it uses.
  if (const std::optional<Place> within = Within(value);
      within.has_value() && SamePlacement(within->layout, layout, extents)) {
    return {within->buffer, within->offset, layout};
  }
  if (const std::optional<Place> copied = FromView(value, layout); copied.has_value())
    return *copied;
  const Place source = Any(value);
  for (const Place& place : places_[value]) {
    if (SamePlacement(place.layout, layout, extents)) return {place.buffer, place.offset, layout};
  }
  const bool f32 = type(value).dtype == DType::kF32;
  if (f32 && folded_.IsConstant(value)) {
    Place packed = PackedWeights(folded_.Rounded(value), DescOf(extents, source.layout),
                                 DescOf(extents, layout));
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
  const std::optional<DataType> moved = MovedAs(type(value).dtype);
  if (moved.has_value() && IsNested(source.layout, extents)) {
    EmitReorder(value, source, *moved, to, *moved);
  } else {
    MENDEL_CHECK(source.layout.block_dim < 0 && layout.block_dim < 0);
    StridedCopy copy{source, to, extents, source.layout.strides, layout.strides};
    Emit({}, "copy", MakeCopyKernel({copy}, DTypeSize(type(value).dtype)), {source, to});
    NameConversion("reorder", graph_, value, program_);
  }
  return to;
}

void Lowering::EmitReorder(ValueId value, const Place& from, DataType from_type, const Place& to,
                           DataType to_type) {
  const dnnl::memory::desc source = DescOf(shape(value), from.layout, from_type);
  const dnnl::memory::desc target = DescOf(shape(value), to.layout, to_type);
  const dnnl::reorder::primitive_desc desc(Engine(), source, Engine(), target, UserScratchpad());
  Emit({}, Cat("reorder ", desc.impl_info_str()),
       MakePrimitiveKernel(desc, {{DNNL_ARG_FROM, source, from}, {DNNL_ARG_TO, target, to}},
                           desc.scratchpad_desc()),
       {from, to}, static_cast<int64_t>(desc.scratchpad_desc().get_size()));
  NameConversion("reorder", graph_, value, program_);
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
  const Place to =
      Temporary(3 * plan->images * plan->positions * plan->channels * DTypeSize(DType::kBF16));
  known->second = to;
  Emit({}, "split into bf16", MakeSplitKernel(*plan, source, to), {source, to});
  NameConversion("split", graph_, value, program_);
  return to;
}

Place Lowering::AllocateNarrow(ValueId value, const Layout& layout) {
  Place place = Temporary(Span(layout, shape(value)) * DTypeSize(DType::kBF16));
  place.layout = layout;
  narrow_[value].push_back(place);
  return place;
}

Place Lowering::Reordered(const Place& from, const dnnl::memory::desc& desc,
                          const dnnl::memory::desc& wanted, const std::string& name) {
  if (desc == wanted) return from;
  const Place to = Temporary(static_cast<int64_t>(wanted.get_size()));
  dnnl::reorder::primitive_desc reorder(Engine(), desc, Engine(), wanted, UserScratchpad());
  Emit({}, Cat("reorder ", reorder.impl_info_str()),
       MakePrimitiveKernel(reorder, {{DNNL_ARG_FROM, desc, from}, {DNNL_ARG_TO, wanted, to}},
                           reorder.scratchpad_desc()),
       {from, to}, static_cast<int64_t>(reorder.scratchpad_desc().get_size()));
  program_.steps.back().info.name = name;
  return to;
}

}  // namespace mendel::cpu
