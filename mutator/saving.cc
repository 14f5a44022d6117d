#include "mutator/saving.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <map>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "graph/grid.h"
#include "graph/rewrite.h"
#include "graph/weight_bytes.h"
#include "mutator/regions/classes.h"

namespace mendel {
namespace {

constexpr double kSameRatio = 1.01;  // smaller differences are not reported
constexpr double kTenfold = 10;      // from here on a ratio is a whole number

/// True for operators that compute nothing: crops, transpositions, concatenations.
bool OnlyMoves(const Graph& graph, int32_t id) {
  for (const TensorType& type : graph.InputTypes(id)) {
    if (NumElements(type) == 0) return false;
  }
  const std::vector<const Tensor*> stored = StoredInputs(graph, id);
  const auto whole = WithView(graph, id, [&](const NodeView& view) {
    return RestrictToGrid(*graph.node(id).op, {view, stored, 0, WholeGrid(view.outputs[0].shape)});
  });
  return graph.node(id).op->is_view || (whole.has_value() && whole->moved >= 0);
}

/// Multiplications of one node; zero where it does not multiply operands.
double MultiplicationsOf(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  if (node.op->linear_inputs == nullptr) return 0;
  return WithView(graph, id, [&](const NodeView& view) {
    NodeView operands = view;
    if (node.op->name == "Conv" || node.op->name == "ConvTranspose")
      operands.inputs = operands.inputs.first(2);  // a bias is no factor
    if (std::popcount(node.op->linear_inputs(operands)) < 2) return 0.0;
    const double flops = CostOf(*node.op, view).flops;
    const double elements = static_cast<double>(NumElements(node.outputs[0]));
    return flops > elements ? flops / 2 : flops;
  });
}

/// A sum of more than one product an element.
bool IsProduct(const Graph& graph, int32_t id) {
  return MultiplicationsOf(graph, id) > static_cast<double>(NumElements(graph.node(id).outputs[0]));
}

/// Run-time nodes by operator, in order.
std::map<std::string_view, std::vector<int32_t>> NodesByOperator(const Graph& graph) {
  const std::vector<bool> constant = ConstantExpressions(graph);
  std::map<std::string_view, std::vector<int32_t>> nodes;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (!constant[i] && !IsInput(node)) nodes[node.op->name].push_back(static_cast<int32_t>(i));
  }
  return nodes;
}

std::string Decimals(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string Count(double value) {
  if (value >= 1e9) return Cat(Decimals(value / 1e9, 2), " billion");
  if (value >= 1e6) return Cat(Decimals(value / 1e6, 2), " million");
  return Decimals(value, 0);
}

std::string Bytes(double value) {
  if (value >= 1e6) return Cat(Decimals(value / 1e6, 1), " MB");
  if (value >= 1e3) return Cat(Decimals(value / 1e3, 1), " kB");
  return Cat(Decimals(value, 0), " bytes");
}

/// "36x36 of 112x112 positions"; nullopt unless `part` has fewer elements along some dimensions and
/// as many along the others.
std::optional<std::string> PositionsText(const Shape& whole, const Shape& part) {
  if (whole.size() != part.size() || whole == part) return std::nullopt;
  std::string some, all;
  for (size_t d = 0; d < whole.size(); ++d) {
    if (part[d] > whole[d]) return std::nullopt;
    if (part[d] == whole[d]) continue;
    some += Cat(some.empty() ? "" : "x", part[d]);
    all += Cat(all.empty() ? "" : "x", whole[d]);
  }
  return Cat(some, " of ", all, " positions");
}

/// The node of most arithmetic that computes a part only, by a rule that leaves parts out. Nodes of
/// one operator correspond in order, where there are as many of them as before.
std::string PositionsSaved(const Graph& before, const Graph& after, const Rule& rule) {
  if (rule.because.empty()) return "";
  const auto nodes = NodesByOperator(before), left = NodesByOperator(after);
  std::string heaviest;
  double most = -1;
  int others = -1;
  for (const auto& [name, ids] : nodes) {
    const auto found = left.find(name);
    if (found == left.end() || found->second.size() != ids.size()) continue;
    for (size_t k = 0; k < ids.size(); ++k) {
      const auto text = PositionsText(before.node(ids[k]).outputs[0].shape,
                                      after.node(found->second[k]).outputs[0].shape);
      if (!text.has_value() || OnlyMoves(before, ids[k])) continue;
      ++others;
      const int32_t id = ids[k];
      const double flops = WithView(before, id, [&](const NodeView& view) {
        return CostOf(*before.node(id).op, view).flops;
      });
      if (flops <= most) continue;
      most = flops;
      heaviest = Cat(name, " computes ", *text);
    }
  }
  if (heaviest.empty()) return "";
  if (others > 0)
    heaviest += Cat(" (", others, others == 1 ? " other node" : " other nodes", " a part, too)");
  return Cat(heaviest, ", because ", rule.because);
}

int64_t CountProducts(const Graph& graph) {
  const std::vector<bool> constant = ConstantExpressions(graph);
  int64_t count = 0;
  for (size_t i = 0; i < graph.nodes().size(); ++i)
    count += !constant[i] && IsProduct(graph, static_cast<int32_t>(i)) ? 1 : 0;
  return count;
}

std::string MultiplicationsSaved(const Graph& before, const Graph& after, bool makes_weights) {
  const double old = RunTimeMultiplications(before), now = RunTimeMultiplications(after);
  const int64_t products = CountProducts(before), left = CountProducts(after);
  std::string text;
  if (left < products && left > 0) {
    text = Cat(products, " products ", makes_weights ? "merged at load time into " : "merged into ",
               left);
  }
  std::string ratio;
  if (old > 0 && now == 0) {
    ratio = Cat("no multiplications instead of ", Count(old));
  } else if (old > kSameRatio * now || now > kSameRatio * old) {
    const bool fewer = old > now;
    const double times = fewer ? old / now : now / old;
    ratio = now == 0 || old == 0
                ? Cat(Count(now), " multiplications instead of ", Count(old))
                : Cat(Decimals(times, times < kTenfold ? 1 : 0), "x ", fewer ? "fewer" : "more",
                      " multiplications (", Count(now), " instead of ", Count(old), ")");
  }
  return text.empty() || ratio.empty() ? text + ratio : Cat(text, ": ", ratio);
}

/// "2 Transpose, 1 Mul" of those that `more` has beyond `fewer`; views cost nothing.
std::string OperatorsBeyond(const Graph& more, const Graph& fewer) {
  const auto nodes = NodesByOperator(more), others = NodesByOperator(fewer);
  std::string text;
  for (const auto& [name, ids] : nodes) {
    if (more.node(ids[0]).op->is_view) continue;
    const auto found = others.find(name);
    const size_t there = found == others.end() ? 0 : found->second.size();
    if (ids.size() > there) text += Cat(text.empty() ? "" : ", ", ids.size() - there, " ", name);
  }
  return text;
}

}  // namespace

double RunTimeMultiplications(const Graph& graph) {
  const std::vector<bool> constant = ConstantExpressions(graph);
  double sum = 0;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (!constant[i]) sum += MultiplicationsOf(graph, static_cast<int32_t>(i));
  }
  return sum;
}

std::vector<std::string> DescribeSaving(const Graph& before, const Graph& after, const Rule& rule) {
  std::vector<std::string> sentences;
  const auto note = [&](std::string text) {
    if (!text.empty()) sentences.push_back(std::move(text));
  };
  const int64_t made = MadeWeightBytes(after) - MadeWeightBytes(before);
  note(PositionsSaved(before, after, rule));
  note(MultiplicationsSaved(before, after, made > 0));
  const std::string removed = OperatorsBeyond(before, after),
                    added = OperatorsBeyond(after, before);
  if (!removed.empty() && !added.empty()) {
    note(Cat(added, " instead of ", removed));
  } else if (!removed.empty()) {
    note(Cat("without ", removed));
  } else if (!added.empty()) {
    note(Cat("with ", added, " more"));
  }
  if (made > 0) note(Cat("makes ", Bytes(static_cast<double>(made)), " of weights at load time"));
  return sentences;
}

}  // namespace mendel
