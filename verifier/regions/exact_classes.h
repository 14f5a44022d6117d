// Classes of a program's values on concrete inputs: which elements are finite over the reals, and
// which are infinite or NaN for certain.
//
// Ball arithmetic encloses finite values. It may fail to give a bound because the bound is only too
// wide, or because the value is undefined. Abstract elements (graph/extended.h) distinguish these
// cases: division by zero, logarithm of a negative number, opposite infinities. Overflow is no
// infinity here.
#ifndef MENDEL_VERIFIER_REGIONS_EXACT_CLASSES_H_
#define MENDEL_VERIFIER_REGIONS_EXACT_CLASSES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "base/ball.h"
#include "base/deadline.h"
#include "graph/evaluate.h"
#include "graph/extended.h"
#include "graph/graph.h"

namespace mendel {

/// One element of an output.
struct ExactElement {
  Ball ball;
  Kinds kinds = kFiniteKinds;  ///< all classes where nothing is known
};

/// Elements of the outputs, in order, row-major. `inputs` and errors as EvaluateInBalls.
absl::StatusOr<std::vector<std::vector<ExactElement>>> EvaluateClasses(
    const Graph& graph, std::span<const HostValue> inputs, int precision_bits,
    const Deadline& deadline, ConstantReading reading = ConstantReading::kReal);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_REGIONS_EXACT_CLASSES_H_
