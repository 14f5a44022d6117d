#include "kernels/cpu/kernels/lines.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

#include "kernels/cpu/kernels/typed.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kSide = 64;  ///< lines handled side by side

/// Calls body(offset of the first element, first line, lines) for strips of neighboring lines,
/// from all threads.
template <class Body>
void ForStrips(const Lines& lines, const Body& body) {
  const int64_t strips = (lines.inner + kSide - 1) / kSide;
  ParallelRange(lines.outer * strips, GrainOf(lines.length * std::min(lines.inner, kSide)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t job = begin; job < end; ++job) {
                    const int64_t column = job % strips * kSide;
                    const int64_t row = job / strips;
                    body(row * lines.length * lines.inner + column, row * lines.inner + column,
                         std::min(kSide, lines.inner - column));
                  }
                });
}

template <class T>
class CumSumKernel : public Kernel {
 public:
  CumSumKernel(const Lines& lines, Place from, Place to, bool exclusive, bool reverse)
      : lines_(lines),
        from_(std::move(from)),
        to_(std::move(to)),
        exclusive_(exclusive),
        reverse_(reverse) {}

  absl::Status Run(const Bindings& bindings) override {
    const T* from = bindings.At<T>(from_);
    T* to = bindings.At<T>(to_);
    ForStrips(lines_, [&](int64_t offset, int64_t, int64_t count) {
      if (lines_.inner == 1) return RunRow(from + offset, to + offset);
      std::array<Sum, kSide> sums{};
      for (int64_t k = 0; k < lines_.length; ++k) {
        const int64_t at = offset + (reverse_ ? lines_.length - 1 - k : k) * lines_.inner;
        for (int64_t i = 0; i < count; ++i) {
          const Sum before = sums[static_cast<size_t>(i)];
          const Sum after = before + static_cast<Sum>(from[at + i]);
          to[at + i] = static_cast<T>(exclusive_ ? before : after);
          sums[static_cast<size_t>(i)] = after;
        }
      }
    });
    return absl::OkStatus();
  }

 private:
  using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;

  void RunRow(const T* from, T* to) const {
    Sum sum = 0;
    for (int64_t k = 0; k < lines_.length; ++k) {
      const int64_t at = reverse_ ? lines_.length - 1 - k : k;
      const Sum before = sum;
      sum += static_cast<Sum>(from[at]);
      to[at] = static_cast<T>(exclusive_ ? before : sum);
    }
  }

  Lines lines_;
  Place from_, to_;
  bool exclusive_, reverse_;
};

/// The extreme of one contiguous line: its value first, in lanes, then where it stands.
template <class T, class Better>
int64_t ExtremeOfRow(const T* x, int64_t length, bool last) {
  constexpr size_t kLanes = 16;
  if (x[0] != x[0]) return 0;
  std::array<T, kLanes> lanes;
  lanes.fill(x[0]);
  int64_t k = 0;
  for (; k + static_cast<int64_t>(kLanes) <= length; k += kLanes) {
    for (size_t i = 0; i < kLanes; ++i) {
      const T value = x[k + static_cast<int64_t>(i)];
      lanes[i] = Better()(value, lanes[i]) ? value : lanes[i];
    }
  }
  for (; k < length; ++k) lanes[0] = Better()(x[k], lanes[0]) ? x[k] : lanes[0];
  T best = lanes[0];
  for (T lane : lanes) best = Better()(lane, best) ? lane : best;
  if (!last) return std::find(x, x + length, best) - x;
  for (k = length - 1; x[k] != best;) --k;
  return k;
}

