#include "verifier/witness/ball_evaluator.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/ball_functions.h"
#include "base/parallel.h"
#include "base/status.h"
#include "graph/meaning.h"
#include "graph/op_helpers.h"

namespace mendel {
namespace {

bool IsKnownInteger(const BallValue& value) {
  return IsIntegral(value.type.dtype) && value.balls.empty();
}

/// Exact integers by the integers' own, wrapping arithmetic.
BallValue EvaluateIntegers(const OpDefinition& op, const NodeView& node,
                           std::span<const BallValue* const> inputs, int output) {
  std::vector<HostValue> values;
  for (const BallValue* input : inputs) values.push_back({input->type, {}, input->integers});
  std::vector<const HostValue*> operands;
  for (const HostValue& value : values) operands.push_back(&value);
  return BallValue::FromHost(EvaluateNode(op, node, operands)[static_cast<size_t>(output)]);
}

/// True for constants that are converted again for the next reader, which may come long after.
bool IsLargeConstant(const Node& node) {
  constexpr int64_t kLarge = 1 << 20;
  return IsConstant(node) && NumElements(node.outputs[0]) >= kLarge;
}

/// Does the operator only move elements, to places that do not depend on data?
bool MovesElements(const OpDefinition& op) {
  return (op.is_view || op.bound == &BoundOfSelection) && op.index_inputs == 0 && !op.opaque;
}

/// Moved numbers are numbers: a transposed weight would be six times as large in balls.
BallValue MoveNumbers(const OpDefinition& op, const NodeView& node,
                      std::span<const BallValue* const> inputs, int output) {
  const Arithmetic<double> arithmetic;
  std::vector<Operand<double>> operands;
  for (const BallValue* input : inputs)
    operands.push_back({&input->type, input->numbers.data(), nullptr, nullptr});
  const TensorType& type = node.outputs[static_cast<size_t>(output)];
  BallValue value{type, {}, {}, std::vector<double>(static_cast<size_t>(NumElements(type)))};
  op.meaning.real(Reader<double>(arithmetic, operands), node, output, value.numbers);
  return value;
}

std::vector<Operand<Ball>> Operands(std::span<const BallValue* const> inputs) {
  std::vector<Operand<Ball>> operands;
  for (const BallValue* input : inputs) {
    Operand<Ball> operand{&input->type, nullptr, nullptr, nullptr};
    if (IsKnownInteger(*input)) {
      operand.integers = input->integers.data();
    } else if (!input->balls.empty()) {
      operand.scalars = input->balls.data();
    } else {
      operand.exact = input->numbers.data();
    }
    operands.push_back(operand);
  }
  return operands;
}

/// The value of an integer in a dtype: itself where it fits.
int64_t Fitting(DType dtype, int64_t value) {
  return Tensor::FromInts({dtype, {}}, std::span(&value, 1)).IntAt(0);
}

/// Turns the balls of an integral value into integers where all of them are; open Booleans stay.
absl::Status DecideIntegers(std::string_view name, BallValue& value) {
  std::vector<int64_t> integers;
  for (const Ball& ball : value.balls) {
    const std::optional<int64_t> integer = ball.AsInteger();
    if (!integer.has_value() && value.type.dtype == DType::kBool) return absl::OkStatus();
    if (!integer.has_value() || *integer != Fitting(value.type.dtype, *integer)) {
      return absl::AbortedError(Cat("an integer made by ", name, " is open"));
    }
    integers.push_back(*integer);
  }
  value.integers = std::move(integers);
  value.balls.clear();
  return absl::OkStatus();
}

/// Relu without the copies of a call by name: most of a convolutional network's elements pass here.
void Rectify(const std::vector<Ball>& x, std::vector<Ball>& y) {
  constexpr int64_t kGrain = 1 << 12;
  const BallContext& context = BallScope::Current();
  ParallelChunks(static_cast<int64_t>(x.size()), kGrain, [&](int64_t begin, int64_t end) {
    const BallScope scope(context);
    for (int64_t i = begin; i < end; ++i) {
      const Ball& from = x[static_cast<size_t>(i)];
      if (!from.IsNonPositive()) y[static_cast<size_t>(i)] = balls::Max(from, Ball());
    }
  });
}

/// Balls keep their digits elsewhere: freeing those of a large value takes as long as small
/// operators do.
void Free(std::vector<BallValue>& values) {
  constexpr int64_t kGrain = 1 << 14;
  for (BallValue& value : values) {
    ParallelChunks(static_cast<int64_t>(value.balls.size()), kGrain,
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i)
                       Ball().swap(value.balls[static_cast<size_t>(i)]);
                   });
  }
  values.clear();
}

}  // namespace

BallValue BallValue::FromHost(const HostValue& value) {
  return {value.type, {}, value.integers, value.scalars};
}

