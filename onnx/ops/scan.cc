// Scan as the operator Loop: along the first dimension, all slices in one direction. Step by step
// where the body cannot be that of a Loop.

#include <algorithm>
#include <utility>

#include "graph/loop.h"
#include "onnx/op_context.h"
#include "onnx/ops/steps.h"

namespace mendel::lowerings::scan {
namespace {

/// Before it, Scan had a batch dimension and sequence lengths.
constexpr int64_t kFirstWithoutBatch = 9;

using Values = std::vector<ValueId>;

/// `perm` that moves dimension `from` to `to` and keeps the order of the others.
Ints Moved(int64_t rank, int64_t from, int64_t to) {
  Ints perm;
  for (int64_t d = 0; d < rank; ++d) {
    if (d != from) perm.push_back(d);
  }
  perm.insert(perm.begin() + to, from);
  return perm;
}

/// The slices along the first dimension in reverse order.
absl::StatusOr<ValueId> Reversed(OpContext& op, ValueId value) {
  const Shape& shape = op.shape(value);
  Ints starts(shape.size(), 0), ends(shape.begin(), shape.end()), steps(shape.size(), 1);
  starts[0] = shape[0] - 1;
  ends[0] = -1;
  steps[0] = -1;
  return op.Emit("Slice", {value}, {{"starts", starts}, {"ends", ends}, {"steps", steps}});
}

/// An attribute with one number for each of `count` values; 0 where it is absent.
absl::StatusOr<Ints> Numbers(OpContext& op, std::string_view name, size_t count) {
  const Ints numbers = op.IntList(name).value_or(Ints(count, 0));
  if (numbers.size() != count)
    return InvalidInput(name, " has ", numbers.size(), " numbers, not ", count);
  return numbers;
}

absl::StatusOr<Ints> Directions(OpContext& op, std::string_view name, size_t count) {
  MENDEL_ASSIGN_OR_RETURN(const Ints numbers, Numbers(op, name, count));
  for (const int64_t number : numbers) {
    if (number != 0 && number != 1) return InvalidInput(name, " has a number other than 0 and 1");
  }
  return numbers;
}

/// Operands and attributes of the Loop while it is being made.
struct Parts {
  Values inputs;
  std::vector<TensorType> slices;  ///< types of the body's inputs
  int64_t carried = 0;
  int64_t steps = -1;
  int64_t reverse = 0;
};

absl::Status ReadInputs(OpContext& op, Parts& parts) {
  const int64_t scanned = op.Int("num_scan_inputs", 0);
  if (scanned < 1 || scanned > op.input_count())
    return InvalidInput("num_scan_inputs is ", scanned, " with ", op.input_count(), " inputs");
  MENDEL_ASSIGN_OR_RETURN(parts.inputs, op.AllInputs());
  parts.carried = op.input_count() - scanned;
  const size_t count = static_cast<size_t>(scanned);
  MENDEL_ASSIGN_OR_RETURN(const Ints axes, Numbers(op, "scan_input_axes", count));
  MENDEL_ASSIGN_OR_RETURN(const Ints directions, Directions(op, "scan_input_directions", count));
  parts.reverse = directions[0];
  for (size_t k = 0; k < parts.inputs.size(); ++k) {
    ValueId& value = parts.inputs[k];
    if (k >= static_cast<size_t>(parts.carried)) {
      const size_t s = k - static_cast<size_t>(parts.carried);
      MENDEL_ASSIGN_OR_RETURN(const int64_t axis, op.Axis(axes[s], op.rank(value)));
      MENDEL_ASSIGN_OR_RETURN(value, op.Transpose(value, Moved(op.rank(value), axis, 0)));
      const int64_t steps = op.shape(value)[0];
      if (parts.steps >= 0 && steps != parts.steps)
        return InvalidInput("scanned inputs have ", parts.steps, " and ", steps, " slices");
      parts.steps = steps;
      if (directions[s] != parts.reverse) {
        MENDEL_ASSIGN_OR_RETURN(value, Reversed(op, value));
      }
    }
    TensorType& slice = parts.slices.emplace_back(op.type(value));
    if (k >= static_cast<size_t>(parts.carried)) slice.shape.erase(slice.shape.begin());
  }
  return absl::OkStatus();
}

/// The results of the operator Loop.
absl::StatusOr<Values> AsLoop(OpContext& op, const onnx::GraphProto& graph, const Parts& parts) {
  if (parts.carried == 0) return Unsupported("it has no state");
  MENDEL_ASSIGN_OR_RETURN(const ImportedBody imported, op.Body(graph, parts.slices));
  const size_t carried = static_cast<size_t>(parts.carried);
  LoopOperands operands{parts.inputs, carried, parts.inputs.size() - carried, parts.steps,
                        parts.reverse != 0};
  operands.values.insert(operands.values.end(), imported.invariants.begin(),
                         imported.invariants.end());
  return EmitLoop(op, imported.body, operands);
}

/// The same results step by step.
absl::StatusOr<Values> WrittenScan(OpContext& op, const onnx::GraphProto& graph, const Parts& parts,
                                   std::string why) {
  const auto first_slice = parts.inputs.begin() + parts.carried;
  const auto time = [&](int64_t k) { return parts.reverse != 0 ? parts.steps - 1 - k : k; };
  WrittenLoop loop;
  loop.body = &graph;
  loop.steps = parts.steps;
  loop.why = std::move(why);
  loop.state.assign(parts.inputs.begin(), first_slice);
  loop.inputs = [&](int64_t k, const Values& state) -> absl::StatusOr<Values> {
    Values inputs = state;
    for (auto all = first_slice; all != parts.inputs.end(); ++all) {
      MENDEL_ASSIGN_OR_RETURN(const ValueId slice, Slices(op, *all, time(k), time(k) + 1));
      const Shape& shape = op.shape(slice);
      MENDEL_ASSIGN_OR_RETURN(inputs.emplace_back(),
                              op.Reshape(slice, Shape(shape.begin() + 1, shape.end())));
    }
    return inputs;
  };
  MENDEL_ASSIGN_OR_RETURN(WrittenResults results, WriteSteps(op, loop));
  Values outputs = std::move(results.state);
  for (Values& of_steps : results.scanned) {
    if (parts.reverse != 0) std::reverse(of_steps.begin(), of_steps.end());
    MENDEL_ASSIGN_OR_RETURN(outputs.emplace_back(), Stacked(op, std::move(of_steps), 0));
  }
  return outputs;
}

absl::Status ImportScan(OpContext& op) {
  if (op.version() < kFirstWithoutBatch)
    return Unsupported("Scan before opset ", kFirstWithoutBatch, " is not supported");
  const onnx::GraphProto* graph = op.GraphAttribute("body");
  if (graph == nullptr) return InvalidInput("has no body");
  Parts parts;
  MENDEL_RETURN_IF_ERROR(ReadInputs(op, parts));
  if (graph->output_size() < parts.carried)
    return InvalidInput("the body has fewer outputs than states");
  const size_t results = static_cast<size_t>(graph->output_size() - parts.carried);
  MENDEL_ASSIGN_OR_RETURN(const Ints axes, Numbers(op, "scan_output_axes", results));
  MENDEL_ASSIGN_OR_RETURN(const Ints directions, Directions(op, "scan_output_directions", results));
  absl::StatusOr<Values> emitted = AsLoop(op, *graph, parts);
  if (!emitted.ok())
    emitted = WrittenScan(op, *graph, parts, std::string(emitted.status().message()));
  MENDEL_RETURN_IF_ERROR(emitted.status());
  Values outputs = *std::move(emitted);
  if (outputs.size() != static_cast<size_t>(parts.carried) + results)
    return Unsupported("no step gives its scanned outputs a shape");
  for (size_t s = 0; s < results; ++s) {
    ValueId& value = outputs[static_cast<size_t>(parts.carried) + s];
    if (directions[s] != parts.reverse) {
      MENDEL_ASSIGN_OR_RETURN(value, Reversed(op, value));
    }
    MENDEL_ASSIGN_OR_RETURN(const int64_t axis, op.Axis(axes[s], op.rank(value)));
    MENDEL_ASSIGN_OR_RETURN(value, op.Transpose(value, Moved(op.rank(value), 0, axis)));
  }
  return op.SetOutputs(std::move(outputs));
}

const OpImportRegistrar registrar({
    {"Scan", 1, 1 << 20, &ImportScan},
});

}  // namespace
}  // namespace mendel::lowerings::scan
