#include "optimizer/egraph/simplify.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "optimizer/egraph/strong_components.h"
#include "optimizer/egraph/union_find.h"

namespace mendel {
namespace {

using Bits = std::vector<uint64_t>;

// Beyond these sizes, work that is quadratic in the steps or bits is left to the integer program,
// which stays exact.
constexpr size_t kMostInCycles = 500;
constexpr size_t kMostForNecessity = 20'000;

bool Contains(const std::set<int>& all, const std::set<int>& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

class Simplifier {
 public:
  explicit Simplifier(const ChoiceProblem& problem)
      : problem_(problem),
        steps_(problem.nodes.size()),
        members_(problem.classes.size()),
        readers_(problem.classes.size()),
        root_(problem.classes.size(), false),
        cyclic_(problem.classes.size(), false) {
    for (size_t n = 0; n < steps_.size(); ++n) {
      const int node = static_cast<int>(n);
      const ChoiceProblem::ChoiceNode& from = problem.nodes[n];
      steps_[n] = {from.cost,
                   {from.operands.begin(), from.operands.end()},
                   {from.outputs.begin(), from.outputs.end()},
                   {node}};
      for (int c : from.operands) Readers(c).insert(node);
      for (int c : from.outputs) Members(c).insert(node);
      DropOwnOperands(node);
    }
    for (int c : problem.roots) root_[static_cast<size_t>(c)] = true;
  }

  SimplifiedProblem Run() {
    for (changed_ = true; changed_;) {
      changed_ = false;
      DropUnreached();
      BreakCycles();
      SettleRoots();
      GiveFree();
      Contract();
      DropDominated();
      if (!changed_) FindNecessary();
    }
    MakePieces();
    return std::move(result_);
  }

 private:
  /// A node, or several that are used together.
  struct Step {
    double cost = 0;
    std::set<int> operands, outputs;
    std::vector<int> nodes;
  };

  Step& At(int n) { return steps_[static_cast<size_t>(n)]; }
  std::set<int>& Members(int c) { return members_[static_cast<size_t>(c)]; }
  std::set<int>& Readers(int c) { return readers_[static_cast<size_t>(c)]; }
  int ClassCount() const { return static_cast<int>(members_.size()); }

  void DropOperand(int n, int c) {
    At(n).operands.erase(c);
    Readers(c).erase(n);
    changed_ = true;
  }

  /// `n` computes `c` no more; without outputs it is gone.
  void DropOutput(int n, int c) {
    At(n).outputs.erase(c);
    Members(c).erase(n);
    changed_ = true;
    if (!At(n).outputs.empty()) return;
    for (int operand : std::set<int>(At(n).operands)) DropOperand(n, operand);
  }

  void Drop(int n) {
    for (int c : std::set<int>(At(n).outputs)) DropOutput(n, c);
  }

  /// Values that a step reads are there before it: it is of no use for computing them.
  void DropOwnOperands(int n) {
    for (int c : std::set<int>(At(n).operands)) {
      if (At(n).outputs.count(c) > 0) DropOutput(n, c);
    }
  }

  void DropUnreached() {
    std::vector<bool> reached = root_;
    std::vector<int> work;
    for (int c = 0; c < ClassCount(); ++c) {
      if (reached[static_cast<size_t>(c)]) work.push_back(c);
    }
    while (!work.empty()) {
      const std::set<int> members = Members(work.back());
      work.pop_back();
      for (int n : members) {
        for (int operand : At(n).operands) {
          if (!reached[static_cast<size_t>(operand)]) work.push_back(operand);
          reached[static_cast<size_t>(operand)] = true;
        }
      }
    }
    for (int c = 0; c < ClassCount(); ++c) {
      if (reached[static_cast<size_t>(c)]) continue;
      for (int n : std::set<int>(Members(c))) DropOutput(n, c);
    }
  }

  void BreakCycles() {
    Edges edges(members_.size());
    std::vector<int> all;
    for (int c = 0; c < ClassCount(); ++c) {
      all.push_back(c);
      std::set<int> operands;
      for (int n : Members(c)) operands.insert(At(n).operands.begin(), At(n).operands.end());
      edges[static_cast<size_t>(c)].assign(operands.begin(), operands.end());
    }
    cyclic_.assign(members_.size(), false);
    for (const std::vector<int>& component : StrongComponents(edges, all)) {
      if (component.size() < 2) continue;
      for (int c : component) cyclic_[static_cast<size_t>(c)] = true;
      if (component.size() > kMostInCycles) continue;
      for (int c : component) DropUseless(component, c);
    }
  }

  /// Members of `c` that need `c` first, whatever computes their operands. Operands outside the
  /// component can always be computed.
  void DropUseless(const std::vector<int>& component, int c) {
    const std::set<int> inside(component.begin(), component.end());
    std::map<int, int> missing;
    std::vector<int> ready;
    for (int other : component) {
      for (int n : Members(other)) {
        if (missing.count(n) > 0) continue;
        missing[n] =
            static_cast<int>(std::count_if(At(n).operands.begin(), At(n).operands.end(),
                                           [&](int operand) { return inside.count(operand) > 0; }));
        if (missing[n] == 0) ready.push_back(n);
      }
    }
    std::set<int> computed = {c};  // as if: its readers wait for ever
    while (!ready.empty()) {
      const int n = ready.back();
      ready.pop_back();
      for (int output : At(n).outputs) {
        if (inside.count(output) == 0 || !computed.insert(output).second) continue;
        for (int reader : Readers(output)) {
          const auto waiting = missing.find(reader);
          if (waiting != missing.end() && --waiting->second == 0) ready.push_back(reader);
        }
      }
    }
    for (int n : std::set<int>(Members(c))) {
      if (missing.at(n) > 0) DropOutput(n, c);
    }
  }

  void SettleRoots() {
    std::vector<int> work;
    for (int c = 0; c < ClassCount(); ++c) {
      if (root_[static_cast<size_t>(c)]) work.push_back(c);
    }
    while (!work.empty()) {
      const int c = work.back();
      work.pop_back();
      if (!root_[static_cast<size_t>(c)]) continue;
      const bool cyclic = cyclic_[static_cast<size_t>(c)];
      for (int n : cyclic ? std::set<int>() : std::set<int>(Readers(c))) DropOperand(n, c);
      const int first = *Members(c).begin();
      std::set<int> common = At(first).operands;
      for (int n : Members(c)) {
        std::set<int> both;
        std::set_intersection(common.begin(), common.end(), At(n).operands.begin(),
                              At(n).operands.end(), std::inserter(both, both.begin()));
        common = std::move(both);
      }
      for (int operand : common) {
        if (root_[static_cast<size_t>(operand)]) continue;
        root_[static_cast<size_t>(operand)] = changed_ = true;
        work.push_back(operand);
      }
      if (Members(c).size() > 1) continue;
      Settle(first);
      if (cyclic) continue;
      root_[static_cast<size_t>(c)] = false;
      DropOutput(first, c);
    }
  }

  /// Finds classes that every program computes although alternatives on the way share no operand. A
  /// class needs itself and whatever all its members need. The sets shrink until that holds, which
  /// is right for every derivation, from its leaves upwards.
  void FindNecessary() {
    std::vector<int> left, place(members_.size(), -1);
    for (int c = 0; c < ClassCount(); ++c) {
      if (Members(c).empty()) continue;
      place[static_cast<size_t>(c)] = static_cast<int>(left.size());
      left.push_back(c);
    }
    if (left.size() > kMostForNecessity) return;
    std::vector<Bits> necessary(left.size(), Bits((left.size() + 63) / 64, ~uint64_t{0}));
    std::set<int> work(left.begin(), left.end());
    while (!work.empty()) {
      // Classes that are read are mostly numbered after those that read them.
      const int c = *work.rbegin();
      work.erase(c);
      const size_t at = static_cast<size_t>(place[static_cast<size_t>(c)]);
      Bits common = necessary[at];
      for (int n : Members(c)) {
        Bits own(common.size(), 0);
        for (int operand : At(n).operands) {
          const Bits& of = necessary[static_cast<size_t>(place[static_cast<size_t>(operand)])];
          for (size_t word = 0; word < own.size(); ++word) own[word] |= of[word];
        }
        own[at / 64] |= uint64_t{1} << (at % 64);
        for (size_t word = 0; word < own.size(); ++word) common[word] &= own[word];
      }
      if (common == necessary[at]) continue;
      necessary[at] = std::move(common);
      for (int reader : Readers(c))
        work.insert(At(reader).outputs.begin(), At(reader).outputs.end());
    }
    for (int root : left) {
      if (!root_[static_cast<size_t>(root)]) continue;
      const Bits& bits = necessary[static_cast<size_t>(place[static_cast<size_t>(root)])];
      for (size_t k = 0; k < left.size(); ++k) {
        const size_t c = static_cast<size_t>(left[k]);
        if ((bits[k / 64] >> (k % 64) & 1) == 0 || root_[c]) continue;
        root_[c] = changed_ = true;
      }
    }
  }

  void Settle(int n) {
    result_.cost += At(n).cost;
    result_.settled.insert(result_.settled.end(), At(n).nodes.begin(), At(n).nodes.end());
    At(n).cost = 0;
    At(n).nodes.clear();
  }

  /// Classes that something computes from nothing and at no cost.
  void GiveFree() {
    for (int c = 0; c < ClassCount(); ++c) {
      const std::set<int> members = Members(c);
      const auto free = std::find_if(members.begin(), members.end(), [&](int n) {
        return At(n).cost == 0 && At(n).operands.empty();
      });
      if (free == members.end()) continue;
      Settle(*free);
      root_[static_cast<size_t>(c)] = false;
      for (int n : members) DropOutput(n, c);
      for (int n : std::set<int>(Readers(c))) DropOperand(n, c);
    }
  }

  void Contract() {
    for (int c = 0; c < ClassCount(); ++c) {
      if (root_[static_cast<size_t>(c)] || Members(c).size() != 1 || Readers(c).size() != 1)
        continue;
      const int from = *Members(c).begin(), into = *Readers(c).begin();
      if (At(from).outputs.size() > 1) continue;
      const Step step = At(from);
      Drop(from);
      DropOperand(into, c);
      At(into).cost += step.cost;
      At(into).nodes.insert(At(into).nodes.end(), step.nodes.begin(), step.nodes.end());
      for (int operand : step.operands) {
        At(into).operands.insert(operand);
        Readers(operand).insert(into);
      }
      DropOwnOperands(into);
    }
  }

  void DropDominated() {
    for (int c = 0; c < ClassCount(); ++c) {
      const std::set<int> members = Members(c);
      for (int n : members) {
        const auto at = [&](const auto& dominates) {
          return Members(c).count(n) > 0 &&
                 std::any_of(members.begin(), members.end(), [&](int other) {
                   return other != n && Members(c).count(other) > 0 &&
                          dominates(At(other), At(n), other < n);
                 });
        };
        if (at(Dominates)) Drop(n);
        if (at(ComputesForNothing)) DropOutput(n, c);
      }
    }
  }

  /// The first one stays of two equals.
  static bool Dominates(const Step& a, const Step& b, bool first) {
    if (a.cost > b.cost || !Contains(b.operands, a.operands) || !Contains(a.outputs, b.outputs))
      return false;
    return a.cost < b.cost || a.operands.size() < b.operands.size() ||
           a.outputs.size() > b.outputs.size() || first;
  }

  /// `a` computes their class wherever `b` does, at no cost; `b` may be of use for its other
  /// outputs.
  static bool ComputesForNothing(const Step& a, const Step& b, bool first) {
    if (a.cost > 0 || !Contains(b.operands, a.operands)) return false;
    return b.cost > 0 || a.operands.size() < b.operands.size() || first;
  }

  void MakePieces() {
    UnionFind together;
    for (int c = 0; c < ClassCount(); ++c) together.Add();
    for (const Step& step : steps_) {
      for (int c : step.outputs) together.Union(*step.outputs.begin(), c);
      for (int c : step.operands) together.Union(*step.outputs.begin(), c);
    }
    std::map<int, ProblemPiece> pieces;
    std::vector<int> number(members_.size(), -1);
    for (int c = 0; c < ClassCount(); ++c) {
      if (Members(c).empty()) continue;
      ChoiceProblem& own = pieces[together.Find(c)].problem;
      number[static_cast<size_t>(c)] = static_cast<int>(own.classes.size());
      own.classes.push_back(problem_.classes[static_cast<size_t>(c)]);
      if (root_[static_cast<size_t>(c)]) own.roots.push_back(number[static_cast<size_t>(c)]);
    }
    for (const Step& step : steps_) {
      if (!step.outputs.empty())
        AddTo(pieces.at(together.Find(*step.outputs.begin())), step, number);
    }
    for (auto& [first, piece] : pieces) result_.pieces.push_back(std::move(piece));
  }

  static void AddTo(ProblemPiece& piece, const Step& step, const std::vector<int>& number) {
    ChoiceProblem& own = piece.problem;
    own.members.resize(own.classes.size());
    own.readers.resize(own.classes.size());
    const int n = static_cast<int>(own.nodes.size());
    ChoiceProblem::ChoiceNode node{-1, step.cost, {}, {}};
    for (int c : step.operands) node.operands.push_back(number[static_cast<size_t>(c)]);
    for (int c : step.outputs) node.outputs.push_back(number[static_cast<size_t>(c)]);
    for (int c : node.operands) own.readers[static_cast<size_t>(c)].push_back(n);
    for (int c : node.outputs) own.members[static_cast<size_t>(c)].push_back(n);
    own.nodes.push_back(std::move(node));
    piece.nodes.push_back(step.nodes);
  }

  const ChoiceProblem& problem_;
  std::vector<Step> steps_;  // by number of the first node of each
  std::vector<std::set<int>> members_, readers_;
  std::vector<bool> root_, cyclic_;
  bool changed_ = false;
  SimplifiedProblem result_;
};

}  // namespace

SimplifiedProblem Simplify(const ChoiceProblem& problem) { return Simplifier(problem).Run(); }

}  // namespace mendel
