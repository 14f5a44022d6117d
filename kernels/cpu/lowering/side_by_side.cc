#include "kernels/cpu/lowering/side_by_side.h"

#include <algorithm>
#include <cstddef>
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

/// True where `later` needs `id`, through any nodes between them.
bool Needs(const Graph& graph, int32_t later, int32_t id) {
  std::vector<bool> needs = {true};  // from `id` on
  for (int32_t k = id + 1; k <= later; ++k) {
    const std::vector<ValueId>& inputs = graph.node(k).inputs;
    needs.push_back(std::any_of(inputs.begin(), inputs.end(), [&](ValueId value) {
      return value.node >= id && needs[static_cast<size_t>(value.node - id)];
    }));
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

class Joiner {
 public:
  explicit Joiner(Program& program) : program_(program), steps_(program.steps) {}

  void JoinAll() {
    for (size_t first = 0; first < steps_.size(); ++first) {
      if (!steps_[first].beside.has_value()) continue;
      size_t second = first + 1;
      while (second < steps_.size() && !steps_[second].beside.has_value()) ++second;
      if (second < steps_.size()) Join(first, second);
    }
    std::erase_if(steps_, [](const ProgramStep& step) { return step.kernel == nullptr; });
  }

 private:
  /// Joins two steps. Those between them that the second needs move before both; where one of them
  /// also meets the first, nothing is joined. A step without a kernel is left.
  void Join(size_t first, size_t second) {
    const Accesses &one = *steps_[first].beside, &other = *steps_[second].beside;
    if (Meet(Written(one.writes), other.reads) || Meet(Written(other.writes), one.reads)) return;
    std::set<int> needed = Written(other.reads);
    const std::set<int> held = Written(steps_[first].buffers);
    std::vector<bool> moves(second - first, false);
    for (size_t s = second - 1; s > first; --s) {
      const std::vector<int>& buffers = steps_[s].buffers;
      if (!Meet(needed, buffers)) continue;
      if (Meet(held, buffers)) return;
      moves[s - first] = true;
      needed.merge(Written(buffers));
    }
    steps_[first] = Joined(steps_[first], steps_[second]);
    steps_[second] = {};
    size_t next = first;  // where the next step that moves goes
    for (size_t s = first + 1; s < second; ++s) {
      if (!moves[s - first]) continue;
      const auto begin = steps_.begin() + static_cast<std::ptrdiff_t>(next++);
      const auto moved = steps_.begin() + static_cast<std::ptrdiff_t>(s);
      std::rotate(begin, moved, moved + 1);
    }
  }

  /// The ones among `buffers` that a step writes.
  std::set<int> Written(const std::vector<int>& buffers) const {
    std::set<int> written;
    for (const int buffer : buffers) {
      const BufferKind kind = program_.buffers[static_cast<size_t>(buffer)].kind;
      if (kind != BufferKind::kConstant && kind != BufferKind::kInput) written.insert(buffer);
    }
    return written;
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
  std::vector<ProgramStep>& steps_;
};

}  // namespace

std::set<int32_t> LoopsSideBySide(const Graph& graph, int threads) {
  std::set<int32_t> loops;
  if (threads != 2) return loops;
  int32_t open = -1;  // the last loop without a partner
  for (int32_t loop = 0; loop < static_cast<int32_t>(graph.nodes().size()); ++loop) {
    if (graph.node(loop).op->name != "Loop" || graph.constant()[static_cast<size_t>(loop)])
      continue;
    const bool pair = open >= 0 && AreAlike(graph, open, loop) && !Needs(graph, loop, open);
    if (pair) loops.insert({open, loop});
    open = pair ? -1 : loop;
  }
  return loops;
}

void JoinSideBySide(Program& program) { Joiner(program).JoinAll(); }

}  // namespace mendel::cpu
