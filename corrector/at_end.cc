// Correction at the end of a mutant, before its last layout change. The original program computes
// boxes of the value there, whatever came before (a chain of convolutions, stripes in the batch).
// The mutant's own views move them.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "corrector/corrector.h"
#include "corrector/linear_program.h"
#include "graph/op_helpers.h"
#include "graph/restrict.h"
#include "graph/rewrite.h"

namespace mendel {
namespace {

constexpr size_t kMaxMovedBoxes = 256;

absl::Status NotAtEnd(const std::string& why) {
  return absl::FailedPreconditionError(Cat("not at the end: ", why));
}

/// A box of the output, and where its first element lies before the last views; channels included.
struct MovedBox {
  Box box;
  Shape to;
  Box Target() const {
    Box target{to, to};
    const Shape extents = box.Extents();
    for (size_t d = 0; d < to.size(); ++d) target.end[d] += extents[d];
    return target;
  }
};

/// Cuts boxes of the output until each is contiguous, in the same order, before the last views.
class Mover {
 public:
  /// `from`: TraceViews of the last views.
  Mover(const Shape& out, const Shape& inner, const std::vector<int64_t>& from)
      : out_(WithoutChannels(out)), inner_(WithoutChannels(inner)), from_(from) {}

  absl::Status Move(const Box& box) {
    if (moved_.size() >= kMaxMovedBoxes) return NotAtEnd("more than 256 boxes");
    const Shape to = At(box, Shape(out_.size(), 0));
    if (LiesTogether(box, to)) {
      Shape begin = to;
      begin.insert(begin.begin() + 1, box.begin[1]);
      moved_.push_back({box, std::move(begin)});
      return absl::OkStatus();
    }
    size_t thinnest = box.begin.size();
    for (size_t d = 0; d < box.begin.size(); ++d) {
      const int64_t extent = box.end[d] - box.begin[d];
      if (d == 1 || extent < 2) continue;
      if (thinnest == box.begin.size() || extent < box.end[thinnest] - box.begin[thinnest])
        thinnest = d;
    }
    Box low = box, high = box;
    low.end[thinnest] = high.begin[thinnest] = (box.begin[thinnest] + box.end[thinnest]) / 2;
    MENDEL_RETURN_IF_ERROR(Move(low));
    return Move(high);
  }
  std::vector<MovedBox> Take() { return std::move(moved_); }

 private:
  /// The output at `offset` of the box lies at this position.
  Shape At(const Box& box, const Shape& offset) const {
    Shape at = offset;
    for (size_t d = 0; d < at.size(); ++d) at[d] += box.begin[d == 0 ? 0 : d + 1];
    int64_t flat = from_[static_cast<size_t>(FlatIndex(out_, at))];
    Shape inner(inner_.size());
    for (size_t d = inner.size(); d-- > 0; flat /= inner_[d]) inner[d] = flat % inner_[d];
    return inner;
  }

  bool LiesTogether(const Box& box, const Shape& to) const {
    if (to.size() != out_.size()) return box.Volume() == box.end[1] - box.begin[1];
    const Shape extents = WithoutChannels(box.Extents());
    Shape offset(extents.size(), 0);
    do {
      Shape expected = to;
      for (size_t d = 0; d < expected.size(); ++d) expected[d] += offset[d];
      if (At(box, offset) != expected) return false;
    } while (NextIndex(extents, offset));
    return true;
  }

