#include "verifier/bounds.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/status.h"
#include "verifier/axioms/root_of_two.h"

namespace mendel {
namespace {

/// Number of certifying primes, rounded down by two percent: half of the 1.396e16 primes in [2^59,
/// 2^60), those that are 1 or 7 mod 8. That the residues part them evenly up to less than one
/// percent is proven (Bennett, Martin, O'Bryant and Rechnitzer, 2018).
constexpr double kCertifyingPrimes = 1.37e16 / 2;

/// The bound that the meaning states for its first element, every operand element being bounded
/// alike.
Bound BoundAtFirst(const OpDefinition& op, const NodeView& node, std::span<const Bound> inputs,
                   std::span<const FieldValue* const> known, int output,
                   const Arithmetic<Bound>& arithmetic) {
  std::vector<std::vector<Bound>> elements(inputs.size());
  std::vector<Operand<Bound>> operands;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (known[k] != nullptr) {
      operands.push_back({&node.inputs[k], nullptr, known[k]->integers.data()});
      continue;
    }
    elements[k].assign(static_cast<size_t>(NumElements(node.inputs[k])), inputs[k]);
    operands.push_back({&node.inputs[k], elements[k].data(), nullptr});
  }
  return op.meaning.bound(Reader<Bound>(arithmetic, operands), node, output);
}

/// BoundAtFirst of the operator cut down to the one element at `position`, which spares operands of
/// full size.
std::optional<Bound> BoundAtCut(const OpDefinition& op, const NodeView& node,
                                std::span<const Bound> inputs, const Shape& position,
                                const Arithmetic<Bound>& arithmetic) {
  if (op.restrict == nullptr || node.outputs.size() != 1) return std::nullopt;
  Box box{position, position};
  for (int64_t& end : box.end) ++end;
  const std::optional<Restriction> cut = op.restrict(node, box);
  if (!cut.has_value()) return std::nullopt;
  std::vector<TensorType> types;
  for (size_t k = 0; k < inputs.size(); ++k)
    types.push_back({node.inputs[k].dtype, cut->inputs[k].Extents()});
  const std::vector<TensorType> outputs = {{node.outputs[0].dtype, Shape(position.size(), 1)}};
  const std::vector<const FieldValue*> none(inputs.size(), nullptr);
  return BoundAtFirst(op, {types, cut->attrs, outputs}, inputs, none, 0, arithmetic);
}

/// First, middle and last element where the operator can be cut down to them: borders may be made
/// of fewer terms.
Bound BoundOfElement(const OpDefinition& op, const NodeView& node, std::span<const Bound> inputs,
                     std::span<const FieldValue* const> known, int output,
                     const Arithmetic<Bound>& arithmetic) {
  const Shape& shape = node.outputs[static_cast<size_t>(output)].shape;
  const bool all_unknown = std::all_of(known.begin(), known.end(),
                                       [](const FieldValue* value) { return value == nullptr; });
  if (all_unknown) {
    std::array<Shape, 3> positions = {Shape(shape.size(), 0), shape, shape};
    for (size_t d = 0; d < shape.size(); ++d) {
      positions[1][d] /= 2;
      positions[2][d] -= 1;
    }
    std::optional<Bound> worst;
    for (const Shape& position : positions) {
      const std::optional<Bound> bound = BoundAtCut(op, node, inputs, position, arithmetic);
      if (!bound.has_value()) break;
      worst = worst.has_value() ? Either(*worst, *bound) : *bound;
      if (&position == &positions.back()) return *worst;
    }
  }
  return BoundAtFirst(op, node, inputs, known, output, arithmetic);
}

/// The bound of dyadic numbers: one numerator and one denominator that cover each of them.
Bound BoundOfLiterals(const Tensor& tensor) {
  Bound bound;
  const int64_t count = tensor.size();
  for (int64_t i = 0; i < count; ++i) {
    const double value = std::abs(tensor.DoubleAt(i));
    if (!std::isfinite(value)) {
      bound = Either(bound, Bound::Symbol());
      continue;
    }
    if (value == 0) continue;
    const double whole = std::floor(value);
    if (whole == value && value < 0x1p53) {
      bound.log2_num = std::max(bound.log2_num, std::log2(value));
      continue;
    }
    int exponent = 0;
    const uint64_t mantissa = static_cast<uint64_t>(std::ldexp(std::frexp(value, &exponent), 53));
    const int zeros = __builtin_ctzll(mantissa);
    exponent += zeros - 53;  // value = (mantissa >> zeros) * 2^exponent
    bound.log2_num = std::max(
        bound.log2_num, std::log2(static_cast<double>(mantissa >> zeros)) + std::max(0, exponent));
    bound.log2_den = std::max(bound.log2_den, static_cast<double>(std::max(0, -exponent)));
  }
  return bound;
}

}  // namespace

