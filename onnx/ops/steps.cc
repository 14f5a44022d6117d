#include "onnx/ops/steps.h"

#include <utility>

#include "graph/loop.h"

namespace mendel {

absl::StatusOr<ValueId> Slices(OpContext& op, ValueId value, int64_t begin, int64_t end) {
  const Shape& shape = op.shape(value);
  Ints starts(shape.size(), 0), ends(shape.begin(), shape.end()), steps(shape.size(), 1);
  starts[0] = begin;
  ends[0] = end;
  return op.Emit("Slice", {value}, {{"starts", starts}, {"ends", ends}, {"steps", steps}});
}

absl::StatusOr<std::vector<ValueId>> EmitLoop(OpContext& op, const Graph& body,
                                              const LoopOperands& operands) {
  std::vector<size_t> kept;
  MENDEL_ASSIGN_OR_RETURN(const Graph tidy, TidyLoopBody(body, operands.carried, kept));
  MENDEL_RETURN_IF_ERROR(CheckLoopBody(tidy));
  std::vector<ValueId> inputs;
  int64_t scanned = 0;
  for (const size_t k : kept) {
    inputs.push_back(operands.values[k]);
    const bool is_scanned = k >= operands.carried && k < operands.carried + operands.scanned;
    scanned += is_scanned ? 1 : 0;
  }
  return op.EmitAll("Loop", std::move(inputs),
                    {{"body", PrintLoopBody(tidy)},
                     {"carried", static_cast<int64_t>(operands.carried)},
                     {"reverse", int64_t{operands.reverse}},
                     {"scanned", scanned},
                     {"steps", operands.steps}});
}

absl::StatusOr<ValueId> Stacked(OpContext& op, std::vector<ValueId> values, int64_t axis) {
  for (ValueId& value : values) {
    Shape shape = op.shape(value);
    shape.insert(shape.begin() + axis, 1);
    MENDEL_ASSIGN_OR_RETURN(value, op.Reshape(value, std::move(shape)));
  }
  if (values.size() == 1) return values[0];
  return op.Emit("Concat", std::move(values), {{"axis", axis}});
}

absl::StatusOr<WrittenResults> WriteSteps(OpContext& op, const WrittenLoop& loop) {
  MENDEL_ASSIGN_OR_RETURN(const Importer::Step step, op.Steps(*loop.body));
  WrittenResults results;
  results.state = loop.state;
  for (int64_t k = 0; k < loop.steps; ++k) {
    if (k == kMaxWrittenSteps) {
      return Unsupported(
          "at most ", kMaxWrittenSteps, " of a loop's ", loop.steps,
          " steps are written one after the other, and it cannot stay a loop: ", loop.why);
    }
    std::vector<ValueId> inputs = results.state;
    if (loop.inputs != nullptr) {
      MENDEL_ASSIGN_OR_RETURN(inputs, loop.inputs(k, results.state));
    }
    MENDEL_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, step(std::move(inputs)));
    bool goes_on = true;
    if (loop.goes_on != nullptr) {
      MENDEL_ASSIGN_OR_RETURN(goes_on, loop.goes_on(k, outputs));
    }
    if (outputs.size() < results.state.size())
      return InvalidInput("the body has fewer outputs than states");
    const size_t carried = results.state.size();
    results.scanned.resize(outputs.size() - carried);
    for (size_t s = carried; s < outputs.size(); ++s) {
      std::vector<ValueId>& of_steps = results.scanned[s - carried];
      if (!of_steps.empty() && op.type(of_steps[0]) != op.type(outputs[s])) {
        return Unsupported("scanned output ", s - carried, " changes from ",
                           TypeString(op.type(of_steps[0])), " to ",
                           TypeString(op.type(outputs[s])));
      }
      of_steps.push_back(outputs[s]);
    }
    outputs.resize(carried);
    results.state = std::move(outputs);
    if (!goes_on) break;
  }
  return results;
}

}  // namespace mendel
