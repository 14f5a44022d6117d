// ConvTranspose of f32 by strided loops, for cases that oneDNN does not describe: output padding
// beyond the kernel's reach, four dimensions of space. Each input adds its kernel to one output
// plane.

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/cpu/kernels/typed.h"
#include "kernels/cpu/lowering/lower.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

struct TransposedConvProblem {
  Place src, weights, dst;
  std::optional<Place> bias;
  int64_t images = 1, groups = 1;
  int64_t depth = 1, width = 1;  ///< input and output channels of a group
  Shape input, kernel, output;   ///< extents in space
  Ints strides, dilations, pads;
};

/// Row-major operands. A job is an output plane, so that no two threads write to one.
class TransposedConvKernel : public Kernel {
 public:
  explicit TransposedConvKernel(TransposedConvProblem problem)
      : p_(std::move(problem)),
        rows_(p_.input.begin(), p_.input.end() - 1),
        taps_(NumElements(p_.kernel)),
        in_plane_(NumElements(p_.input)),
        out_plane_(NumElements(p_.output)) {}

  absl::Status Run(const Bindings& bindings) override {
    const float* src = bindings.At<float>(p_.src);
    const float* weights = bindings.At<float>(p_.weights);
    const float* bias = p_.bias.has_value() ? bindings.At<float>(*p_.bias) : nullptr;
    float* dst = bindings.At<float>(p_.dst);
    const int64_t planes = p_.groups * p_.width;
    ParallelRange(
        p_.images * planes, GrainOf(p_.depth * taps_ * in_plane_), [&](int64_t begin, int64_t end) {
          for (int64_t job = begin; job < end; ++job) {
            const int64_t channel = job % planes, group = channel / p_.width;
            float* plane = dst + job * out_plane_;
            std::fill_n(plane, out_plane_, bias == nullptr ? 0.0f : bias[channel]);
            for (int64_t c = group * p_.depth; c < (group + 1) * p_.depth; ++c) {
              const float* image = src + (job / planes * p_.groups * p_.depth + c) * in_plane_;
              const float* kernel = weights + (c * p_.width + channel % p_.width) * taps_;
              for (int64_t tap = 0; tap < taps_; ++tap) AddTap(image, tap, kernel[tap], plane);
            }
          }
        });
    return absl::OkStatus();
  }

 private:
  void AddTap(const float* image, int64_t tap, float weight, float* plane) const {
    const size_t last = rows_.size();
    const int64_t stride = p_.strides[last];
    const int64_t at = tap % p_.kernel[last] * p_.dilations[last] - p_.pads[last];
    // Inputs whose output lies inside the row.
    const int64_t begin = at < 0 ? (-at + stride - 1) / stride : 0;
    const int64_t end = std::min(
        p_.input[last], at < p_.output[last] ? (p_.output[last] - 1 - at) / stride + 1 : 0);
    for (int64_t row = 0; row < NumElements(rows_); ++row) {
      const std::optional<int64_t> out = OutputRow(row, tap / p_.kernel[last]);
      if (!out.has_value()) continue;
      const float* x = image + row * p_.input[last];
      float* y = plane + *out * p_.output[last] + at;
      for (int64_t j = begin; j < end; ++j) y[j * stride] += weight * x[j];
    }
  }

  /// The row that the outer dimensions of an input row and of a tap lead to.
  std::optional<int64_t> OutputRow(int64_t row, int64_t tap) const {
    int64_t out = 0, step = 1;
    for (size_t d = rows_.size(); d-- > 0;) {
      const int64_t at =
          row % p_.input[d] * p_.strides[d] + tap % p_.kernel[d] * p_.dilations[d] - p_.pads[d];
      if (at < 0 || at >= p_.output[d]) return std::nullopt;
      out += at * step;
      step *= p_.output[d];
      row /= p_.input[d];
      tap /= p_.kernel[d];
    }
    return out;
  }

  TransposedConvProblem p_;
  Shape rows_;  ///< the input's dimensions of space but the last
  int64_t taps_, in_plane_, out_plane_;
};

Shape Space(const Shape& shape) { return Shape(shape.begin() + 2, shape.end()); }

}  // namespace

absl::StatusOr<bool> LowerTransposedConv(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  if (lowering.type({id, 0}).dtype != DType::kF32) return false;
  const Shape& src = lowering.shape(node.inputs[0]);
  const Shape& weights = lowering.shape(node.inputs[1]);
  TransposedConvProblem p;
  p.src = lowering.Plain(node.inputs[0]);
  p.weights = lowering.Plain(node.inputs[1]);
  if (node.inputs.size() > 2) p.bias = lowering.Plain(node.inputs[2]);
  p.dst = lowering.Allocate({id, 0}, PlainLayout(node.outputs[0].shape));
  p.images = src[0];
  p.groups = node.attrs.Int("group");
  p.depth = src[1] / p.groups;
  p.width = weights[1];
  p.input = Space(src);
  p.kernel = Space(weights);
  p.output = Space(node.outputs[0].shape);
  p.strides = node.attrs.IntList("strides");
  p.dilations = node.attrs.IntList("dilations");
  p.pads = node.attrs.IntList("pads");
  std::vector<Place> touched = {p.src, p.weights, p.dst};
  if (p.bias.has_value()) touched.push_back(*p.bias);
  lowering.Emit({id}, "transposed convolution, strided",
                std::make_unique<TransposedConvKernel>(std::move(p)), touched);
  return true;
}

}  // namespace mendel::cpu
