#include "tests/field_elements.h"

#include <cmath>
#include <utility>
#include <vector>

#include "base/check.h"
#include "graph/functions.h"
#include "graph/op_definition.h"

namespace mendel::cuda {
namespace {

/// The first value of an extreme, the infinities of the text: no element of a field below 2^60.
constexpr uint64_t kOfNothing = ~uint64_t{0};

FieldFunctions* bound = nullptr;

uint64_t CallBound(const char* function, uint64_t a, uint64_t b) {
  return bound->Call(function, a, b);
}
uint64_t LiteralOfBound(double value) { return bound->Literal(value); }

}  // namespace

const char* const kBeginElements = R"(
extern "C" {
unsigned long long mendel_field_prime;
unsigned long long (*mendel_field_call)(const char* function, unsigned long long a, unsigned long long b);
unsigned long long (*mendel_field_literal)(double value);
}
namespace mendel_field {
struct Element {
  Element() = default;
  Element(unsigned long long value) : v(value) {}
  Element(float literal) : v(literal == 0 ? 0 : mendel_field_literal(literal)) {}
  unsigned long long v;
};
inline Element Called(const char* function, Element a, Element b = 0ull) { return mendel_field_call(function, a.v, b.v); }
// The difference of a text's own minus: Exp looks at both sides.
struct Difference {
  Element a, b;
  operator Element() const { return (a.v + mendel_field_prime - b.v) % mendel_field_prime; }
};
// A root in a text: a quotient reads the operand under it.
struct Root {
  Element of;
  operator Element() const { return Called("Sqrt", of); }
};
inline Element operator+(Element a, Element b) { return (a.v + b.v) % mendel_field_prime; }
inline Difference operator-(Element a, Element b) { return {a, b}; }
inline Element operator*(Element a, Element b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a.v) * b.v % mendel_field_prime);
}
inline Element operator/(Element a, Element b) { return Called("Div", a, b); }
inline Element operator/(float literal, Root root) {
  return literal == 1 ? Called("Rsqrt", root.of) : Element(literal) / Element(root);
}
inline bool operator==(Element a, Element b) { return a.v == b.v; }
struct Pair {
  Element first, second;
};
struct Number {
  typedef Element Stored;
  typedef Element Real;
  static Element Load(Element v) { return v; }
  static Element Store(Element v) { return v; }
};
}  // namespace mendel_field
namespace mendel_text {
typedef mendel_field::Element Element;
inline Element Plus(Element a, Element b) { return a + b; }
inline Element Minus(Element a, Element b) { return a - b; }
inline Element Times(Element a, Element b) { return a * b; }
inline Element Quotient(Element a, Element b) { return a / b; }
// Sums of tensor cores: no rounding, those of a warp's products; a word has elements where it has numbers.
inline Element SumOfElements(Element c, const Element* left, const Element* right, int count) {
  for (int p = 0; p < count; ++p) c = Plus(c, Times(left[p], right[p]));
  return c;
}
typedef mendel_field::Pair Pair;
inline Element PartOfElement(Element v, int) { return v; }
inline Element PartOfPair(Pair pair, int p) { return p == 0 ? pair.first : pair.second; }
inline Element RoundToTf32(Element v) { return v; }
inline Pair RoundToF16(Element first, Element second) { return {first, second}; }
inline Pair RoundToBf16(Element first, Element second) { return {first, second}; }
inline void MultiplyTf32(Element& c0, Element& c1, Element& c2, Element& c3, const Element (&a)[4], const Element (&b)[2]) {
  mendel_shim::MultiplyInWarp<1>(c0, c1, c2, c3, a, b, PartOfElement, SumOfElements);
}
inline void MultiplyF16(Element& c0, Element& c1, Element& c2, Element& c3, const Pair (&a)[4], const Pair (&b)[2]) {
  mendel_shim::MultiplyInWarp<2>(c0, c1, c2, c3, a, b, PartOfPair, SumOfElements);
}
inline void MultiplyBf16(Element& c0, Element& c1, Element& c2, Element& c3, const Pair (&a)[4], const Pair (&b)[2]) {
  MultiplyF16(c0, c1, c2, c3, a, b);
}
inline Element Abs(Element a) { return mendel_field::Called("Abs", a); }
inline Element Log(Element a) { return mendel_field::Called("Log", a); }
inline Element Relu(Element a) { return mendel_field::Called("Relu", a); }
inline Element Sigmoid(Element a) { return mendel_field::Called("Sigmoid", a); }
inline Element Tanh(Element a) { return mendel_field::Called("Tanh", a); }
inline mendel_field::Root Sqrt(Element a) { return {a}; }
inline Element Exp(Element a) { return mendel_field::Called("Exp", a); }
inline Element Exp(mendel_field::Difference d) { return mendel_field::Called("shifted Exp", d.a, d.b); }
template <>
inline Element SumOf::Of<Element>(Element a, Element b) { return mendel_field::Called("sum", a, b); }
template <>
inline Element MaxOf::Of<Element>(Element a, Element b) { return mendel_field::Called("largest", a, b); }
template <>
inline Element MinOf::Of<Element>(Element a, Element b) { return mendel_field::Called("smallest", a, b); }
}  // namespace mendel_text
#define float mendel_field::Element
#define F32 mendel_field::Number
#define F16Pair mendel_field::Pair
#define Bf16Pair mendel_field::Pair
)";

