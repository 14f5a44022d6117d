#include "graph/loop_samples.h"

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/loop.h"
#include "graph/op_helpers.h"

namespace mendel {
namespace {

/// Builds the body of a sample; CHECK-fails on errors.
class SampleBody {
 public:
  ValueId Input(Shape shape) {
    return builder_.Input(Cat("x", inputs_++), {DType::kF32, std::move(shape)});
  }
  ValueId Add(std::string_view op, std::vector<ValueId> inputs) {
    return builder_.Add(op, std::move(inputs)).value();
  }
  ValueId Number(double value) { return builder_.Constant(Tensor::Scalar(DType::kF32, value)); }
  void Output(ValueId value) { builder_.Output(Cat("y", outputs_++), value); }
  std::string Text() { return PrintLoopBody(builder_.Build().value()); }

 private:
  GraphBuilder builder_;
  int inputs_ = 0, outputs_ = 0;
};

/// h = tanh(x + h R), or the same without tanh.
OpSample SampleRecurrence(Rng& rng, int64_t steps) {
  const int64_t batch = rng.Between(1, 2), hidden = rng.Between(1, 3);
  SampleBody body;
  const ValueId h = body.Input({batch, hidden});
  const ValueId x = body.Input({batch, hidden});
  const ValueId r = body.Input({hidden, hidden});
  ValueId next = body.Add("Add", {x, body.Add("MatMul", {h, r})});
  if (rng.Flip()) next = body.Add("Tanh", {next});
  body.Output(next);
  if (rng.Flip(0.7)) body.Output(body.Add("Sub", {next, x}));
  return {{{DType::kF32, {batch, hidden}},
           {DType::kF32, {steps, batch, hidden}},
           {DType::kF32, {hidden, hidden}}},
          {{"body", body.Text()}, {"carried", int64_t{1}}, {"scanned", int64_t{1}}},
          {}};
}

/// Two carried values with a gate, that change places; no scanned input half of the time.
OpSample SampleGated(Rng& rng, int64_t steps) {
  const Shape shape = SampleShape(rng, 1, 2, 4);
  const bool scans = rng.Flip();
  SampleBody body;
  const ValueId a = body.Input(shape), b = body.Input(shape);
  const ValueId x = scans ? body.Input(shape) : a;
  const ValueId gate = body.Add("Sigmoid", {body.Add("Add", {a, x})});
  const ValueId rest = body.Add("Sub", {body.Number(1), gate});
  const ValueId next = body.Add("Add", {body.Add("Mul", {gate, b}), body.Add("Mul", {rest, x})});
  body.Output(next);
  body.Output(a);
  body.Output(rest);
  body.Output(b);
  OpSample sample{{{DType::kF32, shape}, {DType::kF32, shape}},
                  {{"carried", int64_t{2}}, {"scanned", int64_t{scans}}},
                  {}};
  if (scans) {
    Shape whole = shape;
    whole.insert(whole.begin(), steps);
    sample.inputs.push_back({DType::kF32, whole});
  }
  sample.attrs.Set("body", body.Text());
  return sample;
}

}  // namespace

OpSample SampleLoop(Rng& rng) {
  const int64_t steps = rng.Between(1, 4);
  OpSample sample = rng.Flip() ? SampleRecurrence(rng, steps) : SampleGated(rng, steps);
  sample.attrs.Set("steps", steps);
  sample.attrs.Set("reverse", int64_t{rng.Flip()});
  return sample;
}

}  // namespace mendel
