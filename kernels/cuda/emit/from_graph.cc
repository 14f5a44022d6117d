#include "kernels/cuda/emit/from_graph.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "graph/rewrite.h"
#include "graph/window.h"
#include "kernels/cuda/emit/divided_sum.h"

namespace mendel::cuda {
namespace {

using Kind = EpilogueStep::Kind;

/// A value seen through slices: element i of it is element begin + i of `root`.
struct Sliced {
  ValueId root;
  Shape begin;
};

/// The computation of one box: a convolution's box and the steps after it.
struct Piece {
  int32_t conv = -1;
  Box box;  // of the convolution's output
  std::vector<EpilogueStep> steps;
  ValueId bias;
  int64_t bias_begin = 0;
  std::vector<Sliced> operands;  // begin: of the piece's own box
};

bool IsUnitSlice(const Node& node) {
  if (node.op->name != "Slice") return false;
  const Ints& steps = node.attrs.IntList("steps");
  return std::all_of(steps.begin(), steps.end(), [](int64_t step) { return step == 1; });
}

std::optional<EpilogueStep> ActivationOf(const Node& node) {
  const std::string_view op = node.op->name;
  if (op == "Relu") return EpilogueStep{Kind::kRelu};
  if (op == "LeakyRelu") return EpilogueStep{Kind::kLeakyRelu, node.attrs.Float("alpha")};
  if (op == "Clip")
    return EpilogueStep{Kind::kClip, node.attrs.Float("min"), node.attrs.Float("max")};
  if (op == "Sigmoid") return EpilogueStep{Kind::kSigmoid};
  if (op == "Tanh") return EpilogueStep{Kind::kTanh};
  return std::nullopt;
}

Box Shifted(Box box, const Ints& by) {
  for (size_t d = 0; d < by.size(); ++d) {
    box.begin[d] += by[d];
    box.end[d] += by[d];
  }
  return box;
}

std::string NameOf(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  return Cat(node.op->name, " ", node.name.empty() ? Cat("%", id) : node.name);
}

/// Nodes that only pieces of Patches need. Pieces that share some each compute them on their own,
/// into their own scratch buffer, since boxes are small. A value in memory would be a launch of its
/// own and one more for every such value that is read.
std::vector<bool> PieceOnly(const Graph& graph) {
  std::vector<bool> only(graph.nodes().size());
  for (int32_t id = static_cast<int32_t>(only.size()); id-- > 0;) {
    if (IsInput(graph.node(id)) || IsConstant(graph.node(id)) || graph.IsOutput(id)) continue;
    const std::vector<int32_t>& users = graph.users(id);
    only[static_cast<size_t>(id)] =
        !users.empty() && std::all_of(users.begin(), users.end(), [&](int32_t user) {
          const Node& reader = graph.node(user);
          return only[static_cast<size_t>(user)] ||
                 (reader.op->name == "Patch" && reader.inputs[0].node != id);
        });
  }
  return only;
}

class Collector {
 public:
  Collector(const Graph& graph, int32_t patch, Layout layout)
      : graph_(graph),
        patch_(patch),
        layout_(layout),
        constant_(ConstantExpressions(graph)),
        only_(PieceOnly(graph)) {}

  absl::StatusOr<PatchKernels> Collect() {
    const Node& node = graph_.node(patch_);
    const std::vector<Box>& boxes = node.attrs.BoxList("boxes");
    const ValueId base = node.inputs[0];
    for (size_t k = 0; k < boxes.size(); ++k) {
      const View y = ViewAt(graph_.type(base).shape, layout_, boxes[k].begin);
      MENDEL_RETURN_IF_ERROR(
          AddPiece(node.inputs[k + 1], {false, base}, y, BoxString(boxes[k])).status());
    }
    int number = 0;
    for (auto& [key, kernel] : kernels_) {
      // An entry's old name, "correct_" in version 0.2: plans store the texts by their hash.
      kernel.correction.name = Cat("mend_", patch_, "_", number++);
      const int parts = PartsOf(kernel.correction);
      patch_kernels_.kernels.push_back(std::move(kernel));
      DivideSums(patch_kernels_.kernels.size() - 1, parts, patch_kernels_);
    }
    return std::move(patch_kernels_);
  }

