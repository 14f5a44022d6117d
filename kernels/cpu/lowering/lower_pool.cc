// MaxPool and AveragePool by oneDNN, in the input's layout. A native loop computes averages that
// oneDNN counts differently.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/pooling.h"
#include "kernels/cpu/kernels/typed.h"
#include "kernels/cpu/lowering/lower.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

using dnnl::algorithm;
using dnnl::memory;

/// False where oneDNN's pooling counts differently from the definition: for windows that lie wholly
/// in padding and, where padding counts, for windows that reach beyond it.
bool WindowsFit(const std::vector<Window>& windows, const Shape& out, bool count_padding) {
  for (size_t d = 0; d < windows.size(); ++d) {
    const Window& w = windows[d];
    if (w.pad_begin >= w.kernel * w.dilation) return false;
    for (int64_t o = 0; o < out[d + 2]; ++o) {
      bool inside = false;
      for (int64_t k = 0; k < w.kernel; ++k) {
        const int64_t at = w.Position(o, k);
        inside = inside || (at >= 0 && at < w.input);
        if (count_padding && at >= w.input + w.pad_end) return false;
      }
      if (!inside) return false;
    }
  }
  return true;
}

memory::data_type TypeOf(DType dtype) {
  if (dtype == DType::kU8) return memory::data_type::u8;
  return dtype == DType::kI8 ? memory::data_type::s8 : memory::data_type::f32;
}

/// Layouts to try: the one the input lies in, then row-major.
std::vector<Layout> Candidates(const Place& place, const Shape& shape) {
  std::vector<Layout> layouts;
  if (IsDense(place.layout, shape)) layouts.push_back(place.layout);
  if (layouts.empty() || !IsPlain(layouts[0], shape)) layouts.push_back(PlainLayout(shape));
  return layouts;
}

/// Row-major, any rank, any windows; sums in double.
class AveragePoolKernel : public Kernel {
 public:
  AveragePoolKernel(PoolGeometry geometry, bool count_padding, int64_t channels, Place from,
                    Place to)
      : geometry_(std::move(geometry)),
        channels_(channels),
        from_(std::move(from)),
        to_(std::move(to)) {
    for (size_t o = 0; o + 1 < geometry_.start.size(); ++o) {
      const int64_t taps =
          count_padding ? geometry_.padded_size[o] : geometry_.start[o + 1] - geometry_.start[o];
      divisors_.push_back(static_cast<double>(std::max<int64_t>(1, taps)));
    }
  }

  absl::Status Run(const Bindings& bindings) override {
    const float* from = bindings.At<float>(from_);
    float* to = bindings.At<float>(to_);
    ParallelRange(channels_, GrainOf(static_cast<int64_t>(geometry_.offsets.size())),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t c = begin; c < end; ++c) {
                      const float* x = from + c * geometry_.plane;
                      float* y = to + c * geometry_.positions();
                      for (size_t o = 0; o < divisors_.size(); ++o) {
                        double sum = 0;
                        for (int64_t k = geometry_.start[o]; k < geometry_.start[o + 1]; ++k) {
                          sum += static_cast<double>(x[geometry_.offsets[static_cast<size_t>(k)]]);
                        }
                        y[o] = static_cast<float>(sum / divisors_[o]);
                      }
                    }
                  });
    return absl::OkStatus();
  }

 private:
  PoolGeometry geometry_;
  std::vector<double> divisors_;
  int64_t channels_;
  Place from_, to_;
};

void EmitAveragePool(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const Shape& shape = lowering.shape(node.inputs[0]);
  PoolGeometry geometry =
      WithView(lowering.graph(), id, [](const NodeView& view) { return PoolGeometry(view); });
  const Place from = lowering.Plain(node.inputs[0]);
  const Place to = lowering.Allocate({id, 0}, PlainLayout(node.outputs[0].shape));
  const bool count_padding = node.attrs.Int("count_include_pad") != 0;
  lowering.Emit({id}, "average pool",
                std::make_unique<AveragePoolKernel>(std::move(geometry), count_padding,
                                                    shape[0] * shape[1], from, to),
                {from, to});
}

}  // namespace

