// Structure: the positions where a value's structure changes, and the moves of what it reads
// between them (docs/verifier.md, "Regions").
#ifndef MENDEL_VERIFIER_REGIONS_STRUCTURE_H_
#define MENDEL_VERIFIER_REGIONS_STRUCTURE_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/element_structure.h"
#include "graph/graph.h"
#include "verifier/regions/displacement.h"
#include "verifier/verifier.h"

namespace mendel {

/// The node that changes the structure of values, and why: a literal such as "padding edge".
struct Cause {
  int32_t node = -1;
  std::string_view what;
};

struct Break {
  int64_t at = 0;
  Cause cause;
};

/// The structure of one value. Along every dimension the breaks cut the positions into ranges.
/// Within a range, a step of `periods[dim]` positions leaves the element the same sum of products
/// (or of functions) of elements of the sources, every term translated by one of the classes.
struct ValueStructure {
  Shape shape;
  /// Ascending positions in (0, extent), an entry a dimension.
  std::vector<std::vector<Break>> breaks;
  /// At least 1. The extent where every position stands on its own.
  Shape periods;
  std::vector<Cause> period_causes;
  std::set<DisplacementClass> classes;
  /// Reasons why dimensions are not understood: "TopK: no access pattern".
  std::set<std::string> unknown;

  explicit ValueStructure(const Shape& shape = {});

  /// No range is longer than the period: displacements along `dim` mean nothing (and are stored
  /// as zero).
  bool Dense(size_t dim) const;
  /// Positions of which each range needs one a residue class.
  int64_t Representatives(size_t dim) const;
  /// Every position of `dim` stands on its own.
  void BreakEverywhere(size_t dim, Cause cause);
  /// The structure repeats after `period` positions, too.
  void Repeat(size_t dim, int64_t period, Cause cause);
  /// Sorts the breaks of `dim`; of those at one position the first added stays. Those outside (0,
  /// extent) go.
  void SortBreaks(size_t dim);
  /// Clears the displacements along dense dimensions.
  void Normalize();
  void InheritReasons(const std::vector<const ValueStructure*>& inputs);
};

/// The structure of every output of every node of `graph`, by node. Pure; what has no known
/// structure and what the theorem's conditions do not allow stands on its own at every position.
std::vector<std::vector<ValueStructure>> AnalyzeStructure(const Graph& graph, WeightMode weights);

// Structures of single operators, for AnalyzeStructure. `cause` is the node, `op` its operator.

/// Every position on its own; no source moves.
ValueStructure UnknownStructure(const Shape& shape,
                                const std::vector<const ValueStructure*>& inputs,
                                const Cause& cause, const std::string& reason);
/// Structure by the operator's access pattern.
ValueStructure StructureByPattern(const AccessPattern& pattern, const Shape& shape,
                                  const std::vector<const ValueStructure*>& inputs, int32_t node,
                                  const std::string& op);
/// The structure of a view (the same elements under another shape).
ValueStructure StructureOfView(const Shape& shape, const ValueStructure& input, int32_t node);
/// The structure of an operator whose output dimensions are made of taps on their own.
ValueStructure StructureByTaps(const SeparableTaps& taps, const Shape& shape,
                               const ValueStructure& input, int32_t node);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_REGIONS_STRUCTURE_H_
