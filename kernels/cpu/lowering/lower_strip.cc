// Patch: boxes recomputed by the strip kernels in place, other operands copied.

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "base/status.h"
#include "kernels/cpu/kernels/copy.h"
#include "kernels/cpu/kernels/strip.h"
#include "kernels/cpu/lowering/strip_claims.h"
#include "kernels/cpu/simd/native_isa.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kFloat = static_cast<int64_t>(sizeof(float));
constexpr int64_t kNarrow = 16;  // positions

class PatchKernel : public Kernel {
 public:
  struct Parts {
    Place base, to;
    int64_t bytes = 0;
    std::optional<StripPlan> plan;
    NativePostOps post_ops;
    Place bias;
    std::vector<Place> sources, residuals, weights;
    std::unique_ptr<Kernel> copies;
  };
  explicit PatchKernel(Parts parts) : parts_(std::move(parts)) {}

  absl::Status Run(const Bindings& bindings) override {
    const std::byte* from = bindings.Address(parts_.base);
    std::byte* to = bindings.Address(parts_.to);
    constexpr int64_t kGrain = int64_t{1} << 18;
    if (from != to) {
      ParallelRange(parts_.bytes, kGrain, [&](int64_t begin, int64_t end) {
        std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
      });
    }
    if (parts_.plan.has_value()) RunStrips(bindings);
    return parts_.copies != nullptr ? parts_.copies->Run(bindings) : absl::OkStatus();
  }

 private:
  void RunStrips(const Bindings& bindings) {
    StripOperands& operands = operands_;
    const auto bind = [&](const std::vector<Place>& places, std::vector<const float*>& addresses) {
      addresses.clear();
      for (const Place& place : places) addresses.push_back(bindings.At<const float>(place));
    };
    bind(parts_.sources, operands.sources);
    bind(parts_.residuals, operands.residuals);
    bind(parts_.weights, operands.weights);
    operands.to = bindings.At<float>(parts_.to);
    parts_.plan->Run(operands, parts_.post_ops.At(bindings, parts_.bias, std::nullopt),
                     reinterpret_cast<float*>(bindings.scratch));
  }

  Parts parts_;
  StripOperands operands_;  // kept so that later runs allocate nothing
};

StripTensor TensorOf(const Layout& layout) {
  StripTensor tensor;
  tensor.n = layout.strides[0];
  tensor.c = layout.strides[1];
  tensor.block = layout.block_dim == 1 ? layout.block : 1;
  const size_t spatial = layout.strides.size() - 2;
  for (size_t d = 0; d < spatial; ++d) tensor.d[3 - spatial + d] = layout.strides[d + 2];
  return tensor;
}

/// A position as an offset in elements.
int64_t OffsetOf(const StripTensor& tensor, const Shape& at) {
  int64_t offset = at[0] * tensor.n + tensor.Channel(at[1]);
  const size_t spatial = at.size() - 2;
  for (size_t d = 0; d < spatial; ++d) offset += at[d + 2] * tensor.d[3 - spatial + d];
  return offset;
}

std::array<int64_t, 3> Spatial(const Ints& values, size_t skip, size_t spatial, int64_t missing) {
  std::array<int64_t, 3> result{missing, missing, missing};
  for (size_t d = 0; d < spatial; ++d) result[3 - spatial + d] = values[skip + d];
  return result;
}

/// Translates one claim into a problem and its operands.
class StripBuilder {
 public:
  StripBuilder(Lowering& lowering, int32_t patch, const StripClaim& claim)
      : lowering_(lowering), patch_(patch), claim_(claim) {}

  /// Chooses the places of the patched value and of the result.
  void PlaceResult(bool unblocked) {
    const ValueId base = lowering_.graph().node(patch_).inputs[0];
    const ValueId result{patch_, 0};
    const Shape& shape = lowering_.shape(base);
    if (const std::optional<Place> output = lowering_.InOutputOf(base, result);
        output.has_value()) {
      parts_.base = parts_.to = *output;
      lowering_.Alias(result, *output);
      return;
    }
    const Place any = lowering_.Any(base);
    const bool fits =
        any.layout.block_dim < 0 || (any.layout.block_dim == 1 && !unblocked && shape.size() <= 5);
    const bool as_it_lies = fits && IsDense(any.layout, shape) && !lowering_.GoesToOutput(result);
    parts_.base = as_it_lies ? any : lowering_.Plain(base);
    parts_.to = lowering_.Allocate(result, parts_.base.layout);
  }

