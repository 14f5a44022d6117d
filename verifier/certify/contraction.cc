#include "verifier/certify/contraction.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/parallel.h"

namespace mendel {
namespace {

using Use = CombinedOperand::Use;
using Operands = std::optional<std::vector<CombinedOperand>>;

/// A node that is read often would be combined again for every reader.
constexpr int kMostNodes = 256;

Operands OfConv(const NodeView& node, size_t axis) {
  if (axis != 1 || node.attrs.Int("group") != 1) return std::nullopt;
  std::vector<CombinedOperand> operands = {{}, {Use::kCombined, 0}};
  if (node.inputs.size() > 2) operands.push_back({Use::kCombined, 0});
  return operands;
}

Operands OfMatMul(const NodeView& node, size_t axis) {
  const size_t rank = node.outputs[0].shape.size();
  if (axis + 1 == rank)
    return std::vector<CombinedOperand>{{}, {Use::kCombined, node.inputs[1].shape.size() - 1}};
  if (axis + 2 == rank)
    return std::vector<CombinedOperand>{{Use::kCombined, node.inputs[0].shape.size() - 2}, {}};
  return std::nullopt;
}

/// The axis of an operand that broadcasting aligns with the output's; nullopt if all slices read
/// the same elements.
std::optional<size_t> AlignedAxis(const Shape& operand, const Shape& output, size_t axis) {
  const size_t missing = output.size() - operand.size();
  if (axis < missing || operand[axis - missing] != output[axis]) return std::nullopt;
  return axis - missing;
}

Operands OfSum(const NodeView& node, size_t axis) {
  std::vector<CombinedOperand> operands;
  for (const TensorType& input : node.inputs) {
    const std::optional<size_t> aligned = AlignedAxis(input.shape, node.outputs[0].shape, axis);
    operands.push_back(aligned.has_value() ? CombinedOperand{Use::kCombined, *aligned}
                                           : CombinedOperand{Use::kRepeated});
  }
  return operands;
}

Operands OfMul(const NodeView& node, size_t axis) {
  std::vector<CombinedOperand> operands;
  int combined = 0;
  for (const TensorType& input : node.inputs) {
    const std::optional<size_t> aligned = AlignedAxis(input.shape, node.outputs[0].shape, axis);
    operands.push_back(aligned.has_value() ? CombinedOperand{Use::kCombined, *aligned}
                                           : CombinedOperand{});
    combined += aligned.has_value() ? 1 : 0;
  }
  if (combined != 1) return std::nullopt;
  return operands;
}

Operands OfConcat(const NodeView& node, size_t axis) {
  std::vector<CombinedOperand> operands;
  int64_t first = 0;
  const bool along = node.attrs.Int("axis") == static_cast<int64_t>(axis);
  for (const TensorType& input : node.inputs) {
    operands.push_back({Use::kCombined, axis, first});
    if (along) first += input.shape[axis];
  }
  return operands;
}

bool IsSumOfParts(const OpDefinition& op, const NodeView& node, size_t axis) {
  return op.name == "Concat" && node.attrs.Int("axis") == static_cast<int64_t>(axis);
}

/// Multiply-adds of one output slice's element.
double Depth(const OpDefinition& op, const NodeView& node) {
  if (op.name == "Conv") {
    const Shape& w = node.inputs[1].shape;
    return static_cast<double>(NumElements(w)) / static_cast<double>(std::max<int64_t>(1, w[0]));
  }
  return op.name == "MatMul" ? static_cast<double>(node.inputs[0].shape.back()) : 0;
}

FieldValue Scaled(const PrimeField& field, const FieldValue& value, std::span<const Fp> factors) {
  const FieldScope scope(field);
  Fp sum;
  for (Fp factor : factors) sum += factor;
  FieldValue result = value;
  for (Fp& element : result.scalars) element *= sum;
  return result;
}

}  // namespace

Operands CombinedOperands(const OpDefinition& op, const NodeView& node, size_t axis) {
  if (node.outputs.size() != 1 || !IsFloat(node.outputs[0].dtype) ||
      axis >= node.outputs[0].shape.size())
    return std::nullopt;
  if (op.name == "Conv") return OfConv(node, axis);
  if (op.name == "MatMul") return OfMatMul(node, axis);
  if (op.name == "Add" || op.name == "Sub" || op.name == "Neg") return OfSum(node, axis);
  if (op.name == "Mul") return OfMul(node, axis);
  if (op.name == "Concat") return OfConcat(node, axis);
  if (op.name == "Transpose") {
    return std::vector<CombinedOperand>{
        {Use::kCombined, static_cast<size_t>(node.attrs.IntList("perm")[axis])}};
  }
  return std::nullopt;
}

FieldValue CombineSlices(const PrimeField& field, const FieldValue& value, const Shape& shape,
                         size_t axis, std::span<const Fp> factors) {
  MENDEL_CHECK(axis < shape.size() && static_cast<int64_t>(factors.size()) == shape[axis] &&
               !value.concrete);
  const int64_t outer =
      NumElements(Shape(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis)));
  const int64_t inner =
      NumElements(Shape(shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, shape.end()));
  constexpr int64_t kColumns = 256;
  constexpr size_t kExact = 128;  // products below 2^120: fewer than 256 of them fit
  FieldValue result;
  result.scalars.resize(static_cast<size_t>(outer * inner));
  const int64_t blocks = (inner + kColumns - 1) / kColumns;
  ParallelFor(outer * blocks, [&](int64_t job) {
    const int64_t begin = job % blocks * kColumns;
    const size_t columns = static_cast<size_t>(std::min(kColumns, inner - begin));
    std::array<unsigned __int128, kColumns> sums{};
    const auto reduce = [&](unsigned __int128 sum) {
      return field.FromBits(static_cast<uint64_t>(sum >> 64), static_cast<uint64_t>(sum));
    };
    const Fp* from =
        value.scalars.data() + job / blocks * static_cast<int64_t>(factors.size()) * inner + begin;
    for (size_t i = 0; i < factors.size(); ++i, from += inner) {
      for (size_t j = 0; j < columns; ++j)
        sums[j] += static_cast<unsigned __int128>(factors[i].value) * from[j].value;
      if (i % kExact + 1 != kExact) continue;
      for (size_t j = 0; j < columns; ++j) sums[j] = reduce(sums[j]);
    }
    Fp* to = result.scalars.data() + job / blocks * inner + begin;
    for (size_t j = 0; j < columns; ++j) to[j].value = reduce(sums[j]);
  });
  return result;
}

