#include "onnx/ops/recurrence.h"

#include <algorithm>
#include <map>
#include <utility>

#include "graph/loop.h"
#include "onnx/ops/steps.h"

namespace mendel {
namespace {

/// Activations without parameters, ONNX's name to the language's.
absl::StatusOr<std::string> Activation(const std::string& name) {
  static const auto* const kKnown =
      new std::map<std::string, std::string>{{"relu", "Relu"},
                                             {"tanh", "Tanh"},
                                             {"sigmoid", "Sigmoid"},
                                             {"softsign", "Softsign"},
                                             {"softplus", "Softplus"}};
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  const auto found = kKnown->find(lower);
  if (found == kKnown->end()) return Unsupported("activation '", name, "' is not supported");
  return found->second;
}

}  // namespace

absl::Status Recurrence::Prepare() {
  layout_ = op_.Int("layout", 0);
  const std::string direction = op_.Str("direction", "forward");
  reverse_first_ = direction == "reverse";
  directions_ = direction == "bidirectional" ? 2 : 1;
  if (op_.HasAttribute("clip")) return Unsupported("clipping is not supported");
  x_ = op_.In(0);
  for (int k = 0; k < 3; ++k) {
    if (op_.rank(op_.In(k)) != 3) return InvalidInput("expects X, W and R with three dimensions");
  }
  if (layout_ != 0) {
    MENDEL_ASSIGN_OR_RETURN(x_, op_.Transpose(x_, {1, 0, 2}));
  }
  steps_ = op_.shape(x_)[0];
  batch_ = op_.shape(x_)[1];
  hidden_ = op_.shape(op_.In(2))[quantized_ ? 1 : 2];
  if (op_.Int("hidden_size", hidden_) != hidden_)
    return InvalidInput("hidden_size is not that of R");
  if (steps_ < 1 || steps_ > kMaxLoopSteps)
    return Unsupported(steps_, " steps are not supported (1 to ", kMaxLoopSteps, ")");
  MENDEL_RETURN_IF_ERROR(CheckShapes());
  MENDEL_RETURN_IF_ERROR(CheckLengths());
  if (quantized_) MENDEL_RETURN_IF_ERROR(CheckQuantized());
  return ReadActivations();
}

absl::Status Recurrence::Run(const std::vector<int>& states, bool own_bias, const Step& step) {
  Values outputs;
  std::vector<Values> last(states.size());
  for (int64_t d = 0; d < directions_; ++d) {
    Direction direction{d, {}, std::nullopt, std::nullopt};
    MENDEL_ASSIGN_OR_RETURN(direction.recurrent, Weights(2, d));
    if (quantized_) {
      MENDEL_ASSIGN_OR_RETURN(direction.recurrent_scale, Parameter(10, d));
    }
    MENDEL_ASSIGN_OR_RETURN(const ValueId all, Inputs(own_bias, direction));
    Values first;
    for (int input : states) {
      MENDEL_ASSIGN_OR_RETURN(first.emplace_back(), FirstState(input, d));
    }
    ValueId& output = outputs.emplace_back();
    MENDEL_ASSIGN_OR_RETURN(const Values state,
                            steps_ > kShortLoop && !quantized_
                                ? Loop(direction, all, first, step, output)
                                : Unroll(direction, all, std::move(first), step, output));
    for (size_t s = 0; s < state.size(); ++s) {
      MENDEL_ASSIGN_OR_RETURN(last[s].emplace_back(), op_.Reshape(state[s], {1, batch_, hidden_}));
    }
  }
  return SetOutputs(std::move(outputs), std::move(last));
}

absl::StatusOr<Recurrence::Values> Recurrence::Unroll(const Direction& direction, ValueId all,
                                                      Values state, const Step& step,
                                                      ValueId& output) {
  MENDEL_ASSIGN_OR_RETURN(Values inputs, Parts(all, 0, steps_));
  for (ValueId& input : inputs) {
    MENDEL_ASSIGN_OR_RETURN(input, op_.Reshape(input, {batch_, gates_ * hidden_}));
  }
  Values of_steps(static_cast<size_t>(steps_));
  for (int64_t k = 0; k < steps_; ++k) {
    const size_t t = static_cast<size_t>(Reversed(direction.index) ? steps_ - 1 - k : k);
    MENDEL_RETURN_IF_ERROR(step(direction, inputs[t], state));
    MENDEL_ASSIGN_OR_RETURN(of_steps[t], op_.Reshape(state[0], {1, 1, batch_, hidden_}));
  }
  MENDEL_ASSIGN_OR_RETURN(output, Joined(std::move(of_steps), 0));
  return state;
}

absl::StatusOr<Recurrence::Values> Recurrence::Loop(const Direction& direction, ValueId all,
                                                    const Values& state, const Step& step,
                                                    ValueId& output) {
  LoopBuilder loop;
  Values carried;
  for (const ValueId first : state) carried.push_back(loop.body.Input("", op_.type(first)));
  const ValueId input = loop.body.Input("", {op_.type(all).dtype, {batch_, gates_ * hidden_}});
  loop_ = &loop;
  Direction inner = direction;
  inner.recurrent = Invariant(direction.recurrent);
  if (direction.recurrent_bias.has_value())
    inner.recurrent_bias = Invariant(*direction.recurrent_bias);
  const absl::Status done = step(inner, input, carried);
  loop_ = nullptr;
  MENDEL_RETURN_IF_ERROR(done);
  for (const ValueId value : carried) loop.body.Output("", value);
  loop.body.Output("", carried[0]);
  MENDEL_ASSIGN_OR_RETURN(const Graph built, loop.body.Build());
  Values given = state;
  given.push_back(all);
  given.insert(given.end(), loop.invariants.begin(), loop.invariants.end());
  std::vector<size_t> kept;
  MENDEL_ASSIGN_OR_RETURN(const Graph body, TidyLoopBody(built, state.size() + 1, kept));
  Values inputs;
  for (const size_t k : kept) inputs.push_back(given[k]);
  MENDEL_ASSIGN_OR_RETURN(Values results,
                          op_.EmitAll("Loop", std::move(inputs),
                                      {{"body", PrintLoopBody(body)},
                                       {"carried", static_cast<int64_t>(state.size())},
                                       {"reverse", int64_t{Reversed(direction.index)}},
                                       {"scanned", int64_t{1}},
                                       {"steps", steps_}}));
  MENDEL_ASSIGN_OR_RETURN(output, op_.Reshape(results.back(), {steps_, 1, batch_, hidden_}));
  results.pop_back();
  return results;
}

ValueId Recurrence::Invariant(ValueId outer) {
  const auto known = std::find(loop_->invariants.begin(), loop_->invariants.end(), outer);
  if (known != loop_->invariants.end())
    return loop_->inputs[static_cast<size_t>(known - loop_->invariants.begin())];
  const ValueId value = loop_->body.Input("", op_.type(outer));
  loop_->invariants.push_back(outer);
  loop_->inputs.push_back(value);
  loop_->outer[value] = outer;
  return value;
}

absl::StatusOr<Recurrence::Values> Recurrence::EmitAll(std::string_view name, Values inputs,
                                                       Attributes attrs) {
  if (!loops()) return op_.EmitAll(name, std::move(inputs), std::move(attrs));
  const bool fixed = std::all_of(inputs.begin(), inputs.end(), [&](ValueId value) {
    return loop_->outer.find(value) != loop_->outer.end();
  });
  Values values;
  if (fixed) {
    for (ValueId& value : inputs) value = loop_->outer[value];
    MENDEL_ASSIGN_OR_RETURN(values, op_.EmitAll(name, std::move(inputs), std::move(attrs)));
    for (ValueId& value : values) value = Invariant(value);
    return values;
  }
  MENDEL_ASSIGN_OR_RETURN(const int32_t id,
                          loop_->body.AddNode(name, std::move(inputs), std::move(attrs)));
  for (size_t k = 0; k < loop_->body.node(id).outputs.size(); ++k)
    values.push_back({id, static_cast<int32_t>(k)});
  return values;
}

absl::StatusOr<ValueId> Recurrence::Emit(std::string_view name, Values inputs) {
  MENDEL_ASSIGN_OR_RETURN(const Values values, EmitAll(name, std::move(inputs), {}));
  return values[0];
}

absl::StatusOr<ValueId> Recurrence::Complement(ValueId x) {
  MENDEL_ASSIGN_OR_RETURN(const ValueId one, Number(x, 1));
  return Emit("Sub", {one, x});
}

absl::StatusOr<ValueId> Recurrence::Number(ValueId like, double element) {
  if (!loops()) return op_.ScalarLike(like, element);
  return loop_->body.Constant(Tensor::Scalar(TypeOf(like).dtype, element));
}

absl::StatusOr<ValueId> Recurrence::Activate(ValueId x, const Direction& direction, size_t k) {
  const size_t each = activations_.size() / static_cast<size_t>(directions_);
  return Emit(activations_[static_cast<size_t>(direction.index) * each + k], {x});
}

absl::StatusOr<Recurrence::Values> Recurrence::Parts(ValueId value, int64_t axis, int64_t count) {
  if (count == 1) return Values{value};
  const Ints sizes(static_cast<size_t>(count),
                   TypeOf(value).shape[static_cast<size_t>(axis)] / count);
  return EmitAll("Split", {value}, {{"axis", axis}, {"sizes", sizes}});
}

absl::StatusOr<ValueId> Recurrence::FirstParts(ValueId value, int64_t axis, int64_t count,
                                               int64_t of) {
  if (count == of) return value;
  const int64_t each = TypeOf(value).shape[static_cast<size_t>(axis)] / of;
  MENDEL_ASSIGN_OR_RETURN(
      const Values parts,
      EmitAll("Split", {value},
              {{"axis", axis}, {"sizes", Ints{count * each, (of - count) * each}}}));
  return parts[0];
}

absl::StatusOr<ValueId> Recurrence::Row(int k, int64_t d) {
  LoopBuilder* const loop = std::exchange(loop_, nullptr);  // rows lie around the loop
  const absl::StatusOr<Values> rows = Parts(op_.In(k), 0, directions_);
  loop_ = loop;
  MENDEL_RETURN_IF_ERROR(rows.status());
  MENDEL_ASSIGN_OR_RETURN(const ValueId row,
                          op_.Reshape((*rows)[static_cast<size_t>(d)], {op_.shape(op_.In(k))[1]}));
  return loops() ? Invariant(row) : row;
}

absl::Status Recurrence::CheckShapes() const {
  const int64_t rows = gates_ * hidden_;
  const auto fits = [&](int k, int64_t columns) {
    const Shape wanted =
        quantized_ ? Shape{directions_, columns, rows} : Shape{directions_, rows, columns};
    return op_.shape(op_.In(k)) == wanted;
  };
  const bool good = fits(1, op_.shape(x_)[2]) && fits(2, hidden_) &&
                    (!op_.Has(3) || op_.shape(op_.In(3)) == Shape{directions_, 2 * rows});
  return good ? absl::OkStatus() : InvalidInput("shapes of X, W, R and B do not match");
}

absl::Status Recurrence::CheckLengths() const {
  if (!op_.Has(4)) return absl::OkStatus();
  MENDEL_ASSIGN_OR_RETURN(const Ints lengths, op_.ConstantInts(4, "sequence lengths"));
  const bool full =
      std::all_of(lengths.begin(), lengths.end(), [&](int64_t length) { return length == steps_; });
  return full ? absl::OkStatus()
              : Unsupported("sequences shorter than ", steps_, " steps are not supported");
}

absl::Status Recurrence::ReadActivations() {
  const std::vector<std::string> defaults = activations_;
  activations_.clear();
  for (int64_t d = 0; d < directions_; ++d)
    activations_.insert(activations_.end(), defaults.begin(), defaults.end());
  for (const onnx::AttributeProto& attribute : op_.node().attribute()) {
    if (attribute.name() == "activation_alpha" || attribute.name() == "activation_beta") {
      return Unsupported("activations with parameters are not supported");
    }
    if (attribute.name() != "activations") continue;
    op_.Ignore("activations");
    if (attribute.strings_size() != static_cast<int>(activations_.size())) {
      return InvalidInput("expects ", activations_.size(), " activations");
    }
    activations_.assign(attribute.strings().begin(), attribute.strings().end());
  }
  for (std::string& name : activations_) {
    MENDEL_ASSIGN_OR_RETURN(name, Activation(name));
  }
  return absl::OkStatus();
}

absl::StatusOr<ValueId> Recurrence::Weights(int k, int64_t d) {
  MENDEL_ASSIGN_OR_RETURN(const Values each, Parts(op_.In(k), 0, directions_));
  const Shape& shape = op_.shape(op_.In(k));
  MENDEL_ASSIGN_OR_RETURN(const ValueId matrix,
                          op_.Reshape(each[static_cast<size_t>(d)], {shape[1], shape[2]}));
  if (!quantized_) return op_.Transpose(matrix, {1, 0});
  MENDEL_ASSIGN_OR_RETURN(const ValueId parameter, Parameter(k == 1 ? 9 : 11, d));
  MENDEL_ASSIGN_OR_RETURN(const ValueId zero, op_.Cast(parameter, DType::kI32));
  MENDEL_ASSIGN_OR_RETURN(const ValueId codes, op_.Cast(matrix, DType::kI32));
  return op_.Emit("Sub", {codes, zero});
}

absl::StatusOr<ValueId> Recurrence::Inputs(bool own_bias, Direction& direction) {
  MENDEL_ASSIGN_OR_RETURN(const ValueId weights, Weights(1, direction.index));
  ValueId all;
  if (quantized_) {
    MENDEL_ASSIGN_OR_RETURN(const ValueId scale, Parameter(8, direction.index));
    MENDEL_ASSIGN_OR_RETURN(all, QuantizedProduct(x_, weights, scale));
  } else {
    MENDEL_ASSIGN_OR_RETURN(all, op_.Emit("MatMul", {x_, weights}));
  }
  if (op_.Has(3)) {
    MENDEL_ASSIGN_OR_RETURN(const ValueId row, Row(3, direction.index));
    MENDEL_ASSIGN_OR_RETURN(const Values biases, Parts(row, 0, 2));
    MENDEL_ASSIGN_OR_RETURN(all, op_.Emit("Add", {all, biases[0]}));
    if (own_bias) {
      direction.recurrent_bias = biases[1];
    } else {
      MENDEL_ASSIGN_OR_RETURN(all, op_.Emit("Add", {all, biases[1]}));
    }
  }
  return all;
}

absl::StatusOr<ValueId> Recurrence::FirstState(int k, int64_t d) {
  if (!op_.Has(k)) return op_.Filled(Tensor::Scalar(op_.type(x_).dtype, 0), {batch_, hidden_});
  ValueId states = op_.In(k);
  if (layout_ != 0) {
    MENDEL_ASSIGN_OR_RETURN(states, op_.Transpose(states, {1, 0, 2}));
  }
  if (op_.shape(states) != Shape{directions_, batch_, hidden_})
    return InvalidInput("the first state has a wrong shape");
  MENDEL_ASSIGN_OR_RETURN(const Values each, Parts(states, 0, directions_));
  return op_.Reshape(each[static_cast<size_t>(d)], {batch_, hidden_});
}

absl::StatusOr<ValueId> Recurrence::Joined(Values parts, int64_t axis) {
  if (parts.size() == 1) return parts[0];
  return op_.Emit("Concat", std::move(parts), {{"axis", axis}});
}

absl::Status Recurrence::SetOutputs(Values outputs, std::vector<Values> last) {
  if (op_.Wants(0)) {
    MENDEL_ASSIGN_OR_RETURN(ValueId all, Joined(std::move(outputs), 1));
    if (layout_ != 0) {
      MENDEL_ASSIGN_OR_RETURN(all, op_.Transpose(all, {2, 0, 1, 3}));
    }
    MENDEL_RETURN_IF_ERROR(op_.SetOutput(0, all));
  }
  for (size_t s = 0; s < last.size(); ++s) {
    const int output = static_cast<int>(s) + 1;
    if (!op_.Wants(output)) continue;
    MENDEL_ASSIGN_OR_RETURN(ValueId state, Joined(std::move(last[s]), 0));
    if (layout_ != 0) {
      MENDEL_ASSIGN_OR_RETURN(state, op_.Transpose(state, {1, 0, 2}));
    }
    MENDEL_RETURN_IF_ERROR(op_.SetOutput(output, state));
  }
  return absl::OkStatus();
}

}  // namespace mendel
