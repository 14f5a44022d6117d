// Loop: the body is compiled once, with the invariants that are constants as its weights, and runs
// once a step on slices of the operands and results.

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "graph/loop.h"
#include "graph/rewrite.h"
#include "kernels/cpu/lowering/lower.h"
#include "kernels/cpu/lowering/lower_direct.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kAlignment = 64;

int64_t Rounded(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// The place of one carried value between steps.
struct Carried {
  Place first;  ///< before the first step
  Place last;   ///< after the last one
  int64_t bytes = 0;
  int64_t room = 0;  ///< offset of two buffers of scratch memory
  int same = -1;     ///< the scanned output that has the value already; -1: none
};

/// One scanned input or output, of `bytes` a step.
struct Scanned {
  Place place;
  int64_t bytes = 0;
};

struct LoopPlan {
  int64_t steps = 0;
  bool reverse = false;
  std::vector<Carried> carried;
  std::vector<Scanned> inputs;
  std::vector<Scanned> invariants;  ///< those that are not constants
  std::vector<Scanned> outputs;
  int64_t scratch = 0;
};

/// The body's inputs are carried values, scanned inputs and invariants. Its outputs are the carried
/// values that no scanned output has, and the scanned outputs.
class LoopKernel : public Kernel {
 public:
  LoopKernel(LoopPlan plan, std::unique_ptr<Executable> body)
      : plan_(std::move(plan)), body_(std::move(body)), state_(plan_.carried.size()) {
    inputs_.resize(plan_.carried.size() + plan_.inputs.size() + plan_.invariants.size());
    for (const Carried& carried : plan_.carried) written_ += carried.same < 0 ? 1 : 0;
    outputs_.resize(written_ + plan_.outputs.size());
  }

  absl::Status Run(const Bindings& bindings) override {
    for (size_t c = 0; c < state_.size(); ++c) state_[c] = bindings.Address(plan_.carried[c].first);
    size_t next = plan_.carried.size() + plan_.inputs.size();
    for (const Scanned& invariant : plan_.invariants)
      inputs_[next++] = Bytes(bindings.Address(invariant.place), invariant.bytes);
    for (int64_t k = 0; k < plan_.steps; ++k) MENDEL_RETURN_IF_ERROR(Step(bindings, k));
    for (size_t c = 0; c < state_.size(); ++c) {
      const Carried& carried = plan_.carried[c];
      if (carried.same >= 0)
        std::memcpy(bindings.Address(carried.last), state_[c], static_cast<size_t>(carried.bytes));
    }
    return absl::OkStatus();
  }

 private:
  static std::span<std::byte> Bytes(std::byte* address, int64_t bytes) {
    return {address, static_cast<size_t>(bytes)};
  }

  absl::Status Step(const Bindings& bindings, int64_t k) {
    const int64_t time = LoopTime(plan_.steps, plan_.reverse, k);
    size_t in = 0, out = 0;
    for (size_t c = 0; c < state_.size(); ++c)
      inputs_[in++] = Bytes(state_[c], plan_.carried[c].bytes);
    for (const Scanned& input : plan_.inputs) {
      std::byte* const address = bindings.Address(input.place) + time * input.bytes;
      inputs_[in++] = Bytes(address, input.bytes);
    }
    for (size_t c = 0; c < state_.size(); ++c) {
      const Carried& carried = plan_.carried[c];
      if (carried.same >= 0) {
        const Scanned& output = plan_.outputs[static_cast<size_t>(carried.same)];
        state_[c] = bindings.Address(output.place) + time * output.bytes;
        continue;
      }
      const int64_t half = carried.room + k % 2 * Rounded(carried.bytes);
      state_[c] = k == plan_.steps - 1 ? bindings.Address(carried.last) : bindings.scratch + half;
      outputs_[out++] = Bytes(state_[c], carried.bytes);
    }
    for (const Scanned& output : plan_.outputs) {
      std::byte* const address = bindings.Address(output.place) + time * output.bytes;
      outputs_[out++] = Bytes(address, output.bytes);
    }
    return body_->Run(inputs_, outputs_);
  }

  const LoopPlan plan_;
  const std::unique_ptr<Executable> body_;
  std::vector<std::byte*> state_;
  size_t written_ = 0;
  std::vector<std::span<const std::byte>> inputs_;
  std::vector<std::span<std::byte>> outputs_;
};

/// The body with constants in place of some of its invariants: `weight_of(value)` is the constant
/// of an operand of the loop, or nullopt. Carried values that `unwritten` names are no outputs.
absl::StatusOr<Graph> BodyWithWeights(
    const Node& loop, const Graph& body, const LoopArity& arity, const std::set<size_t>& unwritten,
    const std::function<std::optional<Tensor>(ValueId)>& weight_of) {
  GraphBuilder builder;
  std::vector<ValueId> inputs;
  for (size_t k = 0; k < loop.inputs.size(); ++k) {
    std::optional<Tensor> weight;
    if (k >= arity.carried + arity.scanned) weight = weight_of(loop.inputs[k]);
    inputs.push_back(weight.has_value()
                         ? builder.Constant(*std::move(weight), Cat("weight", k))
                         : builder.Input(Cat("x", k), body.node(body.inputs()[k]).outputs[0]));
  }
  MENDEL_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, Inline(body, inputs, builder));
  for (size_t k = 0; k < body.outputs().size(); ++k) {
    if (unwritten.count(k) == 0) builder.Output(Cat("y", k), outputs[k]);
  }
  return builder.Build();
}

