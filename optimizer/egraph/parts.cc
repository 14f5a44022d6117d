#include "optimizer/egraph/parts.h"

#include <algorithm>
#include <map>

namespace mendel {
namespace {

/// Reachability: vertex 0 leads to the roots, then come classes, which lead to their members, and
/// nodes, which lead to their operands and to what they compute besides.
class Reach {
 public:
  explicit Reach(const ChoiceProblem& problem)
      : classes_(problem.classes.size()), next_(1 + classes_ + problem.nodes.size()) {
    for (int root : problem.roots) next_[0].push_back(OfClass(root));
    for (size_t c = 0; c < classes_; ++c) {
      for (int member : problem.members[c]) next_[1 + c].push_back(OfNode(member));
    }
    for (size_t n = 0; n < problem.nodes.size(); ++n) {
      std::vector<size_t>& to = next_[1 + classes_ + n];
      for (int operand : problem.nodes[n].operands) to.push_back(OfClass(operand));
      if (problem.nodes[n].outputs.size() < 2) continue;
      for (int output : problem.nodes[n].outputs) to.push_back(OfClass(output));
    }
  }

  size_t OfClass(int c) const { return 1 + static_cast<size_t>(c); }
  size_t OfNode(int n) const { return 1 + classes_ + static_cast<size_t>(n); }
  int ClassOf(size_t vertex) const { return static_cast<int>(vertex - 1); }
  int NodeOf(size_t vertex) const { return static_cast<int>(vertex - 1 - classes_); }
  size_t size() const { return next_.size(); }
  const std::vector<size_t>& Next(size_t vertex) const { return next_[vertex]; }
  bool IsClass(size_t vertex) const { return vertex > 0 && vertex <= classes_; }

 private:
  size_t classes_;
  std::vector<std::vector<size_t>> next_;
};

/// Immediate dominators by vertex (Cooper, Harvey and Kennedy, "A simple, fast dominance
/// algorithm", 2001); `order` is a reverse postorder of all vertices, `place` its inverse.
struct Dominators {
  std::vector<size_t> order, place, above;
};

std::vector<size_t> ReversePostorder(const Reach& reach) {
  std::vector<size_t> order;
  std::vector<bool> seen(reach.size(), false);
  std::vector<std::pair<size_t, size_t>> stack = {{0, 0}};
  seen[0] = true;
  while (!stack.empty()) {
    auto& [vertex, at] = stack.back();
    if (at == reach.Next(vertex).size()) {
      order.push_back(vertex);
      stack.pop_back();
      continue;
    }
    const size_t to = reach.Next(vertex)[at++];
    if (seen[to]) continue;
    seen[to] = true;
    stack.emplace_back(to, 0);
  }
  std::reverse(order.begin(), order.end());
  return order;
}

Dominators FindDominators(const Reach& reach) {
  constexpr size_t kNone = static_cast<size_t>(-1);
  Dominators d{ReversePostorder(reach), std::vector<size_t>(reach.size(), kNone),
               std::vector<size_t>(reach.size(), kNone)};
  for (size_t k = 0; k < d.order.size(); ++k) d.place[d.order[k]] = k;
  std::vector<std::vector<size_t>> before(reach.size());
  for (size_t vertex : d.order) {
    for (size_t to : reach.Next(vertex)) before[to].push_back(vertex);
  }
  d.above[0] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t vertex : d.order) {
      if (vertex == 0) continue;
      size_t found = kNone;
      for (size_t from : before[vertex]) {
        if (d.above[from] == kNone) continue;
        if (found == kNone) found = from;
        for (size_t other = from; other != found;) {  // the nearest common ancestor
          while (d.place[other] > d.place[found]) other = d.above[other];
          while (d.place[found] > d.place[other]) found = d.above[found];
        }
      }
      if (d.above[vertex] != found) {
        d.above[vertex] = found;
        changed = true;
      }
    }
  }
  return d;
}

/// A class cuts when no edge leads from what it dominates to anything else.
std::vector<bool> FindCuts(const Reach& reach, const Dominators& d) {
  std::vector<bool> cuts(reach.size(), false);
  for (size_t vertex : d.order) cuts[vertex] = reach.IsClass(vertex);
  for (size_t from : d.order) {
    for (size_t to : reach.Next(from)) {
      // Dominators of `from` that do not dominate `to`; `to` itself may be one that does.
      for (size_t vertex = from; vertex != d.above[to] && vertex != to; vertex = d.above[vertex])
        cuts[vertex] = false;
    }
  }
  return cuts;
}

