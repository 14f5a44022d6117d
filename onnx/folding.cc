#include <algorithm>
#include <array>
#include <cmath>

#include "base/prime_field.h"
#include "graph/evaluate.h"
#include "graph/meaning.h"
#include "onnx/importer.h"

namespace mendel {
namespace {

constexpr int64_t kMaxFloatElements = 4096;
constexpr int64_t kMaxIntegralElements = int64_t{1} << 22;
constexpr double kMaxFlops = 1e9;

std::vector<Fp> InField(const Tensor& tensor, const Arithmetic<Fp>& arithmetic) {
  std::vector<Fp> elements;
  for (const double value : tensor.ToDoubles()) elements.push_back(arithmetic.Literal(value));
  return elements;
}

std::vector<Tensor> EvaluateOn(const OpDefinition& op, const NodeView& view,
                               const std::vector<Tensor>& operands) {
  std::vector<HostValue> values;
  for (const Tensor& operand : operands) values.push_back(HostValue::FromTensor(operand));
  std::vector<const HostValue*> inputs;
  for (const HostValue& value : values) inputs.push_back(&value);
  std::vector<Tensor> results;
  for (const HostValue& value : EvaluateNode(op, view, inputs)) results.push_back(value.ToTensor());
  return results;
}

/// The stored results are what the node computes over the reals: both agree in two prime fields,
/// where functions that are not rational have values that no stored number has.
bool IsExact(const OpDefinition& op, const NodeView& view, const std::vector<Tensor>& operands,
             const std::vector<Tensor>& results) {
  constexpr std::array<uint64_t, 2> kKey = {0x9E3779B97F4A7C15, 0xD1B54A32D192ED03};
  for (const uint64_t seed : {uint64_t{1}, uint64_t{2}}) {
    Rng rng(seed);
    const PrimeField field = PrimeField::RandomCertifying(rng);
    const FieldScope scope(field);
    const Arithmetic<Fp> arithmetic(kKey);
    std::vector<std::vector<Fp>> scalars(operands.size());
    std::vector<std::vector<int64_t>> integers(operands.size());
    std::vector<Operand<Fp>> inputs;
    for (size_t k = 0; k < operands.size(); ++k) {
      const bool integral = IsIntegral(operands[k].dtype());
      if (integral) integers[k] = operands[k].ToInts();
      if (!integral) scalars[k] = InField(operands[k], arithmetic);
      inputs.push_back({&operands[k].type(), integral ? nullptr : scalars[k].data(),
                        integral ? integers[k].data() : nullptr});
    }
    for (size_t k = 0; k < results.size(); ++k) {
      std::vector<Fp> value(static_cast<size_t>(results[k].size()));
      op.meaning.field(Reader<Fp>(arithmetic, inputs), view, static_cast<int>(k), value);
      if (arithmetic.zero_denominator() || value != InField(results[k], arithmetic)) return false;
    }
  }
  return true;
}

}  // namespace

std::vector<Tensor> FoldNode(const GraphBuilder& builder, int32_t id, bool only_exact) {
  const Node& node = builder.node(id);
  if (node.op->meaning.real == nullptr || node.inputs.empty()) return {};
  const bool integral_result =
      std::all_of(node.outputs.begin(), node.outputs.end(),
                  [](const TensorType& type) { return IsIntegral(type.dtype); });
  std::vector<TensorType> types;
  for (ValueId input : node.inputs) {
    const Node& producer = builder.node(input.node);
    if (!IsConstant(producer)) return {};
    // Expressions over weights stay visible to the rules and the verifier unless they decide
    // something (a condition, a count).
    if (!integral_result && !SymbolName(producer).empty()) return {};
    types.push_back(producer.outputs[0]);
    if (NumElements(types.back()) > kMaxIntegralElements) return {};
  }
  for (const TensorType& type : node.outputs) {
    if (NumElements(type) > (IsIntegral(type.dtype) ? kMaxIntegralElements : kMaxFloatElements))
      return {};
  }
  const NodeView view{types, node.attrs, node.outputs};
  if (CostOf(*node.op, view).flops > kMaxFlops) return {};
  std::vector<Tensor> operands;
  for (ValueId input : node.inputs) operands.push_back(ConstantValue(builder.node(input.node)));
  std::vector<Tensor> results = EvaluateOn(*node.op, view, operands);
  if (only_exact && !integral_result &&
      (node.op->meaning.field == nullptr || !IsExact(*node.op, view, operands, results)))
    return {};
  return results;
}

const Tensor* Importer::Evaluated(ValueId value) {
  const Node& node = builder_.node(value.node);
  if (IsConstant(node)) return &ConstantValue(node);
  const auto known = evaluated_.find(value.node);
  if (known != evaluated_.end()) {
    return known->second.empty() ? nullptr : &known->second[static_cast<size_t>(value.output)];
  }
  std::vector<Tensor>& results = evaluated_[value.node];
  if (node.op->meaning.real == nullptr || node.inputs.empty()) return nullptr;
  for (const TensorType& type : node.outputs) {
    if (NumElements(type) > kMaxIntegralElements) return nullptr;
  }
  std::vector<TensorType> types;
  std::vector<Tensor> operands;
  for (ValueId input : node.inputs) {
    const Tensor* operand = Evaluated(input);
    if (operand == nullptr || operand->size() > kMaxIntegralElements) return nullptr;
    operands.push_back(*operand);
    types.push_back(operand->type());
  }
  const NodeView view{types, node.attrs, node.outputs};
  if (CostOf(*node.op, view).flops > kMaxFlops) return nullptr;
  results = EvaluateOn(*node.op, view, operands);
  return &results[static_cast<size_t>(value.output)];
}

}  // namespace mendel
