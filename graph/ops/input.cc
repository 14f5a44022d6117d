// Input: one of the graph's inputs. Evaluators supply its value.

#include "base/status.h"
#include "graph/op_definition.h"

namespace mendel::ops::input {
namespace {

absl::StatusOr<std::vector<TensorType>> Infer(std::span<const TensorType>,
                                              const Attributes& attrs) {
  const std::optional<DType> dtype = ParseDType(attrs.Str("dtype"));
  if (!dtype.has_value()) return InvalidInput("unknown dtype '", attrs.Str("dtype"), "'");
  return std::vector<TensorType>{{*dtype, attrs.IntList("shape")}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "Input";
  op.attributes = {
      {"name", std::string(), true}, {"dtype", std::string("f32")}, {"shape", Ints(), true}};
  op.infer = &Infer;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::input