 private:
  /// The properties that all boxes of one launch share. The level comes first, so that kernels come
  /// in the order of their launches.
  using Key = std::tuple<int, Operand, Operand, ValueId, ValueId, std::vector<Operand>, Ints,
                         std::vector<std::tuple<Kind, double, double>>>;
  struct Placed {  // a value in the scratch buffer
    int level = 0;
    int64_t base = 0;
  };

  Sliced Through(ValueId value) const {
    Sliced sliced{value, Shape(graph_.type(value).shape.size(), 0)};
    while (IsUnitSlice(graph_.node(sliced.root.node))) {
      const Node& node = graph_.node(sliced.root.node);
      for (size_t d = 0; d < sliced.begin.size(); ++d)
        sliced.begin[d] += node.attrs.IntList("starts")[d];
      sliced.root = node.inputs[0];
    }
    return sliced;
  }

  /// True where `value` is a convolution under activations, additions and slices for pieces alone.
  bool LeadsToConv(ValueId value) const {
    const Node& node = graph_.node(value.node);
    if (!only_[static_cast<size_t>(value.node)]) return false;
    if (node.op->name == "Conv") return true;
    if (IsUnitSlice(node) || ActivationOf(node).has_value()) return LeadsToConv(node.inputs[0]);
    return node.op->name == "Add" && (LeadsToConv(node.inputs[0]) || LeadsToConv(node.inputs[1]));
  }

  /// Adds the nodes before and at `value`, of which `box` is needed.
  absl::Status Trace(ValueId value, const Box& box, Piece& piece) const {
    const Node& node = graph_.node(value.node);
    if (IsUnitSlice(node))
      return Trace(node.inputs[0], Shifted(box, node.attrs.IntList("starts")), piece);
    if (const auto activation = ActivationOf(node)) {
      MENDEL_RETURN_IF_ERROR(Trace(node.inputs[0], box, piece));
      piece.steps.push_back(*activation);
      return absl::OkStatus();
    }
    if (node.op->name == "Add") return TraceAdd(value.node, box, piece);
    if (node.op->name != "Conv")
      return Unsupported("no kernel computes ", NameOf(graph_, value.node), " in a correction");
    piece.conv = value.node;
    piece.box = box;
    if (node.inputs.size() < 3) return absl::OkStatus();
    const Sliced bias = Through(node.inputs[2]);
    return AddBias(bias.root, bias.begin[0] + box.begin[1], piece);
  }

  absl::Status TraceAdd(int32_t id, const Box& box, Piece& piece) const {
    const Node& node = graph_.node(id);
    const size_t main = LeadsToConv(node.inputs[0]) ? 0 : 1;
    const ValueId other = node.inputs[1 - main];
    const Shape& shape = node.outputs[0].shape;
    const Shape& addend = graph_.type(other).shape;
    if (graph_.type(node.inputs[main]).shape != shape)
      return Unsupported(NameOf(graph_, id), ": the addition broadcasts its sum");
    MENDEL_RETURN_IF_ERROR(Trace(node.inputs[main], box, piece));
    if (addend == shape) {
      Sliced operand = Through(other);
      for (size_t d = 0; d < shape.size(); ++d) operand.begin[d] += box.begin[d];
      piece.operands.push_back(std::move(operand));
      piece.steps.push_back({Kind::kAdd});
      return absl::OkStatus();
    }
    const bool per_channel =
        addend.size() + 1 >= shape.size() && addend[addend.size() + 1 - shape.size()] == shape[1] &&
        NumElements(addend) == shape[1] && constant_[static_cast<size_t>(other.node)];
    if (!per_channel)
      return Unsupported(NameOf(graph_, id), ": adds ", ShapeString(addend), " to ",
                         ShapeString(shape));
    return AddBias(other, box.begin[1], piece);
  }

