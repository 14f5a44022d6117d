#include "optimizer/egraph/choice_problem.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace mendel {
namespace {

/// A derivation for every class that e-nodes that satisfy `usable` can compute, shallow ones
/// first.
template <class Usable>
std::map<ClassId, EValue> DeriveClasses(const EGraph& egraph, const Usable& usable) {
  std::map<ClassId, EValue> derived;
  std::map<ClassId, std::vector<ENodeId>> waiting;
  std::vector<size_t> missing(egraph.node_space(), 0);
  std::deque<ENodeId> ready;
  for (size_t i = 0; i < egraph.node_space(); ++i) {
    const ENodeId id = static_cast<ENodeId>(i);
    if (!egraph.alive(id) || !usable(id)) continue;
    std::set<ClassId> operands;
    for (ClassId operand : egraph.node(id).operands) operands.insert(egraph.Find(operand));
    missing[i] = operands.size();
    for (ClassId operand : operands) waiting[operand].push_back(id);
    if (operands.empty()) ready.push_back(id);
  }
  for (; !ready.empty(); ready.pop_front()) {
    const ENodeId id = ready.front();
    for (size_t k = 0; k < egraph.node(id).outputs.size(); ++k) {
      const ClassId output = egraph.Find(egraph.node(id).outputs[k]);
      if (!derived.emplace(output, EValue{id, static_cast<int32_t>(k)}).second) continue;
      for (ENodeId reader : waiting[output]) {
        if (--missing[static_cast<size_t>(reader)] == 0) ready.push_back(reader);
      }
    }
  }
  return derived;
}

/// Numbers the classes that the roots can reach through usable e-nodes, and those e-nodes.
class Reducer {
 public:
  Reducer(const EGraph& egraph, const std::vector<double>& cost) : egraph_(egraph), cost_(cost) {}

  absl::StatusOr<ChoiceProblem> Run(const std::vector<ClassId>& roots) {
    const auto finite = [&](ENodeId id) { return std::isfinite(Cost(id)); };
    derivable_ = DeriveClasses(egraph_, finite);
    problem_.free = DeriveClasses(egraph_, [&](ENodeId id) { return Cost(id) == 0; });
    for (ClassId root : roots) {
      root = egraph_.Find(root);
      if (derivable_.count(root) == 0)
        return absl::FailedPreconditionError(Cat("nothing computes class ", root));
      if (problem_.free.count(root) == 0) problem_.roots.push_back(Number(root));
    }
    std::sort(problem_.roots.begin(), problem_.roots.end());
    problem_.roots.erase(std::unique(problem_.roots.begin(), problem_.roots.end()),
                         problem_.roots.end());
    for (size_t c = 0; c < problem_.classes.size(); ++c)
      Expand(problem_.classes[c]);  // grows meanwhile
    for (size_t n = 0; n < problem_.nodes.size(); ++n) Connect(static_cast<int>(n));
    return std::move(problem_);
  }

 private:
  double Cost(ENodeId id) const { return cost_[static_cast<size_t>(id)]; }

  int Number(ClassId id) {
    const auto [it, fresh] = numbers_.emplace(id, static_cast<int>(problem_.classes.size()));
    if (fresh) problem_.classes.push_back(id);
    return it->second;
  }

  /// Operand classes that cost something; nullopt when the e-node cannot be used.
  std::optional<std::set<ClassId>> Operands(ENodeId id) const {
    if (!std::isfinite(Cost(id))) return std::nullopt;
    std::set<ClassId> operands;
    const ENode& node = egraph_.node(id);
    for (ClassId operand : node.operands) {
      operand = egraph_.Find(operand);
      if (derivable_.count(operand) == 0) return std::nullopt;
      if (node.outputs.size() == 1 && operand == egraph_.Find(node.outputs[0])) return std::nullopt;
      if (problem_.free.count(operand) == 0) operands.insert(operand);
    }
    return operands;
  }

  void Expand(ClassId id) {
    std::vector<std::pair<ENodeId, std::set<ClassId>>> usable;
    for (EValue value : egraph_.members(id)) {
      if (auto operands = Operands(value.node))
        usable.emplace_back(value.node, *std::move(operands));
    }
    for (const auto& [node, operands] : usable) {
      const bool dominated = std::any_of(
          usable.begin(), usable.end(), [&, &node = node, &operands = operands](const auto& other) {
            return other.first != node && Dominates(other.first, other.second, node, operands);
          });
      if (dominated || !taken_.insert(node).second) continue;
      ChoiceProblem::ChoiceNode made{node, Cost(node), {}, {}};
      for (ClassId operand : operands) made.operands.push_back(Number(operand));
      problem_.nodes.push_back(std::move(made));
    }
  }

  /// The one with the smaller number stays of two equals.
  bool Dominates(ENodeId a, const std::set<ClassId>& of_a, ENodeId b,
                 const std::set<ClassId>& of_b) const {
    if (egraph_.node(b).outputs.size() != 1 || Cost(a) > Cost(b)) return false;
    if (!std::includes(of_b.begin(), of_b.end(), of_a.begin(), of_a.end())) return false;
    return Cost(a) < Cost(b) || of_a.size() < of_b.size() || egraph_.node(a).outputs.size() > 1 ||
           a < b;
  }

