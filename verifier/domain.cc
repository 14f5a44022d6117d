#include "verifier/domain.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "base/status.h"

namespace mendel {
namespace {

enum class Demand : uint8_t { kNonZero, kPositive, kNonNegative, kSameNode };

/// An operator that is not defined everywhere: its operand `input` must satisfy `demand`. kSameNode: no fact suffices, all
/// operands must be those of a node of the same operator in the original.
struct PartialOperator {
  std::string_view name;
  size_t input;
  Demand demand;
};

constexpr std::array<PartialOperator, 11> kPartialOperators = {{{"Acos", 0, Demand::kSameNode},
                                                                {"Acosh", 0, Demand::kSameNode},
                                                                {"Asin", 0, Demand::kSameNode},
                                                                {"Atanh", 0, Demand::kSameNode},
                                                                {"Div", 1, Demand::kNonZero},
                                                                {"Log", 0, Demand::kPositive},
                                                                {"Mod", 1, Demand::kNonZero},
                                                                {"Pow", 0, Demand::kPositive},
                                                                {"Reciprocal", 0, Demand::kNonZero},
                                                                {"Rsqrt", 0, Demand::kPositive},
                                                                {"Sqrt", 0, Demand::kNonNegative}}};

const PartialOperator* FindPartial(std::string_view name) {
  const auto it = std::find_if(kPartialOperators.begin(), kPartialOperators.end(), [&](const auto& op) { return op.name == name; });
  return it == kPartialOperators.end() ? nullptr : &*it;
}

/// What is known of all elements of a value for all inputs; each implies those below it.
enum class Sign : uint8_t { kUnknown, kNonNegative, kPositive };

class Signs {
 public:
  explicit Signs(const Numbering& numbering) : numbering_(numbering) {}

  Sign Of(int32_t number) {
    const auto known = known_.find(number);
    if (known != known_.end()) return known->second;
    const Sign sign = Derive(number);
    known_[number] = sign;
    return sign;
  }

  /// A stored value without zeros (or with none below `least`).
  static bool LiteralAll(const NumberedNode& node, bool (*holds)(double)) {
    if (!IsConstant(*node.node) || !SymbolName(*node.node).empty()) return false;
    const Tensor& value = ConstantValue(*node.node);
    for (int64_t i = 0; i < value.size(); ++i) {
      if (!std::isfinite(value.DoubleAt(i)) || !holds(value.DoubleAt(i))) return false;
    }
    return true;
  }

 private:
  Sign Least(const NumberedNode& node) {
    Sign least = Sign::kPositive;
    for (int32_t input : node.inputs) least = std::min(least, Of(input));
    return node.inputs.empty() ? Sign::kUnknown : least;
  }

  Sign Derive(int32_t number) {
    const NumberedNode& node = numbering_.NodeOf(number);
    const std::string_view op = node.node->op->name;
    if (IsConstant(*node.node)) {
      if (LiteralAll(node, [](double v) { return v > 0; })) return Sign::kPositive;
      return LiteralAll(node, [](double v) { return v >= 0; }) ? Sign::kNonNegative : Sign::kUnknown;
    }
    if (op == "Exp" || op == "Sigmoid") return Sign::kPositive;
    if (op == "Relu" || op == "Abs" || op == "ReduceL1" || op == "ReduceL2" || op == "ReduceSumSquare") return Sign::kNonNegative;
    if (op == "Add") return Sum(Of(node.inputs[0]), Of(node.inputs[1]));
    if (op == "Mul" && node.inputs[0] == node.inputs[1] && node.input_types[0] == node.input_types[1]) {
      return std::max(Sign::kNonNegative, Of(node.inputs[0]));
    }
    if (op == "Mul" || op == "Concat" || op == "Expand" || op == "Slice" || op == "Split" || op == "Sqrt" || op == "Tile" ||
        op == "Transpose") {
      return Least(node);
    }
    if (op == "ReduceMean" || op == "ReduceSum") return NumElements(node.input_types[0]) > 0 ? Of(node.inputs[0]) : Sign::kUnknown;
    return Sign::kUnknown;
  }

  static Sign Sum(Sign a, Sign b) { return std::min(a, b) == Sign::kUnknown ? Sign::kUnknown : std::max(a, b); }

  const Numbering& numbering_;
  std::map<int32_t, Sign> known_;
};

bool Satisfied(const NumberedNode& node, const PartialOperator& partial, const Numbering& numbering, Signs& signs) {
  const int32_t operand = node.inputs[partial.input];
  const Sign sign = signs.Of(operand);
  switch (partial.demand) {
    case Demand::kNonZero:
      return sign == Sign::kPositive || Signs::LiteralAll(numbering.NodeOf(operand), [](double v) { return v != 0; });
    case Demand::kPositive:
      // x^2 and other small whole powers are products, defined everywhere.
      return sign == Sign::kPositive || (partial.name == "Pow" && Signs::LiteralAll(numbering.NodeOf(node.inputs[1]), [](double v) {
                                           return v >= 0 && v == std::floor(v);
                                         }));
    case Demand::kNonNegative:
      return sign != Sign::kUnknown;
    case Demand::kSameNode:
      return false;
  }
  return false;
}

/// Where an operand of a partial function occurs: division and reciprocal demand the same.
using Occurrence = std::pair<std::string_view, std::vector<int32_t>>;

Occurrence OccurrenceOf(const NumberedNode& node, const PartialOperator& partial) {
  if (partial.demand == Demand::kNonZero && partial.name != "Mod") return {"denominator", {node.inputs[partial.input]}};
  return {partial.name, node.inputs};
}

}  // namespace

absl::Status CheckDomain(const Numbering& numbering) {
  std::set<Occurrence> original;
  for (const NumberedNode& node : numbering.nodes) {
    const PartialOperator* partial = node.in_original ? FindPartial(node.node->op->name) : nullptr;
    if (partial != nullptr) original.insert(OccurrenceOf(node, *partial));
  }
  Signs signs(numbering);
  for (const NumberedNode& node : numbering.nodes) {
    const PartialOperator* partial = node.in_original ? nullptr : FindPartial(node.node->op->name);
    if (partial == nullptr || IsIntegral(node.node->outputs[0].dtype)) continue;
    if (original.contains(OccurrenceOf(node, *partial)) || Satisfied(node, *partial, numbering, signs)) continue;
    return Unsupported("unproven: ", node.node->op->name, " '", node.node->name,
                       "' of the plan is not defined everywhere, and the original has none with the same argument");
  }
  return absl::OkStatus();
}

}  // namespace mendel