bool SuitsLibraryPool(const Graph& graph, int32_t pool) {
  const Node& node = graph.node(pool);
  const bool average = node.op->name == "AveragePool";
  const bool count_padding = average && node.attrs.Int("count_include_pad") != 0;
  if (node.outputs.size() != 1 || node.outputs[0].shape.size() > 5) return false;
  const std::vector<Window> windows =
      WithView(graph, pool, [](const NodeView& view) { return PoolWindows(view); });
  return WindowsFit(windows, node.outputs[0].shape, count_padding);
}

std::optional<Place> EmitLibraryPool(Lowering& lowering, const LibraryPool& what) {
  const Node& node = lowering.graph().node(what.pool);
  const Shape& shape = lowering.shape(what.input);
  const Shape& pooled = node.outputs[0].shape;
  const bool average = node.op->name == "AveragePool";
  const bool count_padding = average && node.attrs.Int("count_include_pad") != 0;
  const std::vector<Window> windows =
      WithView(lowering.graph(), what.pool, [](const NodeView& view) { return PoolWindows(view); });
  memory::dims strides, kernel, dilations, begin, end;
  for (size_t d = 0; d < windows.size(); ++d) {
    const Window& w = windows[d];
    strides.push_back(w.stride);
    kernel.push_back(w.kernel);
    dilations.push_back(w.dilation - 1);
    begin.push_back(w.pad_begin);
    end.push_back((pooled[d + 2] - 1) * w.stride + (w.kernel - 1) * w.dilation + 1 - w.input -
                  w.pad_begin);
  }
  const algorithm way = !average ? algorithm::pooling_max
                                 : (count_padding ? algorithm::pooling_avg_include_padding
                                                  : algorithm::pooling_avg_exclude_padding);
  const memory::data_type type = TypeOf(lowering.type(what.input).dtype);
  const memory::desc any(pooled, type, memory::format_tag::any);
  for (const bool accept_reference : {false, true}) {
    for (const Layout& layout : Candidates(lowering.Any(what.input), shape)) {
      try {
        const dnnl::pooling_v2_forward::desc desc(dnnl::prop_kind::forward_inference, way,
                                                  DescOf(shape, layout, type), any, strides, kernel,
                                                  dilations, begin, end);
        const dnnl::pooling_v2_forward::primitive_desc chosen(desc, UserScratchpad(), Engine());
        const std::optional<Layout> out = LayoutOf(chosen.dst_desc());
        if (!out.has_value() || (!accept_reference && IsReference(chosen.impl_info_str())))
          continue;
        const Place from = lowering.In(what.input, layout);
        const Place to = lowering.Allocate(what.result, Canonical(*out, pooled));
        lowering.Emit(what.nodes, chosen.impl_info_str(),
                      MakePrimitiveKernel(chosen,
                                          {{DNNL_ARG_SRC, chosen.src_desc(), from},
                                           {DNNL_ARG_DST, chosen.dst_desc(), to}},
                                          chosen.scratchpad_desc()),
                      {from, to}, static_cast<int64_t>(chosen.scratchpad_desc().get_size()));
        return to;
      } catch (const dnnl::error&) {
        continue;  // not in this layout
      }
    }
  }
  return std::nullopt;
}

absl::StatusOr<bool> LowerPool(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  if (lowering.type(node.inputs[0]).dtype != DType::kF32) return false;
  if (SuitsLibraryPool(lowering.graph(), id) &&
      EmitLibraryPool(lowering, {{id}, id, node.inputs[0], {id, 0}}).has_value())
    return true;
  if (node.op->name != "AveragePool") return false;
  EmitAveragePool(lowering, id);
  return true;
}

}  // namespace mendel::cpu
