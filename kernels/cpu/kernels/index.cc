#include "kernels/cpu/kernels/index.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "graph/movement.h"
#include "kernels/cpu/kernels/typed.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

template <class T>
class GatherKernel : public Kernel {
 public:
  GatherKernel(IndexedRead read, int64_t outer, int64_t extent, int64_t count, int64_t slice)
      : read_(std::move(read)), outer_(outer), extent_(extent), count_(count), slice_(slice) {}

  absl::Status Run(const Bindings& bindings) override {
    const T* data = bindings.At<T>(read_.data);
    T* to = bindings.At<T>(read_.to);
    const IndexValues indices(bindings, read_.indices);
    if (slice_ == 1 && outer_ >= kLines) {
      ParallelRange(outer_, GrainOf(count_), [&](int64_t begin, int64_t end) {
        CopyElements(indices, begin, end, data, to);
      });
      return absl::OkStatus();
    }
    ParallelRange(outer_ * count_, GrainOf(slice_), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const std::optional<int64_t> at = ResolveIndex(indices[row % count_], extent_);
        T* slice = to + row * slice_;
        if (at.has_value()) {
          std::memcpy(slice, data + (row / count_ * extent_ + *at) * slice_,
                      static_cast<size_t>(slice_) * sizeof(T));
        } else {
          std::fill_n(slice, slice_, static_cast<T>(read_.invalid));
        }
      }
    });
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kLines = 16;   // from here on resolving indices once pays
  static constexpr int64_t kBlock = 256;  // indices that are resolved at once

  /// Lines [begin, end) of single elements: indices are resolved once for all of them.
  void CopyElements(const IndexValues& indices, int64_t begin, int64_t end, const T* data,
                    T* to) const {
    std::array<int64_t, kBlock> resolved;
    for (int64_t first = 0; first < count_; first += kBlock) {
      const int64_t n = std::min(kBlock, count_ - first);
      bool all = true;
      for (int64_t i = 0; i < n; ++i) {
        const std::optional<int64_t> at = ResolveIndex(indices[first + i], extent_);
        resolved[static_cast<size_t>(i)] = at.value_or(-1);
        all = all && at.has_value();
      }
      for (int64_t line = begin; line < end; ++line)
        CopyLine(resolved.data(), n, all, data + line * extent_, to + line * count_ + first);
    }
  }
  void CopyLine(const int64_t* resolved, int64_t n, bool all, const T* line, T* to) const {
    if (all) {
      for (int64_t i = 0; i < n; ++i) to[i] = line[resolved[i]];
      return;
    }
    for (int64_t i = 0; i < n; ++i)
      to[i] = resolved[i] < 0 ? static_cast<T>(read_.invalid) : line[resolved[i]];
  }

  IndexedRead read_;
  int64_t outer_, extent_, count_, slice_;
};

template <class T>
class GatherElementsKernel : public Kernel {
 public:
  GatherElementsKernel(IndexedRead read, const Shape& data, Shape indices, size_t axis)
      : read_(std::move(read)),
        outer_(std::move(indices)),
        strides_(RowMajorStrides(data)),
        extent_(data[axis]) {
    step_ = strides_[axis];
    strides_[axis] = 0;
    columns_ = outer_.back();
    column_step_ = strides_.back();
    outer_.pop_back();
    strides_.pop_back();
  }

  absl::Status Run(const Bindings& bindings) override {
    const T* data = bindings.At<T>(read_.data);
    T* to = bindings.At<T>(read_.to);
    const IndexValues indices(bindings, read_.indices);
    const T invalid = static_cast<T>(read_.invalid);
    ParallelRange(NumElements(outer_), GrainOf(columns_), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* base = data + OffsetOf(outer_, strides_, row);
        for (int64_t c = 0; c < columns_; ++c) {
          const std::optional<int64_t> at = ResolveIndex(indices[row * columns_ + c], extent_);
          to[row * columns_ + c] = at.has_value() ? base[c * column_step_ + *at * step_] : invalid;
        }
      }
    });
    return absl::OkStatus();
  }

 private:
  IndexedRead read_;
  Shape outer_,
      strides_;  ///< all dimensions but the last, and the data's strides with that of the axis 0
  int64_t extent_, step_ = 0, columns_ = 0, column_step_ = 0;
};

template <class T>
class GatherTuplesKernel : public Kernel {
 public:
  GatherTuplesKernel(IndexedRead read, TupleGather gather)
      : read_(std::move(read)), g_(std::move(gather)), strides_(RowMajorStrides(g_.addressed)) {}

  absl::Status Run(const Bindings& bindings) override {
    const T* data = bindings.At<T>(read_.data);
    T* to = bindings.At<T>(read_.to);
    const IndexValues indices(bindings, read_.indices);
    const int64_t tuple = static_cast<int64_t>(g_.addressed.size());
    const int64_t batch = NumElements(g_.addressed);
    ParallelRange(
        g_.batches * g_.tuples, GrainOf(g_.slice + tuple), [&](int64_t begin, int64_t end) {
          for (int64_t t = begin; t < end; ++t) {
            int64_t offset = t / g_.tuples * batch;
            bool inside = true;
            for (int64_t k = 0; k < tuple; ++k) {
              const auto at =
                  ResolveIndex(indices[t * tuple + k], g_.addressed[static_cast<size_t>(k)]);
              inside = inside && at.has_value();
              offset += at.value_or(0) * strides_[static_cast<size_t>(k)];
            }
            T* slice = to + t * g_.slice;
            if (inside) {
              std::memcpy(slice, data + offset * g_.slice,
                          static_cast<size_t>(g_.slice) * sizeof(T));
            } else {
              std::fill(slice, slice + g_.slice, static_cast<T>(read_.invalid));
            }
          }
        });
    return absl::OkStatus();
  }

