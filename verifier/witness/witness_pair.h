// Two programs side by side for the search of witnesses: gaps in double precision, and enclosures
// of single elements.
#ifndef MENDEL_VERIFIER_WITNESS_WITNESS_PAIR_H_
#define MENDEL_VERIFIER_WITNESS_WITNESS_PAIR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ball.h"
#include "base/deadline.h"
#include "graph/evaluate.h"
#include "graph/graph.h"
#include "graph/restrict.h"
#include "verifier/witness/witness.h"

namespace mendel {

/// Joins f and g over one set of inputs. Outputs 0 .. n-1 are f's, n .. 2n-1 are g's. Weights
/// become literals. A part that both share occurs once. InvalidArgument when inputs or outputs
/// differ in number or type.
absl::StatusOr<Graph> JoinByValue(const Graph& f, const Graph& g);

/// f and g are the same graph but for stored numbers.
bool OnlyConstantsDiffer(const Graph& f, const Graph& g);

/// Some boxes of a joint program's outputs, both sides of each: outputs 2k and 2k + 1 are box k of
/// f and of g.
absl::StatusOr<Graph> RestrictPair(const Graph& joint, const std::vector<OutputBox>& boxes);

/// The index of element `flat`, row-major, of the box.
Shape IndexAt(const Box& box, int64_t flat);
/// The box of one element.
Box ElementBox(const Shape& index);

/// Estimates the bits of precision that balls lose. Radii grow faster than values; this is the
/// growth on the worst path from inputs to outputs.
double BitsLost(const Graph& graph);

/// The element where two values are farthest apart in double precision.
struct Gap {
  int64_t element = 0;  ///< row-major
  /// |f - g| divided by the larger of |f| and |g|. The divisor is at least a millionth of the
  /// largest magnitude in the box. 0: all elements are equal.
  double score = 0;
  double f = 0;
  double g = 0;
  bool not_numbers = false;  ///< somewhere one side is NaN or infinite and the other is not so
  /// Index of an element where exactly one side is finite; -1: there is none.
  int64_t undefined = -1;
};
Gap LargestGap(const HostValue& f, const HostValue& g);

/// The element whose gap is largest in multiples of the rounding noise (float_noise.h). The score
/// is 0 if no gap exceeds the noise.
struct VisibleGap {
  Gap gap;
  double margin = 0;  ///< times the noise; infinite where there is none
};
/// True where a gap exceeds the noise of both sides so much that rounding does not explain it.
bool IsVisible(double gap, double noise_f, double noise_g);
VisibleGap LargestVisibleGap(const HostValue& f, const HostValue& g,
                             const std::vector<double>& noise_f,
                             const std::vector<double>& noise_g);

/// Both sides of one element.
struct Enclosure {
  Ball f;
  Ball g;
  int precision_bits = 0;
  bool parted = false;    ///< finite and disjoint
  double gap = 0;         ///< |f - g| is at least this
  double difference = 0;  ///< and at most this
};

/// The witness that a parted enclosure is. Nothing where a value is too large for doubles.
std::optional<Witness> WitnessOf(const std::vector<HostValue>& inputs, Shape element,
                                 const Enclosure& enclosure);

/// Encloses both outputs of every pair (RestrictPair) at `inputs`. For each pair it returns the
/// element whose enclosures are farthest apart for their sizes. Constants may have several readings
/// (base/ball.h); the sides are then apart under each of them. Errors: those of EvaluateInBalls.
absl::StatusOr<std::vector<std::pair<int64_t, Enclosure>>> EnclosePairs(
    const Graph& pairs, const std::vector<HostValue>& inputs, int precision_bits,
    const Deadline& deadline);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_WITNESS_WITNESS_PAIR_H_