/// Number of the scanned output that has carried value `c` after each step; -1: none.
int SameOutput(const Graph& body, const LoopArity& arity, size_t c) {
  for (size_t k = arity.carried; k < body.outputs().size(); ++k) {
    if (body.outputs()[k].value == body.outputs()[c].value)
      return static_cast<int>(k - arity.carried);
  }
  return -1;
}

LoopPlan PlanOf(Lowering& lowering, int32_t id, const Graph& body, const LoopArity& arity) {
  const Node& node = lowering.graph().node(id);
  LoopPlan plan;
  plan.steps = node.attrs.Int("steps");
  plan.reverse = node.attrs.Int("reverse") != 0;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    const ValueId value = node.inputs[k];
    const int64_t bytes = ByteSize(lowering.type(value));
    if (k >= arity.carried + arity.scanned) {
      if (!lowering.folded().IsConstant(value))
        plan.invariants.push_back({lowering.Plain(value), bytes});
    } else if (k >= arity.carried) {
      plan.inputs.push_back({lowering.Plain(value), bytes / plan.steps});
    } else {
      plan.carried.push_back(
          {lowering.Plain(value), {}, bytes, plan.scratch, SameOutput(body, arity, k)});
      plan.scratch += 2 * Rounded(bytes);
    }
  }
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    const Place place =
        lowering.Allocate({id, static_cast<int32_t>(k)}, PlainLayout(node.outputs[k].shape));
    if (k < arity.carried) {
      plan.carried[k].last = place;
    } else {
      plan.outputs.push_back({place, ByteSize(node.outputs[k]) / plan.steps});
    }
  }
  return plan;
}

/// Algorithms of the body's nodes, without repetitions, in order of the nodes.
std::vector<std::string> AlgorithmsIn(const Graph& body, Numerics numerics) {
  std::vector<std::string> names;
  for (size_t i = 0; i < body.nodes().size(); ++i) {
    for (std::string& name : ConvAlgorithms(body, static_cast<int32_t>(i), numerics)) {
      if (std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(std::move(name));
    }
  }
  return names;
}

/// Chooses `name` for every node of the body that has this algorithm.
absl::Status ChooseAlgorithm(const Node& loop, const Graph& body, const std::string& name,
                             CompileOptions& options) {
  for (size_t i = 0; i < body.nodes().size(); ++i) {
    const int32_t id = static_cast<int32_t>(i);
    const std::vector<std::string> names = ConvAlgorithms(body, id, options.numerics);
    if (std::find(names.begin(), names.end(), name) != names.end()) options.algorithms[id] = name;
  }
  if (!options.algorithms.empty()) return absl::OkStatus();
  return InvalidInput("node '", loop.name, "' (Loop) has no algorithm '", name, "' here");
}

}  // namespace

