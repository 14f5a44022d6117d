#include "verifier/weights/large_weights.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace mendel {
namespace {

/// Names of parts begin so. Two weights of one name would be one weight: programs that have such
/// names already stay whole.
constexpr std::string_view kPartPrefix = "\x01 part ";

bool HasPartNames(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
    return IsConstant(node) && SymbolName(node).starts_with(kPartPrefix);
  });
}

bool IsLargeMatrix(const Node& node, int64_t most_elements) {
  if (!IsConstant(node)) return false;
  const TensorType& type = node.outputs[0];
  return IsFloat(type.dtype) && type.shape.size() == 2 && NumElements(type) > 2 * most_elements &&
         type.shape[0] > 1;
}

bool MultipliesBy(const Node& node, int32_t weight) {
  return node.op->name == "MatMul" && node.inputs[1].node == weight &&
         node.inputs[0].node != weight;
}

/// Do matrix products alone read the constant, itself or transposed?
bool IsReadByProducts(const Graph& graph, int32_t id) {
  if (graph.IsOutput(id)) return false;
  return std::all_of(graph.users(id).begin(), graph.users(id).end(), [&](int32_t user) {
    const Node& reader = graph.node(user);
    if (MultipliesBy(reader, id)) return true;
    if (reader.op->name != "Transpose" || graph.IsOutput(user)) return false;
    return std::all_of(graph.users(user).begin(), graph.users(user).end(),
                       [&](int32_t next) { return MultipliesBy(graph.node(next), user); });
  });
}

/// Types of the large matrices; `unsplittable` gets those that something else reads.
std::set<std::string> LargeTypes(const Graph& graph, int64_t most_elements,
                                 std::set<std::string>& unsplittable) {
  std::set<std::string> types;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (!IsLargeMatrix(node, most_elements)) continue;
    types.insert(TypeString(node.outputs[0]));
    if (!IsReadByProducts(graph, static_cast<int32_t>(i)))
      unsplittable.insert(TypeString(node.outputs[0]));
  }
  return types;
}

/// Rows [begin, end), sharing the bytes.
Tensor Rows(const Tensor& matrix, int64_t begin, int64_t end) {
  const TensorType type{matrix.dtype(), {end - begin, matrix.shape()[1]}};
  const int64_t row = matrix.shape()[1] * DTypeSize(matrix.dtype());
  return Tensor(
      type,
      matrix.bytes().subspan(static_cast<size_t>(begin * row), static_cast<size_t>(ByteSize(type))),
      std::make_shared<const Tensor>(matrix));
}

class Splitter {
 public:
  Splitter(const Graph& graph, const std::set<std::string>& types, int64_t most_elements)
      : graph_(graph),
        types_(types),
        most_elements_(most_elements),
        builder_(graph.name()),
        values_(graph.nodes().size()) {}

  absl::StatusOr<Graph> Run() {
    for (int32_t id : graph_.inputs()) {
      values_[static_cast<size_t>(id)] =
          builder_.Input(InputName(graph_.node(id)), graph_.node(id).outputs[0]).node;
    }
    for (size_t i = 0; i < graph_.nodes().size(); ++i)
      MENDEL_RETURN_IF_ERROR(CopyOrSplit(static_cast<int32_t>(i)));
    for (const GraphOutput& output : graph_.outputs())
      builder_.Output(output.name, ValueOf(output.value));
    return builder_.Build();
  }

 private:
  ValueId ValueOf(ValueId id) const { return {values_[static_cast<size_t>(id.node)], id.output}; }

  bool IsSplit(int32_t id) const {
    return IsConstant(graph_.node(id)) && types_.contains(TypeString(graph_.node(id).outputs[0]));
  }

  absl::Status CopyOrSplit(int32_t id) {
    const Node& node = graph_.node(id);
    if (IsInput(node)) return absl::OkStatus();
    int32_t& value = values_[static_cast<size_t>(id)];
    if (IsSplit(id)) {
      AddParts(id);
      return absl::OkStatus();
    }
    if (IsConstant(node)) {
      value = builder_.Constant(ConstantValue(node), SymbolName(node)).node;
      return absl::OkStatus();
    }
    if (node.op->name == "Transpose" && IsSplit(node.inputs[0].node)) return absl::OkStatus();
    if (node.op->name == "MatMul") {
      const Node& weight = graph_.node(node.inputs[1].node);
      const bool transposed = weight.op->name == "Transpose" && IsSplit(weight.inputs[0].node);
      if (transposed && weight.attrs.IntList("perm") == Ints{1, 0}) {
        return Assign(ByColumns(node, parts_.at(weight.inputs[0].node)), value);
      }
      if (transposed) return Assign(ByRows(node, weight.inputs[0].node), value);
      if (IsSplit(node.inputs[1].node)) return Assign(ByRows(node, node.inputs[1].node), value);
    }
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(ValueOf(input));
    MENDEL_ASSIGN_OR_RETURN(value, builder_.CopyNode(node, std::move(inputs)));
    return absl::OkStatus();
  }

