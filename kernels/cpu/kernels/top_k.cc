// TopK: a line's elements with their positions, selected and sorted in scratch memory.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/cpu/kernels/lines.h"
#include "kernels/cpu/kernels/typed.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

template <class T>
struct Entry {
  T value;
  int64_t position;
};

/// A total order: NaN is the largest value, and of equal ones the first comes first.
template <class T>
struct Before {
  bool largest;
  bool operator()(const Entry<T>& a, const Entry<T>& b) const {
    const T& x = largest ? b.value : a.value;
    const T& y = largest ? a.value : b.value;
    if (x < y) return true;
    if (y < x) return false;
    const bool x_is_nan = x != x;
    const bool y_is_nan = y != y;
    return x_is_nan == y_is_nan ? a.position < b.position : y_is_nan;
  }
};

template <class T>
class TopKKernel : public Kernel {
 public:
  TopKKernel(const Lines& lines, Place from, Place values, Place positions, int64_t k, bool largest,
             int threads)
      : lines_(lines),
        from_(std::move(from)),
        values_(std::move(values)),
        positions_(std::move(positions)),
        k_(k),
        threads_(threads),
        before_{largest} {}

  absl::Status Run(const Bindings& bindings) override {
    const int64_t count = lines_.outer * lines_.inner;
    // The number of parts is limited by the scratch memory.
    const int64_t parts = std::clamp<int64_t>(count / GrainOf(8 * lines_.length), 1, threads_);
    ParallelRange(parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        Entry<T>* entries = reinterpret_cast<Entry<T>*>(bindings.scratch) + part * lines_.length;
        for (int64_t line = part * count / parts; line < (part + 1) * count / parts; ++line)
          RunLine(bindings, line, entries);
      }
    });
    return absl::OkStatus();
  }

 private:
  void RunLine(const Bindings& bindings, int64_t line, Entry<T>* entries) const {
    const int64_t row = line / lines_.inner;
    const int64_t column = line % lines_.inner;
    const T* x = bindings.At<T>(from_) + row * lines_.length * lines_.inner + column;
    for (int64_t i = 0; i < lines_.length; ++i) entries[i] = {x[i * lines_.inner], i};
    if (8 * k_ < lines_.length) {  // most elements are compared once, with the worst of the best
      std::partial_sort(entries, entries + k_, entries + lines_.length, before_);
    } else {
      std::nth_element(entries, entries + k_, entries + lines_.length, before_);
      std::sort(entries, entries + k_, before_);
    }
    const int64_t first = row * k_ * lines_.inner + column;
    for (int64_t i = 0; i < k_; ++i) {
      bindings.At<T>(values_)[first + i * lines_.inner] = entries[i].value;
      bindings.At<int64_t>(positions_)[first + i * lines_.inner] = entries[i].position;
    }
  }

  Lines lines_;
  Place from_, values_, positions_;
  int64_t k_, threads_;
  Before<T> before_;
};

}  // namespace

std::unique_ptr<Kernel> MakeTopKKernel(const Lines& lines, Place from, Place values,
                                       Place positions, int64_t k, bool largest, int threads) {
  return WithNumber(lines.dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    return std::make_unique<TopKKernel<decltype(number)>>(
        lines, std::move(from), std::move(values), std::move(positions), k, largest, threads);
  });
}

int64_t TopKScratch(const Lines& lines, int threads) {
  return WithNumber(lines.dtype, [&](auto number) {
    return static_cast<int64_t>(sizeof(Entry<decltype(number)>)) * lines.length * threads;
  });
}

}  // namespace mendel::cpu