  void Emit() {
    PlaceResult(!claim_.declined.empty());
    const Node& node = lowering_.graph().node(patch_);
    parts_.bytes =
        Span(parts_.base.layout, node.outputs[0].shape) * DTypeSize(node.outputs[0].dtype);
    if (!claim_.pieces.empty()) MakeStrips();
    MakeCopies();
    std::vector<Place> touched = {parts_.to, parts_.base};
    for (const auto* places : {&parts_.sources, &parts_.residuals, &parts_.weights, &copied_}) {
      touched.insert(touched.end(), places->begin(), places->end());
    }
    std::vector<int32_t> nodes = {patch_};
    int64_t scratch = 0;
    std::string name = "patch";
    if (parts_.plan.has_value()) {
      touched.push_back(parts_.bias);
      scratch = parts_.plan->ScratchBytes();
      name = Cat("strips:", parts_.plan->problem().isa->name, " ", claim_.pieces.size(),
                 " boxes in place");
      for (const StripPiece& piece : claim_.pieces) AddOnce(piece.nodes, nodes);
    }
    if (!claim_.declined.empty())
      name += Cat("; ", copied_.size(), " copied (", claim_.declined, ")");
    std::optional<std::pair<Place, Place>> in_place;
    if (parts_.to.buffer != parts_.base.buffer && !base_read_elsewhere_)
      in_place = {parts_.to, parts_.base};
    lowering_.Emit(nodes, name, std::make_unique<PatchKernel>(std::move(parts_)), touched, scratch,
                   in_place);
  }

 private:
  static void AddOnce(const std::vector<int32_t>& more, std::vector<int32_t>& nodes) {
    for (int32_t node : more) {
      if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
    }
  }

  void MakeStrips() {
    const Graph& graph = lowering_.graph();
    const Node& first = graph.node(claim_.pieces[0].terms[0].conv);
    StripProblem problem;
    problem.isa = StripIsaHere();
    problem.groups = first.attrs.Int("group");
    problem.channels_out = first.outputs[0].shape[1] / problem.groups;
    problem.to = TensorOf(parts_.to.layout);
    std::vector<ValueId> values;
    std::vector<std::vector<double>> scales;
    for (const StripPiece& piece : claim_.pieces)
      problem.boxes.push_back(BoxOf(piece, problem, values, scales));
    parts_.post_ops = claim_.pieces[0].post_ops;
    parts_.bias = Bias(claim_.pieces[0].bias, first.outputs[0].shape[1]);
    parts_.plan.emplace(std::move(problem), lowering_.options().threads);
    for (size_t w = 0; w < values.size(); ++w) {
      const int number = static_cast<int>(w);
      parts_.weights.push_back(
          lowering_.Constant("", parts_.plan->PackedFloats(number) * kFloat, [&](std::byte* to) {
            parts_.plan->Pack(number, lowering_.folded().View(values[w]), scales[w],
                              reinterpret_cast<float*>(to));
          }));
    }
  }

  StripBox BoxOf(const StripPiece& piece, StripProblem& problem, std::vector<ValueId>& values,
                 std::vector<std::vector<double>>& scales) {
    const Node& node = lowering_.graph().node(patch_);
    const Box& target = node.attrs.BoxList("boxes")[piece.operand - 1];
    const Shape extents = target.Extents();
    const size_t spatial = extents.size() - 2;
    StripBox box;
    box.images = extents[0];
    box.out = Spatial(extents, 2, spatial, 1);
    box.to = OffsetOf(problem.to, target.begin);
    std::vector<int> used;
    for (const StripTermClaim& claim : piece.terms) {
      box.terms.push_back(TermOf(claim, piece.begin, problem, values, scales, used));
    }
    if (!piece.residual.has_value()) return box;
    const bool itself = piece.residual->root == node.inputs[0] &&
                        piece.residual->begin == target.begin &&
                        std::all_of(piece.residual->step.begin(), piece.residual->step.end(),
                                    [](int64_t s) { return s == 1; });
    if (itself) {
      box.residual = StripBox::kInPlace;
      return box;
    }
    box.residual = static_cast<int>(parts_.residuals.size());
    parts_.residuals.push_back(Cut(*piece.residual, box.residual_from, extents.back() < kNarrow));
    base_read_elsewhere_ =
        base_read_elsewhere_ || parts_.residuals.back().buffer == parts_.base.buffer;
    return box;
  }

