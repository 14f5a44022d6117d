// Einsum of any number of operands, with "...": the language's Einsum has exactly two operands and
// letters only.

#include <algorithm>
#include <string>

#include "onnx/op_context.h"

namespace mendel::lowerings::einsum {
namespace {

/// A product under way: one value and a letter for each of its dimensions.
struct Term {
  ValueId value;
  std::string labels;
};

struct Equation {
  std::vector<std::string> operands;
  std::string output;
  bool has_output = false;
};

bool Contains(const std::string& labels, char label) {
  return labels.find(label) != std::string::npos;
}

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::string_view kEllipsis = "...";

absl::StatusOr<Equation> Parse(const std::string& text) {
  std::string plain;
  for (char c : text) {
    if (c != ' ') plain.push_back(c);
  }
  Equation equation;
  const size_t arrow = plain.find("->");
  equation.has_output = arrow != std::string::npos;
  if (equation.has_output) equation.output = plain.substr(arrow + 2);
  std::string left = plain.substr(0, arrow);
  for (size_t comma = left.find(','); comma != std::string::npos; comma = left.find(',')) {
    equation.operands.push_back(left.substr(0, comma));
    left.erase(0, comma + 1);
  }
  equation.operands.push_back(left);
  std::vector<std::string> terms = equation.operands;
  terms.push_back(equation.output);
  for (std::string term : terms) {
    if (const size_t at = term.find(kEllipsis); at != std::string::npos)
      term.erase(at, kEllipsis.size());
    const bool letters = std::all_of(term.begin(), term.end(), [](char c) {
      return kLetters.find(c) != std::string_view::npos;
    });
    if (!letters) return InvalidInput("equation '", text, "' cannot be read");
  }
  return equation;
}

/// Letters that the equation does not use, one for each dimension that "..." may stand for.
std::string FreeLetters(const Equation& equation, size_t count) {
  std::string used = equation.output;
  for (const std::string& operand : equation.operands) used += operand;
  std::string free;
  for (char letter : kLetters) {
    if (free.size() < count && !Contains(used, letter)) free.push_back(letter);
  }
  return free;
}

/// Replaces "..." by letters; the last ones of `letters` stand for the last dimensions. Where an
/// operand's extent under "..." is one, the dimension is dropped: broadcasting needs no label.
absl::Status Expand(OpContext& op, const std::string& letters, Term& term) {
  const size_t at = term.labels.find(kEllipsis);
  const Shape shape = op.shape(term.value);
  const size_t named = term.labels.size() - (at == std::string::npos ? 0 : kEllipsis.size());
  if (shape.size() < named || (at == std::string::npos && shape.size() != named)) {
    return InvalidInput("labels '", term.labels, "' do not fit an operand of rank ", shape.size());
  }
  if (at == std::string::npos) return absl::OkStatus();
  const size_t covered = shape.size() - named;
  if (covered > letters.size())
    return Unsupported("the equation needs more than ", kLetters.size(), " labels");
  std::string labels = letters.substr(letters.size() - covered);
  Shape kept = shape;
  for (size_t d = covered; d-- > 0;) {
    if (shape[at + d] != 1) continue;
    labels.erase(d, 1);
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(at + d));
  }
  term.labels.replace(at, kEllipsis.size(), labels);
  MENDEL_ASSIGN_OR_RETURN(term.value, op.Reshape(term.value, kept));
  return absl::OkStatus();
}

/// Without an arrow: the letters of "...", then those that occur once, in alphabetical order.
std::string ImplicitOutput(const Equation& equation) {
  std::string all, output;
  bool ellipsis = false;
  for (const std::string& operand : equation.operands) {
    ellipsis = ellipsis || operand.find(kEllipsis) != std::string::npos;
    all += operand;
  }
  for (char label : all) {
    if (label != '.' && std::count(all.begin(), all.end(), label) == 1) output.push_back(label);
  }
  std::sort(output.begin(), output.end());
  return (ellipsis ? std::string(kEllipsis) : "") + output;
}

absl::StatusOr<Term> Multiply(OpContext& op, const Term& a, const Term& b,
                              const std::string& output) {
  const std::string equation = Cat(a.labels, ",", b.labels, "->", output);
  MENDEL_ASSIGN_OR_RETURN(const ValueId value,
                          op.Emit("Einsum", {a.value, b.value}, {{"equation", equation}}));
  return Term{value, output};
}

/// Sums the labels away that `output` lacks and brings the rest into its order.
absl::StatusOr<ValueId> Arrange(OpContext& op, Term term, const std::string& output) {
  std::string distinct = term.labels;
  std::sort(distinct.begin(), distinct.end());
  if (std::adjacent_find(distinct.begin(), distinct.end()) != distinct.end()) {  // a diagonal
    MENDEL_ASSIGN_OR_RETURN(const Term product,
                            Multiply(op, term, {op.ScalarLike(term.value, 1), ""}, output));
    return product.value;
  }
  Ints axes, perm;
  std::string kept;
  for (size_t d = 0; d < term.labels.size(); ++d) {
    if (Contains(output, term.labels[d])) {
      kept.push_back(term.labels[d]);
    } else {
      axes.push_back(static_cast<int64_t>(d));
    }
  }
  if (!axes.empty()) {
    MENDEL_ASSIGN_OR_RETURN(
        term.value, op.Emit("ReduceSum", {term.value}, {{"axes", axes}, {"keepdims", int64_t{0}}}));
  }
  for (char label : output) perm.push_back(static_cast<int64_t>(kept.find(label)));
  return op.Transpose(term.value, perm);
}

/// Labels of `output` that occur in an operand. The others stand for extents of one.
std::string Present(const std::string& output, const std::vector<Term>& terms) {
  std::string present;
  for (char label : output) {
    if (std::any_of(terms.begin(), terms.end(),
                    [&](const Term& term) { return Contains(term.labels, label); }))
      present += label;
  }
  return present;
}

absl::StatusOr<ValueId> Contract(OpContext& op, std::vector<Term> terms,
                                 const std::string& output) {
  Term product = terms[0];
  for (size_t k = 1; k < terms.size(); ++k) {
    // Labels that a later operand or the output still needs are kept.
    std::string needed = output, labels;
    for (size_t later = k + 1; later < terms.size(); ++later) needed += terms[later].labels;
    for (char label : product.labels + terms[k].labels) {
      if (Contains(needed, label) && !Contains(labels, label)) labels.push_back(label);
    }
    MENDEL_ASSIGN_OR_RETURN(
        product, Multiply(op, product, terms[k], k + 1 == terms.size() ? output : labels));
  }
  return terms.size() > 1 ? absl::StatusOr<ValueId>(product.value) : Arrange(op, product, output);
}

absl::Status ImportEinsum(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(Equation equation, Parse(op.Str("equation", "")));
  MENDEL_ASSIGN_OR_RETURN(const std::vector<ValueId> inputs, op.AllInputs());
  if (equation.operands.size() != inputs.size()) {
    return InvalidInput("the equation names ", equation.operands.size(), " operands, not ",
                        inputs.size());
  }
  if (!equation.has_output) equation.output = ImplicitOutput(equation);
  size_t covered = 0;  // dimensions under the longest "..."
  std::vector<Term> terms;
  for (size_t k = 0; k < inputs.size(); ++k) {
    terms.push_back({inputs[k], equation.operands[k]});
    const size_t named = terms[k].labels.size() - kEllipsis.size();
    if (terms[k].labels.find(kEllipsis) == std::string::npos || op.shape(inputs[k]).size() < named)
      continue;
    covered = std::max(covered, op.shape(inputs[k]).size() - named);
  }
  const std::string letters = FreeLetters(equation, covered);
  for (Term& term : terms) MENDEL_RETURN_IF_ERROR(Expand(op, letters, term));
  std::string output = equation.output;
  if (const size_t at = output.find(kEllipsis); at != std::string::npos)
    output.replace(at, kEllipsis.size(), letters);
  for (char label : output) {
    const bool known = Contains(letters, label) ||
                       std::any_of(terms.begin(), terms.end(),
                                   [&](const Term& term) { return Contains(term.labels, label); });
    if (!known || std::count(output.begin(), output.end(), label) != 1) {
      return InvalidInput("output label '", std::string(1, label),
                          "' must occur once there, and in an operand");
    }
  }
  const std::string present = Present(output, terms);
  MENDEL_ASSIGN_OR_RETURN(const ValueId product, Contract(op, terms, present));
  Shape shape;
  for (char label : output) {
    const size_t at = present.find(label);
    shape.push_back(at == std::string::npos ? 1 : op.shape(product)[at]);
  }
  return op.SetOutput(0, op.Reshape(product, shape));
}

const OpImportRegistrar registrar({{"Einsum", 1, kVariadic, &ImportEinsum}});

}  // namespace
}  // namespace mendel::lowerings::einsum
