#include "optimizer/egraph/extract.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/deadline.h"
#include "base/status.h"
#include "optimizer/egraph/choice_problem.h"
#include "optimizer/egraph/ilp.h"
#include "optimizer/egraph/loops.h"

namespace mendel {
namespace {

/// Choices by class, the free ones included, as an order of e-nodes: depth first from the roots, which keeps few values alive.
Selection ToSelection(const EGraph& egraph, const ChoiceProblem& problem, const std::vector<int>& derivation,
                      const std::vector<ClassId>& roots) {
  Selection selection;
  std::map<ClassId, int> by_class;
  for (size_t c = 0; c < derivation.size(); ++c) by_class[problem.classes[c]] = derivation[c];
  const auto choice_of = [&](ClassId id) {
    const auto chosen = by_class.find(id);
    if (chosen == by_class.end()) return problem.free.at(id);
    const ENodeId node = problem.nodes[static_cast<size_t>(chosen->second)].id;
    for (EValue member : egraph.members(id)) {
      if (member.node == node) return member;
    }
    return EValue{};
  };
  std::set<ENodeId> done;
  std::vector<std::pair<ClassId, bool>> stack;
  for (size_t k = roots.size(); k-- > 0;) stack.emplace_back(egraph.Find(roots[k]), false);
  while (!stack.empty()) {
    const auto [id, operands_done] = stack.back();
    stack.pop_back();
    if (!operands_done && selection.choice.count(id) > 0) continue;
    const EValue value = operands_done ? selection.choice.at(id) : choice_of(id);
    selection.choice[id] = value;
    if (done.count(value.node) > 0) continue;
    if (operands_done) {
      done.insert(value.node);
      selection.order.push_back(value.node);
      continue;
    }
    stack.emplace_back(id, true);
    const std::vector<ClassId>& operands = egraph.node(value.node).operands;
    for (size_t k = operands.size(); k-- > 0;) stack.emplace_back(egraph.Find(operands[k]), false);
  }
  return selection;
}

class Extractor {
 public:
  Extractor(const EGraph& egraph, const std::vector<ClassId>& roots, const ExtractOptions& options)
      : egraph_(egraph), roots_(roots), options_(options), deadline_(Deadline::After(options.seconds)) {}

  absl::StatusOr<Extraction> Run(const std::vector<double>& cost) {
    const Stopwatch clock;
    MENDEL_ASSIGN_OR_RETURN(problem_, MakeChoiceProblem(egraph_, roots_, cost));
    std::vector<double> costs;
    for (const auto& node : problem_.nodes) costs.push_back(node.cost);
    Offer(GreedyDerivation(problem_, costs), "greedy");
    result_.columns = static_cast<int64_t>(costs.size());
    if (options_.seconds > 0 && !problem_.nodes.empty()) MENDEL_RETURN_IF_ERROR(Solve(costs));
    if (!found_) return absl::ResourceExhaustedError(Cat("no program within ", options_.max_peak_bytes, " bytes was found"));
    if (problem_.nodes.empty()) result_.lower_bound = result_.cost;
    result_.lower_bound = std::min(result_.lower_bound, result_.cost);
    result_.gap = result_.cost > 0 ? (result_.cost - result_.lower_bound) / result_.cost : 0;
    if (result_.gap < 1e-9) result_.gap = 0;
    result_.seconds = clock.Seconds();
    return std::move(result_);
  }

 private:
  /// Keeps the derivation when it is the cheapest so far that fits into memory; true when it fits.
  bool Offer(const std::vector<int>& derivation, const std::string& method) {
    const double cost = CostOfDerivation(problem_, derivation);
    if (found_ && cost >= result_.cost && options_.max_peak_bytes == 0) return true;
    Selection selection = ToSelection(egraph_, problem_, derivation, roots_);
    const int64_t peak = PeakBytes(egraph_, selection, roots_);
    if (options_.max_peak_bytes > 0 && peak > options_.max_peak_bytes) return false;
    if (found_ && cost >= result_.cost) return true;
    found_ = true;
    result_.selection = std::move(selection);
    result_.cost = cost;
    result_.peak_bytes = peak;
    result_.method = method;
    return true;
  }