 private:
  IndexedRead read_;
  TupleGather g_;
  Shape strides_;
};

template <class T>
class OneHotKernel : public Kernel {
 public:
  OneHotKernel(IndexedRead read, int64_t outer, int64_t depth, int64_t inner)
      : read_(std::move(read)), outer_(outer), depth_(depth), inner_(inner) {}

  absl::Status Run(const Bindings& bindings) override {
    const T* values = bindings.At<T>(read_.data);
    T* to = bindings.At<T>(read_.to);
    const IndexValues indices(bindings, read_.indices);
    const int64_t block = depth_ * inner_;
    ParallelRange(outer_, GrainOf(block), [&](int64_t begin, int64_t end) {
      std::fill(to + begin * block, to + end * block, values[0]);
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t i = 0; i < inner_; ++i) {
          const auto hot = ResolveIndex(indices[row * inner_ + i], depth_);
          if (hot.has_value()) to[row * block + *hot * inner_ + i] = values[1];
        }
      }
    });
    return absl::OkStatus();
  }

 private:
  IndexedRead read_;
  int64_t outer_, depth_, inner_;
};

template <class T>
class ReverseSequenceKernel : public Kernel {
 public:
  ReverseSequenceKernel(IndexedRead read, const Shape& shape, size_t batch_axis, size_t time_axis)
      : read_(std::move(read)), batch_extent_(shape[batch_axis]), time_extent_(shape[time_axis]) {
    const size_t rows = std::max(batch_axis, time_axis) + 1;
    slice_ = RowMajorStrides(shape)[rows - 1];
    const Shape outer(shape.begin(), shape.begin() + static_cast<int64_t>(rows));
    rows_ = NumElements(outer);
    batch_step_ = RowMajorStrides(outer)[batch_axis];
    time_step_ = RowMajorStrides(outer)[time_axis];
  }

  absl::Status Run(const Bindings& bindings) override {
    const T* data = bindings.At<T>(read_.data);
    T* to = bindings.At<T>(read_.to);
    const IndexValues lengths(bindings, read_.indices);
    ParallelRange(rows_, GrainOf(slice_), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t length = lengths[row / batch_step_ % batch_extent_];
        const int64_t time = row / time_step_ % time_extent_;
        T* slice = to + row * slice_;
        if (time < length && length > time_extent_) {
          std::fill(slice, slice + slice_, static_cast<T>(read_.invalid));
          continue;
        }
        const int64_t source = time < length ? row + (length - 1 - 2 * time) * time_step_ : row;
        std::memcpy(slice, data + source * slice_, static_cast<size_t>(slice_) * sizeof(T));
      }
    });
    return absl::OkStatus();
  }

 private:
  IndexedRead read_;
  int64_t batch_extent_, time_extent_;
  int64_t rows_ = 0, slice_ = 0, batch_step_ = 0, time_step_ = 0;  ///< rows of `slice_` elements
};

}  // namespace

std::unique_ptr<Kernel> MakeGatherKernel(const IndexedRead& read, int64_t outer, int64_t extent,
                                         int64_t count, int64_t slice) {
  return WithWord(read.element_bytes, [&](auto word) -> std::unique_ptr<Kernel> {
    return std::make_unique<GatherKernel<decltype(word)>>(read, outer, extent, count, slice);
  });
}

std::unique_ptr<Kernel> MakeGatherElementsKernel(const IndexedRead& read, const Shape& data,
                                                 const Shape& indices, size_t axis) {
  return WithWord(read.element_bytes, [&](auto word) -> std::unique_ptr<Kernel> {
    return std::make_unique<GatherElementsKernel<decltype(word)>>(read, data, indices, axis);
  });
}

std::unique_ptr<Kernel> MakeGatherTuplesKernel(const IndexedRead& read, TupleGather gather) {
  return WithWord(read.element_bytes, [&](auto word) -> std::unique_ptr<Kernel> {
    return std::make_unique<GatherTuplesKernel<decltype(word)>>(read, std::move(gather));
  });
}

std::unique_ptr<Kernel> MakeOneHotKernel(const IndexedRead& read, int64_t outer, int64_t depth,
                                         int64_t inner) {
  return WithWord(read.element_bytes, [&](auto word) -> std::unique_ptr<Kernel> {
    return std::make_unique<OneHotKernel<decltype(word)>>(read, outer, depth, inner);
  });
}

std::unique_ptr<Kernel> MakeReverseSequenceKernel(const IndexedRead& read, const Shape& shape,
                                                  size_t batch_axis, size_t time_axis) {
  return WithWord(read.element_bytes, [&](auto word) -> std::unique_ptr<Kernel> {
    return std::make_unique<ReverseSequenceKernel<decltype(word)>>(read, shape, batch_axis,
                                                                   time_axis);
  });
}

}  // namespace mendel::cpu
