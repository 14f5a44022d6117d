// Grid restrictions: every operator computes a grid of an output from grids of its inputs, by what
// its file registers here, by its element structure, or by its box restriction.
#ifndef MENDEL_GRAPH_GRID_H_
#define MENDEL_GRAPH_GRID_H_

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/op_definition.h"
#include "graph/positions.h"

namespace mendel {

/// A grid of output `output` that is wanted, its positions ascending and without repetition.
struct GridRequest {
  const NodeView& node;
  /// Input k where it is a stored tensor, else null; one an input.
  std::span<const Tensor* const> constants;
  int output = 0;
  const Grid& wanted;
};

/// The computation of a grid of an output from grids of an operator's inputs.
struct GridRestriction {
  /// The grid that is computed: the wanted one or more; kAbsent where an element means nothing.
  Grid computed;
  /// The elements read of each input, in this order, with repetitions; kAbsent reads `fill`. An
  /// input of which some axis reads nothing is left out (variadic operators).
  std::vector<Grid> inputs;
  /// The operator with `attrs`, applied to these grids, yields `computed` as its output `output`.
  Attributes attrs;
  int output = 0;
  /// At least 0: no operator is needed; the grid of this input, reshaped, is what is computed.
  int moved = -1;
  double fill = 0;
};

/// The statement of an operator's file beside its definition, where its axes are neither free
/// (position p reads position p) nor described by its element structure.
struct GridStructure {
  std::string_view op;
  /// Grids of the inputs that suffice for a grid of an output; nullopt, or null: as if not stated.
  std::optional<GridRestriction> (*restrict)(const GridRequest& request) = nullptr;
  /// Output elements stay the same when each position of an axis of input 0 that is reduced occurs
  /// equally often (means, extremes).
  bool ignores_even_repeats = false;
};

/// Null when the operator has registered none.
const GridStructure* FindGridStructure(std::string_view op);

/// Registers before main().
struct GridStructureRegistrar {
  explicit GridStructureRegistrar(const GridStructure& structure);
};
#define MENDEL_REGISTER_GRID_STRUCTURE(...) \
  const ::mendel::GridStructureRegistrar grid_registrar(__VA_ARGS__)

/// A restriction to at least the wanted grid; nullopt when the operator needs everything. Extents
/// are not zero.
std::optional<GridRestriction> RestrictToGrid(const OpDefinition& op, const GridRequest& request);

/// The node as it is: everything from everything.
GridRestriction WholeRestriction(const NodeView& node, int output);

/// Output axis `axis` of output 0 is free: position p depends on position p of the linked axis of
/// each input (-1: on all of the input), in the same way for every p. nullopt: it is not, or not
/// known to be.
std::optional<std::vector<int>> FreeAxis(const OpDefinition& op, const NodeView& node, size_t axis);

}  // namespace mendel

#endif  // MENDEL_GRAPH_GRID_H_
