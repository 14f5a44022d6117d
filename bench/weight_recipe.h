// Models without their weights: what is carried to another machine instead of hundreds of megabytes
// of random numbers.
//
// A large f32 initializer is replaced by a recipe in its doc_string: its mean, standard deviation
// and range, from which numbers of the same scale are drawn there. Shapes, connections and whatever
// decides what an operator does stay as they were; the function that the model computes becomes
// another one, of the same cost.
#ifndef MENDEL_BENCH_WEIGHT_RECIPE_H_
#define MENDEL_BENCH_WEIGHT_RECIPE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "onnx/model.pb.h"

namespace mendel {

/// Initializers of f32 with at least this many elements lose them; those with no more than two
/// different values (masks, ones) stay, since they compress, and so does everything that is not
/// f32.
inline constexpr int64_t kFewestStrippedElements = 64;

/// InvalidArgument where an initializer cannot be decoded; Unimplemented for external data.
absl::Status StripWeights(onnx::ModelProto& model);

/// Draws what was stripped: normal with the recipe's mean and deviation, clamped to its range. A
/// tensor's numbers depend on `seed` and its name alone, so that models for several batches get the
/// same weights. Fills nothing where no recipe is; InvalidArgument for a damaged one.
absl::Status FillWeights(onnx::ModelProto& model, uint64_t seed);

}  // namespace mendel

#endif  // MENDEL_BENCH_WEIGHT_RECIPE_H_
