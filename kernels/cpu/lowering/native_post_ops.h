// An epilogue of oneDNN's post-ops in the terms of the native kernels.
#ifndef MENDEL_KERNELS_CPU_LOWERING_NATIVE_POST_OPS_H_
#define MENDEL_KERNELS_CPU_LOWERING_NATIVE_POST_OPS_H_

#include <array>
#include <cstdint>
#include <optional>

#include "kernels/cpu/kernels/kernel.h"
#include "kernels/cpu/kernels/winograd_kernels.h"
#include "kernels/cpu/lowering/contraction.h"
#include "kernels/cpu/simd/tile_math.h"

namespace mendel::cpu {

/// An activation by a tile function; `gated` multiplies the argument by its value (swish). Its
/// value times `factor` plus `summand` is the result.
struct ActivationCall {
  TileFunction function = nullptr;
  std::array<float, 2> parameters{};
  bool gated = false;
  float factor = 1;
  float summand = 0;
  bool operator==(const ActivationCall&) const = default;
};

/// The activation and the order of the residual; addresses are filled in when a kernel runs.
struct NativePostOps {
  WinogradEpilogue epilogue{};
  ActivationCall call;
  /// Returns the epilogue with the addresses of a run. It is valid while this object lives.
  WinogradEpilogue At(const Bindings& bindings, const Place& bias,
                      const std::optional<Place>& residual) const;
};
/// nullopt when our kernels do not know the operations.
std::optional<NativePostOps> NativePostOpsOf(const Epilogue& epilogue);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_NATIVE_POST_OPS_H_
