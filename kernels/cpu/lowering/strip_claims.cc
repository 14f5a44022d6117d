#include "kernels/cpu/lowering/strip_claims.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "kernels/cpu/kernels/strip.h"

namespace mendel::cpu {
namespace {

/// Follows slices without reversed dimensions; passes are appended to `slices`.
CutValue Uncut(const Graph& graph, ValueId value, std::vector<int32_t>& slices) {
  const size_t rank = graph.type(value).shape.size();
  CutValue cut{value, Shape(rank, 0), Shape(rank, 1)};
  for (;;) {
    const Node& node = graph.node(cut.root.node);
    if (node.op->name != "Slice") return cut;
    const Ints& starts = node.attrs.IntList("starts");
    const Ints& steps = node.attrs.IntList("steps");
    if (starts.size() != rank ||
        std::any_of(steps.begin(), steps.end(), [](int64_t step) { return step < 1; }))
      return cut;
    slices.push_back(cut.root.node);
    for (size_t d = 0; d < rank; ++d) {
      cut.begin[d] = starts[d] + cut.begin[d] * steps[d];
      cut.step[d] *= steps[d];
    }
    cut.root = node.inputs[0];
  }
}

bool IsUnitStep(const CutValue& cut) {
  return std::all_of(cut.step.begin(), cut.step.end(), [](int64_t step) { return step == 1; });
}

/// Claims of one Patch.
class Claimer {
 public:
  Claimer(Lowering& lowering, const std::vector<std::optional<Group>>& groups, int32_t patch)
      : lowering_(lowering), graph_(lowering.graph()), groups_(groups), patch_(patch) {}

  StripClaim Find(std::set<int32_t>& taken) {
    const Node& node = graph_.node(patch_);
    for (size_t k = 1; k < node.inputs.size(); ++k) {
      StripPiece piece;
      piece.operand = k;
      std::string reason = TryPiece(node.inputs[k], piece);
      if (reason.empty() && !claim_.pieces.empty()) reason = Differs(claim_.pieces.front(), piece);
      if (reason.empty()) {
        claim_.pieces.push_back(std::move(piece));
      } else {
        Decline(k, reason);
      }
    }
    DropShared();
    for (const StripPiece& piece : claim_.pieces)
      taken.insert(piece.nodes.begin(), piece.nodes.end());
    TakeSlices(taken);
    return std::move(claim_);
  }

 private:
  void Decline(size_t operand, const std::string& reason) {
    if (claim_.declined.empty()) claim_.declined = Cat("box ", operand - 1, ": ", reason);
  }

  const Group* GroupOf(ValueId value) const {
    const std::optional<Group>& group = groups_[static_cast<size_t>(value.node)];
    if (!group.has_value() || !group->contraction || group->integer != nullptr ||
        graph_.node(group->nodes[0]).op->name != "Conv")
      return nullptr;
    return &*group;
  }

  std::string TryPiece(ValueId value, StripPiece& piece) {
    if (StripIsaHere() == nullptr) return "the machine has neither AVX2 nor AVX-512";
    std::vector<int32_t> cuts;
    const CutValue result = Uncut(graph_, value, cuts);
    const Group* group = GroupOf(result.root);
    if (group == nullptr)
      return Cat(graph_.node(result.root.node).op->name, " is not a convolution");
    if (!IsUnitStep(result)) return "every n-th output of a convolution";
    const Shape& whole = graph_.type(result.root).shape;
    if (whole.size() > 5) return "more than three spatial dimensions";
    if (result.begin[1] != 0 || graph_.type(value).shape[1] != whole[1])
      return "some channels of a convolution";
    piece.begin = result.begin;
    piece.nodes = cuts;
    const std::string reason = AddTerms(*group, piece);
    if (!reason.empty() || !piece.residual.has_value()) return reason;
    const Node& patch = graph_.node(patch_);
    const Box& box = patch.attrs.BoxList("boxes")[piece.operand - 1];
    const bool elsewhere = piece.residual->begin != box.begin || !IsUnitStep(*piece.residual);
    return piece.residual->root == patch.inputs[0] && elsewhere
               ? "it adds another part of what is patched"
               : "";
  }