  void Connect(int n) {
    problem_.members.resize(problem_.classes.size());
    problem_.readers.resize(problem_.classes.size());
    ChoiceProblem::ChoiceNode& node = problem_.nodes[static_cast<size_t>(n)];
    for (int operand : node.operands) problem_.readers[static_cast<size_t>(operand)].push_back(n);
    std::set<int> outputs;
    for (ClassId output : egraph_.node(node.id).outputs) {
      const auto it = numbers_.find(egraph_.Find(output));
      if (it != numbers_.end()) outputs.insert(it->second);
    }
    node.outputs.assign(outputs.begin(), outputs.end());
    for (int output : outputs) problem_.members[static_cast<size_t>(output)].push_back(n);
  }

  const EGraph& egraph_;
  const std::vector<double>& cost_;
  ChoiceProblem problem_;
  std::map<ClassId, EValue> derivable_;
  std::map<ClassId, int> numbers_;
  std::set<ENodeId> taken_;
};

/// A set of nodes as bits.
using Bits = std::vector<uint64_t>;

double CostOfBits(const Bits& bits, const std::vector<double>& costs) {
  double sum = 0;
  for (size_t word = 0; word < bits.size(); ++word) {
    for (uint64_t rest = bits[word]; rest != 0; rest &= rest - 1) {
      sum += costs[word * 64 + static_cast<size_t>(__builtin_ctzll(rest))];
    }
  }
  return sum;
}

}  // namespace

absl::StatusOr<ChoiceProblem> MakeChoiceProblem(const EGraph& egraph,
                                                const std::vector<ClassId>& roots,
                                                const std::vector<double>& cost) {
  if (cost.size() < egraph.node_space()) return InternalError("an e-node has no cost");
  return Reducer(egraph, cost).Run(roots);
}

std::optional<std::vector<int>> Derive(const ChoiceProblem& problem,
                                       const std::vector<bool>& allowed) {
  std::vector<int> derived(problem.classes.size(), -1);
  std::vector<size_t> missing(problem.nodes.size(), 0);
  std::deque<int> ready;
  for (size_t n = 0; n < problem.nodes.size(); ++n) {
    missing[n] = problem.nodes[n].operands.size();
    if (allowed[n] && missing[n] == 0) ready.push_back(static_cast<int>(n));
  }
  for (; !ready.empty(); ready.pop_front()) {
    for (int output : problem.nodes[static_cast<size_t>(ready.front())].outputs) {
      int& by = derived[static_cast<size_t>(output)];
      if (by >= 0) continue;
      by = ready.front();
      for (int reader : problem.readers[static_cast<size_t>(output)]) {
        if (--missing[static_cast<size_t>(reader)] == 0 && allowed[static_cast<size_t>(reader)])
          ready.push_back(reader);
      }
    }
  }
  std::vector<int> needed(problem.classes.size(), -1);
  std::vector<int> work = problem.roots;
  while (!work.empty()) {
    const size_t c = static_cast<size_t>(work.back());
    work.pop_back();
    if (derived[c] < 0) return std::nullopt;
    if (needed[c] >= 0) continue;
    needed[c] = derived[c];
    const auto& operands = problem.nodes[static_cast<size_t>(derived[c])].operands;
    work.insert(work.end(), operands.begin(), operands.end());
  }
  return needed;
}

double CostOfDerivation(const ChoiceProblem& problem, const std::vector<int>& derivation) {
  double cost = 0;
  std::set<int> nodes(derivation.begin(), derivation.end());
  nodes.erase(-1);
  for (int n : nodes) cost += problem.nodes[static_cast<size_t>(n)].cost;
  return cost;
}

std::vector<int> GreedyDerivation(const ChoiceProblem& problem, const std::vector<double>& costs) {
  const size_t words = (problem.nodes.size() + 63) / 64;
  std::vector<Bits> sets(problem.classes.size());
  std::vector<double> best(problem.classes.size(), std::numeric_limits<double>::infinity());
  std::deque<int> work;
  std::vector<bool> waiting(problem.nodes.size(), true);
  for (size_t n = 0; n < problem.nodes.size(); ++n) work.push_back(static_cast<int>(n));
  while (!work.empty()) {
    const size_t n = static_cast<size_t>(work.front());
    work.pop_front();
    waiting[n] = false;
    const auto& node = problem.nodes[n];
    if (std::any_of(node.operands.begin(), node.operands.end(),
                    [&](int c) { return sets[static_cast<size_t>(c)].empty(); }))
      continue;
    Bits bits(words, 0);
    bits[n / 64] |= uint64_t{1} << (n % 64);
    for (int operand : node.operands) {
      const Bits& set = sets[static_cast<size_t>(operand)];
      for (size_t word = 0; word < words; ++word) bits[word] |= set[word];
    }
    const double cost = CostOfBits(bits, costs);
    for (int output : node.outputs) {
      const size_t c = static_cast<size_t>(output);
      if (!(cost < best[c] * (1 - 1e-12))) continue;
      best[c] = cost;
      sets[c] = bits;
      for (int reader : problem.readers[c]) {
        if (!waiting[static_cast<size_t>(reader)]) work.push_back(reader);
        waiting[static_cast<size_t>(reader)] = true;
      }
    }
  }
  std::vector<bool> allowed(problem.nodes.size(), false);
  for (int root : problem.roots) {
    const Bits& set = sets[static_cast<size_t>(root)];
    for (size_t n = 0; n < problem.nodes.size() && !set.empty(); ++n) {
      if ((set[n / 64] >> (n % 64) & 1) != 0) allowed[n] = true;
    }
  }
  auto derivation = Derive(problem, allowed);
  MENDEL_CHECK(derivation.has_value());  // the union of sets that can be derived can be derived
  return *std::move(derivation);
}

}  // namespace mendel
