// Chains of contractions in bf16 and bf16x3 for this folder's tests, with bounds on their rounding
// errors.
#ifndef MENDEL_KERNELS_CPU_TESTING_LOW_PRECISION_CASE_H_
#define MENDEL_KERNELS_CPU_TESTING_LOW_PRECISION_CASE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "graph/evaluate.h"
#include "graph/graph.h"
#include "kernels/cpu/kernels/low_precision.h"
#include "runtime/backend.h"

namespace mendel::cpu {

struct Precision {
  std::string_view algorithm;
  Numerics numerics;
  double product;  ///< largest relative error of one product of two rounded operands
  int parts;       ///< terms summed for it
};
inline constexpr double kRounding = 0x1p-8;  // of one operand: bf16 has eight bits
inline constexpr Precision kBf16 = {kBf16Algorithm, Numerics::kBf16,
                                    2 * kRounding + kRounding* kRounding, 1};
/// Both operands are wrong by the rounding of their low parts, and the product of the two low parts
/// is missing.
inline constexpr Precision kBf16x3 = {kBf16x3Algorithm, Numerics::kHigh,
                                      3.02 * kRounding* kRounding, 3};

/// One contraction with constant weights, then perhaps a ReLU.
struct Layer {
  const OpDefinition* op = nullptr;
  Attributes attrs;
  std::vector<HostValue> weights;  ///< and bias
  bool relu = false;
};

/// Chooses the precision for every node that supports it.
CompileOptions In(const Precision& precision, const Graph& graph, int threads = 1);

/// Builds the layers one after the other. With `kept`, the values between them are outputs too, and
/// hence f32.
Graph Chain(const std::vector<Layer>& layers, const TensorType& type, bool kept = false);

std::string Description(const std::vector<Step>& steps);

/// Runs the chain and compares each element with double, within the bound of its roundings. Returns
/// the largest share of its bound.
double ExpectWithinBound(const Precision& precision, const std::vector<Layer>& layers,
                         const HostValue& x, int threads);

/// Layers that fit each other: convolutions of any kind with their extents kept, transposed ones
/// that double them, or products.
class LayersBuilder {
 public:
  /// `whole`: numbers so small and so few that every value of up to two layers is a whole number of
  /// at most eight bits.
  LayersBuilder(Rng& rng, bool whole) : rng_(rng), whole_(whole) {}

  /// `x`: becomes the first one's input.
  std::vector<Layer> Build(int count, HostValue& x);

 private:
  int64_t Channels();
  HostValue Value(const Shape& shape);
  Layer Finish(std::string_view op, Attributes attrs, const Shape& weights, int64_t channels);
  /// Each changes `shape` from its input's into its output's.
  Layer Product(Shape& shape);
  Layer Convolution(Shape& shape);
  Layer Transposed(Shape& shape);

  Rng& rng_;
  bool whole_;
};

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_TESTING_LOW_PRECISION_CASE_H_
