#include "verifier/axioms/canonical_pair.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/status.h"
#include "verifier/axioms/axioms.h"

namespace mendel {
namespace {

/// Name under which such literals are counted.
constexpr const char* kFolded = "literal folded of others";

/// Operands are compared crosswise, too, up to this number of pairs.
constexpr size_t kMostPairs = 1 << 14;

/// One literal factor of a canonical product or quotient.
struct Factor {
  bool over = false;
  double literal = 1;

  bool operator==(const Factor&) const = default;
};

/// base * factors, or the negative of it; factors innermost first.
struct Factored {
  ValueId base;
  bool negative = false;
  std::vector<Factor> factors;
};

std::optional<double> PositiveScalar(const Graph& graph, ValueId value) {
  const Node& node = graph.node(value.node);
  if (!IsConstant(node) || !SymbolName(node).empty() || !graph.type(value).shape.empty())
    return std::nullopt;
  const double number = ConstantValue(node).DoubleAt(0);
  return number > 0 && std::isfinite(number) ? std::optional(number) : std::nullopt;
}

Factored FactorsOut(const Graph& graph, ValueId value) {
  Factored factored{value, false, {}};
  for (;;) {
    const Node& node = graph.node(factored.base.node);
    const bool over = node.op->name == "Div";
    if (node.op->name == "Neg") {
      factored.negative = !factored.negative;
    } else if (over || node.op->name == "Mul") {
      const std::optional<double> literal = PositiveScalar(graph, node.inputs[1]);
      if (!literal.has_value()) break;
      factored.factors.push_back({over, *literal});
    } else {
      break;
    }
    factored.base = node.inputs[0];
  }
  std::reverse(factored.factors.begin(), factored.factors.end());
  return factored;
}

long double ProductOf(const std::vector<Factor>& factors) {
  long double product = 1;
  for (const Factor& factor : factors)
    product = factor.over ? product / factor.literal : product * factor.literal;
  return product;
}

/// Not where the literal is the constant itself: nothing is rounded then.
bool IsNearest(DType dtype, double literal, long double constant) {
  return literal == RoundTo(dtype, static_cast<double>(constant)) && literal != constant;
}

/// `folded` is one literal, or the same one twice, and stands for the product of `factors`.
bool StandsFor(DType dtype, const std::vector<Factor>& folded, const std::vector<Factor>& factors) {
  if (folded.empty() || factors.empty() || folded == factors) return false;
  const Factor& first = folded.front();
  const long double product = first.over ? 1 / ProductOf(factors) : ProductOf(factors);
  if (folded.size() == 1) return IsNearest(dtype, first.literal, product);
  return folded.size() == 2 && first == folded.back() &&
         IsNearest(dtype, first.literal, std::sqrt(product));
}

/// Walks both programs from their outputs through nodes that are alike.
class Unfolder {
 public:
  Unfolder(const Graph& a, const Graph& b, const std::set<std::string>& deciding_outputs)
      : a_(a),
        b_(b),
        deciding_a_(DecidingNodes(a, deciding_outputs)),
        deciding_b_(DecidingNodes(b, deciding_outputs)) {
    for (size_t k = 0; k < a.outputs().size(); ++k)
      Compare(a.outputs()[k].value, b.outputs()[k].value);
  }

  /// By value of either program: the form to be written in its place.
  using Plan = std::map<ValueId, Factored>;
  const Plan& plan_a() const { return plan_a_; }
  const Plan& plan_b() const { return plan_b_; }

 private:
  void Compare(ValueId x, ValueId y) {
    std::vector<std::pair<ValueId, ValueId>> open = {{x, y}};
    while (!open.empty()) {
      const auto [u, v] = open.back();
      open.pop_back();
      if (a_.type(u) != b_.type(v) || !met_.insert({u, v}).second) continue;
      const Factored of_a = FactorsOut(a_, u), of_b = FactorsOut(b_, v);
      if (!of_a.factors.empty() && !of_b.factors.empty()) {
        Unfold(u, v, of_a, of_b);
        open.emplace_back(of_a.base, of_b.base);
        continue;
      }
      const Node &f = a_.node(u.node), &g = b_.node(v.node);
      if (f.op != g.op || f.inputs.size() != g.inputs.size() || !(f.attrs == g.attrs)) continue;
      for (size_t k = 0; k < f.inputs.size(); ++k) open.emplace_back(f.inputs[k], g.inputs[k]);
      if (f.inputs.size() != 2 || met_.size() > kMostPairs) continue;
      // Operands of a sum stand in the order of hashes, which literals change.
      for (size_t k = 0; k < 2; ++k) open.emplace_back(f.inputs[k], g.inputs[1 - k]);
    }
  }

  void Unfold(ValueId u, ValueId v, const Factored& of_a, const Factored& of_b) {
    const bool decides =
        deciding_a_[static_cast<size_t>(u.node)] || deciding_b_[static_cast<size_t>(v.node)];
    if (decides || of_a.negative != of_b.negative || a_.type(u) != b_.type(v)) return;
    const DType dtype = a_.type(u).dtype;
    if (StandsFor(dtype, of_b.factors, of_a.factors)) {
      plan_b_.try_emplace(v, Factored{of_b.base, of_b.negative, of_a.factors});
    } else if (StandsFor(dtype, of_a.factors, of_b.factors)) {
      plan_a_.try_emplace(u, Factored{of_a.base, of_a.negative, of_b.factors});
    }
  }

