// An epilogue of oneDNN's post-ops in the terms of our own kernels.
#ifndef MENDEL_KERNELS_CPU_OWN_POSTS_H_
#define MENDEL_KERNELS_CPU_OWN_POSTS_H_

#include <array>
#include <cstdint>
#include <optional>

#include "kernels/cpu/contraction.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/tile_math.h"
#include "kernels/cpu/winograd_kernels.h"

namespace mendel::cpu {

/// An activation by a tile function; `gated` multiplies the argument by its value (swish).
struct ActivationCall {
  TileFunction function = nullptr;
  std::array<float, 2> parameters{};
  bool gated = false;
};

/// The activation and the order of the residual; addresses are filled in when a kernel runs.
struct OwnPosts {
  WinogradEpilogue epilogue{};
  ActivationCall call;
  /// With the addresses of a run; valid while this lives.
  WinogradEpilogue At(const Bindings& bindings, const Place& bias, const std::optional<Place>& residual) const;
};
/// nullopt when our kernels do not know the operations.
std::optional<OwnPosts> OwnPostsOf(const Epilogue& epilogue);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_OWN_POSTS_H_
