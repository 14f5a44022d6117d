// Correction inside a mutant, before its last layout change. The mutant's own convolution computes
// a wrong box from the part of its input that the original reads there. The box is written over the
// convolution's result in place.

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

constexpr size_t kMaxPieces = 256;

absl::Status NotInside(const std::string& why) {
  return absl::FailedPreconditionError(Cat("not inside: ", why));
}

/// A box of the convolution's result, and the part of its input that it reads; both without
/// channels.
struct InsideBox {
  Box box;
  Box region;
};

Box WithChannels(Box box, int64_t channels) {
  box.begin.insert(box.begin.begin() + 1, 0);
  box.end.insert(box.end.begin() + 1, channels);
  return box;
}

/// Finds boxes of the mutant's convolution that cover the wrong outputs.
class Finder {
 public:
  Finder(const LinearProgram& f, const LinearProgram& g)
      : f_(f),
        g_(g),
        out_(WithoutChannels(f.out)),
        conv_(WithoutChannels(g.conv_out)),
        in_(WithoutChannels(g.conv_in)) {}

  absl::StatusOr<std::vector<InsideBox>> Find(const std::vector<Box>& wrong) {
    output_.assign(static_cast<size_t>(NumElements(conv_)), -1);
    std::vector<bool> open(output_.size());
    for (size_t p = 0; p < g_.from.size(); ++p) {
      int64_t& output = output_[static_cast<size_t>(g_.from[p])];
      output = output == -1 ? static_cast<int64_t>(p) : kSeveral;
    }
    for (const Box& box : wrong) {
      if (box.begin[1] != 0 || box.end[1] != f_.out[1])
        return NotInside("wrong in some channels only");
      Shape at(out_.size(), 0);
      const Shape extents = WithoutChannels(box.Extents());
      do {
        Shape p = at;
        p[0] += box.begin[0];
        for (size_t d = 1; d < p.size(); ++d) p[d] += box.begin[d + 1];
        open[static_cast<size_t>(g_.from[static_cast<size_t>(FlatIndex(out_, p))])] = true;
      } while (NextIndex(extents, at));
    }
    Shape at(conv_.size(), 0);
    do {
      if (open[static_cast<size_t>(FlatIndex(conv_, at))])
        MENDEL_RETURN_IF_ERROR(Fit(Grow(at, open)));
    } while (NextIndex(conv_, at));
    return std::move(found_);
  }

 private:
  static constexpr int64_t kSeveral = -2;

  /// The largest box of open positions that grows from `at`, the last dimension first; the
  /// positions are closed.
  Box Grow(const Shape& at, std::vector<bool>& open) const {
    Box box{at, at};
    for (int64_t& end : box.end) ++end;
    const auto all = [&](const Box& slab, bool close) {
      const Shape extents = slab.Extents();
      Shape offset(extents.size(), 0);
      do {
        Shape p = offset;
        for (size_t d = 0; d < p.size(); ++d) p[d] += slab.begin[d];
        const size_t flat = static_cast<size_t>(FlatIndex(conv_, p));
        if (!open[flat]) return false;
        if (close) open[flat] = false;
      } while (NextIndex(extents, offset));
      return true;
    };
    for (size_t d = at.size(); d-- > 0;) {
      Box slab = box;
      for (;;) {
        slab.begin[d] = box.end[d];
        slab.end[d] = box.end[d] + 1;
        if (slab.end[d] > conv_[d] || !all(slab, false)) break;
        ++box.end[d];
      }
    }
    all(box, true);
    return box;
  }

  /// Cuts `box` until one part of the convolution's input is the right read for all its outputs.
  absl::Status Fit(const Box& box) {
    if (found_.size() >= kMaxPieces) return NotInside("more than 256 boxes");
    if (std::optional<Box> region = RegionOf(box); region.has_value()) {
      found_.push_back({box, *std::move(region)});
      return absl::OkStatus();
    }
    size_t thinnest = box.begin.size();
    for (size_t d = 0; d < box.begin.size(); ++d) {
      const int64_t extent = box.end[d] - box.begin[d];
      if (extent > 1 &&
          (thinnest == box.begin.size() || extent < box.end[thinnest] - box.begin[thinnest]))
        thinnest = d;
    }
    if (thinnest == box.begin.size())
      return NotInside("the original reads what does not lie beside the mutant's");
    Box low = box, high = box;
    low.end[thinnest] = high.begin[thinnest] = (box.begin[thinnest] + box.end[thinnest]) / 2;
    MENDEL_RETURN_IF_ERROR(Fit(low));
    return Fit(high);
  }

