#include "kernels/cpu/kernels/einsum.h"

#include <type_traits>
#include <utility>

#include "kernels/cpu/kernels/typed.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

/// SumOf<T>::Type is the type in which products of T are summed. Integers wrap.
template <class T>
struct SumOf {
  using Type = double;
};
template <>
struct SumOf<int32_t> {
  using Type = uint32_t;
};
template <>
struct SumOf<int64_t> {
  using Type = uint64_t;
};

template <class T>
class StridedContractionKernel : public Kernel {
 public:
  explicit StridedContractionKernel(StridedContraction contraction) : c_(std::move(contraction)) {
    if (c_.summed.empty()) {
      c_.summed = {1};
      c_.left_sum = c_.right_sum = {0};
    }
    inner_ = c_.summed.back();
    left_step_ = c_.left_sum.back();
    right_step_ = c_.right_sum.back();
    c_.summed.pop_back();
    c_.left_sum.pop_back();
    c_.right_sum.pop_back();
    outer_ = NumElements(c_.summed);
  }

  absl::Status Run(const Bindings& bindings) override {
    const T* left = bindings.At<T>(c_.left);
    const T* right = bindings.At<T>(c_.right);
    T* to = bindings.At<T>(c_.to);
    ParallelRange(NumElements(c_.out), GrainOf(outer_ * inner_), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        to[i] = Element(left + OffsetOf(c_.out, c_.left_out, i),
                        right + OffsetOf(c_.out, c_.right_out, i));
      }
    });
    return absl::OkStatus();
  }

 private:
  using Sum = typename SumOf<T>::Type;

  T Element(const T* left, const T* right) const {
    Sum sum = 0;
    for (int64_t s = 0; s < outer_; ++s) {
      const T* a = left + OffsetOf(c_.summed, c_.left_sum, s);
      const T* b = right + OffsetOf(c_.summed, c_.right_sum, s);
      for (int64_t k = 0; k < inner_; ++k)
        sum += static_cast<Sum>(a[k * left_step_]) * static_cast<Sum>(b[k * right_step_]);
    }
    return static_cast<T>(sum);
  }

  StridedContraction c_;  ///< without the last summed dimension
  int64_t inner_ = 1, left_step_ = 0, right_step_ = 0, outer_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> MakeStridedContractionKernel(StridedContraction contraction, DType dtype) {
  return WithNumber(dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    return std::make_unique<StridedContractionKernel<decltype(number)>>(std::move(contraction));
  });
}

}  // namespace mendel::cpu
