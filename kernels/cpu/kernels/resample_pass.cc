#include "kernels/cpu/kernels/resample_pass.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/simd/native_isa.h"

namespace mendel::cpu {
namespace {

void BlendAnywhere(const RowSums& sums, int64_t inner, float* to) {
  for (int64_t k = 0; k < sums.taps; ++k) {
    const float* const row = sums.from + sums.position[k] * sums.step;
    const float factor = sums.factor[k];
    if (k == 0) {
      for (int64_t j = 0; j < inner; ++j) to[j] = factor * row[j];  // a negative zero stays one
    } else {
      for (int64_t j = 0; j < inner; ++j) to[j] += factor * row[j];
    }
  }
}

}  // namespace

const ResampleIsa& ResampleIsaHere() {
  static constexpr ResampleIsa kAnywhere{0, &BlendAnywhere, nullptr};
  return NativeIsaHere() == NativeIsa::kNone ? kAnywhere : ResampleAvx2();
}

/// All positions get as many taps as the one with the most. Extra taps are parts of the last one,
/// because a factor of zero would make NaN of infinity.
PackedPass::PackedPass(const ResamplePass& pass, const ResampleIsa& isa, float outside)
    : isa_(isa),
      outside_(outside),
      outer_(pass.outer),
      in_(pass.in),
      out_(pass.out()),
      inner_(pass.inner) {
  for (const ResampleTaps& taps : pass.taps) taps_ = std::max(taps_, taps.size());
  for (const ResampleTaps& taps : pass.taps) {
    outside_at_.push_back(taps.empty());
    float factor = 0;
    for (size_t k = 0; k < taps_; ++k) {
      if (k < taps.size()) factor = static_cast<float>(taps[k].coefficient);
      if (k + 1 >= taps.size() && k + 1 < taps_) factor /= 2;
      position_.push_back(taps.empty() ? 0 : taps[std::min(k, taps.size() - 1)].position);
      factor_.push_back(factor);
    }
  }
  if (inner_ == 1 && isa_.lanes > 0) PackLanes();
}

void PackedPass::PackLanes() {
  for (int64_t x = 0; x < out_; x += isa_.lanes) {
    LaneGroup group;
    group.count = std::min(isa_.lanes, out_ - x);
    if (!PackGroup(x, group)) {
      groups_.clear();
      tables_.clear();
      return;
    }
    groups_.push_back(group);
  }
}

/// False where the taps of these output elements are too far apart, or where one has none.
bool PackedPass::PackGroup(int64_t x, LaneGroup& group) {
  if (std::any_of(outside_at_.begin() + x, outside_at_.begin() + x + group.count,
                  [](char outside) { return outside != 0; })) {
    return false;
  }
  const int64_t taps = static_cast<int64_t>(taps_);
  const auto begin = position_.begin() + x * taps, end = begin + group.count * taps;
  group.first = std::max<int64_t>(0, std::min(*std::min_element(begin, end), in_ - isa_.lanes));
  if (*std::max_element(begin, end) - group.first >= isa_.lanes) return false;
  for (int64_t k = 0; k < taps; ++k) {
    LaneTable table;
    for (int64_t i = 0; i < group.count; ++i) {
      table.lane[i] = static_cast<int32_t>(begin[i * taps + k] - group.first);
      table.factor[i] = factor_[static_cast<size_t>((x + i) * taps + k)];
    }
    tables_.push_back(table);
  }
  return true;
}

int64_t PackedPass::CopyOf(int64_t y) const {
  const size_t at = static_cast<size_t>(y) * taps_;
  return taps_ == 1 && factor_[at] == 1 ? position_[at] : -1;
}

void PackedPass::Row(const float* from, int64_t y, float* to) const {
  if (IsOutside(y)) {
    std::fill_n(to, inner_, outside_);
  } else if (const int64_t row = CopyOf(y); row >= 0) {
    std::memcpy(to, from + row * inner_, static_cast<size_t>(inner_) * sizeof(float));
  } else {
    isa_.blend(SumsFrom(from, y), inner_, to);
  }
}

void PackedPass::All(const float* from, float* to) const {
  if (inner_ > 1) {
    for (int64_t y = 0; y < out_; ++y) Row(from, y, to + y * inner_);
    return;
  }
  if (PicksAll()) {
    static constexpr int64_t kFirst = 0;
    static constexpr float kOne = 1;
    isa_.pick(Plan(), {from, 0, &kFirst, &kOne, 1}, 1, to, 0);
    return;
  }
  size_t at = 0;
  for (int64_t x = 0; x < out_; ++x) {
    float sum = factor_[at] * from[position_[at]];
    for (const size_t end = at + taps_; ++at < end;) sum += factor_[at] * from[position_[at]];
    to[x] = IsOutside(x) ? outside_ : sum;
  }
}

}  // namespace mendel::cpu