  /// Adds the group's term to the piece and, where the group sums other convolutions, their terms.
  std::string AddTerms(const Group& last, StripPiece& piece) {
    const Group* group = &last;
    for (bool first = true; group != nullptr; first = false) {
      const Node& conv = graph_.node(group->nodes[0]);
      for (size_t k = 1; k < conv.inputs.size(); ++k) {
        if (!lowering_.folded().IsConstant(conv.inputs[k]))
          return "weights that are computed at run time";
      }
      const std::optional<Epilogue> epilogue = MakeEpilogue(
          lowering_, *group, group->post_ops.size(), conv.outputs[0].shape[1], Kernels::kNative);
      const std::optional<NativePostOps> post_ops =
          epilogue.has_value() ? NativePostOpsOf(*epilogue) : std::nullopt;
      if (!post_ops.has_value())
        return "operations after the convolution that the strip kernels do not know";
      if (first) {
        piece.post_ops = *post_ops;
      } else if (post_ops->epilogue.activation != WinogradEpilogue::Activation::kNone ||
                 !SameGeometry(piece, conv)) {
        return {};  // stays the residual that it is
      }
      piece.terms.push_back(
          {group->nodes[0], Uncut(graph_, conv.inputs[0], slices_), epilogue->scale});
      piece.nodes.insert(piece.nodes.end(), group->nodes.begin(), group->nodes.end());
      if (piece.bias.empty()) piece.bias.assign(epilogue->bias.size(), 0.0);
      for (size_t c = 0; c < epilogue->bias.size(); ++c) piece.bias[c] += epilogue->bias[c];
      if (!epilogue->residual.has_value()) {
        piece.residual.reset();
        return {};
      }
      piece.residual = Uncut(graph_, *epilogue->residual, slices_);
      for (size_t d = 0; d < piece.begin.size(); ++d)
        piece.residual->begin[d] += piece.begin[d] * piece.residual->step[d];
      const bool sums =
          !piece.post_ops.epilogue.residual_last && piece.residual->root == *epilogue->residual;
      group = sums && graph_.users(piece.residual->root.node).size() == 1
                  ? GroupOf(piece.residual->root)
                  : nullptr;
    }
    return {};
  }

  bool SameGeometry(const StripPiece& piece, const Node& conv) const {
    const Node& other = graph_.node(piece.terms[0].conv);
    return other.outputs[0].shape == conv.outputs[0].shape &&
           other.attrs.Int("group") == conv.attrs.Int("group");
  }

  /// All boxes of a launch share bias and activation.
  std::string Differs(const StripPiece& a, const StripPiece& b) const {
    const Node& f = graph_.node(a.terms[0].conv);
    const Node& g = graph_.node(b.terms[0].conv);
    const bool same = f.outputs[0].shape[1] == g.outputs[0].shape[1] &&
                      f.attrs.Int("group") == g.attrs.Int("group");
    const auto numbers = [](const StripPiece& p) { return std::pair(p.bias.empty(), p.bias); };
    const auto activation = [](const NativePostOps& p) {
      return std::tuple(p.epilogue.activation, p.epilogue.alpha, p.epilogue.beta,
                        p.epilogue.residual_last, p.call);
    };
    if (!same || numbers(a) != numbers(b) || activation(a.post_ops) != activation(b.post_ops))
      return "another bias or activation";
    return {};
  }

  /// Pieces that something else reads are computed on their own.
  void DropShared() {
    for (bool changed = true; changed;) {
      changed = false;
      std::set<int32_t> own = {patch_};
      for (const StripPiece& piece : claim_.pieces)
        own.insert(piece.nodes.begin(), piece.nodes.end());
      for (size_t k = 0; k < claim_.pieces.size() && !changed; ++k) {
        for (int32_t node : claim_.pieces[k].nodes) {
          const std::vector<int32_t>& users = graph_.users(node);
          const bool inside = std::all_of(users.begin(), users.end(),
                                          [&](int32_t user) { return own.count(user) != 0; });
          if (inside && !graph_.IsOutput(node)) continue;
          Decline(claim_.pieces[k].operand, "something else reads it");
          claim_.pieces.erase(claim_.pieces.begin() + static_cast<int64_t>(k));
          changed = true;
          break;
        }
      }
    }
  }

  /// Slices that only claimed nodes read are read through.
  void TakeSlices(std::set<int32_t>& taken) const {
    for (int32_t slice : slices_) {
      const std::vector<int32_t>& users = graph_.users(slice);
      const bool inside = std::all_of(users.begin(), users.end(),
                                      [&](int32_t user) { return taken.count(user) != 0; });
      if (inside && !graph_.IsOutput(slice)) taken.insert(slice);
    }
  }

  Lowering& lowering_;
  const Graph& graph_;
  const std::vector<std::optional<Group>>& groups_;
  int32_t patch_;
  StripClaim claim_;
  std::vector<int32_t> slices_;  ///< read by terms, the outermost last
};

}  // namespace

StripClaims FindStripClaims(Lowering& lowering, const std::vector<std::optional<Group>>& groups) {
  StripClaims claims;
  const Graph& graph = lowering.graph();
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const int32_t id = static_cast<int32_t>(i);
    const Node& node = graph.node(id);
    if (node.op->name != "Patch" || lowering.folded().IsConstant({id, 0})) continue;
    if (node.outputs[0].dtype != DType::kF32) {
      claims.by_patch[id].declined = "not f32";
      continue;
    }
    claims.by_patch[id] = Claimer(lowering, groups, id).Find(claims.nodes);
  }
  return claims;
}

}  // namespace mendel::cpu
