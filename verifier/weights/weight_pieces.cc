#include "verifier/weights/weight_pieces.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "verifier/weights/large_weights.h"
#include "verifier/weights/weight_views.h"

namespace mendel {
namespace {

/// Names of cells begin so. Programs that have such names already stay as they are: two weights of
/// one name would be one weight.
constexpr std::string_view kPiecePrefix = "piece ";

bool HasPieceNames(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
    return IsConstant(node) && SymbolName(node).starts_with(kPiecePrefix);
  });
}

/// Bytes of a box, run after run.
std::vector<std::byte> CopiedBytes(const Tensor& whole, const Box& box) {
  const size_t size = static_cast<size_t>(DTypeSize(whole.dtype()));
  const size_t rank = box.begin.size();
  const size_t run = static_cast<size_t>(box.end[rank - 1] - box.begin[rank - 1]) * size;
  std::vector<std::byte> bytes(static_cast<size_t>(box.Volume()) * size);
  Shape at = box.begin;
  for (size_t filled = 0; filled < bytes.size(); filled += run) {
    int64_t flat = 0;
    for (size_t d = 0; d < rank; ++d) flat = flat * whole.shape()[d] + at[d];
    std::memcpy(bytes.data() + filled, whole.bytes().data() + static_cast<size_t>(flat) * size,
                run);
    for (size_t d = rank - 1; d-- > 0;) {
      if (++at[d] < box.end[d]) break;
      at[d] = box.begin[d];
    }
  }
  return bytes;
}

/// Is the box one run of elements?
bool IsRun(const Shape& shape, const Box& box) {
  size_t d = 0;
  while (d < shape.size() && box.end[d] - box.begin[d] == 1) ++d;
  for (++d; d < shape.size(); ++d) {
    if (box.begin[d] != 0 || box.end[d] != shape[d]) return false;
  }
  return true;
}

/// Cells of both graphs' constants; equal ones that had to be copied are held once.
class Cells {
 public:
  Tensor Make(const Tensor& whole, const Box& box) {
    TensorType type{whole.dtype(), box.Extents()};
    if (IsRun(whole.shape(), box)) {
      int64_t flat = 0;
      for (size_t d = 0; d < box.begin.size(); ++d) flat = flat * whole.shape()[d] + box.begin[d];
      const auto part = whole.bytes().subspan(static_cast<size_t>(flat * DTypeSize(type.dtype)),
                                              static_cast<size_t>(ByteSize(type)));
      return Tensor(std::move(type), part, std::make_shared<const Tensor>(whole));
    }
    Tensor copy(std::move(type), CopiedBytes(whole, box));
    return copies_.try_emplace(copy.ContentHash(), copy).first->second;
  }

 private:
  std::map<std::string, Tensor> copies_;
};

class Cutting {
 public:
  Cutting(const Graph& graph, const WeightViews& views,
          const std::map<std::string, CutPositions>& cuts, Cells& cells)
      : graph_(graph),
        views_(views),
        cuts_(cuts),
        cells_(cells),
        builder_(graph.name()),
        values_(graph.nodes().size(), -1) {}

  absl::StatusOr<Graph> Run() {
    for (int32_t id : graph_.inputs()) {
      values_[static_cast<size_t>(id)] =
          builder_.Input(InputName(graph_.node(id)), graph_.node(id).outputs[0]).node;
    }
    for (size_t i = 0; i < graph_.nodes().size(); ++i)
      MENDEL_RETURN_IF_ERROR(Add(static_cast<int32_t>(i)));
    for (const GraphOutput& output : graph_.outputs()) {
      MENDEL_ASSIGN_OR_RETURN(const ValueId value, ValueOf(output.value));
      builder_.Output(output.name, value);
    }
    return builder_.Build();
  }

 private:
  /// The cuts of a value that is a view of a constant that is cut; else null.
  const CutPositions* CutsOfValue(ValueId value) const {
    const WeightView* view = views_.Find(value);
    if (view == nullptr) return nullptr;
    const auto cuts = cuts_.find(TypeString(graph_.node(view->constant).outputs[0]));
    return cuts == cuts_.end() ? nullptr : &cuts->second;
  }

