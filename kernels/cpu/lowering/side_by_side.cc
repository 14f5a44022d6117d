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

/// The work of one loop is at most so many times that of the other.
constexpr double kMostUnlike = 2;

double FlopsOf(const Graph& graph, int32_t id) {
  return WithView(graph, id,
                  [&](const NodeView& view) { return CostOf(*graph.node(id).op, view).flops; });
}

/// True where `later` needs `id`, through any nodes.
bool Needs(const Graph& graph, int32_t later, int32_t id) {
  std::vector<bool> needs(static_cast<size_t>(later) + 1, false);
  needs[static_cast<size_t>(id)] = true;
  for (size_t k = static_cast<size_t>(id) + 1; k < needs.size(); ++k) {
    const std::vector<ValueId>& inputs = graph.nodes()[k].inputs;
    needs[k] = std::any_of(inputs.begin(), inputs.end(),
                           [&](ValueId value) { return needs[static_cast<size_t>(value.node)]; });
  }
  return needs.back();
}

bool AreAlike(const Graph& graph, int32_t a, int32_t b) {
  const double of_a = FlopsOf(graph, a), of_b = FlopsOf(graph, b);
  return std::max(of_a, of_b) <= kMostUnlike * std::min(of_a, of_b);
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

/// Joins step `i` and the next one that may run beside another. Steps between them that the second
/// needs move before both.
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
    for (second_ = first_ + 1; second_ < program_.steps.size(); ++second_) {
      if (program_.steps[second_].beside.has_value()) break;
    }
    if (second_ == program_.steps.size() || !IsIndependent()) return false;
    const ProgramStep &first = program_.steps[first_], &second = program_.steps[second_];
    std::set<int> needed = Written(second.beside->reads);
    const std::set<int> held = Written(first.buffers);
    for (size_t s = second_ - 1; s > first_; --s) {
      const std::vector<int>& buffers = program_.steps[s].buffers;
      const bool moves = Meet(needed, buffers);
      if (moves && Meet(held, buffers)) return false;
      (moves ? before_ : after_).push_back(s);
      if (moves) needed.merge(Written(buffers));
    }
    std::reverse(before_.begin(), before_.end());
    std::reverse(after_.begin(), after_.end());
    return true;
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

  /// Neither writes what the other reads.
  bool IsIndependent() const {
    const Accesses &first = *program_.steps[first_].beside,
                   &second = *program_.steps[second_].beside;
    return !Meet(Written(first.writes), second.reads) && !Meet(Written(second.writes), first.reads);
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
  std::vector<size_t> before_, after_;
};

}  // namespace

bool RunsBesideAnotherLoop(const Graph& graph, int32_t id, int threads) {
  if (threads != 2) return false;
  int32_t open = -1;  // the last loop without a partner
  for (int32_t loop = 0; loop < static_cast<int32_t>(graph.nodes().size()); ++loop) {
    if (graph.node(loop).op->name != "Loop" || !DependsOnInput(graph, loop)) continue;
    const bool pair = open >= 0 && AreAlike(graph, open, loop) && !Needs(graph, loop, open);
    if (pair && (id == open || id == loop)) return true;
    open = pair ? -1 : loop;
  }
  return false;
}

void JoinSideBySide(Program& program) {
  for (size_t s = 0; s < program.steps.size(); ++s) {
    if (!program.steps[s].beside.has_value()) continue;
    Joiner joiner(program, s);
    if (joiner.Find()) joiner.Join();  // the joined step stands no earlier than `s`
  }
}

}  // namespace mendel::cpu
