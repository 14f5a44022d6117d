// The choice of nodes that are computed in the memory format of the library calls around them, so
// that calls follow each other without conversions.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_FORMAT_CHOICE_H_
#define MENDEL_KERNELS_CUDA_BACKEND_FORMAT_CHOICE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "graph/graph.h"
#include "kernels/cuda/backend/library_groups.h"

namespace mendel::cuda {

/// The way in which a node could be computed in another form than the graph's.
enum class FormRole {
  kNone,         ///< not at all: a constant, a correction, a call, or an operator that cannot
  kElementwise,  ///< with one value, as its operands of the same shape lie
  kTurned,  ///< a pool or the like, BatchNormalization: between two Transposes, and in any format
            ///< of floats
  kMove,    ///< Concat, Pad, Slice, Split: along other dimensions, and whatever its elements are
            ///< rounded to
};
/// The role that the operator allows, wherever the node stands.
FormRole FormRoleOf(const Node& node);

/// The choice for one graph, by node and by value.
struct FormatChoice {
  std::vector<int> call_of;         ///< number of the call that computes the node; -1: none
  std::vector<FormRole> roles;      ///< roles of nodes that no call and nobody else computes
  std::vector<bool> channels_last;  ///< all values of the node lie so
  std::vector<std::optional<DType>>
      rounded;  ///< all operands and values of the node, which only moves or chooses, are so
  std::map<ValueId, std::set<int32_t>>
      asking{};  ///< nodes of calls that want the value, or what depends on it, in another form
  std::set<ValueId> whole{};  ///< what calls read in the value's own dtype
};

/// Gives a node the channels last where one of its inputs lies so and a call reads its value so,
/// directly or through other such nodes. A move, and a pool that chooses, is computed of rounded
/// numbers in two cases. Either all of its inputs lie rounded to one format. Or all readers take
/// that format, and the inputs can be rounded as they are computed. No number is rounded that would
/// not be rounded otherwise.
FormatChoice ChooseForms(const Graph& graph, const std::vector<LibraryGroup>& calls,
                         const std::vector<bool>& elsewhere);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_FORMAT_CHOICE_H_
