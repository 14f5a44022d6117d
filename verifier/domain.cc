#include "verifier/domain.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/text.h"
#include "verifier/field_evaluator.h"
#include "verifier/guards.h"
#include "verifier/signs.h"

namespace mendel {
namespace {

/// Signs of numbers, derived on demand.
class Signs {
 public:
  Signs(const Numbering& numbering, WeightMode weights) : numbering_(numbering), weights_(weights) {}

  Sign Of(int32_t number) {
    const auto known = known_.find(number);
    if (known != known_.end()) return known->second;
    const NumberedNode& node = numbering_.NodeOf(number);
    std::vector<Sign> signs;
    for (int32_t input : node.inputs) signs.push_back(Of(input));
    bool one_operand = !node.inputs.empty();
    for (size_t k = 1; k < node.inputs.size(); ++k) {
      one_operand = one_operand && node.inputs[k] == node.inputs[0] && node.input_types[k] == node.input_types[0];
    }
    return known_[number] = SignOfNode(*node.node, node.input_types, signs, one_operand, weights_);
  }

  template <class Predicate>
  bool KnownAllOf(int32_t number, Predicate holds) const {
    return KnownAll(*numbering_.NodeOf(number).node, weights_, holds);
  }

 private:
  const Numbering& numbering_;
  const WeightMode weights_;
  std::map<int32_t, Sign> known_;
};

bool Satisfied(const NumberedNode& node, const PartialDomain& domain, Signs& signs) {
  const auto is_whole = [](double v) { return v >= 0 && v == std::floor(v); };
  if (domain.whole_exponent >= 0 && signs.KnownAllOf(node.inputs[static_cast<size_t>(domain.whole_exponent)], is_whole))
    return true;
  const int32_t operand = node.inputs[domain.input];
  switch (domain.demand) {
    case Demand::kNonZero:
      return signs.Of(operand) == Sign::kPositive || signs.KnownAllOf(operand, [](double v) { return v != 0; });
    case Demand::kPositive:
      return signs.Of(operand) == Sign::kPositive;
    case Demand::kNonNegative:
      return signs.Of(operand) != Sign::kUnknown;
    case Demand::kSameNode:
      return false;
  }
  return false;
}

/// Where an operand of a partial function occurs: the operators of one group demand the same.
using Occurrence = std::pair<std::string, std::vector<int32_t>>;

Occurrence OccurrenceOf(const NumberedNode& node, const PartialDomain& domain) {
  const std::string attrs = PrintAttributes(node.node->attrs);  // an epsilon moves the border
  if (!domain.group.empty()) return {Cat(domain.group, attrs), {node.inputs[domain.input]}};
  return {Cat(node.node->op->name, attrs), node.inputs};
}

/// Literals that are no numbers: symbols to the field, so that sums and products of them cancel there and nowhere else.
class NonFinite {
 public:
  NonFinite(const Numbering& numbering, WeightMode weights) : numbering_(numbering), weights_(weights) {}

  /// Elements of the value may be such literals, moved or chosen.
  bool MayHold(int32_t number) {
    const auto known = known_.find(number);
    if (known != known_.end()) return known->second;
    const NumberedNode& node = numbering_.NodeOf(number);
    bool holds = false;
    if (IsConstant(*node.node)) {
      holds = IsFloat(numbering_.TypeOf(number).dtype) && IsKnown(*node.node, weights_) &&
              !KnownAll(*node.node, weights_, [](double) { return true; });
    } else if (SelectsElements(*node.node->op) || node.node->op->name == "Where") {
      holds = AnyOperand(node);
    }
    return known_[number] = holds;
  }

  /// The node computes with them.
  bool Reaches(const NumberedNode& node) {
    return !SelectsElements(*node.node->op) && node.node->op->name != "Where" && AnyOperand(node);
  }

 private:
  bool AnyOperand(const NumberedNode& node) {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](int32_t input) { return MayHold(input); });
  }

  const Numbering& numbering_;
  const WeightMode weights_;
  std::map<int32_t, bool> known_;
};

}  // namespace

absl::Status CheckDomain(const Numbering& numbering, WeightMode weights) {
  const bool partial = std::any_of(numbering.nodes.begin(), numbering.nodes.end(),
                                   [](const NumberedNode& node) { return node.in_plan && node.node->op->domain.has_value(); });
  std::vector<std::optional<Guards>> in_original, in_plan;
  if (partial) {
    in_original = GuardsOf(numbering, Side::kOriginal);
    in_plan = GuardsOf(numbering, Side::kPlan);
  }
  std::map<Occurrence, std::vector<Guards>> original;
  for (size_t i = 0; partial && i < numbering.nodes.size(); ++i) {
    const NumberedNode& node = numbering.nodes[i];
    const std::optional<PartialDomain>& domain = node.node->op->domain;
    if (!node.in_original || !domain.has_value() || !in_original[i].has_value()) continue;
    original[OccurrenceOf(node, *domain)].push_back(*in_original[i]);
  }
  const auto occurs = [&](const NumberedNode& node, const Guards& guards) {
    const auto it = original.find(OccurrenceOf(node, *node.node->op->domain));
    return it != original.end() && std::any_of(it->second.begin(), it->second.end(), [&](const Guards& known) {
             return std::includes(guards.begin(), guards.end(), known.begin(), known.end());
           });
  };
  Signs signs(numbering, weights);
  NonFinite non_finite(numbering, weights);
  for (size_t i = 0; i < numbering.nodes.size(); ++i) {
    const NumberedNode& node = numbering.nodes[i];
    if (!node.in_original && non_finite.Reaches(node)) {
      return Unsupported("unproven: ", node.node->op->name, " '", node.node->name,
                         "' of the plan computes with infinities or NaN in a way that the original does not");
    }
    const std::optional<PartialDomain>& domain = node.node->op->domain;
    if (!node.in_plan || !domain.has_value() || IsIntegral(node.node->outputs[0].dtype) || !in_plan[i].has_value()) continue;
    if (occurs(node, *in_plan[i]) || Satisfied(node, *domain, signs)) continue;
    return Unsupported("unproven: ", node.node->op->name, " '", node.node->name,
                       "' of the plan is not defined everywhere, and the original has none with the same argument");
  }
  return absl::OkStatus();
}

}  // namespace mendel