  absl::Status AddBias(ValueId bias, int64_t begin, Piece& piece) const {
    if (piece.bias.node >= 0) return Unsupported("a correction with two biases");
    piece.bias = bias;
    piece.bias_begin = begin;
    piece.steps.push_back({Kind::kBias});
    return absl::OkStatus();
  }

  /// True where `value` is in memory, or converts a value in memory (as a call has left it, in its
  /// own form). The conversion is made once, for all pieces, even where nothing else needs it.
  bool IsInMemory(ValueId value) const {
    if (!only_[static_cast<size_t>(value.node)]) return true;
    const Node& node = graph_.node(value.node);
    return (node.op->name == "Cast" || node.op->name == "Transpose") && IsInMemory(node.inputs[0]);
  }

  /// A tensor as kernels see it; a value between convolutions is computed into scratch first.
  absl::StatusOr<std::pair<Operand, View>> Locate(const Sliced& sliced, int& level) {
    const Shape& shape = graph_.type(sliced.root).shape;
    View view = ViewAt(shape, layout_, sliced.begin);
    if (IsInMemory(sliced.root)) return std::pair<Operand, View>{{false, sliced.root}, view};
    auto placed = placed_.find(sliced.root);
    if (placed == placed_.end()) {
      Placed place{0, patch_kernels_.scratch_elements};
      // Pieces begin where vectors may: at multiples of eight elements.
      patch_kernels_.scratch_elements += (NumElements(shape) + 7) / 8 * 8;
      View whole = ViewAt(shape, layout_, Shape(shape.size(), 0));
      whole.base = place.base;
      MENDEL_ASSIGN_OR_RETURN(place.level, AddPiece(sliced.root, {true, {}}, whole,
                                                    Cat("scratch ", ShapeString(shape))));
      placed = placed_.emplace(sliced.root, place).first;
    }
    level = std::max(level, placed->second.level + 1);
    view.base += placed->second.base;
    return std::pair<Operand, View>{{true, {}}, view};
  }

  /// Adds the box that computes `value` into `y` to the kernel it belongs to; returns the kernel's
  /// level.
  absl::StatusOr<int> AddPiece(ValueId value, Operand y, const View& y_view,
                               const std::string& description) {
    Piece piece;
    MENDEL_RETURN_IF_ERROR(Trace(value, Box::Whole(graph_.type(value).shape), piece));
    const Node& conv = graph_.node(piece.conv);
    PatchKernel kernel;
    CorrectionBox box;
    int level = 0;
    MENDEL_RETURN_IF_ERROR(PlaceConv(piece, kernel, box, level));
    for (const Sliced& operand : piece.operands) {
      MENDEL_ASSIGN_OR_RETURN(auto located, Locate(operand, level));
      kernel.operands.push_back(located.first);
      box.operands.push_back(std::move(located.second));
    }
    kernel.bias = piece.bias;
    kernel.y = y;
    box.y = y_view;
    box.bias_begin = piece.bias_begin;
    Correction& correction = kernel.correction;
    correction.mutant = NameOf(graph_, patch_);
    correction.dtype = conv.outputs[0].dtype;
    correction.layout = layout_;
    correction.strides = conv.attrs.IntList("strides");
    correction.dilations = conv.attrs.IntList("dilations");
    correction.epilogue = piece.steps;
    Ints geometry = correction.strides;
    geometry.insert(geometry.end(), correction.dilations.begin(), correction.dilations.end());
    std::vector<std::tuple<Kind, double, double>> steps;
    for (const EpilogueStep& step : piece.steps) steps.emplace_back(step.kind, step.low, step.high);
    const Key key{level,       kernel.x,        kernel.y, kernel.w,
                  kernel.bias, kernel.operands, geometry, steps};
    PatchKernel& shared = kernels_.try_emplace(key, std::move(kernel)).first->second;
    const bool part = TapsOf(shared.correction, box) != Box::Whole(shared.correction.kernel);
    const std::string taps = part ? Cat(", taps ", BoxString(box.taps)) : "";
    shared.correction.reported.push_back(
        Cat(description, "  from ", NameOf(graph_, piece.conv), taps));
    shared.correction.boxes.push_back(std::move(box));
    return level;
  }

