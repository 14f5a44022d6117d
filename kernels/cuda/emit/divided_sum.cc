#include "kernels/cuda/emit/divided_sum.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>

#include "kernels/cuda/emit/kernel_text.h"
#include "kernels/cuda/emit/roofline.h"

namespace mendel::cuda {
namespace {

using Stage = DividedSum::Stage;

constexpr int kMostParts = 32;
/// A part with fewer steps of a tile's depth is not worth its block: its start would cost as much
/// as its sums.
constexpr int64_t kStepsOfPart = 4;

/// The kernel that sums parts, and the one that totals them.
std::pair<Correction, Correction> Divided(const Correction& correction, int parts, int64_t base) {
  Correction summing = correction, totalling = correction;
  summing.name += "_parts";
  summing.epilogue.clear();
  summing.divided = {Stage::kParts, parts, base, ChooseTile(correction)};
  totalling.divided = summing.divided;
  totalling.divided.stage = Stage::kTotal;
  // Members that a kernel does not use are equal in all its boxes, and left out of their table.
  const View nothing{0, Shape(correction.kernel.size() + 2, 0)};
  for (CorrectionBox& box : summing.boxes) {
    box.y = nothing;
    box.operands.clear();
    box.bias_begin = 0;
  }
  for (CorrectionBox& box : totalling.boxes) {
    box.x = nothing;
    box.x_extents.assign(correction.kernel.size(), 1);
    box.x_origin.assign(correction.kernel.size(), 0);
    box.taps = {};
    box.w_begin = 0;
  }
  return {std::move(summing), std::move(totalling)};
}

double SecondsOf(const Correction& correction) {
  const auto shape = ShapeOf(correction);
  return shape.ok() ? RooflineSeconds(correction, shape->launch, shape->tile, *GpuOf(90))
                    : std::numeric_limits<double>::infinity();
}

}  // namespace

int PartsOf(const Correction& correction) {
  if (correction.divided.stage != Stage::kNone || !CheckCorrection(correction).ok()) return 1;
  const Tile tile = ChooseTile(correction);
  int64_t longest = 0;
  for (const CorrectionBox& box : correction.boxes)
    longest = std::max(longest, SumOf(correction, box));
  const int64_t steps = (longest + tile.depth - 1) / tile.depth;
  const int64_t parts = std::min<int64_t>(
      {kMultiprocessors / TilesOf(correction, tile), steps / kStepsOfPart, kMostParts});
  if (parts < 2) return 1;
  const auto [summing, totalling] = Divided(correction, static_cast<int>(parts), 0);
  return SecondsOf(summing) + SecondsOf(totalling) < SecondsOf(correction) ? static_cast<int>(parts)
                                                                           : 1;
}

void DivideSums(size_t k, int parts, PatchKernels& patch_kernels) {
  PatchKernel& whole = patch_kernels.kernels[k];
  if (parts < 2 || whole.correction.divided.stage != Stage::kNone) return;
  const int64_t base = (patch_kernels.scratch_elements + 7) / 8 * 8;
  PatchKernel summing = whole;
  std::tie(summing.correction, whole.correction) =
      Divided(Correction(whole.correction), parts, base);
  patch_kernels.scratch_elements = base + PartialElements(whole.correction);
  summing.y = {true, {}};
  summing.operands.clear();
  summing.bias = {};
  whole.x = {true, {}};
  whole.w = {};
  patch_kernels.kernels.insert(patch_kernels.kernels.begin() + static_cast<int64_t>(k),
                               std::move(summing));
}

}  // namespace mendel::cuda
