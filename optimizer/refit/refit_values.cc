#include "optimizer/refit/refit_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string_view>

#include "base/check.h"

namespace mendel {
namespace {

struct Format {
  int precision;
  int least_exponent;
};

Format FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3FN:
      return {4, -6};
    case DType::kF8E4M3FNUZ:
      return {4, -7};
    case DType::kF8E5M2:
      return {3, -14};
    case DType::kF8E5M2FNUZ:
      return {3, -15};
    case DType::kF16:
      return {11, -14};
    case DType::kBF16:
      return {8, -126};
    case DType::kF64:
      return {53, -1022};
    default:
      return {24, -126};
  }
}

HostValue Absolute(HostValue value) {
  for (double& scalar : value.scalars) scalar = std::abs(scalar);
  return value;
}

/// Operators whose magnitude is the operator itself applied to magnitudes.
bool KeepsMagnitudes(std::string_view op) {
  static constexpr std::array<std::string_view, 14> kNames = {
      "Add", "Concat", "Conv",      "ConvTranspose", "Expand", "Gather", "MatMul",
      "Mul", "Pad",    "ReduceSum", "Reshape",       "Slice",  "Split",  "Transpose"};
  return std::find(kNames.begin(), kNames.end(), op) != kNames.end();
}

using Values = std::map<int32_t, std::vector<FoldedValue>>;

std::vector<FoldedValue> EvaluateTerm(const RefitTerms& terms, int32_t id, const Values& known) {
  const Node& node = terms.node({id, 0});
  if (IsConstant(node)) {
    HostValue value = HostValue::FromTensor(ConstantValue(node));
    HostValue magnitude = Absolute(value);
    return {{std::move(value), std::move(magnitude)}};
  }
  std::vector<TensorType> types;
  std::vector<const HostValue*> values, magnitudes;
  for (RefitTerm input : node.inputs) {
    const FoldedValue& operand = known.at(input.node)[static_cast<size_t>(input.output)];
    types.push_back(operand.value.type);
    values.push_back(&operand.value);
    // Indices have no magnitude.
    magnitudes.push_back(IsFloat(operand.value.type.dtype) ? &operand.magnitude : &operand.value);
  }
  const NodeView view{types, node.attrs, node.outputs};
  std::vector<HostValue> results = EvaluateNode(*node.op, view, values);
  std::vector<HostValue> bounds;
  if (KeepsMagnitudes(node.op->name)) {
    bounds = EvaluateNode(*node.op, view, magnitudes);
  } else if (node.op->name == "Neg") {
    bounds = {*magnitudes[0]};
  } else if (node.op->name == "Sub") {
    bounds = EvaluateNode(GetOp("Add"), view, magnitudes);
  } else {
    for (const HostValue& result : results) bounds.push_back(Absolute(result));
  }
  std::vector<FoldedValue> folded;
  for (size_t k = 0; k < results.size(); ++k)
    folded.push_back({std::move(results[k]), std::move(bounds[k])});
  return folded;
}

}  // namespace

FoldedValue EvaluateWeights(const RefitTerms& terms, RefitTerm expression) {
  MENDEL_CHECK(terms.IsWeight(expression));
  std::set<int32_t> needed = {expression.node};
  std::map<int32_t, int32_t> last_use;
  for (auto it = needed.rbegin(); it != needed.rend(); ++it) {
    for (RefitTerm input : terms.node({*it, 0}).inputs) {
      needed.insert(input.node);
      last_use.try_emplace(input.node, *it);  // readers are met in falling order
    }
  }
  Values values;
  for (int32_t id : needed) {
    values[id] = EvaluateTerm(terms, id, values);
    for (RefitTerm input : terms.node({id, 0}).inputs) {
      if (last_use.at(input.node) == id) values.erase(input.node);
    }
  }
  return std::move(values.at(expression.node)[static_cast<size_t>(expression.output)]);
}

double UlpAt(DType dtype, double magnitude) {
  const Format format = FormatOf(dtype);
  const int exponent = magnitude > 0 ? std::max(std::ilogb(magnitude), format.least_exponent)
                                     : format.least_exponent;
  return std::ldexp(1.0, exponent - format.precision + 1);
}

double UlpDistance(DType dtype, double stored, double value, double magnitude) {
  if (stored == value || (std::isnan(stored) && std::isnan(value))) return 0;
  const double scale = std::max(std::abs(value), magnitude);
  if (!std::isfinite(stored) || !std::isfinite(scale))
    return std::numeric_limits<double>::infinity();
  return std::abs(stored - value) / UlpAt(dtype, scale);
}

}  // namespace mendel
