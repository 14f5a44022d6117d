// ONNX operators that the importer spells in other operators: their numbers, by formulas written
// down here.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/text.h"
#include "onnx/import.h"
#include "onnx/model_builder.h"

namespace mendel {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;
using Builder = ModelBuilder;

Tensor Floats(Shape shape, std::vector<double> values) {
  return Tensor::FromDoubles({DType::kF32, std::move(shape)}, values);
}

/// 1, 2, 3, ...
Tensor Counting(Shape shape) {
  std::vector<double> values(static_cast<size_t>(NumElements(shape)));
  for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<double>(k) + 1;
  return Floats(std::move(shape), values);
}

/// Output 0 of the imported model in double precision; fails the test when the import does.
HostValue Computed(const Builder& model, const std::vector<Tensor>& inputs) {
  const auto imported = ImportOnnxBytes(model.Bytes(), "");
  EXPECT_TRUE(imported.ok()) << imported.status();
  if (!imported.ok()) return {};
  std::vector<HostValue> values;
  for (const Tensor& input : inputs) values.push_back(HostValue::FromTensor(input));
  const auto outputs = Evaluate(imported->graph, values);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? (*outputs)[0] : HostValue{};
}

std::vector<std::string> Extents(const Tensor& tensor) {
  std::vector<std::string> extents;
  for (int64_t extent : tensor.shape()) extents.push_back(std::to_string(extent));
  return extents;
}

Builder EinsumModel(const std::string& equation, const std::vector<Tensor>& operands) {
  Builder model;
  std::vector<std::string> names;
  for (size_t k = 0; k < operands.size(); ++k) {
    names.push_back(Cat("x", k));
    model.Input(names.back(), Extents(operands[k]));
  }
  model.Output("y");
  Builder::Set(model.Node("Einsum", names, {"y"}), "equation", equation);
  return model;
}

HostValue Einsum(const std::string& equation, const std::vector<Tensor>& operands) {
  return Computed(EinsumModel(equation, operands), operands);
}

TEST(Einsum, OneOperand) {
  EXPECT_THAT(Einsum("ij->ji", {Counting({2, 3})}).scalars, ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(Einsum("ij->i", {Counting({2, 3})}).scalars, ElementsAre(6, 15));
  EXPECT_THAT(Einsum("ij->", {Counting({2, 3})}).scalars, ElementsAre(21));
  EXPECT_THAT(Einsum("ii->i", {Counting({2, 2})}).scalars, ElementsAre(1, 4));
  EXPECT_THAT(Einsum("ii", {Counting({2, 2})}).scalars, ElementsAre(5));
  EXPECT_THAT(Einsum("ba", {Counting({2, 3})}).scalars,
              ElementsAre(1, 4, 2, 5, 3, 6));  // alphabetical
  EXPECT_THAT(Einsum("...ii->...i", {Counting({2, 2, 2})}).scalars, ElementsAre(1, 4, 5, 8));
  EXPECT_THAT(Einsum("i...->...", {Counting({2, 3})}).scalars, ElementsAre(5, 7, 9));
}

TEST(Einsum, EllipsisBroadcasts) {
  const HostValue product =
      Einsum("...ij, ...jk -> ...ik", {Counting({2, 1, 1, 2}), Counting({3, 2, 1})});
  EXPECT_EQ(product.type.shape, (Shape{2, 3, 1, 1}));
  EXPECT_THAT(product.scalars, ElementsAre(1 * 1 + 2 * 2, 1 * 3 + 2 * 4, 1 * 5 + 2 * 6,
                                           3 * 1 + 4 * 2, 3 * 3 + 4 * 4, 3 * 5 + 4 * 6));
  const HostValue implicit = Einsum("...i,i", {Counting({2, 2}), Counting({2})});
  EXPECT_THAT(implicit.scalars, ElementsAre(5, 11));
  // A dimension under "..." that is one everywhere stays.
  EXPECT_EQ(Einsum("...i,...i->...", {Counting({1, 2}), Counting({1, 2})}).type.shape, Shape{1});
}

TEST(Einsum, ThreeOperands) {
  const HostValue value = Einsum("a,ab,b->", {Counting({2}), Counting({2, 3}), Counting({3})});
  EXPECT_THAT(value.scalars, ElementsAre(1 * (1 + 4 + 9) + 2 * (4 + 10 + 18)));
  EXPECT_THAT(Einsum("i,j,i->ji", {Counting({2}), Counting({2}), Counting({2})}).scalars,
              ElementsAre(1, 4, 2, 8));
}

TEST(Einsum, BadEquationsAreRefused) {
  const std::vector<Tensor> matrix = {Counting({2, 2})};
  for (const char* bad :
       {"i->i", "ij->k", "ij->ii", "i1->i", "i.j->ij", "ij,jk->ik", "...ijk->i"}) {
    const absl::Status status = ImportOnnxBytes(EinsumModel(bad, matrix).Bytes(), "").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad << ": " << status;
  }
}

TEST(Lowering, MeanVarianceNormalization) {
  Builder model;
  model.Input("x", {"1", "2", "1", "2"})
      .Output("y")
      .Node("MeanVarianceNormalization", {"x"}, {"y"});
  const std::vector<double> want = {-1, 1, -1, 1};
  EXPECT_THAT(Computed(model, {Floats({1, 2, 1, 2}, {1, 3, 10, 40})}).scalars,
              Pointwise(DoubleNear(1e-8), want));
}

TEST(Lowering, LpNormalization) {
  for (const int64_t p : {1, 2}) {
    Builder model;
    model.Input("x", {"2", "2"}).Output("y");
    auto& node = model.Node("LpNormalization", {"x"}, {"y"});
    Builder::Set(node, "p", p);
    Builder::Set(node, "axis", int64_t{0});
    const double norm = p == 1 ? 7 : 5;
    const std::vector<double> want = {3 / norm, 0, -4 / norm, 1};
    EXPECT_THAT(Computed(model, {Floats({2, 2}, {3, 0, -4, 2})}).scalars,
                Pointwise(DoubleNear(1e-12), want));
  }
}

TEST(Lowering, Shrink) {
  Builder model;
  model.Input("x", {"5"}).Output("y");
  auto& node = model.Node("Shrink", {"x"}, {"y"});
  Builder::Set(node, "lambd", 1.5f);
  Builder::Set(node, "bias", 0.5f);
  EXPECT_THAT(Computed(model, {Floats({5}, {-2, -1.5, 0, 1.5, 2})}).scalars,
              ElementsAre(-1.5, 0, 0, 0, 1.5));
}

TEST(Lowering, SliceBackwardsFromBeforeTheAxis) {
  // The specification clamps the start to the first position.
  for (const auto& [start, end, want] : std::vector<std::array<int64_t, 3>>{
           {-7, -99, 1}, {-6, -99, 1}, {-7, -6, 0}, {2, -99, 3}, {99, 3, 2}}) {
    Builder model;
    model.Input("x", {"6"}).Output("y");
    model.Ints("start", {start}).Ints("end", {end}).Ints("axis", {0}).Ints("step", {-1});
    model.Node("Slice", {"x", "start", "end", "axis", "step"}, {"y"});
    EXPECT_EQ(static_cast<int64_t>(Computed(model, {Counting({6})}).scalars.size()), want)
        << start << " " << end;
  }
}

TEST(Lowering, CompressWithConstantCondition) {
  Builder model;
  model.Input("x", {"2", "3"}).Output("y");
  model.Initializer("condition",
                    Tensor::FromInts({DType::kBool, {3}}, std::vector<int64_t>{0, 1, 1}));
  auto& node = model.Node("Compress", {"x", "condition"}, {"y"});
  EXPECT_THAT(Computed(model, {Counting({2, 3})}).scalars, ElementsAre(2, 3));
  Builder::Set(node, "axis", int64_t{1});
  EXPECT_THAT(Computed(model, {Counting({2, 3})}).scalars, ElementsAre(2, 3, 5, 6));
}

TEST(Lowering, QuantizeAndBack) {
  Builder model;
  model.Input("x", {"6"}).Output("y");
  model.Initializer("scale", Tensor::Scalar(DType::kF32, 2))
      .Initializer("zero", Tensor::Scalar(DType::kU8, 10));
  model.Node("QuantizeLinear", {"x", "scale", "zero"}, {"q"});
  model.Node("DequantizeLinear", {"q", "scale", "zero"}, {"y"});
  // Halves go to even: 1 / 2 -> 0, 3 / 2 -> 2; both ends saturate.
  EXPECT_THAT(Computed(model, {Floats({6}, {0, 1, 3, -5, 1000, -1000})}).scalars,
              ElementsAre(0, 0, 4, -4, 490, -20));
}

/// The range contains 0, whatever x holds; x = 0 has the scale 1.
TEST(Lowering, QuantizeByTheRangeOfTheInput) {
  const auto quantized = [](const std::vector<double>& x) {
    Builder model;
    model.Input("x", {"3"}).Output("y");
    model.Node("DynamicQuantizeLinear", {"x"}, {"q", "scale", "zero"});
    model.Node("DequantizeLinear", {"q", "scale", "zero"}, {"y"});
    return Computed(model, {Floats({3}, x)}).scalars;
  };
  EXPECT_THAT(quantized({-100, 20, 155}), ElementsAre(-100, 20, 155));
  EXPECT_THAT(quantized({51, 102, 510}), ElementsAre(52, 102, 510));
  EXPECT_THAT(quantized({-510, -1, -2}), ElementsAre(-510, 0, -2));
  EXPECT_THAT(quantized({0, 0, 0}), ElementsAre(0, 0, 0));
}

TEST(Lowering, DequantizeByChannel) {
  Builder model;
  model.Input("x", {"2", "2"}, DType::kI8).Output("y");
  model.Initializer("scale", Floats({2}, {1, 10}));
  model.Initializer("zero", Tensor::FromInts({DType::kI8, {2}}, std::vector<int64_t>{0, -128}));
  Builder::Set(model.Node("DequantizeLinear", {"x", "scale", "zero"}, {"y"}), "axis", int64_t{1});
  const Tensor x = Tensor::FromInts({DType::kI8, {2, 2}}, std::vector<int64_t>{-3, 127, 4, -128});
  EXPECT_THAT(Computed(model, {x}).scalars, ElementsAre(-3, 2550, 4, 0));
}

/// Output `output` of one recurrent node over 3 steps of a batch of 1, 2 inputs and 2 hidden, all
/// states.
std::vector<double> Recurrent(const std::string& op, const std::string& direction, const Tensor& x,
                              int64_t gates) {
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  const auto waves = [&](Shape shape, double phase) {
    std::vector<double> values(static_cast<size_t>(NumElements(shape)));
    // Both directions have the same weights.
    const size_t each = values.size() / static_cast<size_t>(directions);
    for (size_t k = 0; k < values.size(); ++k)
      values[k] = std::sin(phase + static_cast<double>(k % each));
    return Floats(std::move(shape), values);
  };
  Builder model;
  model.Input("x", Extents(x)).Output("y");
  model.Initializer("w", waves({directions, gates * 2, 2}, 0.1))
      .Initializer("r", waves({directions, gates * 2, 2}, 0.2));
  model.Initializer("b", waves({directions, gates * 4}, 0.3));
  auto& node = model.Node(op, {"x", "w", "r", "b"}, {"y"});
  Builder::Set(node, "direction", direction);
  if (op == "GRU") Builder::Set(node, "linear_before_reset", int64_t{1});
  return Computed(model, {x}).scalars;
}

/// ONNX's own cases run forward only: backward over x is forward over x reversed, and both
/// directions stand side by side.
TEST(Lowering, RecurrenceInBothDirections) {
  const Tensor x = Floats({3, 1, 2}, {1, -2, 0.5, 3, -1, 0.25});
  const Tensor reversed = Floats({3, 1, 2}, {-1, 0.25, 0.5, 3, 1, -2});
  for (const auto& [op, gates] :
       std::vector<std::pair<std::string, int64_t>>{{"RNN", 1}, {"GRU", 3}, {"LSTM", 4}}) {
    const std::vector<double> forward = Recurrent(op, "forward", x, gates);
    const std::vector<double> backward = Recurrent(op, "reverse", x, gates);
    const std::vector<double> mirrored = Recurrent(op, "forward", reversed, gates);
    const std::vector<double> both = Recurrent(op, "bidirectional", x, gates);
    ASSERT_EQ(both.size(), 12u) << op;
    for (size_t t = 0; t < 3; ++t) {
      for (size_t k = 0; k < 2; ++k) {
        EXPECT_NEAR(backward[2 * t + k], mirrored[2 * (2 - t) + k], 1e-12) << op;
        EXPECT_NEAR(both[4 * t + k], forward[2 * t + k], 1e-12) << op;
        EXPECT_NEAR(both[4 * t + 2 + k], backward[2 * t + k], 1e-12) << op;
      }
    }
    EXPECT_GT(std::abs(forward[0] - backward[0]), 1e-3) << op;
  }
}

/// Long sequences are loops, short ones are unrolled: of both the first steps are the same.
TEST(Lowering, LongRecurrencesAreLoops) {
  constexpr int64_t kShort = 60, kLong = 70;
  Tensor x = Counting({kLong, 1, 2});
  std::vector<double> waves;
  for (const double value : x.ToDoubles()) waves.push_back(std::sin(value));
  x = Floats({kLong, 1, 2}, waves);
  const Tensor first = Floats({kShort, 1, 2}, {waves.begin(), waves.begin() + 2 * kShort});
  const Tensor last = Floats({kShort, 1, 2}, {waves.end() - 2 * kShort, waves.end()});
  for (const auto& [op, gates] :
       std::vector<std::pair<std::string, int64_t>>{{"RNN", 1}, {"GRU", 3}, {"LSTM", 4}}) {
    const std::vector<double> both = Recurrent(op, "bidirectional", x, gates);
    const std::vector<double> forward = Recurrent(op, "forward", first, gates);
    const std::vector<double> backward = Recurrent(op, "reverse", last, gates);
    ASSERT_EQ(both.size(), static_cast<size_t>(4 * kLong)) << op;
    for (size_t t = 0; t < kShort; ++t) {
      for (size_t k = 0; k < 2; ++k) {
        EXPECT_NEAR(both[4 * t + k], forward[2 * t + k], 1e-12) << op << " " << t;
        EXPECT_NEAR(both[4 * (t + kLong - kShort) + 2 + k], backward[2 * t + k], 1e-12) << op;
      }
    }
  }
}

/// y[t] = h[t - 1] w + x[t], the scanned input along its second dimension and from the back.
Builder ScanModel(const std::string& op, const std::string& second,
                  const std::string& columns = "3") {
  Builder model;
  model.Input("x", {"2", columns}).Input("h", {"2"}).Output("last").Output("all");
  model.Initializer("w", Floats({2}, {2, 3}));
  auto& scan = model.Node("Scan", {"h", "x"}, {"last", "all"});
  Builder::Set(scan, "num_scan_inputs", int64_t{1});
  Builder::Set(scan, "scan_input_axes", std::vector<int64_t>{1});
  Builder::Set(scan, "scan_input_directions", std::vector<int64_t>{1});
  auto& attribute = *scan.add_attribute();
  attribute.set_name("body");
  attribute.set_type(onnx::AttributeProto::GRAPH);
  auto& body = *attribute.mutable_g();
  for (const char* name : {"before", "slice"}) body.add_input()->set_name(name);
  for (const char* name : {"after", "after_too"}) body.add_output()->set_name(name);
  Builder::AddNode(*body.mutable_node(), "Mul", {"before", "w"}, {"kept"});
  Builder::AddNode(*body.mutable_node(), op, {"kept", second}, {"after"});
  Builder::AddNode(*body.mutable_node(), "Identity", {"after"}, {"after_too"});
  return model;
}

TEST(Lowering, ScanIsALoop) {
  const auto imported = ImportOnnxBytes(ScanModel("Add", "slice").Bytes(), "");
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(PrintGraph(imported->graph), testing::HasSubstr("Loop("));
  const std::vector<HostValue> inputs = {HostValue::FromTensor(Counting({2, 3})),
                                         HostValue::FromTensor(Floats({2}, {1, 10}))};
  const auto outputs = Evaluate(imported->graph, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT((*outputs)[0].scalars,
              ElementsAre(((1 * 2 + 3) * 2 + 2) * 2 + 1, ((10 * 3 + 6) * 3 + 5) * 3 + 4));
  EXPECT_THAT((*outputs)[1].scalars, ElementsAre(5, 36, 12, 113, 25, 343));  // in forward order
}

TEST(Lowering, ScanRefusesByName) {
  const auto no_step = ImportOnnxBytes(ScanModel("Add", "slice", "0").Bytes(), "");
  EXPECT_THAT(no_step.status().message(), testing::HasSubstr("no step gives its scanned outputs"));
  const auto message = [](const Builder& model) {
    return std::string(ImportOnnxBytes(model.Bytes(), "").status().message());
  };
  EXPECT_THAT(message(ScanModel("Add", "nothing")), testing::HasSubstr("reads 'nothing'"));
  // Too long to be written out: the error says why it cannot stay a loop.
  EXPECT_THAT(message(ScanModel("Div", "slice", "2000")), testing::HasSubstr("operator Div"));
}

/// A body that may divide by zero cannot be that of a Loop.
TEST(Lowering, ScanIsWrittenStepByStep) {
  const auto imported = ImportOnnxBytes(ScanModel("Div", "slice").Bytes(), "");
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(PrintGraph(imported->graph), testing::Not(testing::HasSubstr("Loop(")));
  const std::vector<HostValue> inputs = {HostValue::FromTensor(Counting({2, 3})),
                                         HostValue::FromTensor(Floats({2}, {3, 30}))};
  const auto outputs = Evaluate(imported->graph, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  const double a3 = 3 * 2 / 3.0, a2 = a3 * 2 / 2, a1 = a2 * 2 / 1;
  const double b3 = 30 * 3 / 6.0, b2 = b3 * 3 / 5, b1 = b2 * 3 / 4;
  EXPECT_THAT((*outputs)[0].scalars, ElementsAre(a1, b1));
  EXPECT_THAT((*outputs)[1].scalars, ElementsAre(a3, b3, a2, b2, a1, b1));
}

/// h = h / 2 + x[:, k] + k, of which `outputs` also has every h. The loop ends when k + 1 reaches
/// `last`.
Builder LoopModel(int64_t columns, int64_t trips, int64_t last) {
  Builder model;
  model.Input("x", {"2", std::to_string(columns)}).Input("h", {"2"}).Output("end").Output("all");
  model.Initializer("trips", Tensor::Ints({trips}).Reshaped({}));
  model.Initializer("half", Floats({}, {0.5}));
  model.Initializer("last", Tensor::Ints({last}).Reshaped({}));
  model.Initializer("one", Tensor::Ints({1}).Reshaped({}));
  auto& loop = model.Node("Loop", {"trips", "", "h"}, {"end", "all"});
  auto& attribute = *loop.add_attribute();
  attribute.set_name("body");
  attribute.set_type(onnx::AttributeProto::GRAPH);
  auto& body = *attribute.mutable_g();
  for (const char* name : {"k", "go", "before"}) body.add_input()->set_name(name);
  for (const char* name : {"goes", "after", "after_too"}) body.add_output()->set_name(name);
  auto& nodes = *body.mutable_node();
  if (last < trips) {
    Builder::AddNode(nodes, "Add", {"k", "one"}, {"next"});
    Builder::AddNode(nodes, "Less", {"next", "last"}, {"goes"});
  } else {
    Builder::AddNode(nodes, "Identity", {"go"}, {"goes"});
  }
  Builder::Set(Builder::AddNode(nodes, "Gather", {"x", "k"}, {"column"}), "axis", int64_t{1});
  Builder::Set(Builder::AddNode(nodes, "Cast", {"k"}, {"number"}), "to",
               int64_t{onnx::TensorProto::FLOAT});
  Builder::AddNode(nodes, "Mul", {"before", "half"}, {"kept"});
  Builder::AddNode(nodes, "Add", {"kept", "column"}, {"sum"});
  Builder::AddNode(nodes, "Add", {"sum", "number"}, {"after"});
  Builder::AddNode(nodes, "Identity", {"after"}, {"after_too"});
  return model;
}

TEST(Lowering, LoopsOfKnownLength) {
  struct Case {
    int64_t columns, trips, last;
    bool stays;
  };
  // Short ones and those that end by their condition are written step by step.
  for (const Case& c : {Case{4, 3, 3, false}, Case{80, 70, 70, true}, Case{80, 70, 5, false},
                        Case{200, 200, 200, true}}) {
    const auto imported = ImportOnnxBytes(LoopModel(c.columns, c.trips, c.last).Bytes(), "");
    ASSERT_TRUE(imported.ok()) << imported.status();
    const bool stayed = PrintGraph(imported->graph).find("Loop(") != std::string::npos;
    EXPECT_EQ(stayed, c.stays) << c.trips;
    const std::vector<HostValue> inputs = {HostValue::FromTensor(Counting({2, c.columns})),
                                           HostValue::FromTensor(Floats({2}, {8, 16}))};
    const auto outputs = Evaluate(imported->graph, inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    std::vector<double> all;
    double state[2] = {8, 16};
    for (int64_t k = 0; k < std::min(c.trips, c.last); ++k) {
      for (int64_t row = 0; row < 2; ++row) {
        const double x = inputs[0].scalars[static_cast<size_t>(row * c.columns + k)];
        state[row] = state[row] / 2 + x + static_cast<double>(k);
        all.push_back(state[row]);
      }
    }
    ASSERT_EQ((*outputs)[1].scalars.size(), all.size());
    for (size_t i = 0; i < all.size(); ++i) EXPECT_NEAR((*outputs)[1].scalars[i], all[i], 1e-9);
    EXPECT_NEAR((*outputs)[0].scalars[1], state[1], 1e-9);
  }
}

/// A loss of three samples in two classes, the last dimension of which has one position.
Builder LossModel(const std::string& op, std::initializer_list<double> x, const Tensor& target) {
  Builder model;
  model.Initializer("x", Floats({3, 2, 1}, x)).Initializer("weight", Floats({2}, {2, 1}));
  model.Initializer("target", target).Output("loss");
  model.Node(op, {"x", "target", "weight"}, {"loss"});
  return model;
}

TEST(Lowering, LossesIgnoreSamplesOfOneClass) {
  // Probabilities (1/4, 3/4), (1/2, 1/2), (3/4, 1/4).
  Builder model = LossModel("SoftmaxCrossEntropyLoss", {0, std::log(3), 0, 0, std::log(3), 0},
                            Tensor::FromInts({DType::kI64, {3, 1}}, Ints{1, -1, 0}));
  Builder::Set(*model.graph().mutable_node(0), "ignore_index", int64_t{-1});
  EXPECT_THAT(Computed(model, {}).scalars, ElementsAre(DoubleNear(std::log(4.0 / 3), 1e-6)));
  Builder::Set(*model.graph().mutable_node(0), "reduction", std::string("none"));
  EXPECT_THAT(Computed(model, {}).scalars,
              Pointwise(DoubleNear(1e-6), {std::log(4.0 / 3), 0.0, 2 * std::log(4.0 / 3)}));
  model = LossModel("NegativeLogLikelihoodLoss", {1, 2, 3, 4, 5, 6},
                    Tensor::FromInts({DType::kI32, {3, 1}}, Ints{1, 0, 0}));
  EXPECT_THAT(Computed(model, {}).scalars,
              ElementsAre(DoubleNear(-(2 + 2 * 3 + 2 * 5) / 5.0, 1e-6)));
  Builder::Set(*model.graph().mutable_node(0), "reduction", std::string("sum"));
  EXPECT_THAT(Computed(model, {}).scalars, ElementsAre(DoubleNear(-18, 1e-6)));
}

TEST(Lowering, LossesRefuseClassesThatDoNotExist) {
  const auto refusal = [](const Tensor& target) {
    const Builder model = LossModel("NegativeLogLikelihoodLoss", {1, 2, 3, 4, 5, 6}, target);
    return std::string(ImportOnnxBytes(model.Bytes(), "").status().message());
  };
  EXPECT_THAT(refusal(Tensor::FromInts({DType::kI64, {3, 1}}, Ints{1, 2, 0})),
              testing::HasSubstr("index 2 is outside an extent of 2"));
  EXPECT_THAT(refusal(Tensor::FromInts({DType::kI64, {3}}, Ints{1, 1, 0})),
              testing::HasSubstr("target 3 is not 3x1"));
}

TEST(Lowering, BitwiseNotInvertsEveryBit) {
  const auto inverted = [](DType dtype, const Ints& values) {
    Builder model(18);
    model.Initializer("x",
                      Tensor::FromInts({dtype, {static_cast<int64_t>(values.size())}}, values));
    model.Output("y").Node("BitwiseNot", {"x"}, {"y"});
    return Computed(model, {}).integers;
  };
  EXPECT_THAT(inverted(DType::kU8, {0, 1, 170, 255}), ElementsAre(255, 254, 85, 0));
  EXPECT_THAT(inverted(DType::kI8, {0, -1, 127, -128}), ElementsAre(-1, 0, -128, 127));
  EXPECT_THAT(inverted(DType::kI32, {5, INT32_MIN}), ElementsAre(-6, INT32_MAX));
}

TEST(Lowering, LinearAttentionOfHalvesRunsInFloat) {
  Builder model(27);
  for (const char* name : {"q", "k", "v"}) model.Input(name, {"1", "3", "4"}, DType::kF16);
  auto& node = model.Output("y").Node("LinearAttention", {"q", "k", "v"}, {"y"});
  Builder::Set(node, "update_rule", std::string("linear"));
  for (const char* name : {"q_num_heads", "kv_num_heads"}) Builder::Set(node, name, int64_t{2});
  const auto imported = ImportOnnxBytes(model.Bytes(), "");
  ASSERT_TRUE(imported.ok()) << imported.status();
  const std::string text = PrintGraph(imported->graph, {.node_names = false});
  EXPECT_THAT(text, testing::ContainsRegex("MatMul\\([%0-9., ]*\\) : f32"));
  EXPECT_THAT(text, testing::Not(testing::ContainsRegex("(Mul|Add)\\([%0-9., ]*\\) : f16")));
}

/// Negative pads cut first, as ONNX Runtime does.

TEST(Lowering, NegativePadsCutBeforeEdgesAreRepeated) {
  const auto padded = [](const std::string& mode, std::initializer_list<int64_t> pads) {
    Builder model;
    model.Input("x", {"6"}).Output("y").Ints("pads", pads);
    Builder::Set(model.Node("Pad", {"x", "pads"}, {"y"}), "mode", mode);
    return Computed(model, {Counting({6})}).scalars;
  };
  EXPECT_THAT(padded("edge", {-1, 2}), ElementsAre(2, 3, 4, 5, 6, 6, 6));
  EXPECT_THAT(padded("reflect", {2, -1}), ElementsAre(3, 2, 1, 2, 3, 4, 5));
}

/// Gemm of 1 2 3 4 with 1 -2 3 -4 and the bias -1 1, activated.
TEST(Lowering, FusedGemmIsGemmAndItsActivation) {
  struct Activation {
    const char* name;
    std::vector<std::pair<std::string, float>> parameters;
    std::vector<double> expected;  ///< of 6, -9, 14, -21
  };
  const Activation activations[] = {
      {"", {}, {6, -9, 14, -21}},
      {"Relu", {}, {6, 0, 14, 0}},
      {"LeakyRelu", {{"alpha", 0.5f}}, {6, -4.5, 14, -10.5}},
      {"LeakyRelu", {}, {6, -0.0899999979883, 14, -0.209999995306}},
      {"HardSigmoid", {{"alpha", 0.0625f}, {"beta", 0.25f}}, {0.625, 0, 1, 0}},
      {"Tanh", {}, {std::tanh(6.0), std::tanh(-9.0), std::tanh(14.0), std::tanh(-21.0)}},
  };
  for (const Activation& activation : activations) {
    Builder model;
    model.Input("x", {"2", "2"})
        .Initializer("w", Floats({2, 2}, {1, -2, 3, -4}))
        .Initializer("b", Floats({2}, {-1, 1}))
        .Output("y");
    auto& node = model.Node("FusedGemm", {"x", "w", "b"}, {"y"});
    node.set_domain("com.microsoft");
    Builder::Set(node, "activation", std::string(activation.name));
    for (const auto& [name, value] : activation.parameters)
      Builder::Set(node, "activation_" + name, value);
    EXPECT_THAT(Computed(model, {Counting({2, 2})}).scalars,
                Pointwise(DoubleNear(1e-9), activation.expected))
        << activation.name;
  }
}

}  // namespace
}  // namespace mendel
