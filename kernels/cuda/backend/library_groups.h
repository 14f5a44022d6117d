// Nodes that a library computes in one call, and the libraries that offer such calls as algorithms of nodes.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_LIBRARY_GROUPS_H_
#define MENDEL_KERNELS_CUDA_BACKEND_LIBRARY_GROUPS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "kernels/cuda/backend/library_call.h"
#include "kernels/cuda/fusion/fused_kernel.h"
#include "kernels/cuda/fusion/kernel_code.h"
#include "runtime/backend.h"

namespace mendel::cuda {

/// How a call has a value in memory where that is not row by row in the value's own dtype.
struct StoredForm {
  bool channels_last = false;                   ///< of 3 to 5 dimensions: images, positions, channels
  std::optional<DType> rounded = std::nullopt;  ///< to this format

  bool IsOwn() const { return !channels_last && !rounded.has_value(); }
  auto operator<=>(const StoredForm&) const = default;
};

/// One call, or one kernel of ours that is chosen like one: the value `result`, and the nodes that it computes with it. No other
/// value of these nodes is read elsewhere.
struct LibraryGroup {
  ValueId result;
  std::set<int32_t> nodes;                  ///< with result.node
  std::vector<KernelOperand> operands;      ///< what the call's pointers refer to; one more follows, to the result
  std::shared_ptr<const LibraryCall> call;  ///< null: `kernel` instead
  int32_t node = -1;        ///< whose algorithm it is: gives the step its name and comes first among the step's nodes
  FusedKernel finish = {};  ///< launched after the call, over its result; no name: none
  FusedKernel kernel = {};  ///< where there is no call; its operands are the group's
  /// Of a buffer that `kernel` writes in place of the result, and that `finish` reads, between its operands and the result. 0:
  /// none.
  int64_t scratch_bytes = 0;
  std::string algorithm = "";
  /// What the library makes the same call of again (GroupAgain), without a device; none where the name alone says it.
  std::optional<StoredEngine> engine = std::nullopt;
  /// Of the operands, one each; empty: all have their own. Where there are some, the first two operands are the first two inputs of
  /// `node`, or what those are views of through nodes of the group, and the others what is added after it, in this order.
  std::vector<StoredForm> forms = {};
  StoredForm result_form = {};
};

/// "cudnn" for the first algorithm of a kind, then "cudnn:1" and so on; and back: negative where what follows the colon is no rank.
std::string RankedName(std::string_view kind, size_t rank);
int RankOf(std::string_view algorithm);

/// A graph and what of it cannot be part of a group: nodes that depend on no input, and those that others compute already.
struct GroupingScope {
  const Graph& graph;
  const std::vector<bool>& constant;
  const std::vector<bool>& claimed;

  bool IsFree(int32_t node) const {
    return !constant[static_cast<size_t>(node)] && !claimed[static_cast<size_t>(node)] && !IsInput(graph.node(node));
  }
  /// True when `value` is there before `node` is computed, in the order of the graph. Of two values that are added, the one that is
  /// computed last takes the addition along: which library claims it depends on the graph alone, so that the algorithms of nodes
  /// can be chosen one by one.
  bool IsThereBefore(ValueId value, int32_t node) const {
    return constant[static_cast<size_t>(value.node)] || IsInput(graph.node(value.node)) || value.node < node;
  }
  /// The one reader of `node`, where its one value is read once and is no result of the graph; else -1.
  int32_t OnlyUser(int32_t node) const;
};

/// Algorithms of a node and kind that a library offers. It has those beyond them, too, so that plans of other settings run.
inline constexpr size_t kOffered = 4, kMostOffered = 64;
/// As a number of offers: all that the library has, whether its heuristics list them or not.
inline constexpr size_t kEveryEngine = 1024;

/// A library whose calls are algorithms of nodes. Thread-safe.
class CallLibrary {
 public:
  virtual ~CallLibrary() = default;
  /// What the names of its algorithms begin with, up to a colon or a hyphen: "cudnn", "cudnn:1", "cudnn-tf32:1".
  virtual std::string_view name() const = 0;
  /// With its version: stored measurements depend on it, and messages name it.
  virtual std::string Identity() const = 0;
  /// True when it may have algorithms that `numerics` allows and stricter classes do not.
  virtual bool Multiplies(Numerics numerics) const = 0;
  /// How calls of this name have what they multiply in memory.
  virtual StoredForm FormRead(std::string_view) const { return {}; }
  /// For `node`, the most promising first; empty where there is none.
  virtual std::vector<std::string> Algorithms(const GroupingScope& scope, int32_t node, Numerics numerics) const = 0;
  /// The group that computes `node` by `algorithm`, with as many of the nodes around it as one call can. InvalidArgument where the
  /// library has no such algorithm for it, naming both.
  virtual absl::StatusOr<LibraryGroup> Group(const GroupingScope& scope, int32_t node, const std::string& algorithm,
                                             Numerics numerics) const = 0;
  /// As Group did when it told `engine`, which may come from anywhere. InvalidArgument, naming node and algorithm, where it is of
  /// another library or version (both are named), is damaged, or cannot be had here.
  virtual absl::StatusOr<LibraryGroup> GroupAgain(const GroupingScope& scope, int32_t node, const std::string& algorithm,
                                                  Numerics numerics, const StoredEngine& engine) const;
};

/// By node: what algorithms stood for when a plan was made.
using EnginesByNode = std::map<int32_t, StoredEngine>;

/// The groups of all nodes that `algorithms` names, in the order of their results; their nodes become `claimed`, and nodes that are
/// claimed already are left to whoever claimed them. InvalidArgument for an algorithm of a library that is not among `libraries`.
/// Where `engines` has what a node's algorithm stood for, it is that again.
absl::StatusOr<std::vector<LibraryGroup>> FindLibraryGroups(const Graph& graph, const std::vector<bool>& constant,
                                                            const std::map<int32_t, std::string>& algorithms, Numerics numerics,
                                                            std::span<const CallLibrary* const> libraries,
                                                            std::vector<bool>& claimed, const EnginesByNode& engines = {});

/// OK where one of `libraries` multiplies in the class's format and GPUs of the architecture (90: compute capability 9.0) have it,
/// else Unimplemented with what is missing. For classes that round operands.
absl::Status LibrariesSupport(Numerics numerics, int architecture, std::span<const CallLibrary* const> libraries);

/// Backend::AlgorithmKind: the form in which its calls read values.
std::string LibraryAlgorithmKind(std::string_view algorithm, std::span<const CallLibrary* const> libraries);

/// Algorithms of all `libraries` for `node`, one library after the other.
std::vector<std::string> LibraryAlgorithms(const Graph& graph, int32_t node, Numerics numerics,
                                           std::span<const CallLibrary* const> libraries);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_LIBRARY_GROUPS_H_