/// Positions are as wide as the values, so that the loop uses one size of vector.
template <class T, class Better, bool kLast>
void ExtremesSideBySide(const T* x, const Lines& lines, int64_t count, int64_t* best) {
  using Position = std::conditional_t<sizeof(T) == sizeof(int32_t), int32_t, int64_t>;
  std::array<T, kSide> values;
  std::array<Position, kSide> positions{};
  std::copy(x, x + count, values.begin());
  for (int64_t k = 1; k < lines.length; ++k) {
    const T* row = x + k * lines.inner;
    const Position position = static_cast<Position>(k);
    for (int64_t i = 0; i < count; ++i) {
      const T old = values[static_cast<size_t>(i)];
      const T value = row[i];
      const bool wins = kLast ? Better()(value, old) | (value == old) : Better()(value, old);
      values[static_cast<size_t>(i)] = wins ? value : old;
      positions[static_cast<size_t>(i)] = wins ? position : positions[static_cast<size_t>(i)];
    }
  }
  std::copy(positions.begin(), positions.begin() + count, best);
}

/// Positions of the extremes of `count` neighboring lines.
template <class T, class Better>
void Extremes(const T* x, const Lines& lines, int64_t count, bool last, int64_t* best) {
  if (lines.inner == 1) {
    *best = ExtremeOfRow<T, Better>(x, lines.length, last);
  } else if (last) {
    ExtremesSideBySide<T, Better, true>(x, lines, count, best);
  } else {
    ExtremesSideBySide<T, Better, false>(x, lines, count, best);
  }
}

template <class T, class Better>
class ArgExtremeKernel : public Kernel {
 public:
  ArgExtremeKernel(const Lines& lines, Place from, Place to, bool last)
      : lines_(lines), from_(std::move(from)), to_(std::move(to)), last_(last) {}

  absl::Status Run(const Bindings& bindings) override {
    const T* from = bindings.At<T>(from_);
    int64_t* to = bindings.At<int64_t>(to_);
    ForStrips(lines_, [&](int64_t offset, int64_t line, int64_t count) {
      Extremes<T, Better>(from + offset, lines_, count, last_, to + line);
    });
    return absl::OkStatus();
  }

 private:
  Lines lines_;
  Place from_, to_;
  bool last_;
};

template <class T>
class HardmaxKernel : public Kernel {
 public:
  HardmaxKernel(const Lines& lines, Place from, Place to)
      : lines_(lines), from_(std::move(from)), to_(std::move(to)) {}

  absl::Status Run(const Bindings& bindings) override {
    const T* from = bindings.At<T>(from_);
    T* to = bindings.At<T>(to_);
    ForStrips(lines_, [&](int64_t offset, int64_t, int64_t count) {
      std::array<int64_t, kSide> best;
      Extremes<T, std::greater<T>>(from + offset, lines_, count, false, best.data());
      for (int64_t k = 0; k < lines_.length; ++k) {
        T* row = to + offset + k * lines_.inner;
        for (int64_t i = 0; i < count; ++i)
          row[i] = best[static_cast<size_t>(i)] == k ? T{1} : T{0};
      }
    });
    return absl::OkStatus();
  }

 private:
  Lines lines_;
  Place from_, to_;
};

}  // namespace

std::unique_ptr<Kernel> MakeCumSumKernel(const Lines& lines, Place from, Place to, bool exclusive,
                                         bool reverse) {
  return WithNumber(lines.dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    return std::make_unique<CumSumKernel<decltype(number)>>(lines, std::move(from), std::move(to),
                                                            exclusive, reverse);
  });
}

std::unique_ptr<Kernel> MakeArgExtremeKernel(const Lines& lines, Place from, Place to, bool largest,
                                             bool last) {
  return WithNumber(lines.dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    using T = decltype(number);
    if (largest)
      return std::make_unique<ArgExtremeKernel<T, std::greater<T>>>(lines, std::move(from),
                                                                    std::move(to), last);
    return std::make_unique<ArgExtremeKernel<T, std::less<T>>>(lines, std::move(from),
                                                               std::move(to), last);
  });
}

std::unique_ptr<Kernel> MakeHardmaxKernel(const Lines& lines, Place from, Place to) {
  return WithNumber(lines.dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    return std::make_unique<HardmaxKernel<decltype(number)>>(lines, std::move(from), std::move(to));
  });
}

}  // namespace mendel::cpu