  /// The region where the mutant's convolution must read real elements for `box`; nullopt when no
  /// part of its input is that.
  std::optional<Box> RegionOf(const Box& box) const {
    Shape begin = {box.begin[0]}, extent = {box.end[0] - box.begin[0]}, taps;
    for (size_t d = 0; d < g_.windows.size(); ++d) {
      const Window& window = g_.windows[d];
      begin.push_back(window.Position(box.begin[d + 1], 0));
      extent.push_back(window.Position(box.end[d + 1] - 1, window.kernel - 1) - begin.back() + 1);
      taps.push_back(window.kernel);
    }
    WindowReads reads(begin, extent);
    const Shape extents = box.Extents();
    Shape offset(extents.size(), 0);
    do {
      Shape at = offset;
      for (size_t d = 0; d < at.size(); ++d) at[d] += box.begin[d];
      const int64_t output = output_[static_cast<size_t>(FlatIndex(conv_, at))];
      if (output < 0) return std::nullopt;
      Shape tap(taps.size(), 0);
      do {
        Shape u = at;
        for (size_t d = 0; d < tap.size(); ++d)
          u[d + 1] = g_.windows[d].Position(at[d + 1], tap[d]);
        if (!reads.Set(u, Wanted(output, tap), Has(u))) return std::nullopt;
      } while (NextIndex(taps, tap));
    } while (NextIndex(extents, offset));
    return RegionIn(reads);
  }

  /// The hull of the correct reads, if the mutant reads exactly those inside it.
  static std::optional<Box> RegionIn(const WindowReads& reads) {
    Box hull;
    Shape at(reads.extent.size(), 0);
    size_t flat = 0;
    do {
      if (reads.first[flat++] <= 0) continue;
      if (hull.begin.empty()) hull = {at, at};
      for (size_t d = 0; d < at.size(); ++d) {
        hull.begin[d] = std::min(hull.begin[d], at[d]);
        hull.end[d] = std::max(hull.end[d], at[d] + 1);
      }
    } while (NextIndex(reads.extent, at));
    if (hull.begin.empty()) return std::nullopt;
    at.assign(reads.extent.size(), 0);
    flat = 0;
    do {
      bool inside = true;
      for (size_t d = 0; d < at.size(); ++d)
        inside = inside && at[d] >= hull.begin[d] && at[d] < hull.end[d];
      if (inside && reads.first[flat] != WindowReads::kUnread &&
          reads.first[flat] != reads.second[flat])
        return std::nullopt;
      ++flat;
    } while (NextIndex(reads.extent, at));
    for (size_t d = 0; d < at.size(); ++d) {
      hull.begin[d] += reads.begin[d];
      hull.end[d] += reads.begin[d];
    }
    return hull;
  }

  /// The element that the original reads for output `output` (a flat position) with `tap`.
  int64_t Wanted(int64_t output, const Shape& tap) const {
    Shape at(out_.size());
    for (size_t d = out_.size(); d-- > 0; output /= out_[d]) at[d] = output % out_[d];
    for (size_t d = 0; d < tap.size(); ++d) {
      at[d + 1] = f_.windows[d].Position(at[d + 1], tap[d]);
      if (at[d + 1] < 0 || at[d + 1] >= f_.windows[d].input) return 0;
    }
    return FlatIndex(WithoutChannels(f_.source), at) + 1;
  }

  /// The element at `u` of the input of the mutant's convolution.
  int64_t Has(const Shape& u) const {
    for (size_t d = 0; d < u.size(); ++d) {
      if (u[d] < 0 || u[d] >= in_[d]) return 0;
    }
    return g_.reads[static_cast<size_t>(FlatIndex(in_, u))];
  }

  const LinearProgram& f_;
  const LinearProgram& g_;
  Shape out_, conv_, in_;        ///< extents without channels
  std::vector<int64_t> output_;  ///< by position of the convolution's result; -1: none, kSeveral
  std::vector<InsideBox> found_;
};

/// The convolution's result with every box computed again.
class Patcher {
 public:
  Patcher(const Graph& original, const LinearProgram& f, const Graph& mutant,
          const LinearProgram& g, GraphBuilder& builder)
      : original_(original), f_(f), mutant_(mutant), g_(g), builder_(builder) {}

  absl::StatusOr<ValueId> Emit(ValueId conv, const std::vector<InsideBox>& boxes) {
    MENDEL_ASSIGN_OR_RETURN(const ValueId base, EmitTailOf(original_, f_, conv, builder_));
    const ValueId source = builder_.node(conv.node).inputs[0];
    std::vector<ValueId> operands = {base};
    Boxes targets;
    for (const InsideBox& inside : boxes) {
      MENDEL_ASSIGN_OR_RETURN(const ValueId piece, Piece(source, inside));
      operands.push_back(piece);
      targets.push_back(WithChannels(inside.box, g_.conv_out[1]));
    }
    return builder_.Add("Patch", std::move(operands), {{"boxes", targets}});
  }
  double flops() const { return flops_; }

