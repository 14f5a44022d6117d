#include "kernels/cpu/kernels/scatter.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "graph/movement.h"
#include "kernels/cpu/kernels/typed.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

/// Integers wrap around; NaN wins in max and min. Sums and products are rounded at every update.
template <Combination C, class T>
T Combine(T old, T update) {
  using Wide = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                           std::type_identity<T>>::type;
  if constexpr (C == Combination::kReplace) return update;
  if constexpr (C == Combination::kAdd)
    return static_cast<T>(static_cast<Wide>(old) + static_cast<Wide>(update));
  if constexpr (C == Combination::kMultiply)
    return static_cast<T>(static_cast<Wide>(old) * static_cast<Wide>(update));
  if constexpr (C == Combination::kMax) return update > old || update != update ? update : old;
  if constexpr (C == Combination::kMin) return update < old || update != update ? update : old;
}

template <class T>
void CopyAll(const T* from, T* to, int64_t count) {
  if (from == to) return;
  ParallelRange(count, 1 << 16, [&](int64_t begin, int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin) * sizeof(T));
  });
}

template <Combination C, class T>
class ScatterElementsKernel : public Kernel {
 public:
  ScatterElementsKernel(ScatterProblem problem, Shape updates, size_t axis)
      : p_(std::move(problem)),
        outer_(std::move(updates)),
        strides_(RowMajorStrides(p_.shape)),
        extent_(p_.shape[axis]) {
    step_ = strides_[axis];
    strides_[axis] = 0;
    columns_ = outer_.back();
    column_step_ = strides_.back();
    outer_.pop_back();
    strides_.pop_back();
    // Updates with different coordinates in another dimension never overlap.
    parts_ = axis > 0 ? outer_.front() : 1;
  }

  absl::Status Run(const Bindings& bindings) override {
    T* to = bindings.At<T>(p_.to);
    CopyAll<T>(bindings.At<T>(p_.data), to, NumElements(p_.shape));
    const T* updates = bindings.At<T>(p_.updates);
    const IndexValues indices(bindings, p_.indices);
    const int64_t rows = NumElements(outer_) / parts_;
    ParallelRange(parts_, GrainOf(rows * columns_), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin * rows; row < end * rows; ++row) {
        T* base = to + OffsetOf(outer_, strides_, row);
        for (int64_t c = 0; c < columns_; ++c) {
          const auto at = ResolveIndex(indices[row * columns_ + c], extent_);
          if (!at.has_value()) continue;
          T& element = base[c * column_step_ + *at * step_];
          element = Combine<C>(element, updates[row * columns_ + c]);
        }
      }
    });
    return absl::OkStatus();
  }

 private:
  ScatterProblem p_;
  Shape outer_, strides_;  ///< all dimensions of the updates but the last, and the data's strides
                           ///< with that of the axis 0
  int64_t extent_, step_ = 0, columns_ = 0, column_step_ = 0, parts_ = 1;
};

template <Combination C, class T>
class ScatterTuplesKernel : public Kernel {
 public:
  ScatterTuplesKernel(ScatterProblem problem, int64_t tuples, int64_t tuple)
      : p_(std::move(problem)),
        strides_(RowMajorStrides(p_.shape)),
        tuples_(tuples),
        tuple_(tuple) {
    slice_ = strides_[static_cast<size_t>(tuple - 1)];
  }

  absl::Status Run(const Bindings& bindings) override {
    T* to = bindings.At<T>(p_.to);
    CopyAll<T>(bindings.At<T>(p_.data), to, NumElements(p_.shape));
    const T* updates = bindings.At<T>(p_.updates);
    const IndexValues indices(bindings, p_.indices);
    // Tuples may overlap: each thread takes a part of the slices, in all tuples' order.
    ParallelRange(slice_, GrainOf(tuples_), [&](int64_t begin, int64_t end) {
      for (int64_t t = 0; t < tuples_; ++t) {
        int64_t offset = 0;
        bool inside = true;
        for (int64_t k = 0; k < tuple_; ++k) {
          const auto at = ResolveIndex(indices[t * tuple_ + k], p_.shape[static_cast<size_t>(k)]);
          inside = inside && at.has_value();
          offset += at.value_or(0) * strides_[static_cast<size_t>(k)];
        }
        if (!inside) continue;
        const T* update = updates + t * slice_;
        for (int64_t k = begin; k < end; ++k)
          to[offset + k] = Combine<C>(to[offset + k], update[k]);
      }
    });
    return absl::OkStatus();
  }

 private:
  ScatterProblem p_;
  Shape strides_;
  int64_t tuples_, tuple_, slice_ = 1;
};

template <template <Combination, class> class K, class... Arguments>
std::unique_ptr<Kernel> Make(const ScatterProblem& problem, const Arguments&... arguments) {
  if (problem.combination == Combination::kReplace) {
    return WithWord(DTypeSize(problem.dtype), [&](auto word) -> std::unique_ptr<Kernel> {
      return std::make_unique<K<Combination::kReplace, decltype(word)>>(problem, arguments...);
    });
  }
  return WithNumber(problem.dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    using T = decltype(number);
    if (problem.combination == Combination::kAdd)
      return std::make_unique<K<Combination::kAdd, T>>(problem, arguments...);
    if (problem.combination == Combination::kMax)
      return std::make_unique<K<Combination::kMax, T>>(problem, arguments...);
    if (problem.combination == Combination::kMin)
      return std::make_unique<K<Combination::kMin, T>>(problem, arguments...);
    return std::make_unique<K<Combination::kMultiply, T>>(problem, arguments...);
  });
}

}  // namespace

std::optional<Combination> CombinationOf(std::string_view reduction, DType dtype) {
  if (reduction == "none") return Combination::kReplace;
  if (!IsNumber(dtype)) return std::nullopt;
  if (reduction == "add") return Combination::kAdd;
  if (reduction == "mul") return Combination::kMultiply;
  if (reduction == "max") return Combination::kMax;
  if (reduction == "min") return Combination::kMin;
  return std::nullopt;
}

std::unique_ptr<Kernel> MakeScatterElementsKernel(const ScatterProblem& problem,
                                                  const Shape& updates, size_t axis) {
  return Make<ScatterElementsKernel>(problem, updates, axis);
}

std::unique_ptr<Kernel> MakeScatterTuplesKernel(const ScatterProblem& problem, int64_t tuples,
                                                int64_t tuple) {
  return Make<ScatterTuplesKernel>(problem, tuples, tuple);
}

}  // namespace mendel::cpu
