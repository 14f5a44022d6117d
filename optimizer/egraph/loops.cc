#include "optimizer/egraph/loops.h"

#include <algorithm>
#include <set>
#include <utility>

namespace mendel {
namespace {

using Edges = std::vector<std::vector<int>>;  // by class

/// Classes that chosen nodes derive from the leaves upwards.
std::vector<bool> Derived(const ChoiceProblem& problem, const std::vector<bool>& chosen) {
  std::vector<bool> derived(problem.classes.size(), false);
  std::vector<size_t> missing(problem.nodes.size());
  std::vector<int> work;
  for (size_t n = 0; n < problem.nodes.size(); ++n) {
    missing[n] = problem.nodes[n].operands.size();
    if (chosen[n] && missing[n] == 0) work.push_back(static_cast<int>(n));
  }
  while (!work.empty()) {
    const size_t n = static_cast<size_t>(work.back());
    work.pop_back();
    for (int output : problem.nodes[n].outputs) {
      if (derived[static_cast<size_t>(output)]) continue;
      derived[static_cast<size_t>(output)] = true;
      for (int reader : problem.readers[static_cast<size_t>(output)]) {
        if (--missing[static_cast<size_t>(reader)] == 0 && chosen[static_cast<size_t>(reader)]) work.push_back(reader);
      }
    }
  }
  return derived;
}

/// Classes reached from `starts`, in the order in which they are finished.
std::vector<int> Finished(const std::vector<int>& starts, const Edges& edges, std::vector<bool>& seen) {
  std::vector<int> finished;
  std::vector<std::pair<int, size_t>> stack;
  for (int start : starts) {
    if (seen[static_cast<size_t>(start)]) continue;
    seen[static_cast<size_t>(start)] = true;
    stack.emplace_back(start, 0);
    while (!stack.empty()) {
      auto& [c, next] = stack.back();
      const std::vector<int>& to = edges[static_cast<size_t>(c)];
      if (next == to.size()) {
        finished.push_back(c);
        stack.pop_back();
        continue;
      }
      const int target = to[next++];
      if (seen[static_cast<size_t>(target)]) continue;
      seen[static_cast<size_t>(target)] = true;
      stack.emplace_back(target, 0);
    }
  }
  return finished;
}

}  // namespace

std::vector<std::vector<int>> UnfoundedLoops(const ChoiceProblem& problem, const std::vector<bool>& chosen) {
  const std::vector<bool> derived = Derived(problem, chosen);
  Edges forward(problem.classes.size()), backward(problem.classes.size());
  for (size_t n = 0; n < problem.nodes.size(); ++n) {
    if (!chosen[n]) continue;
    for (int output : problem.nodes[n].outputs) {
      for (int operand : problem.nodes[n].operands) {
        if (derived[static_cast<size_t>(output)] || derived[static_cast<size_t>(operand)]) continue;
        forward[static_cast<size_t>(output)].push_back(operand);
        backward[static_cast<size_t>(operand)].push_back(output);
      }
    }
  }
  std::vector<int> starts;
  for (int root : problem.roots) {
    if (!derived[static_cast<size_t>(root)]) starts.push_back(root);
  }
  // Strongly connected components (Kosaraju and Sharir) of what the roots reach; those that lead nowhere else are the loops.
  std::vector<bool> reached(problem.classes.size(), false);
  std::vector<int> order = Finished(starts, forward, reached);
  std::reverse(order.begin(), order.end());
  std::vector<bool> assigned(problem.classes.size(), false);
  for (size_t c = 0; c < reached.size(); ++c) assigned[c] = !reached[c];
  std::vector<std::vector<int>> loops;
  for (int start : order) {
    std::vector<int> component = Finished({start}, backward, assigned);
    const std::set<int> inside(component.begin(), component.end());
    const bool leads_out = std::any_of(component.begin(), component.end(), [&](int c) {
      const std::vector<int>& to = forward[static_cast<size_t>(c)];
      return std::any_of(to.begin(), to.end(), [&](int target) { return inside.count(target) == 0; });
    });
    if (!component.empty() && !leads_out) loops.push_back(std::move(component));
  }
  return loops;
}

std::vector<IlpRow> LoopCuts(const ChoiceProblem& problem, const std::vector<int>& loop) {
  const std::set<int> inside(loop.begin(), loop.end());
  const auto reads_loop = [&](int n) {
    const std::vector<int>& operands = problem.nodes[static_cast<size_t>(n)].operands;
    return std::any_of(operands.begin(), operands.end(), [&](int c) { return inside.count(c) > 0; });
  };
  std::set<int> support, readers;
  for (int c : loop) {
    for (int member : problem.members[static_cast<size_t>(c)]) {
      if (!reads_loop(member)) support.insert(member);
    }
    const std::vector<int>& reading = problem.readers[static_cast<size_t>(c)];
    readers.insert(reading.begin(), reading.end());
  }
  IlpRow supported;
  for (int n : support) supported.terms.emplace_back(n, 1);
  std::vector<IlpRow> rows;
  for (int n : readers) {
    rows.push_back(supported);
    rows.back().terms.emplace_back(n, -1);
  }
  const bool root = std::any_of(problem.roots.begin(), problem.roots.end(), [&](int c) { return inside.count(c) > 0; });
  if (root) {
    rows.push_back(supported);
    rows.back().lower = 1;
  }
  return rows;
}

}  // namespace mendel
