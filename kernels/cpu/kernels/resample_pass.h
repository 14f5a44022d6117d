// One pass of Resize, prepared for the instruction set that there is.
#ifndef MENDEL_KERNELS_CPU_KERNELS_RESAMPLE_PASS_H_
#define MENDEL_KERNELS_CPU_KERNELS_RESAMPLE_PASS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cpu/kernels/resample.h"
#include "kernels/cpu/kernels/resample_kernels.h"

namespace mendel::cpu {

/// AVX2 is used even where there is AVX-512: the loops wait for memory, and wider vectors cross
/// cache lines wherever rows are not aligned. Machines without AVX2 run baseline loops.
const ResampleIsa& ResampleIsaHere();

class PackedPass {
 public:
  /// Positions without taps become `outside`.
  PackedPass(const ResamplePass& pass, const ResampleIsa& isa, float outside);

  int64_t outer() const { return outer_; }
  int64_t out() const { return out_; }
  int64_t inner() const { return inner_; }
  int64_t from_floats() const { return in_ * inner_; }  ///< an outer position's
  int64_t to_floats() const { return out_ * inner_; }

  bool IsOutside(int64_t y) const { return outside_at_[static_cast<size_t>(y)]; }
  /// Number of the input row that output position y's row copies; -1 when it is not a copy.
  int64_t CopyOf(int64_t y) const;
  /// Output position y of one outer position: `inner` floats.
  void Row(const float* from, int64_t y, float* to) const;
  /// All output positions of one outer position.
  void All(const float* from, float* to) const;

  /// True when output elements of a row of this pass, `inner` being 1, may be computed from another
  /// pass's elements before those are summed.
  bool PicksAll() const { return !groups_.empty(); }
  /// For output positions [y, y + rows) of `rows_pass`, none outside: its row from `from` on, cut
  /// to this pass' input elements, resampled by this pass. PicksAll() only.
  void Across(const PackedPass& rows_pass, const float* from, int64_t y, int64_t rows, float* to,
              int64_t to_step) const {
    isa_.pick(Plan(), rows_pass.SumsFrom(from, y), rows, to, to_step);
  }

 private:
  void PackLanes();
  bool PackGroup(int64_t x, LaneGroup& group);
  LanePlan Plan() const {
    return {groups_.data(), static_cast<int64_t>(groups_.size()), tables_.data(),
            static_cast<int64_t>(taps_), in_};
  }
  RowSums SumsFrom(const float* from, int64_t y) const {
    const size_t at = static_cast<size_t>(y) * taps_;
    return {from, inner_, position_.data() + at, factor_.data() + at, static_cast<int64_t>(taps_)};
  }

  const ResampleIsa& isa_;
  float outside_;
  int64_t outer_, in_, out_, inner_;
  size_t taps_ = 1;               ///< taps of every output position
  std::vector<char> outside_at_;  ///< Booleans; such positions have factors of 0
  std::vector<int64_t> position_;
  std::vector<float> factor_;
  std::vector<LaneGroup>
      groups_;  ///< where `inner` is 1, if all of them have their input elements within a vector
  std::vector<LaneTable> tables_;
};

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_RESAMPLE_PASS_H_
