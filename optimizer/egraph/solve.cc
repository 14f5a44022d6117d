#include "optimizer/egraph/solve.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "base/status.h"
#include "optimizer/egraph/ilp.h"
#include "optimizer/egraph/loops.h"
#include "optimizer/egraph/parts.h"
#include "optimizer/egraph/simplify.h"

namespace mendel {
namespace {

/// The cost of the dearest root if only the dearest operand counted: no program costs less.
double CheapestChain(const ChoiceProblem& problem) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> chain(problem.classes.size(), kInfinity);
  std::vector<size_t> missing(problem.nodes.size());
  std::vector<double> dearest(problem.nodes.size(), 0);
  std::set<std::pair<double, int>>
      ready;  // what a node and its chain cost: the cheapest one is final (Knuth 1977)
  for (size_t n = 0; n < problem.nodes.size(); ++n) {
    missing[n] = problem.nodes[n].operands.size();
    if (missing[n] == 0) ready.emplace(problem.nodes[n].cost, static_cast<int>(n));
  }
  while (!ready.empty()) {
    const auto [cost, node] = *ready.begin();
    ready.erase(ready.begin());
    for (int output : problem.nodes[static_cast<size_t>(node)].outputs) {
      double& least = chain[static_cast<size_t>(output)];
      if (least < kInfinity) continue;
      least = cost;
      for (int reader : problem.readers[static_cast<size_t>(output)]) {
        const size_t r = static_cast<size_t>(reader);
        dearest[r] = std::max(dearest[r], cost);
        if (--missing[r] == 0) ready.emplace(problem.nodes[r].cost + dearest[r], reader);
      }
    }
  }
  double bound = 0;
  for (int root : problem.roots) bound = std::max(bound, chain[static_cast<size_t>(root)]);
  return bound;
}

class Solver {
 public:
  Solver(const ChoiceProblem& problem, const SolveOptions& options)
      : problem_(problem), options_(options) {
    for (const auto& node : problem.nodes) costs_.push_back(node.cost);
  }

  absl::StatusOr<Solution> Run() {
    Offer(GreedyDerivation(problem_, costs_), "greedy");
    if (options_.exact && IsTree(problem_) && options_.accepts == nullptr) {
      result_.lower_bound = result_.cost;
      result_.method = "ilp";
    } else if (options_.exact && !problem_.nodes.empty()) {
      MENDEL_RETURN_IF_ERROR(Solve());
    }
    result_.lower_bound =
        std::min(std::max(result_.lower_bound, CheapestChain(problem_)), result_.cost);
    return std::move(result_);
  }

 private:
  /// Keeps the derivation when it is the cheapest so far that is accepted; true when it is
  /// accepted.
  bool Offer(std::vector<int> derivation, const std::string& method) {
    const double cost = CostOfDerivation(problem_, derivation);
    if (options_.accepts != nullptr && !options_.accepts(derivation)) return false;
    if (result_.found && cost >= result_.cost) return true;
    result_.found = true;
    result_.derivation = std::move(derivation);
    result_.cost = cost;
    result_.method = method;
    return true;
  }

  /// The rows require that every root and every operand of a chosen node is computed.
  std::vector<IlpRow> Rows() const {
    std::vector<IlpRow> rows;
    for (int root : problem_.roots) {
      rows.push_back({{}, 1});
      for (int member : problem_.members[static_cast<size_t>(root)])
        rows.back().terms.emplace_back(member, 1);
    }
    for (size_t n = 0; n < problem_.nodes.size(); ++n) {
      for (int operand : problem_.nodes[n].operands) {
        rows.push_back({{{static_cast<int>(n), -1}}, 0});
        for (int member : problem_.members[static_cast<size_t>(operand)]) {
          if (member != static_cast<int>(n)) rows.back().terms.emplace_back(member, 1);
        }
      }
    }
    return rows;
  }