Ball BallValue::At(int64_t flat) const {
  const size_t at = static_cast<size_t>(flat);
  if (!balls.empty()) return balls[at];
  return IsIntegral(type.dtype) ? Ball::FromInt(integers[at]) : Ball::FromDouble(numbers[at]);
}

absl::StatusOr<BallValue> EvaluateNodeInBalls(const OpDefinition& op, const NodeView& node,
                                              std::span<const BallValue* const> inputs,
                                              int output) {
  const TensorType& type = node.outputs[static_cast<size_t>(output)];
  const bool known = std::all_of(inputs.begin(), inputs.end(),
                                 [](const BallValue* input) { return IsKnownInteger(*input); });
  const bool integral = std::all_of(node.outputs.begin(), node.outputs.end(),
                                    [](const TensorType& t) { return IsIntegral(t.dtype); });
  if (known && integral) return EvaluateIntegers(op, node, inputs, output);
  const bool numbers = std::all_of(inputs.begin(), inputs.end(), [](const BallValue* input) {
    return IsFloat(input->type.dtype) && input->balls.empty();
  });
  if (numbers && !inputs.empty() && IsFloat(type.dtype) && MovesElements(op))
    return MoveNumbers(op, node, inputs, output);
  for (size_t k = 0; k < inputs.size() && k < 32; ++k) {
    if ((op.index_inputs >> k & 1) != 0 && !IsKnownInteger(*inputs[k])) {
      return absl::AbortedError(Cat("indices that ", op.name, " reads are open"));
    }
  }
  BallValue value{type, std::vector<Ball>(static_cast<size_t>(NumElements(type))), {}, {}};
  if (op.name == "Relu" && !inputs[0]->balls.empty()) {
    Rectify(inputs[0]->balls, value.balls);
    return value;
  }
  const Arithmetic<Ball> arithmetic;
  const std::vector<Operand<Ball>> operands = Operands(inputs);
  op.meaning.ball(Reader<Ball>(arithmetic, operands), node, output, value.balls);
  const BallContext& context = BallScope::Current();
  if (const std::string failure = context.failure(); !failure.empty()) {
    const std::string reason = Cat(op.name, ": ", failure);
    return context.failed_for_good() ? Unsupported(reason) : absl::AbortedError(reason);
  }
  if (IsIntegral(type.dtype)) MENDEL_RETURN_IF_ERROR(DecideIntegers(op.name, value));
  return value;
}

absl::StatusOr<std::vector<BallValue>> EvaluateInBalls(const Graph& graph,
                                                       std::span<const HostValue> inputs,
                                                       const BallContext& context,
                                                       const Deadline& deadline) {
  if (inputs.size() != graph.inputs().size()) {
    return InvalidInput("graph has ", graph.inputs().size(), " inputs, not ", inputs.size());
  }
  const BallScope scope(context);
  std::vector<int32_t> last_use(graph.nodes().size(), -1);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    for (ValueId value : graph.nodes()[i].inputs)
      last_use[static_cast<size_t>(value.node)] = static_cast<int32_t>(i);
  }
  std::vector<std::vector<BallValue>> values(graph.nodes().size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    const size_t id = static_cast<size_t>(graph.inputs()[k]);
    if (inputs[k].type != graph.nodes()[id].outputs[0]) {
      return InvalidInput("input ", k, " must be ", TypeString(graph.nodes()[id].outputs[0]),
                          ", not ", TypeString(inputs[k].type));
    }
    values[id].push_back(BallValue::FromHost(inputs[k]));
  }
  const auto value_of = [&](ValueId id) -> BallValue& {
    std::vector<BallValue>& of_node = values[static_cast<size_t>(id.node)];
    const Node& node = graph.node(id.node);
    if (of_node.empty() && IsConstant(node))
      of_node.push_back(BallValue::FromHost(HostValue::FromTensor(ConstantValue(node))));
    return of_node[static_cast<size_t>(id.output)];
  };
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (IsInput(node) || IsConstant(node)) continue;
    if (deadline.Passed()) return absl::DeadlineExceededError("ball arithmetic: out of time");
    std::vector<const BallValue*> operands;
    for (ValueId value : node.inputs) operands.push_back(&value_of(value));
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      auto output = WithView(graph, static_cast<int32_t>(i), [&](const NodeView& view) {
        return EvaluateNodeInBalls(*node.op, view, operands, static_cast<int>(k));
      });
      if (!output.ok()) return output.status();
      values[i].push_back(*std::move(output));
    }
    for (ValueId value : node.inputs) {
      if (graph.IsOutput(value.node)) continue;
      const bool last = last_use[static_cast<size_t>(value.node)] == static_cast<int32_t>(i);
      if (last || IsLargeConstant(graph.node(value.node)))
        Free(values[static_cast<size_t>(value.node)]);
    }
  }
  std::vector<BallValue> outputs;
  for (const GraphOutput& output : graph.outputs()) outputs.push_back(value_of(output.value));
  return outputs;
}

}  // namespace mendel
