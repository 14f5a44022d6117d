#include "kernels/cpu/lowering/side_by_side.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/rewrite.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

/// A team of two gains no more from one loop than from two. Larger ones divide the steps of large
/// cells: from here on, the work of a step is worth the team's meeting (an estimate).
constexpr double kLargeStepFlops = 4e6;

double StepFlops(const Graph& graph, int32_t id) {
  const double flops = WithView(
      graph, id, [&](const NodeView& view) { return CostOf(*graph.node(id).op, view).flops; });
  return flops / static_cast<double>(graph.node(id).attrs.Int("steps"));
}

/// By node: does it need `id`, or is it `id`?
std::vector<bool> NeedingNode(const Graph& graph, int32_t id) {
  std::vector<bool> needs(graph.nodes().size(), false);
  needs[static_cast<size_t>(id)] = true;
  for (size_t k = static_cast<size_t>(id) + 1; k < needs.size(); ++k) {
    const std::vector<ValueId>& inputs = graph.nodes()[k].inputs;
    needs[k] = std::any_of(inputs.begin(), inputs.end(),
                           [&](ValueId value) { return needs[static_cast<size_t>(value.node)]; });
  }
  return needs;
}

class SideBySideKernel : public Kernel {
 public:
  SideBySideKernel(std::unique_ptr<Kernel> first, std::unique_ptr<Kernel> second, int64_t scratch)
      : kernels_{std::move(first), std::move(second)}, scratch_(scratch) {}

  absl::Status Create() override {
    for (const auto& kernel : kernels_) MENDEL_RETURN_IF_ERROR(kernel->Create());
    return absl::OkStatus();
  }

  absl::Status Prepare(const Bindings& bindings) override {
    second_ = bindings;
    second_.scratch = bindings.scratch + scratch_;
    MENDEL_RETURN_IF_ERROR(kernels_[0]->Prepare(bindings));
    return kernels_[1]->Prepare(second_);
  }

  absl::Status Run(const Bindings& bindings) override {
    second_.buffers = bindings.buffers;  // as long as before: nothing is allocated
    ParallelRange(2, 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k)
        states_[k] = kernels_[k]->Run(k == 0 ? bindings : second_);
    });
    return states_[0].ok() ? states_[1] : states_[0];
  }

 private:
  const std::unique_ptr<Kernel> kernels_[2];
  const int64_t scratch_;  ///< of the first; the second's begins there
  Bindings second_;
  absl::Status states_[2];
};

bool Meet(const std::set<int>& a, const std::vector<int>& b) {
  return std::any_of(b.begin(), b.end(), [&](int buffer) { return a.count(buffer) > 0; });
}

/// Joins step `i` and the next one that may run beside another.
class Joiner {
 public:
  Joiner(Program& program, size_t i) : program_(program), first_(i) {
    for (size_t b = 0; b < program.buffers.size(); ++b) {
      const BufferKind kind = program.buffers[b].kind;
      if (kind == BufferKind::kConstant || kind == BufferKind::kInput)
        unwritten_.insert(static_cast<int>(b));
    }
  }

  /// False where there is none, or it needs the first or a step that does.
  bool Find() {
    held_ = Written(program_.steps[first_].buffers);
    for (second_ = first_ + 1; second_ < program_.steps.size(); ++second_) {
      const ProgramStep& step = program_.steps[second_];
      if (step.beside.has_value()) break;
      const bool held = Meet(held_, step.buffers);
      if (held) {
        const std::set<int> more = Written(step.buffers);
        held_.insert(more.begin(), more.end());
      }
      (held ? after_ : before_).push_back(second_);
    }
    return second_ < program_.steps.size() && IsIndependent();
  }

  void Join() {
    std::vector<ProgramStep> steps;
    const auto take = [&](size_t s) { steps.push_back(std::move(program_.steps[s])); };
    for (size_t s = 0; s < first_; ++s) take(s);
    for (const size_t s : before_) take(s);
    steps.push_back(Joined(program_.steps[first_], program_.steps[second_]));
    for (const size_t s : after_) take(s);
    for (size_t s = second_ + 1; s < program_.steps.size(); ++s) take(s);
    program_.steps = std::move(steps);
  }

 private:
  std::set<int> Written(const std::vector<int>& buffers) const {
    std::set<int> may_be;
    for (const int buffer : buffers) {
      if (unwritten_.count(buffer) == 0) may_be.insert(buffer);
    }
    return may_be;
  }

  /// The second touches nothing that held steps touch, and neither writes what the other reads.
  bool IsIndependent() const {
    const ProgramStep &first = program_.steps[first_], &second = program_.steps[second_];
    if (Meet(Written(first.beside->writes), second.beside->reads) ||
        Meet(Written(second.beside->writes), first.beside->reads))
      return false;
    for (const size_t s : after_) {
      if (Meet(Written(program_.steps[s].buffers), second.buffers)) return false;
    }
    return true;
  }

  static ProgramStep Joined(ProgramStep& first, ProgramStep& second) {
    constexpr int64_t kAlignment = 64;
    const int64_t scratch = (first.scratch + kAlignment - 1) / kAlignment * kAlignment;
    ProgramStep joined;
    joined.info = std::move(first.info);
    joined.info.name += Cat(" and ", second.info.name);
    if (second.info.kernel != joined.info.kernel)
      joined.info.kernel += Cat(" and ", second.info.kernel);
    joined.info.kernel += " side by side";
    joined.info.flops += second.info.flops;
    for (auto [from, to] : {std::pair(&second.info.nodes, &joined.info.nodes),
                            std::pair(&second.info.requested_by, &joined.info.requested_by)})
      to->insert(to->end(), from->begin(), from->end());
    joined.buffers = std::move(first.buffers);
    joined.buffers.insert(joined.buffers.end(), second.buffers.begin(), second.buffers.end());
    joined.scratch = scratch + second.scratch;
    joined.kernel = std::make_unique<SideBySideKernel>(std::move(first.kernel),
                                                       std::move(second.kernel), scratch);
    return joined;
  }

  Program& program_;
  const size_t first_;
  size_t second_ = 0;
  std::set<int> unwritten_;
  std::set<int> held_;  ///< buffers of the first and of steps that must follow it
  std::vector<size_t> before_, after_;
};

}  // namespace

bool RunsBesideAnotherLoop(const Graph& graph, int32_t id, int threads) {
  const auto fits = [&](int32_t loop) {
    return graph.node(loop).op->name == "Loop" && DependsOnInput(graph, loop) &&
           (threads == 2 || StepFlops(graph, loop) < kLargeStepFlops);
  };
  if (threads < 2 || !fits(id)) return false;
  const std::vector<bool> needs = NeedingNode(graph, id);
  for (int32_t other = 0; other < static_cast<int32_t>(graph.nodes().size()); ++other) {
    if (other == id || needs[static_cast<size_t>(other)] || !fits(other)) continue;
    if (other > id || !NeedingNode(graph, other)[static_cast<size_t>(id)]) return true;
  }
  return false;
}

void JoinSideBySide(Program& program) {
  for (size_t s = 0; s < program.steps.size(); ++s) {
    if (!program.steps[s].beside.has_value()) continue;
    Joiner joiner(program, s);
    if (joiner.Find()) joiner.Join();
  }
}

}  // namespace mendel::cpu
