#include "verifier/definedness/zero_signs.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "verifier/field_evaluator.h"

namespace mendel {
namespace {

/// Weights have the signs of the stored numbers, as in element_states.cc.
constexpr WeightMode kSignsOfWeights = WeightMode::kExact;

bool IsAmong(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Sums, products and what moves elements: an infinity or NaN of an operand stays one.
bool KeepsInfinities(const OpDefinition& op) {
  constexpr std::array<std::string_view, 12> kArithmetic = {
      "Add",    "AveragePool", "Conv", "ConvTranspose", "Div",       "Identity",
      "MatMul", "Mul",         "Neg",  "ReduceMean",    "ReduceSum", "Sub"};
  return op.is_view || SelectsElements(op) || IsAmong(kArithmetic, op.name);
}

bool IsSum(std::string_view op) {
  constexpr std::array<std::string_view, 5> kSums = {"ReduceL1", "ReduceL2", "ReduceMean",
                                                     "ReduceSum", "ReduceSumSquare"};
  return IsAmong(kSums, op);
}

/// A matrix product or a convolution without bias.
bool IsSumOfProducts(const Node& node) {
  return node.op->name == "MatMul" || (node.op->name == "Conv" && node.inputs.size() == 2);
}

class ZeroSearch {
 public:
  explicit ZeroSearch(const Numbering& numbering) : numbering_(numbering) {
    for (const NumberedNode& node : numbering.nodes) {
      signs_.push_back(SignOf(node));
      plus_zero_.push_back(true);
    }
    while (Refine()) {
    }
  }

  std::set<Origin> Run() {
    std::set<Origin> merges;
    const std::set<int32_t> zeros = Zeros();
    for (const Claim& claim : numbering_.claims) {
      const bool counts = zeros.count(claim.representative) > 0 || zeros.count(claim.member) > 0;
      if (claim.output.empty() && counts) merges.insert(claim.merge);
    }
    return merges;
  }

  bool Finds() const { return !Zeros().empty(); }

 private:
  size_t NodeNumber(int32_t number) const {
    return static_cast<size_t>(numbering_.values[static_cast<size_t>(number)].node);
  }
  Sign SignAt(int32_t number) const { return signs_[NodeNumber(number)]; }

  Sign SignOf(const NumberedNode& node) const {
    std::vector<Sign> signs;
    for (const int32_t input : node.inputs) signs.push_back(SignAt(input));
    const bool one =
        !node.inputs.empty() && std::all_of(node.inputs.begin(), node.inputs.end(),
                                            [&](int32_t input) { return input == node.inputs[0]; });
    return SignOfNode(*node.node, node.input_types, signs, one, kSignsOfWeights);
  }

  /// A value is what is computed for any number that it is merged with. False: nothing is new.
  bool Refine() {
    bool changed = false;
    const auto refute = [&](size_t k) {
      changed = changed || plus_zero_[k];
      plus_zero_[k] = false;
    };
    for (size_t k = 0; k < numbering_.nodes.size(); ++k)
      if (!IsPlusZero(numbering_.nodes[k], signs_[k])) refute(k);
    for (const Claim& claim : numbering_.claims) {
      if (!claim.output.empty()) continue;
      if (!plus_zero_[NodeNumber(claim.member)]) refute(NodeNumber(claim.representative));
      if (!plus_zero_[NodeNumber(claim.representative)]) refute(NodeNumber(claim.member));
    }
    return changed;
  }

  /// A zero of the node's value is +0.
  bool IsPlusZero(const NumberedNode& node, Sign sign) const {
    const std::string_view op = node.node->op->name;
    if (sign == Sign::kPositive || op == "Abs" || IsNeverNegativeZero(*node.node, sign))
      return true;
    const auto of = [&](size_t k) { return plus_zero_[NodeNumber(node.inputs[k])]; };
    if (op == "Mul" && node.inputs[0] == node.inputs[1]) return true;
    if (op == "Mul") return sign != Sign::kUnknown && of(0) && of(1);
    if (op == "Add") return of(0) || of(1);
    return (IsSum(op) || op == "Sqrt" || node.node->op->is_view ||
            SelectsElements(*node.node->op)) &&
           !node.inputs.empty() && of(0);
  }

  /// The node's value may be an infinity that has the sign of a zero.
  bool DividesByZero(const NumberedNode& node) const {
    const std::optional<PartialDomain>& domain = node.node->op->domain;
    if (!domain.has_value() || !IsFloat(node.node->outputs[0].dtype)) return false;
    const auto operand = [&](size_t k) -> const Node& {
      return *numbering_.NodeOf(node.inputs[k]).node;
    };
    const bool power = node.node->op->name == "Pow";
    if (!power && domain->demand != Demand::kNonZero) return false;
    if (power && KnownAll(operand(1), kSignsOfWeights, [](double v) { return v >= 0; }))
      return false;
    if (plus_zero_[NodeNumber(node.inputs[domain->input])]) return false;
    std::vector<Sign> signs;
    for (const int32_t input : node.inputs) signs.push_back(SignAt(input));
    return !IsDefinedEverywhere(View(node), *node.node, signs, operand, kSignsOfWeights);
  }

  /// Numbers that such a divisor is computed of, where a function reads what follows of it.
  std::set<int32_t> Zeros() const {
    std::vector<std::set<size_t>> sources(numbering_.nodes.size());  // divisions that are kept
    std::set<size_t> read;
    for (size_t k = 0; k < numbering_.nodes.size(); ++k) {
      const NumberedNode& node = numbering_.nodes[k];
      for (const int32_t input : node.inputs) {
        const std::set<size_t>& of = sources[NodeNumber(input)];
        (KeepsInfinities(*node.node->op) ? sources[k] : read).insert(of.begin(), of.end());
      }
      if (DividesByZero(node)) sources[k].insert(k);
    }
    std::set<int32_t> zeros;
    std::vector<int32_t> open;
    for (const size_t k : read) {
      const NumberedNode& node = numbering_.nodes[k];
      open.push_back(node.inputs[node.node->op->domain->input]);
    }
    while (!open.empty()) {
      const int32_t number = open.back();
      open.pop_back();
      if (!zeros.insert(number).second) continue;
      const NumberedNode& node = numbering_.NodeOf(number);
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    }
    return zeros;
  }

  const Numbering& numbering_;
  std::vector<Sign> signs_;
  std::vector<bool> plus_zero_;
};

}  // namespace

bool IsNeverNegativeZero(const Node& node, Sign sign) {
  return IsIntegral(node.outputs[0].dtype) || IsSumOfProducts(node) ||
         (sign != Sign::kUnknown && IsSum(node.op->name));
}

std::set<Origin> MergesOfZeros(const Numbering& numbering) { return ZeroSearch(numbering).Run(); }

bool ReadsSignsOfZeros(const Numbering& numbering) { return ZeroSearch(numbering).Finds(); }

}  // namespace mendel