 private:
  absl::StatusOr<ValueId> Piece(ValueId source, const InsideBox& inside) {
    const Box region = WithChannels(inside.region, g_.conv_in[1]);
    ValueId part = source;
    if (region != Box::Whole(g_.conv_in)) {
      const Ints ones(region.begin.size(), 1);
      MENDEL_ASSIGN_OR_RETURN(
          part, builder_.Add("Slice", {source},
                             {{"starts", region.begin}, {"ends", region.end}, {"steps", ones}}));
    }
    const Node& conv = mutant_.node(g_.conv);
    std::vector<ValueId> operands = {part};
    for (size_t k = 1; k < conv.inputs.size(); ++k) {
      MENDEL_ASSIGN_OR_RETURN(const ValueId weights,
                              CopyWeights(mutant_, conv.inputs[k], builder_));
      operands.push_back(weights);
    }
    const size_t spatial = g_.windows.size();
    Ints pads(2 * spatial);
    for (size_t d = 0; d < spatial; ++d) {
      const Window& window = g_.windows[d];
      pads[d] = inside.region.begin[d + 1] - window.Position(inside.box.begin[d + 1], 0);
      pads[spatial + d] = window.Position(inside.box.end[d + 1] - 1, window.kernel - 1) -
                          (inside.region.end[d + 1] - 1);
    }
    Attributes attrs = conv.attrs;
    attrs.Set("pads", pads);
    MENDEL_ASSIGN_OR_RETURN(const ValueId piece,
                            builder_.Add("Conv", std::move(operands), std::move(attrs)));
    const Shape& w = mutant_.type(conv.inputs[1]).shape;
    const int64_t products = NumElements(w) / w[0];
    flops_ += 2 * static_cast<double>(NumElements(builder_.type(piece)) * products);
    return EmitTailOf(original_, f_, piece, builder_);
  }

  const Graph& original_;
  const LinearProgram& f_;
  const Graph& mutant_;
  const LinearProgram& g_;
  GraphBuilder& builder_;
  double flops_ = 0;
};

}  // namespace

absl::StatusOr<CorrectedMutant> Inside(const Graph& original, const Graph& mutant,
                                       const VerifierReport& report, double max_share) {
  MENDEL_RETURN_IF_ERROR(CheckCorrectable(original, mutant, report, max_share));
  MENDEL_ASSIGN_OR_RETURN(const LinearProgram f, AnalyzeLinear(original));
  MENDEL_ASSIGN_OR_RETURN(const LinearProgram g, AnalyzeLinear(mutant));
  MENDEL_RETURN_IF_ERROR(CheckAlike(original, f, mutant, g));
  if (report.outputs[0].wrong.empty()) return NotInside("nothing is wrong");
  if (mutant.outputs()[0].value.node == g.conv)
    return NotInside("the mutant ends with its convolution");
  if (!TailMoves(original, f))
    return NotInside("elementwise operators with constants of their own for each position");
  MENDEL_ASSIGN_OR_RETURN(const std::vector<InsideBox> boxes,
                          Finder(f, g).Find(report.outputs[0].wrong));
  GraphBuilder builder(mutant.name());
  std::vector<ValueId> inputs;
  for (int32_t id : mutant.inputs())
    inputs.push_back(builder.Input(InputName(mutant.node(id)), mutant.node(id).outputs[0]));
  Patcher patcher(original, f, mutant, g, builder);
  const auto patch = [&](ValueId conv) { return patcher.Emit(conv, boxes); };
  MENDEL_ASSIGN_OR_RETURN(const ValueId value, EmitWithoutTail(mutant, g, inputs, builder, patch));
  builder.Output(mutant.outputs()[0].name, value);
  MENDEL_ASSIGN_OR_RETURN(const Graph built, builder.Build());
  CorrectedMutant result;
  result.correction = CorrectionKind::kInside;
  result.boxes = {report.outputs[0].wrong};
  MENDEL_ASSIGN_OR_RETURN(result.graph, Deduplicate(built));
  MENDEL_RETURN_IF_ERROR(Annotate(CheckGraph(result.graph), "correction inside the mutant"));
  result.flop_share = patcher.flops() / std::max(1.0, RunTimeFlops(original));
  return result;
}

}  // namespace mendel