  const Shape out_, inner_;  ///< extents without channels
  const std::vector<int64_t>& from_;
  std::vector<MovedBox> moved_;
};

/// The views that a program ends with, first to last.
std::vector<int32_t> LastViews(const Graph& graph) {
  std::vector<int32_t> views;
  int32_t id = graph.outputs()[0].value.node;
  for (; IsView(graph.node(id)); id = graph.node(id).inputs[0].node)
    views.insert(views.begin(), id);
  return views;
}

/// The mutant with `pieces` written over the value `inner` before its last views.
absl::StatusOr<Graph> PatchBefore(const Graph& mutant, ValueId inner, const Graph& pieces,
                                  const Boxes& targets) {
  GraphBuilder builder(mutant.name());
  std::vector<ValueId> inputs;
  std::map<ValueId, ValueId> values;
  for (int32_t id : mutant.inputs()) {
    inputs.push_back(builder.Input(InputName(mutant.node(id)), mutant.node(id).outputs[0]));
    values[{id, 0}] = inputs.back();
  }
  MENDEL_ASSIGN_OR_RETURN(const std::vector<ValueId> patches, Inline(pieces, inputs, builder));
  for (int32_t id = 0; id < static_cast<int32_t>(mutant.nodes().size()); ++id) {
    const Node& node = mutant.node(id);
    if (IsInput(node)) continue;
    if (IsConstant(node)) {
      values[{id, 0}] = builder.Constant(ConstantValue(node), SymbolName(node));
      continue;
    }
    std::vector<ValueId> operands;
    for (ValueId input : node.inputs) operands.push_back(values.at(input));
    MENDEL_ASSIGN_OR_RETURN(const int32_t copied, builder.CopyNode(node, std::move(operands)));
    for (int32_t k = 0; k < static_cast<int32_t>(node.outputs.size()); ++k)
      values[{id, k}] = {copied, k};
    if (id != inner.node) continue;
    std::vector<ValueId> patched = {values.at(inner)};
    patched.insert(patched.end(), patches.begin(), patches.end());
    MENDEL_ASSIGN_OR_RETURN(values[inner],
                            builder.Add("Patch", std::move(patched), {{"boxes", targets}}));
  }
  builder.Output(mutant.outputs()[0].name, values.at(mutant.outputs()[0].value));
  MENDEL_ASSIGN_OR_RETURN(const Graph built, builder.Build());
  return Deduplicate(built);
}

}  // namespace

absl::StatusOr<CorrectedMutant> AtEnd(const Graph& original, const Graph& mutant,
                                      const VerifierReport& report, double max_share) {
  MENDEL_RETURN_IF_ERROR(CheckCorrectable(original, mutant, report, max_share));
  if (mutant.outputs().size() != 1) return NotAtEnd("several outputs");
  if (report.outputs[0].wrong.empty()) return NotAtEnd("nothing is wrong");
  const std::vector<int32_t> views = LastViews(mutant);
  if (views.empty()) return NotAtEnd("the mutant does not end with a layout change");
  const ValueId inner = mutant.node(views.front()).inputs[0];
  if (IsInput(mutant.node(inner.node)) || mutant.users(inner.node).size() != 1) {
    return NotAtEnd("what the last layout change moves is read elsewhere too");
  }
  const Shape& out = mutant.type(mutant.outputs()[0].value).shape;
  MENDEL_ASSIGN_OR_RETURN(const std::vector<int64_t> from,
                          TraceViews(mutant, mutant.type(inner).shape, views, 0));
  Mover mover(out, mutant.type(inner).shape, from);
  for (const Box& box : report.outputs[0].wrong) MENDEL_RETURN_IF_ERROR(mover.Move(box));
  std::vector<OutputBox> wanted;
  Boxes targets;
  for (const MovedBox& moved : mover.Take()) {
    wanted.push_back({0, moved.box});
    targets.push_back(moved.Target());
  }
  MENDEL_ASSIGN_OR_RETURN(const Graph pieces, RestrictToBoxes(original, wanted));
  CorrectedMutant result;
  result.correction = CorrectionKind::kAtEnd;
  result.boxes = {report.outputs[0].wrong};
  result.flop_share = RunTimeFlops(pieces) / std::max(1.0, RunTimeFlops(original));
  MENDEL_ASSIGN_OR_RETURN(result.graph, PatchBefore(mutant, inner, pieces, targets));
  MENDEL_RETURN_IF_ERROR(Annotate(CheckGraph(result.graph), "correction at the end of the mutant"));
  return result;
}

}  // namespace mendel