std::vector<std::string> LoopAlgorithms(const Graph& graph, int32_t id, Numerics numerics) {
  const Node& node = graph.node(id);
  if (node.op->name != "Loop") return {};
  const LoopArity arity = WithView(graph, id, [](const NodeView& v) { return LoopArityOf(v); });
  // Algorithms depend on which operands are constant, not on their values.
  const auto zeros = [&](ValueId value) -> std::optional<Tensor> {
    if (DependsOnInput(graph, value.node)) return std::nullopt;
    return Tensor::Filled(graph.type(value), 0);
  };
  const absl::StatusOr<Graph> body =
      BodyWithWeights(node, *LoopBodyOf(node.attrs), arity, {}, zeros);
  return body.ok() ? AlgorithmsIn(*body, numerics) : std::vector<std::string>();
}

absl::StatusOr<bool> LowerLoop(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const std::shared_ptr<const Graph> body = LoopBodyOf(node.attrs);
  const LoopArity arity =
      WithView(lowering.graph(), id, [](const NodeView& view) { return LoopArityOf(view); });
  LoopPlan plan = PlanOf(lowering, id, *body, arity);
  std::set<size_t> unwritten;
  for (size_t c = 0; c < plan.carried.size(); ++c) {
    if (plan.carried[c].same >= 0) unwritten.insert(c);
  }
  const auto weight_of = [&](ValueId value) -> std::optional<Tensor> {
    if (!lowering.folded().IsConstant(value)) return std::nullopt;
    return lowering.folded().Rounded(value);
  };
  MENDEL_ASSIGN_OR_RETURN(const Graph weighted,
                          BodyWithWeights(node, *body, arity, unwritten, weight_of));
  CompileOptions options = lowering.options();
  options.cpus.clear();  // the loop runs where its caller does
  const bool beside = lowering.RunsBesideAnother(id);
  if (beside) options.threads = 1;
  const ThreadScope threads(options.threads);  // primitives divide their work when they are made
  options.algorithms.clear();
  options.engines.clear();
  std::string kernel = "loop";
  const auto named = lowering.options().algorithms.find(id);
  if (named != lowering.options().algorithms.end() && !named->second.empty()) {
    MENDEL_RETURN_IF_ERROR(ChooseAlgorithm(node, weighted, named->second, options));
    kernel += ":" + named->second;
  }
  MENDEL_ASSIGN_OR_RETURN(Program program, LowerGraph(weighted, options));
  MENDEL_ASSIGN_OR_RETURN(std::unique_ptr<Executable> executable,
                          MakeExecutable(std::move(program)));
  std::vector<Place> reads, writes;
  for (const Carried& carried : plan.carried) {
    reads.push_back(carried.first);
    writes.push_back(carried.last);
  }
  for (const auto* list : {&plan.inputs, &plan.invariants}) {
    for (const Scanned& scanned : *list) reads.push_back(scanned.place);
  }
  for (const Scanned& output : plan.outputs) writes.push_back(output.place);
  std::vector<Place> touched = reads;
  touched.insert(touched.end(), writes.begin(), writes.end());
  const int64_t scratch = plan.scratch;
  lowering.Emit({id}, kernel, std::make_unique<LoopKernel>(std::move(plan), std::move(executable)),
                touched, scratch);
  if (beside) lowering.MayRunBesideAnother(reads, writes);
  return true;
}

}  // namespace mendel::cpu