  absl::Status Solve() {
    std::vector<IlpRow> rows = Rows();
    while (!options_.deadline.Passed()) {
      result_.columns = static_cast<int64_t>(costs_.size());
      result_.rows = static_cast<int64_t>(rows.size());
      MENDEL_ASSIGN_OR_RETURN(const IlpResult solved,
                              SolveBinary(costs_, rows, options_.deadline.SecondsLeft()));
      if (solved.infeasible) {  // cuts have excluded everything, or everything but what is known
        if (result_.found) result_.lower_bound = result_.cost;
        return absl::OkStatus();
      }
      result_.lower_bound = std::max(result_.lower_bound, solved.bound);
      if (solved.chosen.empty()) return absl::OkStatus();
      const auto derivation = Derive(problem_, solved.chosen);
      if (!derivation.has_value()) {
        if (!AddLoopCuts(solved.chosen, rows))
          return InternalError("a program that cannot be derived has no loop");
        Repair(solved.chosen, costs_);
      } else if (Offer(*derivation, "ilp")) {
        if (solved.optimal) result_.method = "ilp";  // also when it proves the greedy one
        return absl::OkStatus();
      } else {
        Exclude(*derivation, rows);
      }
      if (!solved.optimal) return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  bool AddLoopCuts(const std::vector<bool>& chosen, std::vector<IlpRow>& rows) {
    const std::vector<std::vector<int>> loops = UnfoundedLoops(problem_, chosen);
    for (const std::vector<int>& loop : loops) {
      for (IlpRow& cut : LoopCuts(problem_, loop)) {
        rows.push_back(std::move(cut));
        ++result_.loop_cuts;
      }
    }
    return !loops.empty();
  }

  /// A real program near a cyclic one: the greedy one under costs that favor what was chosen.
  void Repair(const std::vector<bool>& chosen, std::vector<double> costs) {
    for (size_t n = 0; n < costs.size(); ++n) costs[n] *= chosen[n] ? 0.01 : 1;
    Offer(GreedyDerivation(problem_, costs), "greedy");
  }

  /// This very program is refused: some node of it must go.
  void Exclude(const std::vector<int>& derivation, std::vector<IlpRow>& rows) const {
    std::set<int> nodes(derivation.begin(), derivation.end());
    nodes.erase(-1);
    rows.push_back({{}, 1 - static_cast<double>(nodes.size())});
    for (int n : nodes) rows.back().terms.emplace_back(n, -1);
  }

  const ChoiceProblem& problem_;
  const SolveOptions& options_;
  std::vector<double> costs_;
  Solution result_;
};

}  // namespace

absl::StatusOr<Solution> SolveChoice(const ChoiceProblem& problem, const SolveOptions& options) {
  if (options.accepts != nullptr)
    return Solver(problem, options).Run();  // which may refuse what is simplest
  const SimplifiedProblem simple = Simplify(problem);
  std::vector<size_t> order(simple.pieces.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) {  // of little time the small ones need little
                     return simple.pieces[a].problem.nodes.size() <
                            simple.pieces[b].problem.nodes.size();
                   });
  Solution whole{.found = true,
                 .derivation = {},
                 .cost = 0,
                 .lower_bound = simple.cost,
                 .method = options.exact ? "ilp" : "greedy"};
  std::vector<bool> allowed(problem.nodes.size(), false);
  for (int n : simple.settled) allowed[static_cast<size_t>(n)] = true;
  for (size_t k : order) {
    const ProblemPiece& piece = simple.pieces[k];
    MENDEL_ASSIGN_OR_RETURN(const Solution solution, Solver(piece.problem, options).Run());
    for (int chosen : solution.derivation) {
      if (chosen < 0) continue;
      for (int n : piece.nodes[static_cast<size_t>(chosen)]) allowed[static_cast<size_t>(n)] = true;
    }
    whole.lower_bound += solution.lower_bound;
    whole.columns += solution.columns;
    whole.rows += solution.rows;
    whole.loop_cuts += solution.loop_cuts;
    if (solution.method == "greedy") whole.method = "greedy";
  }
  auto derivation = Derive(problem, allowed);
  if (!derivation.has_value()) return InternalError("the pieces of an extraction make no program");
  whole.derivation = *std::move(derivation);
  whole.cost = CostOfDerivation(problem, whole.derivation);
  whole.lower_bound = std::min(whole.lower_bound, whole.cost);
  return whole;
}

}  // namespace mendel
