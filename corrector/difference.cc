// Correction by the difference: f - g on a wrong box is the convolution of what only f reads minus
// that of what only g reads.

#include <algorithm>
#include <optional>
#include <utility>

#include "base/status.h"
#include "corrector/corrector.h"
#include "corrector/linear_program.h"
#include "corrector/window_cells.h"
#include "graph/rewrite.h"

namespace mendel {
namespace {

constexpr size_t kMaxTerms = 256;  // more convolutions than this are never worth launching

/// A wrong box and what f and g read differently there.
struct CorrectedBox {
  Box box;
  std::vector<WindowCell> cells;
};

/// Reads of both programs.
class Comparer {
 public:
  Comparer(const LinearProgram& f, const LinearProgram& g) : f_(f), g_(g) {}

  /// Cuts `box` until both programs' reads are functions of the window position and every cell
  /// contains all of its images.
  absl::Status Compare(const Box& box, std::vector<CorrectedBox>& corrected) {
    if (corrected.size() >= kMaxTerms)
      return absl::FailedPreconditionError("no difference: more than 256 boxes");
    const std::optional<WindowReads> reads = ReadsIn(box);
    if (!reads.has_value()) return Cut(box, corrected);
    auto cells = DifferingCells(*reads, WithoutChannels(f_.source), kMaxTerms);
    if (!cells.has_value())
      return absl::FailedPreconditionError("no difference: what differs lies too scattered");
    for (const WindowCell& cell : *cells) {
      if (cell.box.begin[0] == box.begin[0] && cell.box.end[0] == box.end[0]) continue;
      // One image at a time.
      for (int64_t n = box.begin[0]; n < box.end[0]; ++n) {
        Box image = box;
        image.begin[0] = n;
        image.end[0] = n + 1;
        MENDEL_RETURN_IF_ERROR(Compare(image, corrected));
      }
      return absl::OkStatus();
    }
    corrected.push_back({box, *std::move(cells)});
    return absl::OkStatus();
  }

 private:
  /// Halves, along the thinnest dimension that has more than one position: seams are thin.
  absl::Status Cut(const Box& box, std::vector<CorrectedBox>& corrected) {
    size_t thinnest = box.begin.size();
    for (size_t d = 0; d < box.begin.size(); ++d) {
      const int64_t extent = box.end[d] - box.begin[d];
      if (d == 1 || extent < 2) continue;
      if (thinnest == box.begin.size() || extent < box.end[thinnest] - box.begin[thinnest])
        thinnest = d;
    }
    if (thinnest == box.begin.size()) return InternalError("one output reads a position twice");
    Box low = box, high = box;
    low.end[thinnest] = high.begin[thinnest] = (box.begin[thinnest] + box.end[thinnest]) / 2;
    MENDEL_RETURN_IF_ERROR(Compare(low, corrected));
    return Compare(high, corrected);
  }

  /// nullopt when the reads are not functions of the window position.
  std::optional<WindowReads> ReadsIn(const Box& box) const {
    const size_t spatial = f_.windows.size();
    Shape begin = {box.begin[0]}, extent = {box.end[0] - box.begin[0]}, outputs = extent, taps;
    for (size_t d = 0; d < spatial; ++d) {
      const Window& window = f_.windows[d];
      const int64_t first = window.Position(box.begin[d + 2], 0);
      begin.push_back(first);
      extent.push_back(window.Position(box.end[d + 2] - 1, window.kernel - 1) - first + 1);
      outputs.push_back(box.end[d + 2] - box.begin[d + 2]);
      taps.push_back(window.kernel);
    }
    WindowReads reads(begin, extent);
    Shape output(spatial + 1, 0);
    do {
      Shape at = output;
      at[0] += box.begin[0];
      for (size_t d = 0; d < spatial; ++d) at[d + 1] += box.begin[d + 2];
      const Shape in_g =
          Unflatten(g_.from[static_cast<size_t>(FlatIndex(WithoutChannels(f_.out), at))],
                    WithoutChannels(g_.conv_out));
      Shape tap(spatial, 0);
      do {
        Shape u = at;
        for (size_t d = 0; d < spatial; ++d) u[d + 1] = f_.windows[d].Position(at[d + 1], tap[d]);
        if (!reads.Set(u, ReadOf(f_, at, tap), ReadOf(g_, in_g, tap))) return std::nullopt;
      } while (NextIndex(taps, tap));
    } while (NextIndex(outputs, output));
    return reads;
  }

  static Shape Unflatten(int64_t flat, const Shape& shape) {
    Shape at(shape.size());
    for (size_t d = shape.size(); d-- > 0;) {
      at[d] = flat % shape[d];
      flat /= shape[d];
    }
    return at;
  }