  /// Every root is computed; a chosen node's operands are.
  std::vector<IlpRow> Rows() const {
    std::vector<IlpRow> rows;
    for (int root : problem_.roots) {
      rows.push_back({{}, 1});
      for (int member : problem_.members[static_cast<size_t>(root)]) rows.back().terms.emplace_back(member, 1);
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

  absl::Status Solve(const std::vector<double>& costs) {
    std::vector<IlpRow> rows = Rows();
    while (!deadline_.Passed()) {
      result_.rows = static_cast<int64_t>(rows.size());
      MENDEL_ASSIGN_OR_RETURN(const IlpResult solved, SolveBinary(costs, rows, deadline_.SecondsLeft()));
      if (solved.infeasible) {  // memory cuts have excluded everything, or everything but what is known
        if (found_) result_.lower_bound = result_.cost;
        return absl::OkStatus();
      }
      result_.lower_bound = std::max(result_.lower_bound, solved.bound);
      if (solved.chosen.empty()) return absl::OkStatus();
      const auto derivation = Derive(problem_, solved.chosen);
      if (!derivation.has_value()) {
        if (!AddLoopCuts(solved.chosen, rows)) return InternalError("a program that cannot be derived has no loop");
        Repair(solved.chosen, costs);
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

  /// A real program near a cyclic one: the greedy one under costs that favour what was chosen.
  void Repair(const std::vector<bool>& chosen, std::vector<double> costs) {
    for (size_t n = 0; n < costs.size(); ++n) costs[n] *= chosen[n] ? 0.01 : 1;
    Offer(GreedyDerivation(problem_, costs), "greedy");
  }

  /// This very program does not fit into memory: some node of it must go.
  void Exclude(const std::vector<int>& derivation, std::vector<IlpRow>& rows) const {
    std::set<int> nodes(derivation.begin(), derivation.end());
    nodes.erase(-1);
    rows.push_back({{}, 1 - static_cast<double>(nodes.size())});
    for (int n : nodes) rows.back().terms.emplace_back(n, -1);
  }

  const EGraph& egraph_;
  const std::vector<ClassId>& roots_;
  const ExtractOptions& options_;
  Deadline deadline_;
  ChoiceProblem problem_;
  Extraction result_;
  bool found_ = false;
};

}  // namespace

absl::StatusOr<Extraction> ExtractProgram(const EGraph& egraph, const std::vector<ClassId>& roots, const std::vector<double>& cost,
                                          const ExtractOptions& options) {
  return Extractor(egraph, roots, options).Run(cost);
}

double CostOfSelection(const Selection& selection, const std::vector<double>& cost) {
  double sum = 0;
  for (ENodeId id : selection.order) sum += cost[static_cast<size_t>(id)];
  return sum;
}

int64_t PeakBytes(const EGraph& egraph, const Selection& selection, const std::vector<ClassId>& roots) {
  std::map<ClassId, size_t> last_use;
  for (size_t step = 0; step < selection.order.size(); ++step) {
    for (ClassId operand : egraph.node(selection.order[step]).operands) last_use[egraph.Find(operand)] = step;
  }
  for (ClassId root : roots) last_use[egraph.Find(root)] = selection.order.size();
  std::map<size_t, int64_t> freed;  // by the step after which the bytes are free
  int64_t live = 0, peak = 0;
  for (ENodeId id : selection.order) {  // the caller's: there from the beginning
    if (IsInput(egraph.node(id).node)) live += ByteSize(egraph.node(id).node.outputs[0]);
  }
  for (size_t step = 0; step < selection.order.size(); ++step) {
    const ENode& node = egraph.node(selection.order[step]);
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const ClassId output = egraph.Find(node.outputs[k]);
      if (egraph.IsConstantClass(output)) continue;
      const int64_t bytes = ByteSize(node.node.outputs[k]);
      if (!IsInput(node.node)) live += bytes;
      const auto use = last_use.find(output);
      freed[use == last_use.end() ? step : std::max(step, use->second)] += bytes;
    }
    peak = std::max(peak, live);
    const auto free_now = freed.find(step);
    if (free_now != freed.end()) live -= free_now->second;
  }
  return peak;
}

absl::StatusOr<SelectedGraph> ToGraph(const EGraph& egraph, const Selection& selection, const std::vector<ClassId>& roots,
                                      const Graph& like) {
  SelectedGraph result;
  GraphBuilder builder(like.name());
  std::map<ENodeId, int32_t> where;
  std::map<std::string, int32_t> inputs;
  for (int32_t input : like.inputs())
    inputs[InputName(like.node(input))] = builder.Input(InputName(like.node(input)), like.type({input, 0})).node;
  result.nodes.assign(inputs.size(), -1);
  for (ENodeId id : selection.order) {
    const ENode& node = egraph.node(id);
    if (IsInput(node.node)) {
      const auto input = inputs.find(InputName(node.node));
      if (input == inputs.end()) return InternalError("the program has an input '", InputName(node.node), "' that the graph lacks");
      where[id] = input->second;
      result.nodes[static_cast<size_t>(input->second)] = id;
      continue;
    }
    std::vector<ValueId> operands;
    for (ClassId operand : node.operands) {
      const EValue value = selection.choice.at(egraph.Find(operand));
      operands.push_back({where.at(value.node), value.output});
    }
    MENDEL_ASSIGN_OR_RETURN(where[id], builder.CopyNode(node.node, std::move(operands)));
    if (static_cast<size_t>(where[id]) != result.nodes.size()) return InternalError("two e-nodes are one constant");
    result.nodes.push_back(id);
  }
  for (size_t k = 0; k < roots.size(); ++k) {
    const EValue value = selection.choice.at(egraph.Find(roots[k]));
    builder.Output(like.outputs()[k].name, {where.at(value.node), value.output});
  }
  MENDEL_ASSIGN_OR_RETURN(result.graph, builder.Build());
  if (result.graph.nodes().size() != result.nodes.size()) return InternalError("an e-node of the selection is not needed");
  return result;
}

}  // namespace mendel
