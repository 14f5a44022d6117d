// Steps that only one operand of a choice needs. A choice is a Where by one element, as an If whose
// condition is known at run time becomes. A run computes the operand that it takes.
//
// The steps are visited from the last one back. A step is needed by those that touch, later, a
// buffer that it writes. Where they all belong to one branch, so does the step. A choice itself
// needs each operand in a branch of its own, provided that its kernel works by elements: it then
// reads whatever bits the other operand has, and drops them. It comes after the steps of its
// branches and reads the condition, too, so that the condition's buffer is theirs until then.

#include <algorithm>
#include <map>
#include <set>

#include "kernels/cpu/lowering/lowering.h"

namespace mendel::cpu {
namespace {

constexpr int kAlways = -1, kUnknown = -2;

using ValuesOf = std::map<int, std::set<ValueId>>;  // that lie in a buffer

class BranchFinder {
 public:
  BranchFinder(const Graph& graph, const ValuesOf& values,
               const std::map<ValueId, Place>& conditions, Program& program)
      : graph_(graph), values_(values), conditions_(conditions), program_(program) {}

  void FindAll() {
    for (size_t s = 0; s < program_.steps.size(); ++s) {
      for (const int buffer : program_.steps[s].buffers) touching_[buffer].push_back(s);
    }
    for (size_t s = program_.steps.size(); s-- > 0;) {
      const int branch = BranchOf(s);
      ProgramStep& step = program_.steps[s];
      step.branch = branch == kUnknown ? kAlways : branch;
      if (step.branch >= 0) step.info.kernel += ", if needed";
    }
  }

 private:
  const Branch& At(int number) const { return program_.branches[static_cast<size_t>(number)]; }

  int BranchOf(size_t s) {
    int branch = kUnknown;
    for (const int buffer : program_.steps[s].buffers) {
      if (!Writes(s, buffer)) continue;
      if (KindOf(buffer) == BufferKind::kOutput) return kAlways;
      for (const size_t later : touching_[buffer]) {
        if (later > s) branch = Merged(branch, Needing(later, buffer));
      }
    }
    // The conditions of its branch and of all around it must be computed before the step.
    for (int number = branch; number >= 0; number = At(number).parent) {
      if (!IsComputedBefore(At(number).condition, s)) branch = At(number).parent;
    }
    return branch;
  }

  BufferKind KindOf(int buffer) const { return program_.buffers[static_cast<size_t>(buffer)].kind; }

  /// True unless the buffer holds values of other steps alone. A step that computes no node (a
  /// reorder) counts as one that writes all that it touches.
  bool Writes(size_t s, int buffer) const {
    const BufferKind kind = KindOf(buffer);
    if (kind == BufferKind::kConstant || kind == BufferKind::kInput) return false;
    const std::vector<int32_t>& nodes = program_.steps[s].info.nodes;
    const auto held = values_.find(buffer);
    if (nodes.empty() || held == values_.end()) return true;
    return std::any_of(held->second.begin(), held->second.end(), [&](ValueId value) {
      return std::find(nodes.begin(), nodes.end(), value.node) != nodes.end();
    });
  }

  bool IsComputedBefore(int condition, size_t s) {
    const std::vector<size_t>& steps = touching_[condition];
    return std::all_of(steps.begin(), steps.end(),
                       [&](size_t other) { return other < s || !Writes(other, condition); });
  }

  /// The branch in which step `later` needs what is in the buffer.
  int Needing(size_t later, int buffer) {
    const ProgramStep& step = program_.steps[later];
    const auto held = values_.find(buffer);
    if (!step.elementwise || held == values_.end() || Writes(later, buffer)) return step.branch;
    int branch = kUnknown;
    for (const int32_t user : step.info.nodes) {
      const std::vector<ValueId>& inputs = graph_.node(user).inputs;
      for (size_t k = 0; k < inputs.size(); ++k) {
        if (!Reads(inputs[k], held->second)) continue;
        const auto condition = conditions_.find(inputs[0]);
        const bool chosen = graph_.node(user).op->name == "Where" && k > 0 &&
                            condition != conditions_.end() &&
                            Touches(step, condition->second.buffer);
        branch = Merged(branch, chosen ? Numbered({condition->second.buffer,
                                                   condition->second.offset, k == 1, step.branch})
                                       : step.branch);
      }
    }
    return branch == kUnknown ? step.branch : branch;
  }

  static bool Touches(const ProgramStep& step, int buffer) {
    return std::find(step.buffers.begin(), step.buffers.end(), buffer) != step.buffers.end();
  }

  /// True if `value`, or what it is a view of, is among those that a buffer holds.
  bool Reads(ValueId value, const std::set<ValueId>& held) const {
    while (!held.contains(value)) {
      const Node& node = graph_.node(value.node);
      if (!node.op->is_view || node.inputs.empty()) return false;
      value = node.inputs[0];
    }
    return true;
  }

  int Numbered(const Branch& branch) {
    for (size_t number = 0; number < program_.branches.size(); ++number) {
      const Branch& known = program_.branches[number];
      if (known.condition == branch.condition && known.offset == branch.offset &&
          known.wanted == branch.wanted && known.parent == branch.parent)
        return static_cast<int>(number);
    }
    program_.branches.push_back(branch);
    return static_cast<int>(program_.branches.size()) - 1;
  }

  /// The innermost branch that contains both.
  int Merged(int a, int b) const {
    if (a == kUnknown) return b;
    for (int outer = a; outer >= 0; outer = At(outer).parent) {
      for (int other = b; other >= 0; other = At(other).parent) {
        if (other == outer) return outer;
      }
    }
    return kAlways;
  }

  const Graph& graph_;
  const ValuesOf& values_;
  const std::map<ValueId, Place>& conditions_;
  Program& program_;
  std::map<int, std::vector<size_t>> touching_;  // steps, by buffer
};

}  // namespace

void Lowering::FindBranches() {
  std::map<ValueId, Place> conditions;
  for (const Node& node : graph_.nodes()) {
    if (node.op->name != "Where" || NumElements(type(node.inputs[0])) != 1) continue;
    const auto places = places_.find(node.inputs[0]);
    if (places == places_.end() || places->second.empty()) continue;
    const Place& place = places->second.front();
    const BufferKind kind = program_.buffers[static_cast<size_t>(place.buffer)].kind;
    if (kind != BufferKind::kConstant) conditions.emplace(node.inputs[0], place);
  }
  if (conditions.empty()) return;
  ValuesOf values;
  for (const auto* places : {&places_, &narrow_}) {
    for (const auto& [value, all] : *places) {
      for (const Place& place : all) values[place.buffer].insert(value);
    }
  }
  for (const auto* places : {&concats_, &within_}) {
    for (const auto& [value, place] : *places) values[place.buffer].insert(value);
  }
  for (const auto& [key, place] : split_) values[place.buffer].insert(key.first);
  for (const auto& [value, view] : stepped_) values[view.place.buffer].insert(value);
  BranchFinder(graph_, values, conditions, program_).FindAll();
}

}  // namespace mendel::cpu
