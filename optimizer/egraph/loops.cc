#include "optimizer/egraph/loops.h"

#include <algorithm>
#include <set>
#include <utility>

#include "optimizer/egraph/strong_components.h"

namespace mendel {
namespace {

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
        if (--missing[static_cast<size_t>(reader)] == 0 && chosen[static_cast<size_t>(reader)])
          work.push_back(reader);
      }
    }
  }
  return derived;
}

}  // namespace

std::vector<std::vector<int>> UnfoundedLoops(const ChoiceProblem& problem,
                                             const std::vector<bool>& chosen) {
  const std::vector<bool> derived = Derived(problem, chosen);
  Edges forward(problem.classes.size());
  for (size_t n = 0; n < problem.nodes.size(); ++n) {
    if (!chosen[n]) continue;
    for (int output : problem.nodes[n].outputs) {
      for (int operand : problem.nodes[n].operands) {
        if (derived[static_cast<size_t>(output)] || derived[static_cast<size_t>(operand)]) continue;
        forward[static_cast<size_t>(output)].push_back(operand);
      }
    }
  }
  std::vector<int> starts;
  for (int root : problem.roots) {
    if (!derived[static_cast<size_t>(root)]) starts.push_back(root);
  }
  // Components that lead nowhere else are the loops.
  std::vector<std::vector<int>> loops;
  for (std::vector<int>& component : StrongComponents(forward, starts)) {
    const std::set<int> inside(component.begin(), component.end());
    const bool leads_out = std::any_of(component.begin(), component.end(), [&](int c) {
      const std::vector<int>& to = forward[static_cast<size_t>(c)];
      return std::any_of(to.begin(), to.end(),
                         [&](int target) { return inside.count(target) == 0; });
    });
    if (!leads_out) loops.push_back(std::move(component));
  }
  return loops;
}

std::vector<IlpRow> LoopCuts(const ChoiceProblem& problem, const std::vector<int>& loop) {
  const std::set<int> inside(loop.begin(), loop.end());
  const auto reads_loop = [&](int n) {
    const std::vector<int>& operands = problem.nodes[static_cast<size_t>(n)].operands;
    return std::any_of(operands.begin(), operands.end(),
                       [&](int c) { return inside.count(c) > 0; });
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
  const bool root = std::any_of(problem.roots.begin(), problem.roots.end(),
                                [&](int c) { return inside.count(c) > 0; });
  if (root) {
    rows.push_back(supported);
    rows.back().lower = 1;
  }
  return rows;
}

}  // namespace mendel