/// Numbers classes and nodes of one part.
class PartMaker {
 public:
  explicit PartMaker(const ChoiceProblem& whole) : whole_(whole) {}

  /// The part of `nodes` that computes `roots`; `made_by`: the part of every class that cuts and is
  /// made already.
  ProblemPart Make(const std::vector<int>& nodes, const std::vector<int>& roots,
                   const std::map<int, size_t>& made_by) {
    for (int root : roots) part_.problem.roots.push_back(Number(root));
    for (int n : nodes) AddNode(n);
    for (size_t c = 0; c < part_.classes.size(); ++c) {
      const auto maker = made_by.find(part_.classes[c]);
      if (maker == made_by.end()) continue;
      part_.leaves.emplace_back(static_cast<int>(part_.problem.nodes.size()), maker->second);
      part_.problem.nodes.push_back({-1, 0, {}, {static_cast<int>(c)}});
      part_.nodes.push_back(-1);
    }
    Connect();
    return std::move(part_);
  }

 private:
  int Number(int c) {
    const auto [it, fresh] = numbers_.emplace(c, static_cast<int>(part_.classes.size()));
    if (fresh) {
      part_.classes.push_back(c);
      part_.problem.classes.push_back(whole_.classes[static_cast<size_t>(c)]);
    }
    return it->second;
  }

  void AddNode(int n) {
    const ChoiceProblem::ChoiceNode& node = whole_.nodes[static_cast<size_t>(n)];
    ChoiceProblem::ChoiceNode own{node.id, node.cost, {}, {}};
    for (int operand : node.operands) own.operands.push_back(Number(operand));
    for (int output : node.outputs) own.outputs.push_back(Number(output));
    part_.problem.nodes.push_back(std::move(own));
    part_.nodes.push_back(n);
  }

  void Connect() {
    part_.problem.members.resize(part_.classes.size());
    part_.problem.readers.resize(part_.classes.size());
    for (size_t n = 0; n < part_.problem.nodes.size(); ++n) {
      for (int c : part_.problem.nodes[n].outputs)
        part_.problem.members[static_cast<size_t>(c)].push_back(static_cast<int>(n));
      for (int c : part_.problem.nodes[n].operands)
        part_.problem.readers[static_cast<size_t>(c)].push_back(static_cast<int>(n));
    }
  }

  const ChoiceProblem& whole_;
  ProblemPart part_;
  std::map<int, int> numbers_;
};

}  // namespace

std::vector<ProblemPart> SplitIntoParts(const ChoiceProblem& problem) {
  const Reach reach(problem);
  const Dominators dominators = FindDominators(reach);
  const std::vector<bool> cuts = FindCuts(reach, dominators);
  std::vector<size_t> owner(reach.size(),
                            0);  // the nearest class that cuts, as a vertex; 0: the roots' part
  std::vector<std::vector<int>> nodes(reach.size());
  for (size_t vertex : dominators.order) {
    if (vertex > 0) owner[vertex] = cuts[vertex] ? vertex : owner[dominators.above[vertex]];
    if (vertex > problem.classes.size()) nodes[owner[vertex]].push_back(reach.NodeOf(vertex));
  }
  std::vector<ProblemPart> parts;
  std::map<int, size_t> made_by;
  for (size_t k = dominators.order.size(); k-- > 0;) {  // what is read comes behind what reads it
    const size_t vertex = dominators.order[k];
    if (vertex > 0 && !cuts[vertex]) continue;
    const std::vector<int> roots =
        vertex > 0 ? std::vector<int>{reach.ClassOf(vertex)} : problem.roots;
    parts.push_back(PartMaker(problem).Make(nodes[vertex], roots, made_by));
    if (vertex > 0) made_by.emplace(roots[0], parts.size() - 1);
  }
  return parts;
}

bool IsTree(const ChoiceProblem& problem) {
  const auto several = [](const std::vector<int>& list) { return list.size() > 1; };
  const bool shared = std::any_of(problem.readers.begin(), problem.readers.end(), several) ||
                      std::any_of(problem.nodes.begin(), problem.nodes.end(),
                                  [&](const auto& node) { return several(node.outputs); });
  const bool loose = std::any_of(problem.roots.begin(), problem.roots.end(), [&](int root) {
    return !problem.readers[static_cast<size_t>(root)].empty();
  });
  return !shared && !loose;
}

}  // namespace mendel
