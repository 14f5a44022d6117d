#include "mutator/regions/random_program.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/emitter.h"
#include "graph/random_graph.h"
#include "mutator/regions/select.h"

namespace mendel {
namespace {

/// A smaller input, repeated or padded to `type`.
ValueId Repeated(Emitter& e, Rng& rng, const std::string& name, const TensorType& type) {
  Shape small = type.shape;
  const uint64_t kind = rng.Below(5);
  if (kind == 0) return e.Input(name, type);
  if (kind == 1) {  // edges or zeros
    Ints pads(2 * small.size(), 0);
    const size_t d = rng.Below(small.size());
    pads[d] = rng.Between(0, small[d] - 1);
    pads[small.size() + d] = rng.Between(0, small[d] - 1 - pads[d]);
    small[d] -= pads[d] + pads[small.size() + d];
    return e.Op("Pad", {e.Input(name, {type.dtype, small})},
                {{"pads", pads}, {"mode", std::string(rng.Flip() ? "edge" : "constant")}});
  }
  std::vector<double> scales(small.size(), 1);
  Ints repeats(small.size(), 1);
  for (size_t d = 0; d < small.size(); ++d) {
    if (rng.Flip()) continue;
    if (kind == 2) small[d] = 1;
    const int64_t factor = small[d] % 2 == 0 ? 2 : small[d];
    if (kind == 2) continue;
    small[d] /= factor;
    scales[d] = static_cast<double>(factor);
    repeats[d] = factor;
  }
  const ValueId x = e.Input(name, {type.dtype, small});
  if (kind == 2) return e.Op("Expand", {x}, {{"shape", type.shape}});
  if (kind == 3) return e.Op("Tile", {x}, {{"repeats", repeats}});
  return e.Op("Resize", {x},
              {{"output_sizes", type.shape},
               {"scales", scales},
               {"coordinate_transformation_mode", std::string("asymmetric")},
               {"nearest_mode", std::string("floor")}});
}

/// The constant as a literal that is zero at some positions of an axis.
ValueId Pruned(Emitter& e, Rng& rng, const Tensor& tensor) {
  std::vector<double> values = tensor.ToDoubles();
  const Shape& shape = tensor.shape();
  const size_t axis = rng.Below(shape.size());
  std::vector<bool> zero;
  for (int64_t p = 0; p < shape[axis]; ++p) zero.push_back(rng.Flip());
  const int64_t stride = RowMajorStrides(shape)[axis];
  for (size_t i = 0; i < values.size(); ++i) {
    if (zero[static_cast<size_t>(static_cast<int64_t>(i) / stride % shape[axis])]) values[i] = 0;
  }
  return e.Constant(Tensor::FromDoubles({tensor.dtype(), shape}, values));
}

/// A crop with steps, a flip, or a gather of constants.
ValueId Cropped(Emitter& e, Rng& rng, ValueId x) {
  const Shape shape = e.shape(x);
  if (shape.empty() || rng.Flip(0.2)) return x;
  const size_t d = rng.Below(shape.size());
  if (rng.Flip(0.3)) {
    std::vector<int64_t> list;
    for (int64_t k = rng.Between(1, 3); k > 0; --k)
      list.push_back(rng.Between(-shape[d], shape[d] - 1));
    const Shape indices =
        list.size() == 1 && rng.Flip() ? Shape{} : Shape{static_cast<int64_t>(list.size())};
    return e.Op("Gather", {x, e.Constant(Tensor::FromInts({DType::kI64, indices}, list))},
                {{"axis", static_cast<int64_t>(d)}});
  }
  const int64_t begin = rng.Between(0, shape[d] - 1);
  return e.Slice(x, static_cast<int64_t>(d), begin, rng.Between(begin + 1, shape[d]),
                 rng.Between(1, 3));
}

/// Softmax over one element: its operand does not matter, which would make most of a graph dead.
bool IsAllOnes(const Node& node) {
  if (node.op->name != "Softmax") return false;
  const Shape& shape = node.outputs[0].shape;
  const int64_t axis = node.attrs.Int("axis");
  return (axis < 0 ? shape.end()[axis] : shape[static_cast<size_t>(axis)]) == 1;
}

}  // namespace

Graph RandomRegionsProgram(Rng& rng, bool pruned) {
  const Graph inner = RandomGraph(rng, static_cast<int>(rng.Between(1, 9)));
  Emitter e("random");
  std::vector<ValueId> inputs;
  for (int32_t id : inner.inputs())
    inputs.push_back(Repeated(e, rng, Cat("x", id), inner.node(id).outputs[0]));
  std::vector<ValueId> values = inputs;
  for (size_t i = 0; i < inner.nodes().size(); ++i) {
    const Node& node = inner.nodes()[i];
    if (IsInput(node)) {
      const auto at =
          std::find(inner.inputs().begin(), inner.inputs().end(), static_cast<int32_t>(i));
      values.resize(std::max(values.size(), i + 1));
      values[i] = inputs[static_cast<size_t>(at - inner.inputs().begin())];
      continue;
    }
    if (pruned && IsConstant(node) && IsFloat(node.outputs[0].dtype) &&
        !node.outputs[0].shape.empty() && rng.Flip(0.3)) {
      values.resize(std::max(values.size(), i + 1));
      values[i] = Pruned(e, rng, ConstantValue(node));
      continue;
    }
    std::vector<ValueId> operands;
    for (ValueId value : node.inputs) operands.push_back(values[static_cast<size_t>(value.node)]);
    values.resize(std::max(values.size(), i + 1));
    values[i] = IsAllOnes(node) ? operands[0] : CopyNode(e, node, operands)[0];
  }
  for (const GraphOutput& output : inner.outputs()) {
    ValueId y = values[static_cast<size_t>(output.value.node)];
    for (int64_t crops = rng.Between(0, 2); crops > 0; --crops) y = Cropped(e, rng, y);
    if (rng.Flip(0.2) && !e.shape(y).empty())
      y = e.Op("ReduceMean", {y}, {{"axes", Ints{0}}, {"keepdims", rng.Between(0, 1)}});
    e.Output(output.name, y);
  }
  auto graph = e.Finish();
  MENDEL_CHECK(graph.ok());
  return *std::move(graph);
}

uint64_t RegionPrograms() {
  const char* text = std::getenv("MENDEL_REGION_PROGRAMS");
  return text == nullptr ? 400 : std::strtoull(text, nullptr, 10);
}

}  // namespace mendel
