// Which nodes are computed of values that lie as library calls have left them, so that theirs lie so for the next call.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_FORM_CHOICE_H_
#define MENDEL_KERNELS_CUDA_BACKEND_FORM_CHOICE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "graph/graph.h"
#include "kernels/cuda/backend/library_groups.h"

namespace mendel::cuda {

/// How a node could be computed in another form than the graph's.
enum class FormRole {
  kNone,         ///< not at all: a constant, a correction, a call, or an operator that cannot
  kElementwise,  ///< with one value, as its operands of the same shape lie
  kTurned,       ///< a pool or the like, BatchNormalization: between two Transposes, and in any format of floats
  kMove,         ///< Concat, Pad, Slice, Split: along other dimensions, and whatever its elements are rounded to
};
/// What the operator allows, wherever it stands.
FormRole FormRoleOf(const Node& node);

/// By node, and by value, of one graph.
struct FormChoice {
  std::vector<int> call_of;                       ///< number of the call that computes the node; -1: none
  std::vector<FormRole> roles;                    ///< of nodes that no call and nobody else computes
  std::vector<bool> channels_last;                ///< all values of the node lie so
  std::vector<std::optional<DType>> rounded;      ///< all operands and values of the node, which only moves or chooses, are so
  std::map<ValueId, std::set<int32_t>> asking{};  ///< nodes of calls that want the value, or what depends on it, in another form
  std::set<ValueId> whole{};                      ///< what calls read in the value's own dtype
};

/// A node has the channels last where something it reads lies so and some call wants its value so, directly or through other such
/// nodes. A move, and a pool that chooses, is computed of rounded numbers where all that it reads lies rounded to the one format,
/// or where all who read its values want them so and what it reads can be rounded where it is computed: no number is rounded that
/// would not be without.
FormChoice ChooseForms(const Graph& graph, const std::vector<LibraryGroup>& calls, const std::vector<bool>& elsewhere);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_FORM_CHOICE_H_