  static int64_t ReadOf(const LinearProgram& program, const Shape& output, const Shape& tap) {
    Shape at = {output[0]};
    for (size_t d = 0; d < tap.size(); ++d) {
      at.push_back(program.windows[d].Position(output[d + 1], tap[d]));
      if (at.back() < 0 || at.back() >= program.windows[d].input) return 0;
    }
    return program.reads[static_cast<size_t>(FlatIndex(WithoutChannels(program.conv_in), at))];
  }

  const LinearProgram& f_;
  const LinearProgram& g_;
};

/// Emits the terms of one box.
class TermEmitter {
 public:
  TermEmitter(const Graph& original, const LinearProgram& f, ValueId x, GraphBuilder& builder)
      : graph_(original), f_(f), x_(x), builder_(builder) {}

  absl::StatusOr<ValueId> Emit(const CorrectedBox& corrected, ValueId base) {
    MENDEL_ASSIGN_OR_RETURN(ValueId value, Slice(base, corrected.box.begin, corrected.box.end));
    for (const WindowCell& cell : corrected.cells) {
      MENDEL_ASSIGN_OR_RETURN(const ValueId term, Term(corrected.box, cell));
      MENDEL_ASSIGN_OR_RETURN(value, builder_.Add("Add", {value, term}));
    }
    return value;
  }
  double flops() const { return flops_; }

 private:
  absl::StatusOr<ValueId> Slice(ValueId value, const Shape& begin, const Shape& end,
                                Shape steps = {}) {
    if (steps.empty()) steps.assign(begin.size(), 1);
    const bool whole =
        Box{begin, end} == Box::Whole(builder_.type(value).shape) &&
        std::all_of(steps.begin(), steps.end(), [](int64_t step) { return step == 1; });
    if (whole) return value;
    return builder_.Add("Slice", {value}, {{"starts", begin}, {"ends", end}, {"steps", steps}});
  }

  /// The convolution of the cell's part of the input with the taps that reach it from the box.
  absl::StatusOr<ValueId> Term(const Box& box, const WindowCell& cell) {
    const Node& conv = graph_.node(f_.conv);
    const size_t spatial = f_.windows.size();
    Shape w_begin(2, 0), w_end = graph_.type(conv.inputs[1]).shape;
    w_end.resize(2);
    Ints pads(2 * spatial);
    for (size_t d = 0; d < spatial; ++d) {
      const Window& window = f_.windows[d];
      const auto reaches = [&](int64_t tap) {
        for (int64_t p = box.begin[d + 2]; p < box.end[d + 2]; ++p) {
          const int64_t u = window.Position(p, tap);
          if (u >= cell.box.begin[d + 1] && u < cell.box.end[d + 1]) return true;
        }
        return false;
      };
      int64_t begin = 0, end = window.kernel;
      while (begin < end && !reaches(begin)) ++begin;
      while (end > begin && !reaches(end - 1)) --end;
      w_begin.push_back(begin);
      w_end.push_back(end);
      pads[d] = cell.box.begin[d + 1] - window.Position(box.begin[d + 2], begin);
      pads[spatial + d] = window.Position(box.end[d + 2] - 1, end - 1) - (cell.box.end[d + 1] - 1);
    }
    MENDEL_ASSIGN_OR_RETURN(const ValueId part, Source(cell));
    MENDEL_ASSIGN_OR_RETURN(ValueId weights, CopyWeights(graph_, conv.inputs[1], builder_));
    // Negated as a whole, so that all terms of a sign are parts of one kernel.
    if (!cell.of_first) {
      MENDEL_ASSIGN_OR_RETURN(weights, builder_.Add("Neg", {weights}));
    }
    MENDEL_ASSIGN_OR_RETURN(weights, Slice(weights, w_begin, w_end));
    Attributes attrs = conv.attrs;
    attrs.Set("pads", pads);
    MENDEL_ASSIGN_OR_RETURN(const ValueId term,
                            builder_.Add("Conv", {part, weights}, std::move(attrs)));
    const double taps =
        static_cast<double>(NumElements(builder_.type(weights))) / static_cast<double>(w_end[0]);
    flops_ += 2 * static_cast<double>(NumElements(builder_.type(term))) * taps;
    return term;
  }

  absl::StatusOr<ValueId> Source(const WindowCell& cell) {
    const Shape extents = cell.box.Extents();
    Shape begin = cell.start, end, steps = cell.step;
    for (size_t d = 0; d < begin.size(); ++d)
      end.push_back(begin[d] + (extents[d] - 1) * steps[d] + 1);
    begin.insert(begin.begin() + 1, 0);
    end.insert(end.begin() + 1, f_.source[1]);
    steps.insert(steps.begin() + 1, 1);
    return Slice(x_, begin, end, steps);
  }