  absl::Status Add(int32_t id) {
    const Node& node = graph_.node(id);
    if (IsInput(node) || CutsOfValue({id, 0}) != nullptr) return absl::OkStatus();
    int32_t& value = values_[static_cast<size_t>(id)];
    if (IsConstant(node)) {
      value = builder_.Constant(ConstantValue(node), SymbolName(node)).node;
      return absl::OkStatus();
    }
    if (node.op->name == "MatMul" && CutsOfValue(node.inputs[1]) != nullptr) {
      MENDEL_ASSIGN_OR_RETURN(const ValueId product, Product(node));
      value = product.node;
      return absl::OkStatus();
    }
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) {
      MENDEL_ASSIGN_OR_RETURN(inputs.emplace_back(), ValueOf(input));
    }
    MENDEL_ASSIGN_OR_RETURN(value, builder_.CopyNode(node, std::move(inputs)));
    return absl::OkStatus();
  }

  /// The replacement of a value that is no view, or a view of one cell.
  absl::StatusOr<ValueId> ValueOf(ValueId id) {
    if (CutsOfValue(id) == nullptr)
      return ValueId{values_[static_cast<size_t>(id.node)], id.output};
    const WeightView& view = *views_.Find(id);
    return CellOf(view, view.box);
  }

  absl::StatusOr<ValueId> CellOf(const WeightView& view, const Box& box) {
    const Node& node = graph_.node(view.constant);
    const auto known = made_.find({view.constant, box});
    const ValueId cell =
        known != made_.end()
            ? known->second
            : builder_.Constant(cells_.Make(ConstantValue(node), box), Name(node, box));
    made_[{view.constant, box}] = cell;
    if (std::is_sorted(view.perm.begin(), view.perm.end())) return cell;
    return builder_.Add("Transpose", {cell}, {{"perm", view.perm}});
  }

  /// The whole's type is part of it: symbols of one name and two types have nothing in common.
  static std::string Name(const Node& node, const Box& box) {
    if (SymbolName(node).empty()) return "";
    return Cat(kPiecePrefix, BoxString(box), " of ", TypeString(node.outputs[0]), " ",
               SymbolName(node));
  }

  /// x w: for each interval of w's columns the sum over those of its rows, side by side.
  absl::StatusOr<ValueId> Product(const Node& node) {
    const WeightView& view = *views_.Find(node.inputs[1]);
    const CutPositions& cuts = *CutsOfValue(node.inputs[1]);
    MENDEL_ASSIGN_OR_RETURN(const ValueId x, ValueOf(node.inputs[0]));
    const size_t row = static_cast<size_t>(view.perm[0]);
    const size_t column = static_cast<size_t>(view.perm[1]);
    const auto columns = IntervalsOf(cuts[column], view.box.begin[column], view.box.end[column]);
    std::vector<ValueId> products;
    for (const auto& [begin, end] : columns) {
      std::vector<RowPart> parts;
      for (const auto& [first, last] :
           IntervalsOf(cuts[row], view.box.begin[row], view.box.end[row])) {
        Box box = view.box;
        box.begin[column] = begin;
        box.end[column] = end;
        box.begin[row] = first;
        box.end[row] = last;
        MENDEL_ASSIGN_OR_RETURN(const ValueId cell, CellOf(view, box));
        parts.push_back({first - view.box.begin[row], last - view.box.begin[row], cell});
      }
      MENDEL_ASSIGN_OR_RETURN(
          products.emplace_back(),
          ProductByRows(builder_, x, parts, columns.size() == 1 ? node.name : ""));
    }
    if (products.size() == 1) return products[0];
    const int64_t last = static_cast<int64_t>(node.outputs[0].shape.size()) - 1;
    return builder_.Add("Concat", std::move(products), {{"axis", last}}, node.name);
  }

  const Graph& graph_;
  const WeightViews& views_;
  const std::map<std::string, CutPositions>& cuts_;
  Cells& cells_;
  GraphBuilder builder_;
  std::vector<int32_t> values_;  ///< nodes of the new graph; none for views that are cut
  std::map<std::pair<int32_t, Box>, ValueId> made_;
};

}  // namespace

absl::StatusOr<std::pair<Graph, Graph>> CutLargeWeights(const Graph& a, const Graph& b,
                                                        int64_t least_elements) {
  const WeightViews of_a(a, least_elements);
  const WeightViews of_b(b, least_elements);
  const std::map<std::string, CutPositions> cuts = CutsOf(a, of_a, b, of_b);
  if (cuts.empty() || HasPieceNames(a) || HasPieceNames(b)) return std::pair(a, b);
  Cells cells;
  MENDEL_ASSIGN_OR_RETURN(Graph cut_a, Cutting(a, of_a, cuts, cells).Run());
  MENDEL_ASSIGN_OR_RETURN(Graph cut_b, Cutting(b, of_b, cuts, cells).Run());
  return std::pair(std::move(cut_a), std::move(cut_b));
}

}  // namespace mendel
