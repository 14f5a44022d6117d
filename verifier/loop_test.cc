// Loops before the verifier: their steps are compared in the field, whatever way they are written.

#include "graph/loop.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/random_graph.h"
#include "graph/sample_node.h"
#include "verifier/compare.h"
#include "verifier/verifier.h"
#include "verifier/witness/early_steps.h"
#include "verifier/witness/witness.h"
#include "verifier/witness/witness_pair.h"

namespace mendel {
namespace {

constexpr int64_t kInputs = 2, kHidden = 3;

/// A recurrent network can be written in these ways.
struct Form {
  int64_t slices = 20;
  int64_t steps = 20;  ///< of the slices, the last ones
  bool reverse = false;
  bool hoisted = true;    ///< the input product of all steps is one
  bool commuted = false;  ///< sums in another order
  double changed = 0;     ///< added to one recurrent weight
  int64_t hidden = kHidden;
};

Tensor Waves(Shape shape, double phase) {
  std::vector<double> values(static_cast<size_t>(NumElements(shape)));
  for (size_t k = 0; k < values.size(); ++k)
    values[k] = std::round(64 * std::sin(phase + static_cast<double>(k))) / 64;
  return Tensor::FromDoubles({DType::kF32, std::move(shape)}, values);
}

/// h = s(x W + h R) h + tanh(x W), the last h and, of all steps, h.
std::string BodyOf(const Form& form) {
  GraphBuilder body;
  const auto add = [&](ValueId a, ValueId b) {
    return body.Add("Add", form.commuted ? std::vector{b, a} : std::vector{a, b}).value();
  };
  const ValueId h = body.Input("x0", {DType::kF32, {1, form.hidden}});
  ValueId x = body.Input("x1", {DType::kF32, {1, form.hoisted ? form.hidden : kInputs}});
  const ValueId r = body.Input("x2", {DType::kF32, {form.hidden, form.hidden}});
  if (!form.hoisted) {
    const ValueId w = body.Input("x3", {DType::kF32, {kInputs, form.hidden}});
    x = body.Add("MatMul", {x, w}).value();
  }
  const ValueId sum = add(x, body.Add("MatMul", {h, r}).value());
  const ValueId kept = body.Add("Mul", {body.Add("Sigmoid", {sum}).value(), h}).value();
  const ValueId next = add(kept, body.Add("Tanh", {x}).value());
  body.Output("y0", next);
  body.Output("y1", next);
  return PrintLoopBody(body.Build().value());
}

Graph Network(const Form& form) {
  const int64_t slices = form.slices;
  GraphBuilder net("net");
  ValueId x = net.Input("x", {DType::kF32, {slices, 1, kInputs}});
  const ValueId h = net.Input("h", {DType::kF32, {1, form.hidden}});
  const ValueId w = net.Constant(Waves({kInputs, form.hidden}, 1), "w");
  std::vector<double> recurrent = Waves({form.hidden, form.hidden}, 2).ToDoubles();
  recurrent[4] += form.changed;
  const ValueId r =
      net.Constant(Tensor::FromDoubles({DType::kF32, {form.hidden, form.hidden}}, recurrent), "r");
  if (form.steps < slices) {
    x = net.Add("Slice", {x},
                {{"starts", Ints{slices - form.steps, 0, 0}},
                 {"ends", Ints{slices, 1, kInputs}},
                 {"steps", Ints{1, 1, 1}}})
            .value();
  }
  if (form.hoisted) x = net.Add("MatMul", {x, w}).value();
  std::vector<ValueId> inputs = {h, x, r};
  if (!form.hoisted) inputs.push_back(w);
  const int32_t loop = net.AddNode("Loop", inputs,
                                   {{"body", BodyOf(form)},
                                    {"carried", int64_t{1}},
                                    {"reverse", int64_t{form.reverse}},
                                    {"scanned", int64_t{1}},
                                    {"steps", form.steps}})
                           .value();
  net.Output("last", {loop, 0});
  if (form.steps == slices) net.Output("all", {loop, 1});
  return net.Build().value();
}

/// The network without its second output, which has another shape when there are fewer steps.
Graph LastOnly(const Graph& graph) {
  GraphBuilder builder;
  std::vector<int32_t> copies;
  for (const Node& node : graph.nodes()) {
    std::vector<ValueId> inputs;
    for (const ValueId value : node.inputs)
      inputs.push_back({copies[static_cast<size_t>(value.node)], value.output});
    copies.push_back(IsInput(node) ? builder.Input(InputName(node), node.outputs[0]).node
                                   : builder.CopyNode(node, inputs).value());
  }
  const ValueId last = graph.outputs()[0].value;
  builder.Output("last", {copies[static_cast<size_t>(last.node)], last.output});
  return builder.Build().value();
}

CompareReport Compared(const Graph& a, const Graph& b) {
  CompareOptions options;
  options.verifier.weights = WeightMode::kExact;
  const auto report = ComparePrograms(a, b, options);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *report : CompareReport();
}

void ExpectDifferent(const Graph& a, const Graph& b) {
  const CompareReport report = Compared(a, b);
  EXPECT_TRUE(report.verdict == Verdict::kDifferent || report.verdict == Verdict::kPartial)
      << VerdictName(report.verdict) << ": " << report.reason;
  bool witness = false;
  for (const ComparedOutput& output : report.outputs) {
    for (const ComparedBox& box : output.boxes) witness = witness || box.witness.has_value();
  }
  EXPECT_TRUE(witness);
}

TEST(Loop, EquivalentHoweverItIsWritten) {
  const Graph loop = Network({});
  Form commuted, inside;
  commuted.commuted = true;
  inside.hoisted = false;
  for (const Graph& other : {loop, Network(commuted), Network(inside), UnrollLoops(loop).value(),
                             UnrollLoops(Network(inside)).value()}) {
    const CompareReport report = Compared(loop, other);
    EXPECT_EQ(report.verdict, Verdict::kEquivalent) << report.reason;
    EXPECT_LE(report.bound_log2, -80);
  }
}

TEST(Loop, DifferentWithAWitness) {
  const Graph loop = Network({});
  Form changed, backward;
  changed.changed = 0.125;
  backward.reverse = true;
  ExpectDifferent(loop, Network(changed));
  ExpectDifferent(loop, Network(backward));
  ExpectDifferent(loop, UnrollLoops(Network(changed)).value());
  Form shorter;
  shorter.steps = 19;
  ExpectDifferent(LastOnly(loop), Network(shorter));
}

/// Enclosures of late steps would take long; the first steps separate the programs.
TEST(Loop, WitnessesLieInTheFirstSteps) {
  for (const bool reverse : {false, true}) {
    Form form;
    form.slices = form.steps = 3000;
    form.reverse = reverse;
    Form changed = form;
    changed.changed = 0.125;
    const CompareReport report = Compared(Network(form), Network(changed));
    EXPECT_TRUE(report.verdict == Verdict::kDifferent || report.verdict == Verdict::kPartial)
        << VerdictName(report.verdict) << ": " << report.reason;
    bool early = false;
    for (const ComparedBox& box : report.outputs[1].boxes) {
      if (!box.witness.has_value()) continue;
      const int64_t slice = box.witness->element[0];
      early = early || (reverse ? 2999 - slice : slice) < 64;
    }
    EXPECT_TRUE(early) << reverse;
  }
}

/// At ordinary inputs the enclosures of the last step need as many bits as there are steps.
TEST(Loop, TheLastOfManyStepsNeedsFewBits) {
  Form form;
  form.slices = form.steps = 300;
  form.hidden = 64;
  const Graph loop = LastOnly(Network(form));
  Form changed = form, backward = form, shorter = form;
  changed.changed = 0.125;
  backward.reverse = true;
  shorter.steps = 299;
  for (const Form& other : {changed, backward, shorter}) {
    const Graph g = LastOnly(Network(other));
    const WitnessQuery query{0, Box::Whole({1, form.hidden})};
    const auto answers = FindWitnesses(loop, g, {&query, 1}, {});
    ASSERT_TRUE(answers.ok()) << answers.status();
    ASSERT_TRUE(answers->front().witness.has_value()) << answers->front().reason;
    EXPECT_LE(answers->front().witness->precision_bits, 256);
  }
}

/// A witness of a part of the steps is one of the whole.
TEST(Loop, EarlyWitnessesAreElementsOfTheWhole) {
  for (const bool reverse : {false, true}) {
    Form form;
    form.slices = form.steps = 400;
    form.reverse = reverse;
    Form changed = form;
    changed.changed = 0.125;
    const Graph f = Network(form), g = Network(changed);
    const Shape& shape = f.type(f.outputs()[1].value).shape;
    const WitnessQuery query{1, Box::Whole(shape)};
    const auto answers = FindWitnesses(f, g, {&query, 1}, {});
    ASSERT_TRUE(answers.ok()) << answers.status();
    ASSERT_TRUE(answers->front().witness.has_value()) << answers->front().reason;
    const Witness& witness = *answers->front().witness;
    std::vector<HostValue> inputs;
    for (const Tensor& input : witness.inputs) inputs.push_back(HostValue::FromTensor(input));
    const auto of_f = Evaluate(f, inputs), of_g = Evaluate(g, inputs);
    ASSERT_TRUE(of_f.ok() && of_g.ok());
    const int64_t flat = FlatIndex(shape, witness.element);
    EXPECT_NEAR((*of_f)[1].At(flat), witness.value_f, 1e-9) << reverse;
    EXPECT_NEAR((*of_g)[1].At(flat), witness.value_g, 1e-9) << reverse;
  }
}

/// Parts of a query compute the elements of their boxes.
TEST(Loop, EarlyPartsAreElementsOfTheWhole) {
  for (const bool reverse : {false, true}) {
    Form form;
    form.slices = form.steps = 400;
    form.reverse = reverse;
    const Graph net = Network(form);
    const auto joint = JoinByValue(net, net);
    ASSERT_TRUE(joint.ok()) << joint.status();
    const Shape& shape = net.type(net.outputs()[1].value).shape;
    const auto parts = EarlyQueries(*joint, {1, Box::Whole(shape)});
    ASSERT_TRUE(parts.ok()) << parts.status();
    EXPECT_GE(parts->size(), 2u);
    Rng rng(5);
    const std::vector<HostValue> inputs = RandomInputs(rng, net);
    const auto whole = Evaluate(net, inputs);
    ASSERT_TRUE(whole.ok()) << whole.status();
    for (const EarlyQuery& part : *parts) {
      const auto values = Evaluate(part.joint, inputs);
      ASSERT_TRUE(values.ok()) << values.status();
      const Shape extents = part.box.Extents();
      ASSERT_EQ(values->front().type.shape, extents);
      for (int64_t i = 0; i < NumElements(extents); ++i) {
        const int64_t flat = FlatIndex(shape, IndexAt(part.box, i));
        EXPECT_EQ(values->front().At(i), (*whole)[1].At(flat)) << reverse << ": " << i;
      }
    }
  }
}

/// Certificates of loops against their steps, and none of a loop that takes its slices in another
/// order.
TEST(Loop, RandomLoopsAreTheirSteps) {
  int refused = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    SampledNode node = SampleNode(GetOp("Loop"), rng).value();
    const auto graph = [&](const Attributes& attrs) {
      GraphBuilder builder;
      std::vector<ValueId> inputs;
      for (const TensorType& type : node.inputs)
        inputs.push_back(builder.Input(Cat("x", inputs.size()), type));
      const int32_t id = builder.AddNode("Loop", inputs, attrs).value();
      for (size_t k = 0; k < node.outputs.size(); ++k)
        builder.Output(Cat("y", k), {id, static_cast<int32_t>(k)});
      return builder.Build().value();
    };
    SCOPED_TRACE(DescribeNode(node));
    const Graph loop = graph(node.attrs), steps = UnrollLoops(loop).value();
    const auto certificate = Certify(loop, steps, {});
    ASSERT_TRUE(certificate.ok()) << certificate.status();
    EXPECT_LE(certificate->bound_log2, -80);
    EXPECT_TRUE(Replay(loop, steps, *certificate).ok());
    if (node.attrs.Int("steps") < 2 || node.attrs.Int("scanned") == 0) continue;
    Attributes other = node.attrs;
    other.Set("reverse", 1 - node.attrs.Int("reverse"));
    const auto wrong = Certify(loop, graph(other), {});
    EXPECT_EQ(wrong.status().code(), absl::StatusCode::kFailedPrecondition) << wrong.status();
    ++refused;
  }
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace mendel
