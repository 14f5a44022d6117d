// Operands in one order, and literals without needless elements.

#include <array>

#include "verifier/axioms/rules.h"

namespace mendel {
namespace {

constexpr std::array<AxiomDescription, 2> kArrangementAxioms = {{
    {"commutative operands", "f(x, y) = f(y, x) for sum, product, max, min, equality, and, or, xor",
     "Each of them is commutative, on wrapping integers too."},
    {"uniform literal", "a literal with all elements equal to v is the scalar v",
     "NumPy broadcasting repeats the scalar."},
}};

std::optional<ValueId> Uniform(Terms& t, ValueId v) {
  for (size_t k = 0; k < 2; ++k) {
    const ValueId literal = t.in(v, k), other = t.in(v, 1 - k);
    if (!IsConstantTerm(t, literal) || t.shape(literal).empty() || t.shape(other) != t.shape(v))
      continue;
    if (IsConstantTerm(t, other) || !t.Number(literal).has_value()) continue;
    const Tensor& value = ConstantValue(t.node(literal));
    const size_t size = static_cast<size_t>(DTypeSize(value.dtype()));
    const Tensor one({value.dtype(), {}},
                     {value.bytes().begin(), value.bytes().begin() + static_cast<int64_t>(size)});
    const ValueId scalar = t.Constant(one, "");
    const Attributes attrs = t.node(v).attrs;
    return t.Op(std::string(t.node(v).op->name),
                k == 0 ? std::vector<ValueId>{scalar, other} : std::vector<ValueId>{other, scalar},
                attrs);
  }
  return std::nullopt;
}

/// Literals last, else the smaller hash first.
std::optional<ValueId> Commute(Terms& t, ValueId v) {
  const ValueId a = t.in(v, 0), b = t.in(v, 1);
  const bool a_last = IsConstantTerm(t, a), b_last = IsConstantTerm(t, b);
  const bool swap = a_last != b_last ? a_last : t.hash(b) < t.hash(a);
  if (!swap) return std::nullopt;
  return t.Op(std::string(t.node(v).op->name), {b, a});
}

constexpr std::array<AxiomRule, 20> kArrangementRules = {{
    {"uniform literal", "Add", &Uniform, Elements::kAny},
    {"uniform literal", "Sub", &Uniform, Elements::kAny},
    {"uniform literal", "Mul", &Uniform, Elements::kAny},
    {"uniform literal", "Div", &Uniform, Elements::kAny},
    {"uniform literal", "Max", &Uniform, Elements::kAny},
    {"uniform literal", "Min", &Uniform, Elements::kAny},
    {"uniform literal", "Pow", &Uniform, Elements::kAny},
    {"uniform literal", "Less", &Uniform, Elements::kAny},
    {"uniform literal", "LessOrEqual", &Uniform, Elements::kAny},
    {"uniform literal", "Greater", &Uniform, Elements::kAny},
    {"uniform literal", "GreaterOrEqual", &Uniform, Elements::kAny},
    {"uniform literal", "Equal", &Uniform, Elements::kAny},
    {"commutative operands", "Add", &Commute, Elements::kAny},
    {"commutative operands", "Mul", &Commute, Elements::kAny},
    {"commutative operands", "Max", &Commute, Elements::kAny},
    {"commutative operands", "Min", &Commute, Elements::kAny},
    {"commutative operands", "Equal", &Commute, Elements::kAny},
    {"commutative operands", "And", &Commute, Elements::kAny, Domain::kAll},
    {"commutative operands", "Or", &Commute, Elements::kAny, Domain::kAll},
    {"commutative operands", "Xor", &Commute, Elements::kAny},
}};

}  // namespace

AxiomGroup ArrangementAxioms() { return {kArrangementAxioms, kArrangementRules}; }

}  // namespace mendel