const char* const kEndElements = "#undef F32\n#undef F16Pair\n#undef Bf16Pair\n#undef float\n";

bool IsVerifiedInField(std::string_view op) {
  using Names = std::set<std::string_view>;
  static const Names kElementwise = {"Abs", "Add",  "Div",     "Exp",  "Log", "Mul",
                                     "Neg", "Relu", "Sigmoid", "Sqrt", "Sub", "Tanh"};
  static const Names kProductsAndViews = {"Conv",    "ConvTranspose", "Expand",   "MatMul",
                                          "Reshape", "Slice",         "Transpose"};
  static const Names kRows = {"InstanceNormalization", "LayerNormalization", "LogSoftmax",
                              "Softmax"};
  static const Names kReductions = {"L1",   "L2",  "LogSum", "LogSumExp", "Max",
                                    "Mean", "Min", "Prod",   "Sum",       "SumSquare"};
  if (op.substr(0, 6) == "Reduce") return kReductions.count(op.substr(6)) > 0;
  return kElementwise.count(op) + kProductsAndViews.count(op) + kRows.count(op) > 0;
}

FieldFunctions::FieldFunctions(const Draw& draw)
    : evaluator_(draw, WeightMode::kSymbolic), arithmetic_(draw.key) {}

FieldFunctions::~FieldFunctions() {
  if (bound == this) bound = nullptr;
}

void FieldFunctions::Begin() {
  members_.clear();
  shifts_.clear();
}

void FieldFunctions::Bind(const EmulatedModule& module) {
  bound = this;
  *static_cast<uint64_t*>(module.Symbol("mendel_field_prime")) = evaluator_.field().prime();
  *static_cast<decltype(&CallBound)*>(module.Symbol("mendel_field_call")) = &CallBound;
  *static_cast<decltype(&LiteralOfBound)*>(module.Symbol("mendel_field_literal")) = &LiteralOfBound;
}

uint64_t FieldFunctions::Literal(double value) const {
  MENDEL_CHECK(!std::isnan(value));
  return std::isinf(value) ? kOfNothing : evaluator_.field().FromDouble(value);
}

uint64_t FieldFunctions::Call(std::string_view function, uint64_t a, uint64_t b) {
  const FieldScope scope(evaluator_.field());
  if (function == "largest") return Extreme(functions::kMax, a, b);
  if (function == "smallest") return Extreme(functions::kMin, a, b);
  if (function == "sum") return Sum(a, b);
  if (function == "shifted Exp") return ShiftedExp(a, b);
  if (function == "Log") return Log(a);
  if (function == "Rsqrt") return arithmetic_.Call(functions::kRsqrt, std::vector<Fp>{{a}}).value;
  return Apply(function, a, b);
}

uint64_t FieldFunctions::Apply(std::string_view op, uint64_t a, uint64_t b) const {
  const OpDefinition* definition = FindOp(op);
  MENDEL_CHECK(definition != nullptr && definition->min_inputs <= 2);
  const std::vector<TensorType> output = {{DType::kF32, {1}}};
  const std::vector<TensorType> inputs(static_cast<size_t>(definition->min_inputs), output[0]);
  FieldValue values[2];
  values[0].scalars = {Fp{a}};
  values[1].scalars = {Fp{b}};
  const FieldValue* operands[] = {&values[0], &values[1]};
  return evaluator_.Apply(*definition, NodeView{inputs, {}, output}, {operands, inputs.size()}, 0)
      .scalars[0]
      .value;
}

uint64_t FieldFunctions::ShiftedExp(uint64_t x, uint64_t shift) {
  const uint64_t result = Apply("Div", Apply("Exp", x), Apply("Exp", shift));
  shifts_[result] = shift;
  return result;
}

uint64_t FieldFunctions::Sum(uint64_t a, uint64_t b) {
  const uint64_t sum = evaluator_.field().Add(a, b);
  const auto of_a = shifts_.find(a), of_b = shifts_.find(b);
  if (a == 0 || b == 0) return sum;  // the other one
  if (of_a != shifts_.end() && of_b != shifts_.end() && of_a->second == of_b->second)
    shifts_[sum] = of_a->second;
  return sum;
}

uint64_t FieldFunctions::Log(uint64_t x) const {
  const auto shift = shifts_.find(x);
  if (shift == shifts_.end()) return Apply("Log", x);
  const PrimeField& field = evaluator_.field();
  return field.Sub(Apply("Log", field.Mul(x, Apply("Exp", shift->second))), shift->second);
}

uint64_t FieldFunctions::Extreme(const ScalarFunction& function, uint64_t a, uint64_t b) {
  std::set<Fp> members;
  for (const uint64_t each : {a, b}) {
    if (each == kOfNothing) continue;
    const auto made = members_.find({function.name, each});
    if (made == members_.end()) {
      members.insert(Fp{each});
    } else {
      members.insert(made->second.begin(), made->second.end());
    }
  }
  if (members.empty()) return kOfNothing;
  const uint64_t extreme =
      arithmetic_.Call(function, std::vector<Fp>(members.begin(), members.end())).value;
  members_[{function.name, extreme}] = std::move(members);
  return extreme;
}

}  // namespace mendel::cuda
