#include "optimizer/egraph/extract.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/deadline.h"
#include "base/status.h"
#include "optimizer/egraph/choice_problem.h"
#include "optimizer/egraph/parts.h"
#include "optimizer/egraph/solve.h"

namespace mendel {
namespace {

/// Choices by class, the free ones included, as an order of e-nodes: depth first from the roots,
/// which keeps few values alive.
Selection ToSelection(const EGraph& egraph, const ChoiceProblem& problem,
                      const std::vector<int>& derivation, const std::vector<ClassId>& roots) {
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
      : egraph_(egraph),
        roots_(roots),
        options_(options),
        deadline_(Deadline::After(options.seconds)) {}

  absl::StatusOr<Extraction> Run(const std::vector<double>& cost) {
    const Stopwatch clock;
    MENDEL_ASSIGN_OR_RETURN(problem_, MakeChoiceProblem(egraph_, roots_, cost));
    MENDEL_ASSIGN_OR_RETURN(Solution solution, SolveParts());
    Keep(solution);
    if (options_.max_peak_bytes > 0 &&
        result_.peak_bytes > options_.max_peak_bytes) {  // that is a condition on the whole
      const auto fits = [&](const std::vector<int>& derivation) {
        return PeakBytes(egraph_, ToSelection(egraph_, problem_, derivation, roots_), roots_) <=
               options_.max_peak_bytes;
      };
      MENDEL_ASSIGN_OR_RETURN(solution,
                              SolveChoice(problem_, {deadline_, options_.seconds > 0, fits}));
      if (!solution.found)
        return absl::ResourceExhaustedError(
            Cat("no program within ", options_.max_peak_bytes, " bytes was found"));
      Keep(solution);
    }
    result_.gap = result_.cost > 0 ? (result_.cost - result_.lower_bound) / result_.cost : 0;
    if (result_.gap < 1e-9) result_.gap = 0;
    result_.seconds = clock.Seconds();
    return std::move(result_);
  }

 private:
  void Keep(const Solution& solution) {
    result_.selection = ToSelection(egraph_, problem_, solution.derivation, roots_);
    result_.peak_bytes = PeakBytes(egraph_, result_.selection, roots_);
    result_.cost = CostOfDerivation(problem_, solution.derivation);
    result_.lower_bound = std::min(solution.lower_bound, result_.cost);
    result_.method = solution.method;
    result_.columns += solution.columns;
    result_.rows += solution.rows;
    result_.loop_cuts += solution.loop_cuts;
  }

  /// Part by part, what is read first; to what reads it, a part is a node that costs as much as its
  /// solution.
  absl::StatusOr<Solution> SolveParts() {
    std::vector<ProblemPart> parts = SplitIntoParts(problem_);
    std::vector<Solution> solutions;
    Solution whole;
    whole.method = options_.seconds > 0 ? "ilp" : "greedy";
    for (ProblemPart& part : parts) {
      double unproven = 0;
      for (const auto& [leaf, maker] : part.leaves) {
        part.problem.nodes[static_cast<size_t>(leaf)].cost = solutions[maker].cost;
        unproven += solutions[maker].cost - solutions[maker].lower_bound;
      }
      MENDEL_ASSIGN_OR_RETURN(
          Solution solution, SolveChoice(part.problem, {deadline_, options_.seconds > 0, nullptr}));
      solution.lower_bound = std::max(0.0, solution.lower_bound - unproven);
      whole.columns += solution.columns;
      whole.rows += solution.rows;
      whole.loop_cuts += solution.loop_cuts;
      if (solution.method == "greedy") whole.method = "greedy";
      result_.parts += solution.rows > 0 ? 1 : 0;
      solutions.push_back(std::move(solution));
    }
    whole.found = true;
    whole.lower_bound = solutions.back().lower_bound;
    whole.derivation = Combine(parts, solutions);
    return whole;
  }

  /// The derivation of the whole problem: the last part's, and those of the parts whose leaves it
  /// uses.
  std::vector<int> Combine(const std::vector<ProblemPart>& parts,
                           const std::vector<Solution>& solutions) const {
    std::vector<int> derivation(problem_.classes.size(), -1);
    std::vector<size_t> work = {parts.size() - 1};
    while (!work.empty()) {  // every part but the last is a leaf of one part only
      const ProblemPart& part = parts[work.back()];
      const std::vector<int>& own = solutions[work.back()].derivation;
      work.pop_back();
      std::set<int> used(own.begin(), own.end());
      for (const auto& [leaf, maker] : part.leaves) {
        if (used.count(leaf) > 0) work.push_back(maker);
      }
      for (size_t c = 0; c < own.size(); ++c) {
        const int node = own[c] < 0 ? -1 : part.nodes[static_cast<size_t>(own[c])];
        if (node >= 0) derivation[static_cast<size_t>(part.classes[c])] = node;
      }
    }
    return derivation;
  }

  const EGraph& egraph_;
  const std::vector<ClassId>& roots_;
  const ExtractOptions& options_;
  Deadline deadline_;
  ChoiceProblem problem_;
  Extraction result_;
};

}  // namespace

absl::StatusOr<Extraction> ExtractProgram(const EGraph& egraph, const std::vector<ClassId>& roots,
                                          const std::vector<double>& cost,
                                          const ExtractOptions& options) {
  return Extractor(egraph, roots, options).Run(cost);
}

double CostOfSelection(const Selection& selection, const std::vector<double>& cost) {
  double sum = 0;
  for (ENodeId id : selection.order) sum += cost[static_cast<size_t>(id)];
  return sum;
}

int64_t PeakBytes(const EGraph& egraph, const Selection& selection,
                  const std::vector<ClassId>& roots) {
  std::map<ClassId, size_t> last_use;
  for (size_t step = 0; step < selection.order.size(); ++step) {
    for (ClassId operand : egraph.node(selection.order[step]).operands)
      last_use[egraph.Find(operand)] = step;
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

absl::StatusOr<SelectedGraph> ToGraph(const EGraph& egraph, const Selection& selection,
                                      const std::vector<ClassId>& roots, const Graph& like) {
  SelectedGraph result;
  GraphBuilder builder(like.name());
  std::map<ENodeId, int32_t> where;
  std::map<std::string, int32_t> inputs;
  for (int32_t input : like.inputs())
    inputs[InputName(like.node(input))] =
        builder.Input(InputName(like.node(input)), like.type({input, 0})).node;
  result.nodes.assign(inputs.size(), -1);
  for (ENodeId id : selection.order) {
    const ENode& node = egraph.node(id);
    if (IsInput(node.node)) {
      const auto input = inputs.find(InputName(node.node));
      if (input == inputs.end())
        return InternalError("the program has an input '", InputName(node.node),
                             "' that the graph lacks");
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
    if (static_cast<size_t>(where[id]) != result.nodes.size())
      return InternalError("two e-nodes are one constant");
    result.nodes.push_back(id);
  }
  for (size_t k = 0; k < roots.size(); ++k) {
    const EValue value = selection.choice.at(egraph.Find(roots[k]));
    builder.Output(like.outputs()[k].name, {where.at(value.node), value.output});
  }
  MENDEL_ASSIGN_OR_RETURN(result.graph, builder.Build());
  if (result.graph.nodes().size() != result.nodes.size())
    return InternalError("an e-node of the selection is not needed");
  return result;
}

}  // namespace mendel