Operands Contraction::OperandsOf(int32_t number, size_t axis) const {
  const NumberedNode& node = numbering_.NodeOf(number);
  return CombinedOperands(*node.node->op, {node.input_types, node.node->attrs, node.node->outputs},
                          axis);
}

Operands Contraction::Open(int32_t number, const Shape& shape, size_t axis) const {
  if (free_[static_cast<size_t>(number)] || numbering_.TypeOf(number).shape != shape)
    return std::nullopt;
  return OperandsOf(number, axis);
}

bool Contraction::Collect(int32_t number, size_t axis, const OperandList& operands, int& nodes,
                          Plan& plan) const {
  if (++nodes > kMostNodes) return false;
  const NumberedNode& node = numbering_.NodeOf(number);
  const Shape& shape = numbering_.TypeOf(number).shape;
  const double combined =
      static_cast<double>(NumElements(shape)) * (1 - 1.0 / static_cast<double>(shape[axis]));
  plan.saved +=
      combined * Depth(*node.node->op, {node.input_types, node.node->attrs, node.node->outputs});
  for (size_t k = 0; k < operands.size(); ++k) {
    const Operands inner = operands[k].use == Use::kCombined
                               ? Open(node.inputs[k], node.input_types[k].shape, operands[k].axis)
                               : std::nullopt;
    if (!inner.has_value()) {
      plan.whole.push_back(node.inputs[k]);
    } else if (!Collect(node.inputs[k], operands[k].axis, *inner, nodes, plan)) {
      return false;
    }
  }
  return true;
}

std::optional<Contraction::Plan> Contraction::Prepare(int32_t number, size_t axis) const {
  const Operands operands = OperandsOf(number, axis);
  Plan plan;
  int nodes = 0;
  if (!operands.has_value() || !Collect(number, axis, *operands, nodes, plan)) return std::nullopt;
  return plan;
}

FieldValue Contraction::Evaluate(const FieldEvaluator& evaluator, int32_t number, size_t axis,
                                 std::span<const Fp> factors, const Elements& whole) const {
  const Operands operands = OperandsOf(number, axis);
  MENDEL_CHECK(operands.has_value());
  return Combine(evaluator, number, axis, *operands, factors, whole);
}

FieldValue Contraction::Combine(const FieldEvaluator& evaluator, int32_t number, size_t axis,
                                const OperandList& operands, std::span<const Fp> factors,
                                const Elements& whole) const {
  const NumberedNode& node = numbering_.NodeOf(number);
  std::vector<TensorType> types = node.input_types;
  std::vector<TensorType> outputs = node.node->outputs;
  outputs[0].shape[axis] = 1;
  std::vector<FieldValue> own(operands.size());
  std::vector<const FieldValue*> values;
  for (size_t k = 0; k < operands.size(); ++k) {
    const int32_t input = node.inputs[k];
    const CombinedOperand& operand = operands[k];
    if (operand.use == Use::kRepeated) own[k] = Scaled(evaluator.field(), whole(input), factors);
    if (operand.use == Use::kCombined) {
      const auto slices = factors.subspan(static_cast<size_t>(operand.first),
                                          static_cast<size_t>(types[k].shape[operand.axis]));
      const Operands inner = Open(input, types[k].shape, operand.axis);
      own[k] = inner.has_value() ? Combine(evaluator, input, operand.axis, *inner, slices, whole)
                                 : CombineSlices(evaluator.field(), whole(input), types[k].shape,
                                                 operand.axis, slices);
      types[k].shape[operand.axis] = 1;
    }
    values.push_back(operand.use == Use::kWhole ? &whole(input) : &own[k]);
  }
  if (!IsSumOfParts(*node.node->op, {node.input_types, node.node->attrs, node.node->outputs},
                    axis)) {
    return evaluator.Apply(*node.node->op, {types, node.node->attrs, outputs}, values, 0);
  }
  const FieldScope scope(evaluator.field());
  for (size_t k = 1; k < own.size(); ++k) {
    for (size_t i = 0; i < own[0].scalars.size(); ++i) own[0].scalars[i] += own[k].scalars[i];
  }
  return std::move(own[0]);
}

}  // namespace mendel
