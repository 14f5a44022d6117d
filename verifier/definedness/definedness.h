// Definedness: the inputs for which two programs have a value (docs/verifier.md).
//
// An abstract interpretation follows, element by element, the infinities and NaN that constants
// bring in and the conditions under which a partial function is undefined (graph/extended.h). Each
// output element stands for itself: what another element computes excuses nothing. A value all of
// whose elements are finite for every input costs one step, whatever its size.
#ifndef MENDEL_VERIFIER_DEFINEDNESS_DEFINEDNESS_H_
#define MENDEL_VERIFIER_DEFINEDNESS_DEFINEDNESS_H_

#include <map>

#include "absl/status/status.h"
#include "graph/graph.h"
#include "verifier/certify/numbering.h"
#include "verifier/verifier.h"

namespace mendel {

/// Two programs that agree as formal expressions, and the values between them that do.
struct DefinednessQuery {
  const Graph& original;
  const Graph& plan;
  /// Merges of NumberValues. A merge of values that are not undefined for the same reason is
  /// dropped.
  std::map<Origin, Origin> merges;
  ConstantKeys& constants;
  /// False: where an element of the original is finite, the plan's is. True: and the reverse.
  bool both_directions = false;
  /// Not null: gets false if no function of either program reads a value that may be undefined and
  /// may absorb it. Values are then undefined wherever a part of them is.
  bool* absorbs = nullptr;
};

/// OK when it is proven. Unimplemented naming the first output element and the reason otherwise;
/// also where the elements that may be undefined are too many to follow.
absl::Status CheckDefinedness(DefinednessQuery query);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_DEFINEDNESS_DEFINEDNESS_H_
