// Two programs side by side for the search of witnesses: gaps in double precision, and enclosures
// of single elements.
#ifndef MENDEL_VERIFIER_WITNESS_WITNESS_PAIR_H_
#define MENDEL_VERIFIER_WITNESS_WITNESS_PAIR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ball.h"
#include "base/deadline.h"
#include "graph/evaluate.h"
#include "graph/graph.h"
#include "graph/restrict.h"

namespace mendel {

/// Outputs 0 .. n-1 of f and n .. 2n-1 of g over one set of inputs, weights as literals, common
/// parts once. InvalidArgument when inputs or outputs differ in number or type.
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

/// About how many bits radii of balls grow by more than values do, on the way from inputs to
/// outputs where that is most.
double BitsLost(const Graph& graph);

/// The element where two values are farthest apart in double precision.
struct Gap {
  int64_t element = 0;  ///< row-major
  /// |f - g| relative to the larger of the two, at least a millionth of the largest magnitude in
  /// the box; 0 where all are equal.
  double score = 0;
  double f = 0;
  double g = 0;
  bool not_numbers = false;  ///< somewhere one side is NaN or infinite and the other is not so
  int64_t undefined = -1;    ///< such an element where one side is finite
};
Gap LargestGap(const HostValue& f, const HostValue& g);

/// The element whose gap exceeds the rounding noise of both sides (float_noise.h) most; a score of
/// 0 where no gap does.
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

/// Encloses both outputs of every pair of `pairs` (RestrictPair) at `inputs`: for each pair the
/// element whose enclosures are apart the farthest relative to their sizes, else any. Where
/// constants have several readings (base/ball.h), the two sides are apart under each of them, and
/// the balls enclose the values of all. Errors as EvaluateInBalls.
absl::StatusOr<std::vector<std::pair<int64_t, Enclosure>>> EnclosePairs(
    const Graph& pairs, const std::vector<HostValue>& inputs, int precision_bits,
    const Deadline& deadline);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_WITNESS_WITNESS_PAIR_H_