  static absl::Status Assign(absl::StatusOr<ValueId> made, int32_t& value) {
    MENDEL_RETURN_IF_ERROR(made.status());
    value = made->node;
    return absl::OkStatus();
  }

  void AddParts(int32_t id) {
    const Node& node = graph_.node(id);
    const Tensor& matrix = ConstantValue(node);
    const int64_t rows = std::max<int64_t>(1, most_elements_ / matrix.shape()[1]);
    for (int64_t begin = 0; begin < matrix.shape()[0]; begin += rows) {
      const int64_t end = std::min(begin + rows, matrix.shape()[0]);
      const std::string& symbol = SymbolName(node);
      // The whole's type is part of it: symbols of one name and two types have nothing in common.
      const std::string name = symbol.empty() ? ""
                                              : Cat(kPartPrefix, begin, ":", end, " of ",
                                                    TypeString(matrix.type()), " ", symbol);
      parts_[id].push_back({begin, end, builder_.Constant(Rows(matrix, begin, end), name)});
    }
  }

  absl::StatusOr<ValueId> ByRows(const Node& node, int32_t weight) {
    return ProductByRows(builder_, ValueOf(node.inputs[0]), parts_.at(weight), node.name);
  }

  /// x w', w' the transpose of w: a part of w makes columns of the result.
  absl::StatusOr<ValueId> ByColumns(const Node& node, const std::vector<RowPart>& parts) {
    const ValueId x = ValueOf(node.inputs[0]);
    std::vector<ValueId> products;
    for (const RowPart& part : parts) {
      MENDEL_ASSIGN_OR_RETURN(const ValueId weight,
                              builder_.Add("Transpose", {part.weight}, {{"perm", Ints{1, 0}}}));
      MENDEL_ASSIGN_OR_RETURN(const ValueId product, builder_.Add("MatMul", {x, weight}));
      products.push_back(product);
    }
    const int64_t last = static_cast<int64_t>(node.outputs[0].shape.size()) - 1;
    return builder_.Add("Concat", std::move(products), {{"axis", last}}, node.name);
  }

  const Graph& graph_;
  const std::set<std::string>& types_;
  const int64_t most_elements_;
  GraphBuilder builder_;
  std::vector<int32_t> values_;  ///< nodes of the new graph; none for what parts stand for
  std::map<int32_t, std::vector<RowPart>> parts_;
};

}  // namespace

absl::StatusOr<ValueId> ProductByRows(GraphBuilder& builder, ValueId x,
                                      std::span<const RowPart> parts, const std::string& name) {
  if (parts.size() == 1) return builder.Add("MatMul", {x, parts[0].weight}, {}, name);
  const Shape shape = builder.type(x).shape;
  ValueId sum;
  for (const RowPart& part : parts) {
    Ints starts(shape.size(), 0);
    Ints ends = shape;
    starts.back() = part.begin;
    ends.back() = part.end;
    MENDEL_ASSIGN_OR_RETURN(
        const ValueId columns,
        builder.Add("Slice", {x},
                    {{"starts", starts}, {"ends", ends}, {"steps", Ints(shape.size(), 1)}}));
    MENDEL_ASSIGN_OR_RETURN(const ValueId product, builder.Add("MatMul", {columns, part.weight}));
    if (&part == &parts.front()) {
      sum = product;
      continue;
    }
    MENDEL_ASSIGN_OR_RETURN(
        sum, builder.Add("Add", {sum, product}, {}, &part == &parts.back() ? name : ""));
  }
  return sum;
}

absl::StatusOr<std::pair<Graph, Graph>> SplitLargeWeights(const Graph& a, const Graph& b,
                                                          int64_t most_elements) {
  std::set<std::string> unsplittable;
  std::set<std::string> types = LargeTypes(a, most_elements, unsplittable);
  types.merge(LargeTypes(b, most_elements, unsplittable));
  for (const std::string& type : unsplittable) types.erase(type);
  if (types.empty() || HasPartNames(a) || HasPartNames(b)) return std::pair(a, b);
  MENDEL_ASSIGN_OR_RETURN(Graph split_a, Splitter(a, types, most_elements).Run());
  MENDEL_ASSIGN_OR_RETURN(Graph split_b, Splitter(b, types, most_elements).Run());
  return std::pair(std::move(split_a), std::move(split_b));
}

}  // namespace mendel
