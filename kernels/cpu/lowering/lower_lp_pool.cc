// LpPool of f32 by a native kernel: oneDNN has none.

#include <cmath>
#include <cstdint>
#include <utility>

#include "graph/pooling.h"
#include "kernels/cpu/kernels/typed.h"
#include "kernels/cpu/lowering/lower.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

class LpPoolKernel : public Kernel {
 public:
  LpPoolKernel(PoolGeometry geometry, int64_t channels, int64_t p, Place from, Place to)
      : geometry_(std::move(geometry)),
        channels_(channels),
        p_(p),
        from_(std::move(from)),
        to_(std::move(to)) {}

  absl::Status Run(const Bindings& bindings) override {
    const float* from = bindings.At<float>(from_);
    float* to = bindings.At<float>(to_);
    const int64_t positions = geometry_.positions();
    ParallelRange(
        channels_, GrainOf(static_cast<int64_t>(geometry_.offsets.size())),
        [&](int64_t begin, int64_t end) {
          for (int64_t c = begin; c < end; ++c) {
            const float* x = from + c * geometry_.plane;
            float* y = to + c * positions;
            if (p_ == 1)
              Pool(
                  x, y, [](double v) { return std::fabs(v); }, [](double sum) { return sum; });
            if (p_ == 2)
              Pool(
                  x, y, [](double v) { return v * v; }, [](double sum) { return std::sqrt(sum); });
            if (p_ > 2)
              Pool(
                  x, y, [p = p_](double v) { return Power(v, p); },
                  [p = p_](double sum) { return Root(sum, p); });
          }
        });
    return absl::OkStatus();
  }

 private:
  static double Power(double v, int64_t p) {
    const double base = std::fabs(v);
    double power = base;
    for (int64_t k = 1; k < p; ++k) power *= base;
    return power;
  }
  static double Root(double sum, int64_t p) { return std::pow(sum, 1.0 / static_cast<double>(p)); }

  /// Pools one channel in double: powers overflow f32 long before their root does.
  template <class Term, class Finish>
  void Pool(const float* x, float* y, const Term& term, const Finish& finish) const {
    for (size_t o = 0; o + 1 < geometry_.start.size(); ++o) {
      double sum = 0;
      for (int64_t k = geometry_.start[o]; k < geometry_.start[o + 1]; ++k) {
        sum += term(static_cast<double>(x[geometry_.offsets[static_cast<size_t>(k)]]));
      }
      y[o] = static_cast<float>(finish(sum));
    }
  }

  PoolGeometry geometry_;
  int64_t channels_, p_;
  Place from_, to_;
};

}  // namespace

absl::StatusOr<bool> LowerLpPool(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const Shape& shape = lowering.shape(node.inputs[0]);
  if (lowering.type(node.inputs[0]).dtype != DType::kF32) return false;
  PoolGeometry geometry =
      WithView(lowering.graph(), id, [](const NodeView& view) { return PoolGeometry(view); });
  const Place from = lowering.Plain(node.inputs[0]);
  const Place to = lowering.Allocate({id, 0}, PlainLayout(node.outputs[0].shape));
  lowering.Emit({id}, "lp pool",
                std::make_unique<LpPoolKernel>(std::move(geometry), shape[0] * shape[1],
                                               node.attrs.Int("p"), from, to),
                {from, to});
  return true;
}

}  // namespace mendel::cpu