  const Graph& a_;
  const Graph& b_;
  const std::vector<bool> deciding_a_, deciding_b_;
  std::set<std::pair<ValueId, ValueId>> met_;
  Plan plan_a_, plan_b_;
};

absl::StatusOr<ValueId> WriteFactored(GraphBuilder& builder, ValueId base,
                                      const Factored& factored) {
  ValueId value = base;
  const DType dtype = builder.type(base).dtype;
  for (const Factor& factor : factored.factors) {
    const ValueId literal = builder.Constant(Tensor::Scalar(dtype, factor.literal));
    MENDEL_ASSIGN_OR_RETURN(value, builder.Add(factor.over ? "Div" : "Mul", {value, literal}));
  }
  if (factored.negative) return builder.Add("Neg", {value});
  return value;
}

absl::StatusOr<Graph> Rewritten(const Graph& graph, const Unfolder::Plan& plan) {
  if (plan.empty()) return graph;
  GraphBuilder builder(graph.name());
  std::map<ValueId, ValueId> written;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const int32_t id = static_cast<int32_t>(i);
    const auto unfolded = plan.find({id, 0});
    if (unfolded != plan.end()) {
      const ValueId base = written.at(unfolded->second.base);
      MENDEL_ASSIGN_OR_RETURN((written[{id, 0}]), WriteFactored(builder, base, unfolded->second));
      continue;
    }
    std::vector<ValueId> inputs;
    for (const ValueId input : graph.node(id).inputs) inputs.push_back(written.at(input));
    MENDEL_ASSIGN_OR_RETURN(const int32_t copy, builder.CopyNode(graph.node(id), inputs));
    for (size_t k = 0; k < graph.node(id).outputs.size(); ++k)
      written[{id, static_cast<int32_t>(k)}] = {copy, static_cast<int32_t>(k)};
  }
  for (const GraphOutput& output : graph.outputs())
    builder.Output(output.name, written.at(output.value));
  return builder.Build();
}

using Uses = std::map<std::string, int>;

void AddUses(const Uses& more, Uses& uses) {
  for (const auto& [name, count] : more) uses[name] += count;
}

/// `pair` with its literals unfolded, and how many they are.
absl::StatusOr<int> Unfold(const std::set<std::string>& deciding_outputs,
                           std::pair<Graph, Graph>& pair) {
  const Unfolder unfolder(pair.first, pair.second, deciding_outputs);
  MENDEL_ASSIGN_OR_RETURN(Graph f, Rewritten(pair.first, unfolder.plan_a()));
  MENDEL_ASSIGN_OR_RETURN(Graph g, Rewritten(pair.second, unfolder.plan_b()));
  pair = {std::move(f), std::move(g)};
  return static_cast<int>(unfolder.plan_a().size() + unfolder.plan_b().size());
}

absl::StatusOr<std::pair<Graph, Graph>> BothCanonical(const Graph& a, const Graph& b,
                                                      WeightMode weights, Uses& uses,
                                                      const std::set<std::string>& deciding_outputs,
                                                      LiteralFactors factors) {
  MENDEL_ASSIGN_OR_RETURN(Graph f, Canonicalize(a, weights, &uses, deciding_outputs, factors));
  MENDEL_ASSIGN_OR_RETURN(Graph g, Canonicalize(b, weights, &uses, deciding_outputs, factors));
  return std::pair(std::move(f), std::move(g));
}

}  // namespace

absl::StatusOr<std::pair<Graph, Graph>> CanonicalizePair(
    const Graph& a, const Graph& b, WeightMode weights, std::map<std::string, int>* used,
    const std::set<std::string>& deciding_outputs) {
  Uses uses;
  MENDEL_ASSIGN_OR_RETURN(
      auto pair, BothCanonical(a, b, weights, uses, deciding_outputs, LiteralFactors::kConstants));
  if (uses.contains("rounded literal") || uses.contains("square of a rounded root")) {
    // A constant in place of two factors hides the factors that a literal was folded from.
    Uses first;
    MENDEL_ASSIGN_OR_RETURN(auto numbers, BothCanonical(a, b, weights, first, deciding_outputs,
                                                        LiteralFactors::kNumbers));
    MENDEL_ASSIGN_OR_RETURN(const int count, Unfold(deciding_outputs, numbers));
    if (count > 0) {
      uses = std::move(first);
      uses[kFolded] += count;
      MENDEL_ASSIGN_OR_RETURN(pair, BothCanonical(numbers.first, numbers.second, weights, uses,
                                                  deciding_outputs, LiteralFactors::kConstants));
    }
  }
  MENDEL_ASSIGN_OR_RETURN(const int count, Unfold(deciding_outputs, pair));
  if (count > 0) uses[kFolded] += count;
  if (used != nullptr) AddUses(uses, *used);
  return pair;
}

}  // namespace mendel
