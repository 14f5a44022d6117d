// The structure of operators that an AccessPattern cannot state, for the region analyzer
// (docs/verifier.md, "Regions").
//
// An operator's file registers one of two descriptions beside its definition. `taps`: every output
// dimension is interpolated, repeated or reordered on its own (Resize, Pad, Tile, Gather). `lower`:
// the operator is a small program of other operators (DepthToSpace, ConvTranspose). That program is
// only analyzed, never run.
#ifndef MENDEL_GRAPH_ELEMENT_STRUCTURE_H_
#define MENDEL_GRAPH_ELEMENT_STRUCTURE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace mendel {

/// A position of an input dimension and its share.
struct Tap {
  int64_t position = 0;
  double coefficient = 1;
  bool operator==(const Tap&) const = default;
};

/// The output element at o is the sum, over one tap of every dimension, of the product of their
/// coefficients times the element of `input` at their positions. Where a dimension has no taps it
/// is a literal. Dimensions of the input that no output dimension names are read at one fixed
/// position.
struct SeparableTaps {
  struct Dim {
    int input_dim = 0;
    std::vector<std::vector<Tap>> taps;  ///< by output position
  };
  int input = 0;
  std::vector<Dim> dims;  ///< one an output dimension
};

struct ElementStructure {
  std::string_view op;
  /// The taps of output `output`; constants[k] is input k where it is a stored tensor, else null.
  /// nullopt: unknown.
  std::optional<SeparableTaps> (*taps)(const NodeView& node,
                                       std::span<const Tensor* const> constants,
                                       int output) = nullptr;
  /// A graph with the node's inputs and its one output.
  absl::StatusOr<Graph> (*lower)(const NodeView& node) = nullptr;
};

/// Null when the operator has registered none.
const ElementStructure* FindElementStructure(std::string_view op);

/// Registers before main().
struct ElementStructureRegistrar {
  explicit ElementStructureRegistrar(const ElementStructure& structure);
};
#define MENDEL_REGISTER_ELEMENT_STRUCTURE(...) \
  const ::mendel::ElementStructureRegistrar structure_registrar(__VA_ARGS__)

/// Dimension `input_dim` as it is: position o reads o.
SeparableTaps::Dim IdentityTaps(int input_dim, int64_t extent);

}  // namespace mendel

#endif  // MENDEL_GRAPH_ELEMENT_STRUCTURE_H_
