// The region analyzer: where the structure of a value changes, and how what it reads moves between those places
// (docs/verification.md, section 5).
#ifndef MENDEL_VERIFIER_REGIONS_H_
#define MENDEL_VERIFIER_REGIONS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "verifier/verifier.h"

namespace mendel {

/// How the elements that some term of a value reads move: for every source (Input or symbolic Constant node) the displacement
/// in the source's dimensions for one step along each dimension of the value (empty: it stands still). A source that is absent is
/// not read by the term.
using DisplacementClass = std::map<int32_t, std::vector<std::vector<int64_t>>>;

/// The structure of one value. Between breaks, along every dimension, each element is the same sum of products (or of functions)
/// of elements of the sources, every term translated by one of the classes.
struct ValueStructure {
  Shape shape;
  /// Ascending positions in (0, extent) an entry a dimension. A dimension that is not understood breaks at every position.
  std::vector<std::vector<int64_t>> breaks;
  std::set<DisplacementClass> classes;
  /// Why dimensions break at every position.
  std::set<std::string> unknown;

  /// Breaks everywhere, or of extent one: displacements along it mean nothing (and are stored as zero).
  bool Dense(size_t dim) const { return static_cast<int64_t>(breaks[dim].size()) + 1 >= shape[dim]; }
};

/// The structure of every output of every node of `graph`, by node. Pure; operators without an access pattern, and what the
/// theorem's conditions do not allow, break at every position.
std::vector<std::vector<ValueStructure>> AnalyseStructure(const Graph& graph, WeightMode weights);

/// Two values of one shape compared: boxes of the common grid of breaks, and along each dimension how many consecutive
/// positions of a box decide it.
struct RegionGrid {
  /// Begins of the boxes along each dimension, from 0.
  std::vector<std::vector<int64_t>> begins;
  /// M_j: displacement classes along each dimension among the terms of both values.
  std::vector<int64_t> classes;
  std::set<std::string> unknown;

  /// Number of boxes, as a double: it may exceed every integer.
  double Boxes() const;
};
RegionGrid CompareStructures(const ValueStructure& f, const ValueStructure& g);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_REGIONS_H_
