// A lowering builds a program from a graph: the place and layouts of each value, and the kernel
// calls so far.
#ifndef MENDEL_KERNELS_CPU_LOWERING_LOWERING_H_
#define MENDEL_KERNELS_CPU_LOWERING_LOWERING_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cpu/kernels/bf16_split.h"
#include "kernels/cpu/lowering/fold.h"
#include "kernels/cpu/memory/constant_arena.h"
#include "kernels/cpu/memory/deferred_constants.h"
#include "kernels/cpu/memory/strided_layout.h"
#include "kernels/cpu/memory/weight_view.h"
#include "kernels/cpu/primitive.h"
#include "kernels/cpu/program.h"

namespace mendel::cpu {

/// A value that lies in a part of a Concat's output, so that concatenating costs nothing. Parts of
/// several images have the other parts between their images. Only kernels that use LayoutWithin
/// write such places, and only kernels that use Within read them. All others get a dense copy.
struct ConcatSlot {
  ValueId whole;
  int64_t channel = 0;  ///< where it begins along the axis
  int64_t axis = 0;
};

/// A value may lie in several layouts at once; each is made once. Not thread-safe.
class Lowering {
 public:
  Lowering(const Graph& graph, const CompileOptions& options);

  const Graph& graph() const { return graph_; }
  const CompileOptions& options() const { return options_; }
  Folded& folded() { return folded_; }
  const TensorType& type(ValueId value) const { return graph_.type(value); }
  const Shape& shape(ValueId value) const { return graph_.type(value).shape; }

  /// Returns any place of a value that is an input or a constant or has been computed.
  Place Any(ValueId value);
  /// The value in this layout, or row-major, reordered into it if need be.
  Place In(ValueId value, const Layout& layout);
  /// The place in blocks of channels that the value has already; nullopt when it has none.
  std::optional<Place> Blocked(ValueId value) const;
  /// Returns the value's place within a concatenation of several images, in blocks of channels;
  /// nullopt when it has none.
  std::optional<Place> Within(ValueId value) const;
  /// The same if there is such a place, else Any.
  Place WithinOrAny(ValueId value);
  /// Returns the layout, in blocks of `block` channels, in which a value about to be computed lies
  /// within a concatenation of several images; nullopt when it does not. Allocate gives that place
  /// for this layout.
  std::optional<Layout> LayoutWithin(ValueId value, int64_t block);
  /// Records that `value`, computed elsewhere, has also been copied to this place within a
  /// concatenation.
  void CopiedWithin(ValueId value, const Place& place) { within_.emplace(value, place); }
  /// Returns the value's place when that is not in blocks, else a row-major one.
  Place Unblocked(ValueId value);
  Place Plain(ValueId value) { return In(value, PlainLayout(shape(value))); }
  /// An f32 value rounded to bf16 in this layout.
  Place NarrowIn(ValueId value, const Layout& layout);
  /// An f32 value in dense rows of its parts (bf16_split.h).
  Place SplitIn(ValueId value, const SplitRowsOf& rows);
  /// Room for a value about to be computed: in the caller's output buffer or within a concatenation
  /// where that works.
  Place Allocate(ValueId value, const Layout& layout);
  /// Allocates an f32 value about to be computed in bf16. A reader that needs f32 gets it widened.
  Place AllocateNarrow(ValueId value, const Layout& layout);
  /// True when Allocate(value, plain) would give the caller's output buffer.
  bool GoesToOutput(ValueId value) const { return FreeOutput(value).has_value(); }
  /// Returns the place of `base` in the output buffer that `patched` is to fill. `patched`
  /// overwrites parts of `base`, which nothing else reads.
  std::optional<Place> InOutputOf(ValueId base, ValueId patched) const;
  /// True when `value` is a part of a concatenation along its channels that Allocate may place it
  /// into.
  bool IsConcatPart(ValueId value) const;
  /// `value` lies where another one does.
  void Alias(ValueId value, Place place);
  /// The same, in loops of which a dimension may need several. A copy is made only when a reader
  /// needs a layout.
  void AliasView(ValueId value, StridedLayout view);
  /// Returns the value's view, without a copy of what AliasView recorded. With `blocks` the view
  /// may be in blocks of channels.
  StridedLayout View(ValueId value, bool blocks = false);
  /// True when the value lies only as AliasView was reported.
  bool IsStepped(ValueId value) const;
  /// Room that only the next steps use.
  Place Temporary(int64_t bytes);

