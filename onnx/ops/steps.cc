#include "onnx/ops/steps.h"

#include <utility>

namespace mendel {

absl::StatusOr<ValueId> SliceAt(OpContext& op, ValueId value, int64_t k) {
  const Shape shape = op.shape(value);
  Ints starts(shape.size(), 0), ends(shape.begin(), shape.end()), steps(shape.size(), 1);
  starts[0] = k;
  ends[0] = k + 1;
  MENDEL_ASSIGN_OR_RETURN(
      const ValueId slice,
      op.Emit("Slice", {value}, {{"starts", starts}, {"ends", ends}, {"steps", steps}}));
  return op.Reshape(slice, Shape(shape.begin() + 1, shape.end()));
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
    if (k == kMaxWrittenSteps)
      return Unsupported("a loop of ", loop.steps,
                         " steps that cannot stay a loop is not supported (at most ",
                         kMaxWrittenSteps, ")");
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
