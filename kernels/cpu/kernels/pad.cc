#include "kernels/cpu/kernels/pad.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/cpu/kernels/typed.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

template <class T>
class SelectKernel : public Kernel {
 public:
  SelectKernel(Place from, Place to, std::vector<std::vector<int64_t>> sources)
      : from_(std::move(from)),
        to_(std::move(to)),
        outer_(std::move(sources)),
        last_(std::move(outer_.back())) {
    outer_.pop_back();
    for (const std::vector<int64_t>& dim : outer_) rows_ *= static_cast<int64_t>(dim.size());
    FindRun();
  }

  absl::Status Run(const Bindings& bindings) override {
    const T* from = bindings.At<T>(from_);
    T* to = bindings.At<T>(to_);
    const int64_t columns = static_cast<int64_t>(last_.size());
    ParallelRange(rows_, GrainOf(columns), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* source = from;
        int64_t rest = row;
        for (size_t d = outer_.size(); d-- > 0; rest /= static_cast<int64_t>(outer_[d].size())) {
          source += outer_[d][static_cast<size_t>(rest % static_cast<int64_t>(outer_[d].size()))];
        }
        RunRow(source, to + row * columns);
      }
    });
    return absl::OkStatus();
  }

 private:
  /// The longest stretch of the last dimension that is contiguous in the source.
  void FindRun() {
    size_t begin = 0;
    for (size_t i = 0; i < last_.size(); ++i) {
      if (i > 0 && last_[i] != last_[i - 1] + 1) begin = i;
      if (i + 1 - begin > run_end_ - run_begin_) {
        run_begin_ = begin;
        run_end_ = i + 1;
      }
    }
  }

  void RunRow(const T* source, T* to) const {
    for (size_t i = 0; i < run_begin_; ++i) to[i] = source[last_[i]];
    std::memcpy(to + run_begin_, source + last_[run_begin_], (run_end_ - run_begin_) * sizeof(T));
    for (size_t i = run_end_; i < last_.size(); ++i) to[i] = source[last_[i]];
  }

  Place from_, to_;
  std::vector<std::vector<int64_t>> outer_;  ///< all dimensions but the last
  std::vector<int64_t> last_;
  int64_t rows_ = 1;
  size_t run_begin_ = 0, run_end_ = 0;
};

class TriluKernel : public Kernel {
 public:
  TriluKernel(Place from, Place to, int64_t matrices, int64_t rows, int64_t columns, bool upper,
              int64_t k, int64_t bytes)
      : from_(std::move(from)),
        to_(std::move(to)),
        matrices_(matrices),
        rows_(rows),
        columns_(columns),
        k_(k),
        bytes_(bytes),
        upper_(upper) {}

  absl::Status Run(const Bindings& bindings) override {
    const std::byte* from = bindings.Address(from_);
    std::byte* to = bindings.Address(to_);
    ParallelRange(matrices_ * rows_, GrainOf(columns_), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        // Kept: columns with column - row at least k, or at most k.
        const int64_t diagonal = row % rows_ + k_;
        const int64_t first = upper_ ? std::clamp<int64_t>(diagonal, 0, columns_) : 0;
        const int64_t last = upper_ ? columns_ : std::clamp<int64_t>(diagonal + 1, 0, columns_);
        std::byte* target = to + row * columns_ * bytes_;
        const std::byte* source = from + row * columns_ * bytes_;
        std::memset(target, 0, static_cast<size_t>(first * bytes_));
        if (target != source)
          std::memcpy(target + first * bytes_, source + first * bytes_,
                      static_cast<size_t>((last - first) * bytes_));
        std::memset(target + last * bytes_, 0, static_cast<size_t>((columns_ - last) * bytes_));
      }
    });
    return absl::OkStatus();
  }

 private:
  Place from_, to_;
  int64_t matrices_, rows_, columns_, k_, bytes_;
  bool upper_;
};

}  // namespace

std::unique_ptr<Kernel> MakeSelectKernel(Place from, Place to,
                                         std::vector<std::vector<int64_t>> sources,
                                         int64_t element_bytes) {
  return WithWord(element_bytes, [&](auto word) -> std::unique_ptr<Kernel> {
    return std::make_unique<SelectKernel<decltype(word)>>(std::move(from), std::move(to),
                                                          std::move(sources));
  });
}

std::unique_ptr<Kernel> MakeTriluKernel(Place from, Place to, int64_t matrices, int64_t rows,
                                        int64_t columns, bool upper, int64_t k,
                                        int64_t element_bytes) {
  return std::make_unique<TriluKernel>(std::move(from), std::move(to), matrices, rows, columns,
                                       upper, k, element_bytes);
}

}  // namespace mendel::cpu
