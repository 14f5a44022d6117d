// A weight view reads weights where they lie: as stored floats, or as doubles of a folded
// expression. Elements are scaled in double and rounded once on their way into a kernel's packed
// form. Nothing is copied in between.
#ifndef MENDEL_KERNELS_CPU_MEMORY_WEIGHT_VIEW_H_
#define MENDEL_KERNELS_CPU_MEMORY_WEIGHT_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "graph/tensor.h"
#include "kernels/cpu/memory/subnormal.h"

namespace mendel::cpu {

/// Refers to the elements. The caller keeps them alive, or gives the view a share in them.
class WeightView {
 public:
  WeightView(std::span<const float> stored) : stored_(stored.data()), size_(stored.size()) {}
  WeightView(std::span<const double> exact) : exact_(exact.data()), size_(exact.size()) {}
  WeightView(const std::vector<double>& exact) : WeightView(std::span<const double>(exact)) {}
  WeightView(std::span<const double> exact, std::shared_ptr<const void> owner) : WeightView(exact) {
    owner_ = std::move(owner);
  }

  size_t size() const { return size_; }
  /// Calls use(const float*) or use(const double*): one loop for each, without a branch inside.
  template <class Use>
  void Visit(Use&& use) const {
    if (stored_ != nullptr) {
      std::forward<Use>(use)(stored_);
    } else {
      std::forward<Use>(use)(exact_);
    }
  }

 private:
  const float* stored_ = nullptr;
  const double* exact_ = nullptr;
  size_t size_ = 0;
  std::shared_ptr<const void> owner_;
};

/// The matrices of a product's weights: element (phase, out, in) lies at the sum of its indices
/// times these.
struct WeightMatrix {
  WeightView values;
  int64_t phase = 0;
  int64_t out = 1;
  int64_t in = 1;
  int64_t At(int64_t p, int64_t o, int64_t i) const { return p * phase + o * out + i * in; }
};

/// A channel's factor; one where there are none.
inline double FactorOf(const std::vector<double>& scale, int64_t channel) {
  return scale.empty() ? 1.0 : scale[static_cast<size_t>(channel)];
}

/// `count` elements in place. In the current ThreadScope.
void DropSubnormals(float* weights, int64_t count);
/// The elements, in a tensor of their own where some are subnormal. Of other dtypes the tensor
/// itself.
Tensor WithoutSubnormals(const Tensor& weights);

/// Scaled in double, rounded once.
template <class T>
float ScaledWeight(T weight, double factor) {
  return WithoutSubnormal(static_cast<float>(static_cast<double>(weight) * factor));
}

/// Elements, each times the factor of its run of `run` elements; factors repeat. Without factors
/// the elements stay as they are.
struct ScaledWeights {
  WeightView values;
  std::vector<double> factors;
  int64_t run = 1;

  /// All of them in f32, rounded once. In the current ThreadScope.
  void WriteTo(float* to) const;
};

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_MEMORY_WEIGHT_VIEW_H_
