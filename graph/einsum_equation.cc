#include "graph/einsum_equation.h"

#include <algorithm>

#include "base/status.h"

namespace mendel {
namespace {

bool IsEinsumLabel(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool HasLabel(const std::string& labels, char label) {
  return labels.find(label) != std::string::npos;
}

}  // namespace

absl::StatusOr<EinsumEquation> ParseEinsum(const std::string& text) {
  std::string plain;
  for (char c : text) {
    if (c != ' ') plain.push_back(c);
  }
  const size_t comma = plain.find(',');
  const size_t arrow = plain.find("->");
  if (comma == std::string::npos || comma > arrow)
    return InvalidInput("equation '", text, "' must have two operands");
  EinsumEquation equation;
  equation.operands = {
      plain.substr(0, comma),
      plain.substr(comma + 1, arrow == std::string::npos ? arrow : arrow - comma - 1)};
  const std::string all = equation.operands[0] + equation.operands[1];
  if (arrow != std::string::npos) {
    equation.output = plain.substr(arrow + 2);
  } else {
    for (char label : all) {
      if (std::count(all.begin(), all.end(), label) == 1) equation.output.push_back(label);
    }
    std::sort(equation.output.begin(), equation.output.end());
  }
  if (!std::all_of(all.begin(), all.end(), IsEinsumLabel))
    return Unsupported("equation '", text, "' has labels that are not letters");
  for (char label : equation.output) {
    if (!HasLabel(all, label) ||
        std::count(equation.output.begin(), equation.output.end(), label) != 1) {
      return InvalidInput("output label '", std::string(1, label), "' of equation '", text,
                          "' must occur once there, and in an operand");
    }
  }
  return equation;
}

EinsumRoles::EinsumRoles(const EinsumEquation& equation) {
  for (char label : equation.output) {
    const bool left = HasLabel(equation.operands[0], label);
    const bool right = HasLabel(equation.operands[1], label);
    (left && right ? batch : left ? rows : columns).push_back(label);
  }
  for (char label : equation.operands[0] + equation.operands[1]) {
    if (!HasLabel(equation.output, label) && !HasLabel(summed, label)) summed.push_back(label);
  }
}

}  // namespace mendel
