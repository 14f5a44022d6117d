// Constant: a stored tensor. With a symbol it is a weight, one random tensor to the verifier;
// without, a literal (graph.h).

#include "graph/op_definition.h"

namespace mendel::ops::constant {
namespace {

absl::StatusOr<std::vector<TensorType>> Infer(std::span<const TensorType>,
                                              const Attributes& attrs) {
  return std::vector<TensorType>{attrs.TensorValue("value").type()};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "Constant";
  op.attributes = {{"symbol", std::string()}, {"value", Tensor(), true}};
  op.infer = &Infer;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::constant
