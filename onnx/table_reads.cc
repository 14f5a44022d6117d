#include <string_view>

#include "base/status.h"
#include "onnx/size_relations.h"

namespace mendel {
namespace {

/// A longer list of positions is taken for a weight and is not followed.
constexpr int64_t kMostPositions = int64_t{1} << 22;

}  // namespace

void AddTableReads(const GraphBuilder& builder, int32_t id, const std::string& name,
                   const std::function<const Tensor*(ValueId)>& constant, TableReads& reads) {
  const Node& node = builder.node(id);
  const std::string_view op = node.op->name;
  const bool nd = op == "GatherND", elements = op == "GatherElements";
  const bool gathers = op == "Gather" || nd || elements;
  if (!gathers && op != "Slice") return;
  const auto small = [&](ValueId value) {
    return NumElements(builder.type(value)) <= kMostPositions ? constant(value) : nullptr;
  };
  const bool stored = IsConstant(builder.node(node.inputs[0].node));
  const Tensor* table =
      stored ? &ConstantValue(builder.node(node.inputs[0].node)) : small(node.inputs[0]);
  if (table == nullptr || table->shape().empty()) return;
  const Shape& shape = table->shape();
  const auto rows_of = [&](int64_t axis) -> std::vector<bool>& {
    TableRead& read = reads[Cat(name, " rows of axis ", axis)];
    read.table = *table;
    read.rows.resize(static_cast<size_t>(shape[static_cast<size_t>(axis)]), false);
    return read.rows;
  };
  if (gathers) {
    // The first coordinate of GatherND stands for its row.
    const int64_t axis = nd ? node.attrs.Int("batch_dims") : node.attrs.Int("axis");
    const Tensor* indices = small(node.inputs[1]);
    if (indices == nullptr) return;
    const int64_t step = nd ? indices->shape().back() : 1;
    std::vector<bool>& rows = rows_of(axis);
    const int64_t extent = shape[static_cast<size_t>(axis)];
    for (int64_t i = 0; i < indices->size(); i += step) {
      const int64_t index = indices->IntAt(i), row = index < 0 ? index + extent : index;
      if (row >= 0 && row < extent) rows[static_cast<size_t>(row)] = true;
    }
    return;
  }
  const Ints starts = node.attrs.IntList("starts"), steps = node.attrs.IntList("steps");
  const Shape& cut = node.outputs[0].shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<bool>& rows = rows_of(static_cast<int64_t>(d));
    for (int64_t i = 0; i < cut[d]; ++i) rows[static_cast<size_t>(starts[d] + i * steps[d])] = true;
  }
}

}  // namespace mendel