  StripTerm TermOf(const StripTermClaim& claim, const Shape& begin, StripProblem& problem,
                   std::vector<ValueId>& values, std::vector<std::vector<double>>& scales,
                   std::vector<int>& used) {
    const Graph& graph = lowering_.graph();
    const Node& conv = graph.node(claim.conv);
    const Shape& in = graph.type(conv.inputs[0]).shape;
    const Shape& w = graph.type(conv.inputs[1]).shape;
    const size_t spatial = in.size() - 2;
    StripTerm term;
    const auto known = std::find_if(weights_.begin(), weights_.end(), [&](const auto& entry) {
      return entry.first == std::pair(conv.inputs[1], claim.scale) &&
             std::find(used.begin(), used.end(), entry.second) == used.end();
    });
    if (known != weights_.end()) {
      term.weights = known->second;
    } else {
      term.weights = static_cast<int>(problem.weights.size());
      problem.weights.push_back({w[1], Spatial(w, 2, spatial, 1)});
      values.push_back(conv.inputs[1]);
      scales.push_back(claim.scale);
      weights_.push_back({{conv.inputs[1], claim.scale}, term.weights});
    }
    used.push_back(term.weights);
    term.in = Spatial(in, 2, spatial, 1);
    term.stride = Spatial(conv.attrs.IntList("strides"), 0, spatial, 1);
    term.step = Spatial(conv.attrs.IntList("dilations"), 0, spatial, 1);
    term.pad = Spatial(conv.attrs.IntList("pads"), 0, spatial, 0);
    // The box may be a part of the convolution's output.
    const std::array<int64_t, 3> skipped = Spatial(begin, 2, spatial, 0);
    for (size_t d = 0; d < 3; ++d) term.pad[d] -= skipped[d] * term.stride[d];
    CutValue source = claim.source;
    source.begin[0] += begin[0] * source.step[0];
    term.source = static_cast<int>(parts_.sources.size());
    parts_.sources.push_back(Cut(source, term.from, in.back() < kNarrow));
    return term;
  }

  /// Returns the place of a cut value's first element, and its strides. A narrow cut has few floats
  /// in a row of a plain layout, so it is read in blocks of channels where the value also lies in
  /// such.
  Place Cut(const CutValue& cut, StripTensor& tensor, bool narrow) {
    const std::optional<Place> in_blocks = narrow ? lowering_.Blocked(cut.root) : std::nullopt;
    Place place = in_blocks.has_value() ? *in_blocks : lowering_.Any(cut.root);
    const bool blocked = place.layout.block_dim >= 0;
    const bool aligned =
        place.layout.block_dim == 1 && cut.begin[1] % place.layout.block == 0 && cut.step[1] == 1;
    if (blocked && !aligned) place = lowering_.Plain(cut.root);
    tensor = TensorOf(place.layout);
    place.offset += OffsetOf(tensor, cut.begin) * kFloat;
    tensor.n *= cut.step[0];
    if (tensor.block == 1) tensor.c *= cut.step[1];
    const std::array<int64_t, 3> steps = Spatial(cut.step, 2, cut.step.size() - 2, 1);
    for (size_t d = 0; d < 3; ++d) tensor.d[d] *= steps[d];
    return place;
  }

  /// One float a channel.
  Place Bias(const std::vector<double>& bias, int64_t channels) {
    return lowering_.Constant("", channels * kFloat, [&](std::byte* to) {
      for (size_t c = 0; c < bias.size(); ++c) {
        const float value = static_cast<float>(bias[c]);
        std::memcpy(to + c * sizeof(float), &value, sizeof(float));
      }
    });
  }

  /// Operands without a piece.
  void MakeCopies() {
    const Node& node = lowering_.graph().node(patch_);
    std::vector<StridedCopy> copies;
    const int64_t bytes = DTypeSize(node.outputs[0].dtype);
    for (size_t k = 1; k < node.inputs.size(); ++k) {
      const bool claimed = std::any_of(claim_.pieces.begin(), claim_.pieces.end(),
                                       [k](const StripPiece& piece) { return piece.operand == k; });
      if (claimed) continue;
      Place from = lowering_.Any(node.inputs[k]);
      if (from.layout.block_dim >= 0) from = lowering_.Plain(node.inputs[k]);
      Place to = parts_.to;
      const Shape& begin = node.attrs.BoxList("boxes")[k - 1].begin;
      for (size_t d = 0; d < begin.size(); ++d)
        to.offset += begin[d] * to.layout.strides[d] * bytes;
      copies.push_back(
          {from, to, lowering_.shape(node.inputs[k]), from.layout.strides, to.layout.strides});
      base_read_elsewhere_ = base_read_elsewhere_ || from.buffer == parts_.base.buffer;
      copied_.push_back(from);
    }
    if (!copies.empty()) parts_.copies = MakeCopyKernel(std::move(copies), bytes);
  }

  Lowering& lowering_;
  int32_t patch_;
  const StripClaim& claim_;
  PatchKernel::Parts parts_;
  std::vector<Place> copied_;
  std::vector<std::pair<std::pair<ValueId, std::vector<double>>, int>> weights_;
  bool base_read_elsewhere_ = false;
};

}  // namespace

const StripIsa* StripIsaHere() { return NativeKernelsHere(&StripAvx2, &StripAvx512); }

void LowerPatch(Lowering& lowering, int32_t patch, const StripClaim& claim) {
  StripBuilder(lowering, patch, claim).Emit();
}

}  // namespace mendel::cpu
