#include "mutator/index/leaf.h"

#include <vector>

#include "mutator/batch_norm.h"

namespace mendel {
namespace {

ValueId EmitIdentity(Emitter& e, int64_t extent, DType dtype) {
  std::vector<double> values(static_cast<size_t>(extent * extent), 0);
  for (int64_t i = 0; i < extent; ++i) values[static_cast<size_t>(i * (extent + 1))] = 1;
  return e.Constant(Tensor::FromDoubles({dtype, {extent, extent}}, values));
}

}  // namespace

Shape LeafShape(const Graph& graph, const IndexLeaf& leaf) {
  switch (leaf.kind) {
    case LeafKind::kNormFactor:
    case LeafKind::kNormShift:
      return {graph.type(leaf.value).shape[1]};
    case LeafKind::kOnes:
      return {leaf.extent};
    case LeafKind::kIdentity:
      return {leaf.extent, leaf.extent};
    case LeafKind::kValue:
    case LeafKind::kReciprocal:
      break;
  }
  return graph.type(leaf.value).shape;
}

bool IsWeightLeaf(const std::vector<bool>& weights, const IndexLeaf& leaf) {
  return leaf.kind != LeafKind::kValue || weights[static_cast<size_t>(leaf.value.node)];
}

ValueId EmitLeaf(Emitter& e, const Graph& graph, const IndexLeaf& leaf, DType dtype) {
  switch (leaf.kind) {
    case LeafKind::kNormFactor:
      return AffineOf(e, graph, leaf.value.node).factor;
    case LeafKind::kNormShift:
      return AffineOf(e, graph, leaf.value.node).shift;
    case LeafKind::kOnes:
      return e.Constant(Tensor::Filled({dtype, {leaf.extent}}, 1));
    case LeafKind::kIdentity:
      return EmitIdentity(e, leaf.extent, dtype);
    case LeafKind::kReciprocal:
      return e.Op("Div", {e.Constant(Tensor::Scalar(dtype, 1)),
                          e.CopyConstantExpression(graph, leaf.value)});
    case LeafKind::kValue:
      break;
  }
  return e.CopyConstantExpression(graph, leaf.value);
}

}  // namespace mendel
