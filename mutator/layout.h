// Layouts in which batch and space have changed places, and whole regions (region.h) computed in
// them from first to last.
//
// A layout gives every position of every dimension it touches a slot: images of a batch tiled into
// one (batch to space), one image cut into stripes (space to batch), rows taken modulo a factor,
// stacked or in the batch (residues). Windows near the end of a slot read foreign rows, or rows
// that the slot has and the image does not: where that is so is predicted exactly (WrongIn), and
// prevented by gaps of zeros where requested.
#ifndef MENDEL_MUTATOR_LAYOUT_H_
#define MENDEL_MUTATOR_LAYOUT_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/emitter.h"
#include "graph/graph.h"
#include "graph/window.h"
#include "mutator/rule.h"

namespace mendel {

enum class Move {
  kBatchToSpace,     ///< images one behind the other along a dimension
  kSpaceToBatch,     ///< stripes of an image in the batch
  kResiduesToBatch,  ///< positions modulo the factor in the batch
  kResiduesStacked,  ///< positions modulo the factor one class behind the other
};

struct Layout {
  Move move = Move::kBatchToSpace;
  /// One a spatial dimension; 1 leaves it alone.
  Ints factors;
  /// kBatchToSpace only: slots wide enough for every window that leaves an image, filled with zeros
  /// before it is read.
  bool gaps = false;
};

/// One node of a region in the layout. Spatial extents of its value, of its slots, and (window
/// nodes) its windows in the layout.
struct LaidOutNode {
  Shape extents;
  Shape slots;
  std::vector<Window> windows;
};

/// An entry a node (constants: empty). FailedPrecondition when some node cannot be computed in the
/// layout: dilations or padding that the factor does not divide, strides under residues.
absl::StatusOr<std::vector<LaidOutNode>> PlanLayout(const Graph& region, const Layout& layout);

/// `region` (inputs and outputs of any number) computed in the layout, with views around it.
absl::StatusOr<Graph> ApplyLayout(const Graph& region, const Layout& layout);

/// The region where ApplyLayout's results differ from the original's, and the largest share of an
/// output's elements. Boxes may overlap. They are exact for generic weights, and larger than the
/// truth only behind functions with f(0) = 0 other than Relu that meet padding rows.
struct WrongRegion {
  std::vector<std::vector<Box>> boxes;  ///< an entry an output
  double share = 0;

  bool Nowhere() const;
};
absl::StatusOr<WrongRegion> WrongIn(const Graph& region, const Layout& layout);

/// Matches of `region`s ending at `node`: for every layout that `layouts` names, the smallest
/// region and the largest of at most `max_windows` window nodes that are wrong in at most
/// `max_share` of an output, and the largest of several outputs. Choices: "dim2", "dim3", ..: the
/// factors.
std::vector<Match> MatchLayouts(
    const Graph& graph, int32_t node, int max_windows, double max_share,
    const std::function<std::vector<Layout>(const Graph& region)>& layouts);
/// Layouts worth trying on a region: a handful. Tiles (kBatchToSpace, kSpaceToBatch): along the
/// first dimension, the last, both.
std::vector<Layout> TileLayouts(const Graph& region, Move move);
/// Residues by the common divisor of the region's dilations in each dimension; none when all are 1.
std::vector<Layout> ResidueLayouts(const Graph& region, Move move);
/// The factors of such a match for a region of `rank` spatial dimensions.
Ints FactorsOf(const Match& match, size_t rank);
/// Spatial dimensions of the region's outputs.
size_t SpatialRank(const Graph& region);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_LAYOUT_H_