  /// A constant of ours, shared by `key` when not empty; `fill` writes its bytes.
  Place Constant(const std::string& key, int64_t bytes,
                 const std::function<void(std::byte*)>& fill);
  /// The same for packed weights. Finish calls `fill`, whose references must live until then.
  Place DeferredConstant(int64_t bytes, DeferredConstants::Fill fill,
                         Divides divides = Divides::kYes);
  /// The same once a key. Whoever holds the key lives as long as this does.
  Place DeferredConstant(const void* key, int64_t bytes, DeferredConstants::Fill fill);
  /// Returns a constant tensor reordered to `wanted` and shared by content address, or as it is
  /// when it lies so already.
  Place PackedWeights(const Tensor& tensor, const dnnl::memory::desc& plain,
                      const dnnl::memory::desc& wanted);
  /// f32 weights, scaled, reordered to `wanted`.
  Place PackedWeights(ScaledWeights weights, const dnnl::memory::desc& plain,
                      const dnnl::memory::desc& wanted);
  /// Reorders at run time into a descriptor that need not be a Layout.
  Place Reordered(const Place& from, const dnnl::memory::desc& desc,
                  const dnnl::memory::desc& wanted, const std::string& name);

  /// Appends a step that computes `nodes`; `places` are all that the kernel touches.
  void Emit(const std::vector<int32_t>& nodes, std::string implementation,
            std::unique_ptr<Kernel> kernel, const std::vector<Place>& places, int64_t scratch = 0,
            std::optional<std::pair<Place, Place>> in_place = {});

  /// True for a loop that is compiled for one thread (side_by_side.h).
  bool RunsBesideAnother(int32_t id) const { return paired_loops_.count(id) > 0; }
  /// Marks the last step as ProgramStep::elementwise.
  void MarkElementwise() { program_.steps.back().elementwise = true; }
  /// The last step may run in one thread beside another.
  void MayRunBesideAnother(const std::vector<Place>& reads, const std::vector<Place>& writes);

  /// Completes the program. Appends copies to graph outputs that were not computed in place,
  /// deferred constants, and the constants that the executable owns. Runs in the ThreadScope of the
  /// plan.
  absl::StatusOr<Program> Finish();

 private:
  /// Reorders from one place.
  Place In(ValueId value, const Layout& layout, Place source);
  /// Copies from the view that AliasView recorded; nullopt when there is none, or it needs more
  /// than one copy.
  std::optional<Place> FromView(ValueId value, const Layout& layout);
  /// oneDNN's reorder of a value between two places.
  void EmitReorder(ValueId value, const Place& from, dnnl::memory::data_type from_type,
                   const Place& to, dnnl::memory::data_type to_type);
  int AddBuffer(Buffer buffer);
  /// Number of the graph output that may hold `value`'s plain elements, not yet given away.
  std::optional<size_t> FreeOutput(ValueId value) const;
  /// The same for a value that only a Patch overwrites on its way to the output.
  std::optional<size_t> FreePatchedOutput(ValueId value) const;
  bool IsOnlyPatched(ValueId value, int32_t patch) const;
  std::optional<Place> InConcat(ValueId value, const Layout& layout);
  void FindConcatSlots();
  void CopyConstants();
  /// Finds the steps that only one operand of a choice needs (lowering_branches.cc).
  void FindBranches();
  /// Room for a part of a concatenation of several images, in blocks of `block` channels.
  std::optional<Place> RoomWithin(ValueId value, int64_t block);

  const Graph& graph_;
  const CompileOptions& options_;
  const std::set<int32_t> paired_loops_;
  Folded folded_;
  Program program_;
  std::map<ValueId, std::vector<Place>> places_;
  std::map<ValueId, std::vector<Place>> narrow_;  ///< in bf16
  std::map<std::pair<ValueId, SplitRowsOf>, Place> split_;
  std::map<ValueId, ConcatSlot> slots_;
  std::map<ValueId, Place> concats_;  ///< outputs of Concat with room already
  std::map<ValueId, Place> within_;   ///< parts of concatenations of several images
  std::map<ValueId, StridedLayout> stepped_;
  std::vector<bool> output_taken_;
  ConstantArena room_;
  DeferredConstants deferred_;
  std::map<std::string, Place> constants_;
  std::map<std::tuple<const std::byte*, std::string>, Place> packed_;
  std::map<const void*, Place> keyed_;
  std::vector<Tensor> kept_;
};

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_LOWERING_H_