  const Graph& graph_;
  const LinearProgram& f_;
  ValueId x_;
  GraphBuilder& builder_;
  double flops_ = 0;
};

absl::StatusOr<std::vector<CorrectedBox>> CompareBoxes(const LinearProgram& f,
                                                       const LinearProgram& g,
                                                       const OutputReport& output) {
  std::vector<CorrectedBox> corrected;
  Comparer comparer(f, g);
  for (const Box& box : output.wrong) {
    if (box.begin[1] != 0 || box.end[1] != f.out[1]) {
      return absl::FailedPreconditionError("no difference: wrong in some channels only");
    }
    MENDEL_RETURN_IF_ERROR(comparer.Compare(box, corrected));
  }
  return corrected;
}

/// The elementwise operators after the boxes, over the whole; or (`in_tail`) over the whole and in
/// each box.
absl::StatusOr<CorrectedMutant> AddTerms(const Graph& original, const Graph& mutant,
                                         const VerifierReport& report, double max_share,
                                         bool in_tail) {
  MENDEL_RETURN_IF_ERROR(CheckCorrectable(original, mutant, report, max_share));
  MENDEL_ASSIGN_OR_RETURN(const LinearProgram f, AnalyzeLinear(original));
  MENDEL_ASSIGN_OR_RETURN(const LinearProgram g, AnalyzeLinear(mutant));
  MENDEL_RETURN_IF_ERROR(CheckAlike(original, f, mutant, g));
  if (in_tail && f.tail.empty())
    return absl::FailedPreconditionError("not in an elementwise operator: none follows");
  if (in_tail && !TailMoves(original, f)) {
    return absl::FailedPreconditionError(
        "not in an elementwise operator: it has constants of its own for each position");
  }
  MENDEL_ASSIGN_OR_RETURN(const std::vector<CorrectedBox> corrected,
                          CompareBoxes(f, g, report.outputs[0]));
  CorrectedMutant result;
  result.correction = in_tail ? CorrectionKind::kElementwise : CorrectionKind::kDifference;
  result.boxes.emplace_back();
  GraphBuilder builder(mutant.name());
  std::vector<ValueId> inputs;
  for (int32_t id : mutant.inputs())
    inputs.push_back(builder.Input(InputName(mutant.node(id)), mutant.node(id).outputs[0]));
  MENDEL_ASSIGN_OR_RETURN(const ValueId base, EmitWithoutTail(mutant, g, inputs, builder));
  ValueId value = base;
  if (in_tail) {
    MENDEL_ASSIGN_OR_RETURN(value, EmitTailOf(original, f, base, builder));
  }
  const auto position = std::find(original.inputs().begin(), original.inputs().end(), f.input) -
                        original.inputs().begin();
  TermEmitter terms(original, f, inputs[static_cast<size_t>(position)], builder);
  std::vector<ValueId> operands = {value};
  for (const CorrectedBox& box : corrected) {
    if (box.cells.empty()) continue;
    MENDEL_ASSIGN_OR_RETURN(ValueId piece, terms.Emit(box, base));
    if (in_tail) {
      MENDEL_ASSIGN_OR_RETURN(piece, EmitTailOf(original, f, piece, builder));
    }
    operands.push_back(piece);
    result.boxes[0].push_back(box.box);
  }
  if (operands.size() > 1) {
    MENDEL_ASSIGN_OR_RETURN(
        value, builder.Add("Patch", std::move(operands), {{"boxes", result.boxes[0]}}));
  }
  if (!in_tail) {
    MENDEL_ASSIGN_OR_RETURN(value, EmitTailOf(original, f, value, builder));
  }
  builder.Output(mutant.outputs()[0].name, value);
  MENDEL_ASSIGN_OR_RETURN(const Graph built, builder.Build());
  MENDEL_ASSIGN_OR_RETURN(result.graph, Deduplicate(built));
  MENDEL_RETURN_IF_ERROR(Annotate(CheckGraph(result.graph), "correction by difference"));
  result.flop_share = terms.flops() / std::max(1.0, RunTimeFlops(original));
  return result;
}

}  // namespace

absl::StatusOr<CorrectedMutant> Difference(const Graph& original, const Graph& mutant,
                                           const VerifierReport& report, double max_share) {
  return AddTerms(original, mutant, report, max_share, false);
}

absl::StatusOr<CorrectedMutant> InElementwise(const Graph& original, const Graph& mutant,
                                              const VerifierReport& report, double max_share) {
  return AddTerms(original, mutant, report, max_share, true);
}

}  // namespace mendel