ValueBound BoundOfIntegers(std::span<const int64_t> values) {
  ValueBound bound;
  for (int64_t value : values) {
    const double magnitude = std::abs(static_cast<double>(value));
    if (magnitude > 1)
      bound.element.log2_num = std::max(bound.element.log2_num, std::log2(magnitude) + 1e-12);
  }
  return bound;
}

ValueBound BoundOfConstant(const Node& node, WeightMode weights) {
  const Tensor& tensor = ConstantValue(node);
  ValueBound bound;
  if (IsIntegral(tensor.dtype())) {
    const std::vector<int64_t> values = tensor.ToInts();
    return BoundOfIntegers(values);
  }
  if (weights == WeightMode::kSymbolic && !SymbolName(node).empty()) {
    bound.element = Bound::Symbol();
  } else {
    bound.element = BoundOfLiterals(tensor);
  }
  return bound;
}

absl::StatusOr<ValueBound> BoundOfNode(const OpDefinition& op, const NodeView& node,
                                       std::span<const Bound> inputs,
                                       std::span<const FieldValue* const> known, int output) {
  ValueBound result;
  const double count = static_cast<double>(NumElements(node.outputs[static_cast<size_t>(output)]));
  if (count == 0) return result;
  std::vector<bool> concrete;
  for (const FieldValue* value : known) concrete.push_back(value != nullptr);
  if (IsOpaque(op, node, concrete)) {
    result.element = Bound::Symbol();
    for (size_t k = 0; k < inputs.size(); ++k) {
      const double elements = static_cast<double>(NumElements(node.inputs[k]));
      result.operands += elements;
      result.operand = Either(result.operand, inputs[k]);
      result.denominators += elements * inputs[k].den_degree;
    }
    return result;
  }
  const Arithmetic<Bound> arithmetic;
  if (op.bound != nullptr) {
    result.element = op.bound(node, inputs, output, arithmetic);
    result.operands = arithmetic.operand_count() * count;
  } else if (op.meaning.bound != nullptr) {
    result.element = BoundOfElement(op, node, inputs, known, output, arithmetic);
    result.operands = arithmetic.operand_count() * count;
  } else {
    return Unsupported("operator ", op.name, " states no degree bound");
  }
  if (op.shared_operands != nullptr) {
    result.operands = op.shared_operands(node);
  } else {
    result.operands_of_element = arithmetic.operand_count();
  }
  if (IsSquareRoot(op)) {
    result.has_root_of_two = true;
    result.element.log2_num = std::max(result.element.log2_num, 0.5);
  }
  result.operand = arithmetic.worst_operand();
  result.denominators =
      count * result.element.den_degree + result.operands * result.operand.den_degree;
  return result;
}

void SegmentBound::AddToCone(const ValueBound& value, double needed) {
  const bool shared = value.operands_of_element == 0;
  operands +=
      shared ? value.operands : std::min(value.operands, needed * value.operands_of_element);
  denominators += value.denominators;
  has_root_of_two = has_root_of_two || value.has_root_of_two;
  if (value.operands > 0) worst_operand_ = Either(worst_operand_, value.operand);
}

void SegmentBound::Cover(const Bound& a, const Bound& b) {
  const Bound difference = a + b;
  degree = std::max(degree, difference.num_degree);
  log2_norm = std::max(log2_norm, difference.log2_num);
}

void SegmentBound::Compare(const Bound& a, const Bound& b) {
  Cover(a, b);
  if (operands > 0) Cover(worst_operand_, worst_operand_);
  if (has_root_of_two) Cover(worst_operand_, {.log2_num = 1});
}

double SegmentBound::Log2Miss(uint64_t prime) const {
  constexpr double kUnknown = 1;
  const bool certifying = prime >= uint64_t{1} << 59;
  const double smallest = certifying ? 0x1p59 : static_cast<double>(prime);
  if (!std::isfinite(degree) || !std::isfinite(log2_norm) || !std::isfinite(operands) ||
      !(denominators < smallest))
    return kUnknown;
  // A prime that is not random divides every coefficient of some polynomial unless they are all
  // smaller. A coefficient a + b sqrt(2) vanishes only modulo primes that divide a^2 - 2 b^2, the
  // product of two numbers below the norm.
  const double log2_integer = has_root_of_two ? 2 * log2_norm : log2_norm;
  const double bad = log2_integer < std::log2(smallest)
                         ? 0
                         : (certifying ? log2_integer / 59 / kCertifyingPrimes : 1);
  const double pinned = has_root_of_two ? 2 : 1;
  const double scalars = operands > 0 ? operands + pinned : 0;
  const double pairs = scalars * (scalars - 1) / 2 + 1;
  const double miss = pairs * (std::max(degree, 1.0) / (smallest - denominators) + bad);
  return miss < 1 ? std::log2(miss) : kUnknown;
}

}  // namespace mendel
