#include "kernels/cuda/tiled/field_elements.h"

#include <cmath>
#include <utility>
#include <vector>

#include "base/check.h"
#include "graph/functions.h"

namespace mendel::cuda {
namespace {

/// What an extreme begins with, the infinities of the text: no element of a field below 2^60.
constexpr uint64_t kOfNothing = ~uint64_t{0};

FieldFunctions* bound = nullptr;

uint64_t CallBound(const char* function, uint64_t a, uint64_t b) { return bound->Call(function, a, b); }
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
// Of a text's own minus: Exp looks at both sides.
struct Difference {
  Element a, b;
  operator Element() const { return (a.v + mendel_field_prime - b.v) % mendel_field_prime; }
};
// A quotient looks at what is under it.
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
// Of tensor cores: no rounding, the sums of a warp's products.
inline Element SumOfElements(Element c, const Element* left, const Element* right, int count) {
  for (int p = 0; p < count; ++p) c = Plus(c, Times(left[p], right[p]));
  return c;
}
inline Element RoundToTf32(Element v) { return v; }
inline void MultiplyTf32(Element& c0, Element& c1, Element& c2, Element& c3, const Element (&a)[4], const Element (&b)[2]) {
  mendel_shim::MultiplyInWarp<Element, 2>(c0, c1, c2, c3, a, b, SumOfElements);
}
inline void MultiplyF16(Element& c0, Element& c1, Element& c2, Element& c3, const Element (&a)[8], const Element (&b)[4]) {
  mendel_shim::MultiplyInWarp<Element, 4>(c0, c1, c2, c3, a, b, SumOfElements);
}
inline void MultiplyBf16(Element& c0, Element& c1, Element& c2, Element& c3, const Element (&a)[8], const Element (&b)[4]) {
  MultiplyF16(c0, c1, c2, c3, a, b);
}
inline Element Abs(Element a) { return mendel_field::Called("Abs", a); }
inline Element Log(Element a) { return mendel_field::Called("Log", a); }
inline Element Relu(Element a) { return mendel_field::Called("Relu", a); }
inline Element Sigmoid(Element a) { return mendel_field::Called("Sigmoid", a); }
inline Element Tanh(Element a) { return mendel_field::Called("Tanh", a); }
inline mendel_field::Root Sqrt(Element a) { return {a}; }
inline Element Exp(Element a) { return mendel_field::Called("Exp", a); }
inline Element Exp(mendel_field::Difference d) { return Exp(d.a) / Exp(d.b); }
template <>
inline Element MaxOf::Of<Element>(Element a, Element b) { return mendel_field::Called("largest", a, b); }
template <>
inline Element MinOf::Of<Element>(Element a, Element b) { return mendel_field::Called("smallest", a, b); }
}  // namespace mendel_text
#define float mendel_field::Element
#define F32 mendel_field::Number
)";

const char* const kEndElements = "#undef F32\n#undef float\n";

bool IsJudgedInField(std::string_view op) {
  using Names = std::set<std::string_view>;
  static const Names kElementwise = {"Abs", "Add", "Div", "Exp", "Log", "Mul", "Neg", "Relu", "Sigmoid", "Sqrt", "Sub", "Tanh"};
  static const Names kProductsAndViews = {"Conv", "ConvTranspose", "Expand", "MatMul", "Reshape", "Slice", "Transpose"};
  static const Names kRows = {"InstanceNormalization", "LayerNormalization", "Softmax"};
  static const Names kReductions = {"L1", "L2", "LogSum", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"};
  if (op.substr(0, 6) == "Reduce") return kReductions.count(op.substr(6)) > 0;
  return kElementwise.count(op) + kProductsAndViews.count(op) + kRows.count(op) > 0;
}

FieldFunctions::FieldFunctions(const Draw& draw) : evaluator_(draw, WeightMode::kSymbolic), arithmetic_(draw.key) {}

FieldFunctions::~FieldFunctions() {
  if (bound == this) bound = nullptr;
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
  if (function == "Rsqrt") return arithmetic_.Call(functions::kRsqrt, std::vector<Fp>{{a}}).value;
  const OpDefinition* op = FindOp(function);
  MENDEL_CHECK(op != nullptr);
  return Apply(*op, a, b);
}

uint64_t FieldFunctions::Apply(const OpDefinition& op, uint64_t a, uint64_t b) const {
  const std::vector<TensorType> output = {{DType::kF32, {1}}}, inputs(op.min_inputs, output[0]);
  FieldValue values[2];
  values[0].scalars = {Fp{a}};
  values[1].scalars = {Fp{b}};
  const FieldValue* operands[] = {&values[0], &values[1]};
  MENDEL_CHECK(inputs.size() <= 2);
  return evaluator_.Apply(op, NodeView{inputs, {}, output}, {operands, inputs.size()}, 0).scalars[0].value;
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
  const uint64_t extreme = arithmetic_.Call(function, std::vector<Fp>(members.begin(), members.end())).value;
  members_[{function.name, extreme}] = std::move(members);
  return extreme;
}

}  // namespace mendel::cuda
