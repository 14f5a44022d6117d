#include <algorithm>

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
  const bool gathers = node.op->name == "Gather";
  if ((!gathers && node.op->name != "Slice") || !IsConstant(builder.node(node.inputs[0].node)))
    return;
  const Tensor& table = ConstantValue(builder.node(node.inputs[0].node));
  const Shape& shape = table.shape();
  const auto rows_of = [&](int64_t axis) -> std::vector<bool>& {
    TableRead& read = reads[Cat(name, " rows of axis ", axis)];
    read.table = table;
    read.rows.resize(static_cast<size_t>(shape[static_cast<size_t>(axis)]), false);
    return read.rows;
  };
  if (gathers) {
    const int64_t axis = node.attrs.Int("axis");
    const Tensor* indices =

        NumElements(builder.type(node.inputs[1])) <= kMostPositions ? constant(node.inputs[1])
                                                                    : nullptr;
    if (indices == nullptr) return;
    std::vector<bool>& rows = rows_of(axis);
    const int64_t extent = shape[static_cast<size_t>(axis)];
    for (int64_t i = 0; i < indices->size(); ++i) {
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
