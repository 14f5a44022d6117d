// A library group is the set of nodes that a library computes in one call. Libraries offer such
// calls as algorithms of nodes.
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

/// A value's format in a call's memory where it is not row by row in the value's own dtype.
struct MemoryFormat {
  bool channels_last = false;  ///< of 3 to 5 dimensions: images, positions, channels
  std::optional<DType> rounded = std::nullopt;  ///< to this format

  bool IsOwn() const { return !channels_last && !rounded.has_value(); }
  auto operator<=>(const MemoryFormat&) const = default;
};

/// One call, or one native kernel that is chosen like a call. It computes `result` and `nodes`. No
/// other value of these nodes is read elsewhere.
struct LibraryGroup {
  ValueId result;
  std::set<int32_t> nodes;  ///< with result.node
  std::vector<KernelOperand>
      operands;  ///< what the call's pointers refer to; one more follows, to the result
  std::shared_ptr<const LibraryCall> call;  ///< null: `kernel` instead
  int32_t node = -1;  ///< whose algorithm it is: gives the step its name and comes first among the
                      ///< step's nodes
  FusedKernel finish = {};  ///< launched after the call, over its result; no name: none
  FusedKernel kernel = {};  ///< where there is no call; its operands are the group's
  /// Bytes of a buffer that `kernel` writes in place of the result. `finish` reads it, between its
  /// operands and the result. 0: none.
  int64_t scratch_bytes = 0;
  std::string algorithm = "";
  /// The engine by which the library makes the same call again (GroupAgain), without a device; none
  /// where the name suffices.
  std::optional<StoredEngine> engine = std::nullopt;
  /// The operands' formats, one each; empty: all have their own. Otherwise the first two operands
  /// are the first two inputs of `node`, or what those are views of through nodes of the group. The
  /// others are read after it, in this order, themselves or through such views; those may come
  /// before `node`.
  std::vector<MemoryFormat> forms = {};
  MemoryFormat result_form = {};
};

/// "cudnn" for the first algorithm of a kind, then "cudnn:1" and so on. RankOf is the inverse; it
/// is negative where no rank follows the colon.
std::string RankedName(std::string_view kind, size_t rank);
int RankOf(std::string_view algorithm);

/// A graph and which of its nodes cannot be part of a group: nodes that depend on no input, and
/// nodes that are claimed already.
struct GroupingScope {
  const Graph& graph;
  const std::vector<bool>& constant;
  const std::vector<bool>& claimed;

  bool IsFree(int32_t node) const {
    return !constant[static_cast<size_t>(node)] && !claimed[static_cast<size_t>(node)] &&
           !IsInput(graph.node(node));
  }
  /// True when `value` is there before `node` is computed, in the order of the graph. An addition
  /// belongs to the later of its two operands. Which library claims it depends on the graph alone,
  /// so that the algorithms of nodes can be chosen one by one.
  bool IsThereBefore(ValueId value, int32_t node) const {
    return constant[static_cast<size_t>(value.node)] || IsInput(graph.node(value.node)) ||
           value.node < node;
  }
  /// The one reader of `node`, where its one value is read once and is no output of the graph; else
  /// -1.
  int32_t OnlyUser(int32_t node) const;
};

/// Algorithms that a library offers per node and kind: by default, and at most. A plan may name
/// further ones.
inline constexpr size_t kOffered = 4, kMostOffered = 64;
/// The number of offers that stands for all of a library's engines, in its heuristics or not.
inline constexpr size_t kEveryEngine = 1024;

/// A library whose calls are algorithms of nodes. Thread-safe.
class CallLibrary {
 public:
  virtual ~CallLibrary() = default;
  /// The prefix of its algorithms' names: "cudnn" for "cudnn", "cudnn:1" and "cudnn-tf32:1".
  virtual std::string_view name() const = 0;
  /// Name and version: stored measurements depend on them, and messages show them.
  virtual std::string Identity() const = 0;
  /// True when it may have algorithms that `numerics` allows and stricter classes do not.
  virtual bool Multiplies(Numerics numerics) const = 0;
  /// The memory format in which calls of this name read what they multiply.
  virtual MemoryFormat FormRead(std::string_view) const { return {}; }
  /// The algorithms for `node`, the most promising first; empty where there is none.
  virtual std::vector<std::string> Algorithms(const GroupingScope& scope, int32_t node,
                                              Numerics numerics) const = 0;
  /// The group that computes `node` by `algorithm`, with as many of the nodes around it as one call
  /// can. InvalidArgument where the library has no such algorithm for it, naming both.
  virtual absl::StatusOr<LibraryGroup> Group(const GroupingScope& scope, int32_t node,
                                             const std::string& algorithm,
                                             Numerics numerics) const = 0;
  /// Rebuilds the group from a stored engine, which is untrusted input. Returns InvalidArgument
  /// with node and algorithm if the engine is damaged, not available here, or of another library or
  /// version (both are named).
  virtual absl::StatusOr<LibraryGroup> GroupAgain(const GroupingScope& scope, int32_t node,
                                                  const std::string& algorithm, Numerics numerics,
                                                  const StoredEngine& engine) const;
};

/// Stored engines by node: what algorithms stood for when a plan was made.
using EnginesByNode = std::map<int32_t, StoredEngine>;

/// The groups of all nodes that `algorithms` names, in the order of their results. Their nodes
/// become `claimed`; nodes that are claimed already are left out. InvalidArgument for an algorithm
/// of a library that is not among `libraries`. A node that `engines` has an engine for is computed
/// by that one again.
absl::StatusOr<std::vector<LibraryGroup>> FindLibraryGroups(
    const Graph& graph, const std::vector<bool>& constant,
    const std::map<int32_t, std::string>& algorithms, Numerics numerics,
    std::span<const CallLibrary* const> libraries, std::vector<bool>& claimed,
    const EnginesByNode& engines = {});

/// OK where one of `libraries` multiplies in the class's format and GPUs of the architecture (90:
/// compute capability 9.0) have it, else Unimplemented with what is missing. For classes that round
/// operands.
absl::Status LibrariesSupport(Numerics numerics, int architecture,
                              std::span<const CallLibrary* const> libraries);

/// An algorithm's kind (Backend::AlgorithmKind): the memory format in which its calls read values.
std::string LibraryAlgorithmKind(std::string_view algorithm,
                                 std::span<const CallLibrary* const> libraries);

/// Algorithms of all `libraries` for `node`, one library after the other.
std::vector<std::string> LibraryAlgorithms(const Graph& graph, int32_t node, Numerics numerics,
                                           std::span<const CallLibrary* const> libraries);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_LIBRARY_GROUPS_H_
