// Machines that do not exist: costs of operators by formula, so that a search makes the same
// decisions on every computer.
#ifndef MENDEL_TESTS_PRETENDED_MACHINES_H_
#define MENDEL_TESTS_PRETENDED_MACHINES_H_

#include <cstdint>
#include <string_view>

#include "optimizer/profile/profiler.h"

namespace mendel {

/// The weakness of a machine. Views and what depends on weights only are free on all of them.
enum class Machine {
  kLaunches,    ///< every operator costs a call, one that only moves data a tenth of one
  kArithmetic,  ///< flops
  kBytes,       ///< operands and results; a Patch works in place
  kWindows,  ///< flops; convolutions but dense 3x3 windows of stride 1 in two dimensions cost four
             ///< times as much
  kSmallKernels,   ///< flops; convolutions with more than 3 taps in a row cost four times as much
  kMatrices,       ///< flops; convolutions cost four times as much
  kConvolutions,   ///< flops; matrix products cost four times as much
  kWideBatches,    ///< flops of convolutions over the number of images, up to 16
  kLargeImages,    ///< flops of convolutions over the extent of an image, up to 32
  kDenseChannels,  ///< flops; grouped convolutions cost four times as much
  kEightChannels   ///< flops; convolutions cost four times as much unless channels come in eights
};
CostFunction CostsOf(Machine machine);

/// Every operator has a random speed that follows from `seed`, the operator, its attributes and
/// types.
CostFunction RandomMachine(uint64_t seed);

}  // namespace mendel

#endif  // MENDEL_TESTS_PRETENDED_MACHINES_H_
