// Operators that are one formula. $0, $1, ... are the operands, $name the attribute `name`, numbers
// in braces literals, all in the type that the operands are computed in.

#include <cctype>
#include <cstdlib>

#include "base/status.h"
#include "kernels/cuda/fusion/operator_text.h"

namespace mendel::cuda::texts::elementwise {
namespace {

double AttributeValue(const Attributes& attrs, const std::string& name) {
  const AttrValue& value = attrs.Get(name);
  return std::holds_alternative<int64_t>(value) ? static_cast<double>(std::get<int64_t>(value))
                                                : std::get<double>(value);
}

std::string Substituted(std::string_view formula, const ElementAt& at) {
  std::string out;
  for (size_t i = 0; i < formula.size();) {
    if (formula[i] == '{') {
      const size_t end = formula.find('}', i);
      out +=
          LiteralOf(at.dtype(0),
                    std::strtod(std::string(formula.substr(i + 1, end - i - 1)).c_str(), nullptr));
      i = end + 1;
    } else if (formula[i] == '$') {
      size_t end = i + 1;
      while (end < formula.size() &&
             (std::isalnum(static_cast<unsigned char>(formula[end])) != 0 || formula[end] == '_'))
        ++end;
      const std::string name(formula.substr(i + 1, end - i - 1));
      const bool operand = std::isdigit(static_cast<unsigned char>(name[0])) != 0;
      out += operand ? at.In(std::stoul(name))
                     : LiteralOf(at.dtype(0), AttributeValue(at.view.attrs, name));
      i = end;
    } else {
      out += formula[i++];
    }
  }
  return out;
}

/// Operands are named once, so that a formula may repeat them.
std::string Formula(std::string_view formula, const ElementAt& at) {
  std::vector<std::string> operands;
  for (size_t k = 0; k < at.view.inputs.size(); ++k) operands.push_back(at.In(k));
  std::string named;
  for (size_t i = 0; i < formula.size(); ++i) {
    if (formula[i] == '$' && std::isdigit(static_cast<unsigned char>(formula[i + 1])) != 0) {
      named += operands[static_cast<size_t>(formula[++i] - '0')];
    } else {
      named += formula[i];
    }
  }
  return Substituted(named, at);
}

struct Entry {
  const char* op;
  std::string_view formula;
};

constexpr Entry kEntries[] = {
    {"Abs", "Abs($0)"},
    {"Acos", "Acos($0)"},
    {"Acosh", "Acosh($0)"},
    {"Add", "Plus($0, $1)"},
    {"And", "$0 * $1"},
    {"Asin", "Asin($0)"},
    {"Asinh", "Asinh($0)"},
    {"Atan", "Atan($0)"},
    {"Atanh", "Atanh($0)"},
    {"BitwiseAnd", "$0 & $1"},
    {"BitwiseOr", "$0 | $1"},
    {"BitwiseXor", "$0 ^ $1"},
    {"Ceil", "Ceil($0)"},
    {"Celu", "$0 > {0} ? $0 : $alpha * Expm1($0 / $alpha)"},
    {"Cos", "Cos($0)"},
    {"Cosh", "Cosh($0)"},
    {"Div", "Quotient($0, $1)"},
    {"Elu", "$0 < {0} ? $alpha * Expm1($0) : $0"},
    {"Equal", "$0 == $1"},
    {"Erf", "Erf($0)"},
    {"Exp", "Exp($0)"},
    {"Floor", "Floor($0)"},
    {"Greater", "$0 > $1"},
    {"GreaterOrEqual", "$0 >= $1"},
    {"HardSigmoid", "Max({0}, Min({1}, $alpha * $0 + $beta))"},
    {"HardSwish", "$0 * Max({0}, Min({1}, $0 / {6} + {0.5}))"},
    {"IsInf",
     "($0 < {0} && $0 + $0 == $0 && $detect_negative != {0}) || ($0 > {0} && $0 + $0 == $0 && "
     "$detect_positive != {0})"},
    {"IsNaN", "$0 != $0"},
    {"LeakyRelu", "$0 < {0} ? $alpha * $0 : $0"},
    {"Less", "$0 < $1"},
    {"LessOrEqual", "$0 <= $1"},
    {"Log", "Log($0)"},
    {"Max", "Max($0, $1)"},
    {"Min", "Min($0, $1)"},
    {"Mish", "$0 * Tanh(Softplus($0))"},
    {"Mod", "Remainder($0, $1, $fmod != {0})"},
    {"Mul", "Times($0, $1)"},
    {"Neg", "Minus({0}, $0)"},
    {"Not", "1 - $0"},
    {"Or", "$0 | $1"},
    {"PRelu", "$0 < {0} ? Times($1, $0) : $0"},
    {"Reciprocal", "{1} / $0"},
    {"Relu", "Relu($0)"},
    {"Round", "Rint($0)"},
    {"Selu", "$gamma * ($0 > {0} ? $0 : $alpha * Expm1($0))"},
    {"Sigmoid", "Sigmoid($0)"},
    {"Sign", "Sign($0)"},
    {"Sin", "Sin($0)"},
    {"Sinh", "Sinh($0)"},
    {"Softplus", "Softplus($0)"},
    {"Softsign", "$0 / ({1} + Abs($0))"},
    {"Sqrt", "Sqrt($0)"},
    {"Sub", "Minus($0, $1)"},
    {"Tan", "Tan($0)"},
    {"Tanh", "Tanh($0)"},
    {"ThresholdedRelu", "$0 > $alpha ? $0 : {0}"},
    {"Xor", "$0 ^ $1"},
};

std::vector<OperatorText> Texts() {
  std::vector<OperatorText> texts;
  for (const Entry& entry : kEntries) {
    texts.push_back({.op = entry.op, .element = [formula = entry.formula](const ElementAt& at) {
                       return Formula(formula, at);
                     }});
  }
  return texts;
}

MENDEL_REGISTER_OPERATOR_TEXTS(Texts());

}  // namespace
}  // namespace mendel::cuda::texts::elementwise