  /// Input, weights and geometry of a piece's convolution.
  absl::Status PlaceConv(const Piece& piece, PatchKernel& kernel, CorrectionBox& box, int& level) {
    const Node& conv = graph_.node(piece.conv);
    const Shape& x = graph_.type(conv.inputs[0]).shape;
    const Shape& w = graph_.type(conv.inputs[1]).shape;
    const int64_t group = conv.attrs.Int("group");
    const int64_t per_group = w[0] / group;
    const int64_t first_group = piece.box.begin[1] / per_group;
    const bool whole = piece.box.begin[1] % per_group == 0 && piece.box.end[1] % per_group == 0;
    box.extents = piece.box.Extents();
    box.groups = whole ? box.extents[1] / per_group : 1;
    if (!whole && (piece.box.end[1] - 1) / per_group != first_group) {
      return Unsupported(NameOf(graph_, piece.conv), ": a box cuts several groups");
    }
    Sliced input = Through(conv.inputs[0]);
    input.begin[0] += piece.box.begin[0];
    input.begin[1] += first_group * w[1];
    MENDEL_ASSIGN_OR_RETURN(auto located, Locate(input, level));
    kernel.x = located.first;
    box.x = std::move(located.second);
    const std::vector<Window> windows =
        WindowsOf({x.begin() + 2, x.end()}, {w.begin() + 2, w.end()}, conv.attrs);
    for (size_t d = 0; d < windows.size(); ++d) {
      box.x_extents.push_back(x[d + 2]);
      box.x_origin.push_back(windows[d].Position(piece.box.begin[d + 2], 0));
    }
    Sliced weights = Through(conv.inputs[1]);
    if (graph_.type(weights.root).shape[1] != w[1]) weights = {conv.inputs[1], Shape(w.size(), 0)};
    if (!constant_[static_cast<size_t>(weights.root.node)]) {
      return Unsupported(NameOf(graph_, piece.conv), ": the weights are computed at run time");
    }
    const Shape& stored = graph_.type(weights.root).shape;
    kernel.w = weights.root;
    kernel.correction.channels = w[1];
    kernel.correction.out_channels = stored[0];
    kernel.correction.kernel = {stored.begin() + 2, stored.end()};
    // Differences convolve with a part of the kernel, and each box has its own part.
    box.taps = {{weights.begin.begin() + 2, weights.begin.end()}, {}};
    for (size_t d = 2; d < w.size(); ++d) box.taps.end.push_back(weights.begin[d] + w[d]);
    box.w_begin = weights.begin[0] + piece.box.begin[1];
    return absl::OkStatus();
  }

  const Graph& graph_;
  int32_t patch_;
  Layout layout_;
  std::vector<bool> constant_;
  std::vector<bool> only_;
  std::map<Key, PatchKernel> kernels_;
  std::map<ValueId, Placed> placed_;
  PatchKernels patch_kernels_;
};

}  // namespace

absl::StatusOr<PatchKernels> PatchKernelsOf(const Graph& graph, int32_t patch, Layout layout) {
  if (graph.node(patch).op->name != "Patch")
    return InvalidInput(NameOf(graph, patch), " is no Patch");
  return Collector(graph, patch, layout).Collect();
}

}  // namespace mendel::cuda
