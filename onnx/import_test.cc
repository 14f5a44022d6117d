#include "onnx/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/hash.h"
#include "base/random.h"
#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/text.h"
#include "onnx/import_case.h"
#include "onnx/model_builder.h"
#include "onnx/op_context.h"

namespace mendel {
namespace {

using testing::HasSubstr;
using Builder = ModelBuilder;

TEST(ParseShapes, TrtexecGrammar) {
  const auto shapes = ParseShapes("input:8x3x224x224,a:0:1x5,s:scalar");
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  ASSERT_EQ(shapes->size(), 3u);
  EXPECT_EQ((*shapes)[0], (std::pair<std::string, Shape>("input", {8, 3, 224, 224})));
  EXPECT_EQ((*shapes)[1], (std::pair<std::string, Shape>("a:0", {1, 5})));
  EXPECT_EQ((*shapes)[2].second, Shape());
  for (const char* bad :
       {"input", "input:3y4", "input:-1x2", "x:1,x:2", ":3", "x:9999999999999999999", "x:1x"}) {
    EXPECT_EQ(ParseShapes(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(Import, SymbolicDimensionsAreFixedOrOneWithANotice) {
  Builder model;
  model.Input("x", {"N", "3"}).Input("y", {"N", "3"}).Output("z").Node("Add", {"x", "y"}, {"z"});
  const auto unfixed = Import(model);
  ASSERT_TRUE(unfixed.ok()) << unfixed.status();
  ASSERT_EQ(unfixed->notices.size(), 2u);
  EXPECT_THAT(unfixed->notices[0], HasSubstr("dimension 0 ('N') of input 'x'"));
  ImportOptions options;
  options.shapes = {{"x", {4, 3}}};
  const auto fixed = Import(model, options);
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  EXPECT_TRUE(fixed->notices.empty());
  EXPECT_EQ(fixed->graph.type({1, 0}).shape, (Shape{4, 3})) << "y shares N";
  options.shapes = {{"x", {4, 5}}};
  EXPECT_THAT(Message(Import(model, options).status()),
              HasSubstr("dimension 1 of input 'x' is 3, not 5"));
  options.shapes = {{"x", {4, 3}}, {"y", {5, 3}}};
  EXPECT_THAT(Message(Import(model, options).status()),
              HasSubstr("dimension 0 ('N') of input 'y' is 5, but dimension 0 of input 'x' gives "
                        "'N' the size 4"));
  options.shapes = {{"w", {4, 3}}};
  EXPECT_THAT(Message(Import(model, options).status()), HasSubstr("no input 'w'"));
}

TEST(Import, OneParsedModelIsImportedForManyShapes) {
  Builder builder;
  builder.Input("x", {"N", "3"}).Output("z").Node("Relu", {"x"}, {"z"});
  const auto model = OnnxModel::Parse(builder.Bytes(), "");
  ASSERT_TRUE(model.ok()) << model.status();
  for (const int64_t n : {2, 7, 2}) {
    ImportOptions options;
    options.shapes = {{"x", {n, 3}}};
    const auto imported = model->Import(options);
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_EQ(imported->graph.type({0, 0}).shape, (Shape{n, 3}));
    EXPECT_EQ(imported->model_hash, Import(builder, options)->model_hash);
  }
}

TEST(Import, AQuestionMarkNamesNoDimension) {
  Builder model;
  model.Input("x", {"?", "?"}).Output("z").Node("Relu", {"x"}, {"z"});
  ImportOptions options;
  options.shapes = {{"x", {4, 3}}};
  const auto imported = Import(model, options);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->graph.type({0, 0}).shape, (Shape{4, 3}));
}

TEST(Import, ErrorsNameDimensionsThatWereTakenAsOne) {
  Builder model;
  model.Input("image", {"n", "3", "h", "w"}).Output("y");
  model.Initializer("k", Tensor::Filled({DType::kF32, {4, 3, 5, 5}}, 1));
  model.Node("Conv", {"image", "k"}, {"y"});
  const auto graph = ImportOnnxBytes(model.Bytes(), "");
  ASSERT_FALSE(graph.ok());
  const std::string message(graph.status().message());
  EXPECT_THAT(message, HasSubstr("dimension 2 of input 'image', dimension 3 of input 'image'"));
  EXPECT_THAT(message, HasSubstr("--shapes image:1x3x320x320"));
  ImportOptions options;
  options.shapes = {{"image", {1, 3, 4, 4}}};
  const auto fixed = ImportOnnxBytes(model.Bytes(), "", options);
  EXPECT_THAT(std::string(fixed.status().message()), testing::Not(HasSubstr("taken as 1")));
}

TEST(Import, ProposesTheFirstUsualSizeThatSuits) {
  Builder model;
  model.Input("sound", {"n", "1", "samples"}).Output("y");
  model.Initializer("window", Tensor::Filled({DType::kF32, {4, 1, 400}}, 1));
  model.Node("Conv", {"sound", "window"}, {"y"});
  EXPECT_THAT(std::string(ImportOnnxBytes(model.Bytes(), "").status().message()),
              HasSubstr("--shapes sound:1x1x512"));
  // A second input with a batch of no name, which no size suits.
  model.Input("state", {"2", "?", "4"}).Output("z");
  model.Initializer("one", Tensor::Filled({DType::kF32, {2, 1, 4}}, 1));
  Builder::Set(model.Node("Concat", {"state", "one"}, {"pair"}), "axis", int64_t{0});
  model.Node("Relu", {"pair"}, {"z"});
  EXPECT_THAT(std::string(ImportOnnxBytes(model.Bytes(), "").status().message()),
              HasSubstr("--shapes sound:1x1x512,state:2x1x4"));
}

TEST(Import, WeightsAreSymbolsScalarsAndIntegersLiterals) {
  Builder model;
  model.Input("x", {"2"})
      .Initializer("w", Floats({2}, {1, 2}))
      .Initializer("s", Floats({1}, {3}))
      .Output("z");
  model.Node("Mul", {"x", "w"}, {"y"});
  model.Node("Add", {"y", "s"}, {"z"});
  const std::string text = Text(model);
  EXPECT_THAT(text, HasSubstr("symbol = \"w\""));
  EXPECT_EQ(text.find("symbol = \"s\""), std::string::npos) << text;
}

TEST(Import, StoredTrianglesAreLiterals) {
  Builder model;
  model.Input("x", {"3"})
      .Initializer("t", Floats({3, 3}, {1, 0, 0, 1, 1, 0, 1, 1, 1}))
      .Initializer("w", Floats({3, 3}, {1, 0, 0, 1, 1, 0, 1, 1, 2}))
      .Output("z");
  model.Node("MatMul", {"t", "x"}, {"y"});
  model.Node("MatMul", {"w", "y"}, {"z"});
  const std::string text = Text(model);
  EXPECT_THAT(text, HasSubstr("symbol = \"w\""));
  EXPECT_EQ(text.find("symbol = \"t\""), std::string::npos) << text;
}

TEST(Import, GemmBecomesMatMulAndScales) {
  Builder model;
  model.Input("a", {"4", "2"}).Input("b", {"3", "4"}).Input("c", {"3"}).Output("y");
  auto& gemm = model.Node("Gemm", {"a", "b", "c"}, {"y"});
  for (const char* name : {"transA", "transB"}) Builder::Set(gemm, name, int64_t{1});
  Builder::Set(gemm, "alpha", 0.5f);
  Builder::Set(gemm, "beta", 2.0f);
  const auto result = Import(model);
  ASSERT_TRUE(result.ok()) << result.status();
  std::vector<double> a(8, 1), b(12, 1), c = {1, 2, 3};
  const auto value = [](Shape shape, const std::vector<double>& v) {
    return HostValue::FromTensor(Floats(std::move(shape), v));
  };
  const std::vector<HostValue> inputs = {value({4, 2}, a), value({3, 4}, b), value({3}, c)};
  const auto outputs = Evaluate(result->graph, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ((*outputs)[0].scalars, (std::vector<double>{4, 6, 8, 4, 6, 8}));
}

TEST(Import, ShapeComputationsFold) {
  Builder model;  // the chain that PyTorch exports for x.view(x.size(0), -1)
  model.Input("x", {"2", "3", "4"}).Ints("zero", {0}).Ints("minus", {-1}).Output("y");
  model.Node("Shape", {"x"}, {"shape"});
  model.Node("Gather", {"shape", "zero"}, {"batch"});
  Builder::Set(model.Node("Concat", {"batch", "minus"}, {"target"}), "axis", int64_t{0});
  model.Node("Reshape", {"x", "target"}, {"y"});
  const auto result = Import(model);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->graph.nodes().size(), 2u);
  EXPECT_EQ(result->graph.type(result->graph.outputs()[0].value).shape, (Shape{2, 12}));
}

TEST(Import, BoundInputsBecomeConstants) {
  Builder model;
  model.Input("x", {"2", "3"})
      .Input("shape", {"1"}, DType::kI64)
      .Output("y")
      .Node("Reshape", {"x", "shape"}, {"y"});
  ExpectRefused(model, absl::StatusCode::kUnimplemented,
                "node 'the_Reshape' (Reshape): the shape depends on run-time values; --bind");
  ImportOptions options;
  options.bindings.emplace("shape", Tensor::Ints({6}));
  const auto result = Import(model, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->graph.inputs().size(), 1u);
  options.bindings.clear();
  options.bindings.emplace("nothing", Tensor::Ints({6}));
  EXPECT_THAT(Message(Import(model, options).status()), HasSubstr("no input 'nothing'"));
}

TEST(Import, ConstantConditionTakesItsBranch) {
  Builder model;
  model.Input("x", {"2"}).Initializer("yes", Tensor::Scalar(DType::kBool, 1)).Output("y");
  auto& node = model.Node("If", {"yes"}, {"y"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto& graph = *Builder::Attribute(node, branch, onnx::AttributeProto::GRAPH).mutable_g();
    graph.add_output()->set_name("inner");
    Builder::AddNode(*graph.mutable_node(), branch[0] == 't' ? "Relu" : "NonZero", {"x"},
                     {"inner"});
  }
  EXPECT_THAT(Text(model), HasSubstr("Relu"));
  Builder running;
  running.Input("c", {}, DType::kBool).Input("x", {"2"}).Output("y").Node("If", {"c"}, {"y"}) =
      node;
  running.graph().mutable_node(0)->set_input(0, "c");
  ExpectRefused(running, absl::StatusCode::kUnimplemented,
                "the condition is known at run time only, and else_branch does not import");
}

TEST(Import, RunTimeConditionSelectsBetweenBothBranches) {
  Builder model;
  model.Input("c", {"1"}, DType::kBool).Input("x", {"2"}).Output("y");
  auto& node = model.Node("If", {"c"}, {"y"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto& graph = *Builder::Attribute(node, branch, onnx::AttributeProto::GRAPH).mutable_g();
    graph.add_output()->set_name("inner");
    Builder::AddNode(*graph.mutable_node(), branch[0] == 't' ? "Sqrt" : "Neg", {"x"}, {"inner"});
  }
  const auto imported = Import(model);
  ASSERT_TRUE(imported.ok()) << imported.status();
  for (const int condition : {0, 1}) {
    const std::vector<HostValue> inputs = {
        HostValue::FromTensor(Tensor::Filled({DType::kBool, {1}}, condition)),
        HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, {2}}, {{-4, 9}}))};
    const auto outputs = Evaluate(imported->graph, inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    const Tensor y = (*outputs)[0].ToTensor();
    EXPECT_EQ(y.DoubleAt(1), condition == 1 ? 3 : -9);
    EXPECT_EQ(std::isnan(y.DoubleAt(0)), condition == 1) << "the root stays in its branch";
  }
}

TEST(Import, BranchesOfARunTimeConditionHaveOneType) {
  Builder model;
  model.Input("c", {}, DType::kBool).Input("x", {"2", "3"}).Output("y");
  auto& node = model.Node("If", {"c"}, {"y"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto& graph = *Builder::Attribute(node, branch, onnx::AttributeProto::GRAPH).mutable_g();
    graph.add_output()->set_name("inner");
    Builder::AddNode(*graph.mutable_node(), branch[0] == 't' ? "Relu" : "Transpose", {"x"},
                     {"inner"});
  }
  ExpectRefused(model, absl::StatusCode::kUnimplemented,
                "output 0 is f32[2,3] of then_branch, but f32[3,2] of else_branch");
}

/// A model with branches for the rates that it compares with; only the first suits its input.
TEST(Import, BindsAnInputThatDecidesToTheOnlyValueThatImports) {
  Builder model;
  model.Input("rate", {}, DType::kI64).Input("x", {"2"}).Output("y");
  model.Initializer("known", Tensor::Scalar(DType::kI64, 16000));
  model.Node("Equal", {"rate", "known"}, {"same"});
  auto& node = model.Node("If", {"same"}, {"y"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto& graph = *Builder::Attribute(node, branch, onnx::AttributeProto::GRAPH).mutable_g();
    graph.add_output()->set_name("inner");
    Builder::AddNode(*graph.mutable_node(), branch[0] == 't' ? "Relu" : "NonZero", {"x"},
                     {"inner"});
  }
  EXPECT_FALSE(Import(model).ok()) << "programs that are compared keep their inputs";
  ImportOptions choose;
  choose.choose_deciding = true;
  const auto chosen = Import(model, choose);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  ASSERT_EQ(chosen->graph.inputs().size(), 1U);
  EXPECT_EQ(InputName(chosen->graph.node(chosen->graph.inputs()[0])), "x");
  ASSERT_EQ(chosen->notices.size(), 1U);
  EXPECT_THAT(chosen->notices[0], HasSubstr("input 'rate' is bound to 16000"));
  ImportOptions other = choose;
  other.bindings.emplace("rate", Tensor::Scalar(DType::kI64, 8000));
  EXPECT_FALSE(Import(model, other).ok()) << "a given value is never replaced";
}

TEST(Import, AnInterruptEndsIt) {
  Builder model;
  model.Input("x", {"open"}).Output("y").Node("Relu", {"x"}, {"y"});
  const std::atomic<bool> interrupted = true;
  ImportOptions options;
  options.choose_deciding = true;
  EXPECT_TRUE(Import(model, options).ok());
  options.interrupted = &interrupted;
  EXPECT_TRUE(absl::IsCancelled(Import(model, options).status()));
}

/// A function "local.Twice(x){alpha}" that applies LeakyRelu twice.
void AddTwice(Builder& model, const std::string& inner_domain, const std::string& inner_op) {
  auto& function = *model.model().add_functions();
  function.set_domain("local");
  function.set_name("Twice");
  function.add_input("a");
  function.add_output("c");
  function.add_attribute("alpha");
  auto& import = *function.add_opset_import();
  import.set_domain("");
  import.set_version(17);
  for (int k = 0; k < 2; ++k) {
    auto& node = Builder::AddNode(*function.mutable_node(), inner_op, {k == 0 ? "a" : "b"},
                                  {k == 0 ? "b" : "c"});
    node.set_domain(inner_domain);
    Builder::Attribute(node, "alpha", onnx::AttributeProto::FLOAT).set_ref_attr_name("alpha");
  }
}

TEST(Import, LocalFunctionsAreInlined) {
  Builder model;
  model.Input("x", {"2"}).Output("y");
  auto& call = model.Node("Twice", {"x"}, {"y"});
  call.set_domain("local");
  Builder::Set(call, "alpha", 0.25f);
  AddTwice(model, "", "LeakyRelu");
  const auto result = Import(model);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->graph.nodes().size(), 3u);
  EXPECT_EQ(result->graph.node(2).attrs.Float("alpha"), 0.25);
  EXPECT_EQ(result->graph.node(2).name, "the_Twice/the_LeakyRelu");

  Builder endless;
  endless.Input("x", {"2"}).Output("y").Node("Twice", {"x"}, {"y"}).set_domain("local");
  AddTwice(endless, "local", "Twice");
  ExpectRefused(endless, absl::StatusCode::kUnimplemented, "levels deep");
}

/// Some evaluators ignore the attribute there, others divide by weights of zero.
TEST(Import, NearestResizesExcludeNothing) {
  Builder model;
  model.Input("x", {"1", "1", "2", "2"})
      .Initializer("scales", Floats({4}, {1, 1, 2, 2}))
      .Output("y")
      .Node("Resize", {"x", "", "scales"}, {"y"});
  EXPECT_THAT(Text(model), HasSubstr("Resize"));
  Builder::Set(*model.graph().mutable_node(0), "exclude_outside", int64_t{1});
  ExpectRefused(model, absl::StatusCode::kUnimplemented, "exclude_outside of mode nearest");
}

TEST(Import, RefusesWithOneSentence) {
  const auto unary = [](const std::string& op) {
    Builder model;
    model.Input("x", {"2", "2"}).Output("y").Node(op, {"x"}, {"y"});
    return model;
  };
  ExpectRefused(unary("NonZero"), absl::StatusCode::kUnimplemented,
                "node 'the_NonZero' (NonZero): operator 'NonZero' is not supported");
  ExpectRefused(unary("Patch"), absl::StatusCode::kUnimplemented,
                "operator 'Patch' is not supported");
  Builder domain = unary("Relu");
  domain.graph().mutable_node(0)->set_domain("com.example");
  ExpectRefused(domain, absl::StatusCode::kUnimplemented,
                "operator 'Relu' of domain 'com.example' is not supported");
  Builder attribute = unary("Relu");
  Builder::Set(*attribute.graph().mutable_node(0), "mystery", int64_t{1});
  ExpectRefused(attribute, absl::StatusCode::kUnimplemented,
                "node 'the_Relu' (Relu): attribute 'mystery' is not supported");
  Builder kind = unary("Softmax");
  Builder::Set(*kind.graph().mutable_node(0), "axis", 1.0f);
  ExpectRefused(kind, absl::StatusCode::kInvalidArgument, "attribute 'axis' is of the wrong kind");
  Builder flag = unary("ReduceSum");
  Builder::Set(*flag.graph().mutable_node(0), "keepdims", int64_t{2});
  ExpectRefused(flag, absl::StatusCode::kInvalidArgument,
                "attribute 'keepdims' must be 0 or 1, not 2");
  // A model is refused by what it contains, not by its version.
  for (int64_t opset : {7, 22, 28}) {
    Builder other(opset, 99);
    other.Input("x", {"2"}).Output("y").Node("Relu", {"x"}, {"y"});
    EXPECT_THAT(Text(other), HasSubstr("Relu")) << opset;
  }
  Builder newer(29);
  newer.Input("x", {"2"}).Output("y").Node("Relu", {"x"}, {"y"});
  ExpectRefused(newer, absl::StatusCode::kUnimplemented,
                "operator 'Relu' of opset 29 is not supported: operators are known up to opset 28");
  Builder older(17, 0);
  older.Input("x", {"2"}).Output("y").Node("Relu", {"x"}, {"y"});
  ExpectRefused(older, absl::StatusCode::kInvalidArgument, "the model has IR version 0");
  Builder dangling;
  dangling.Input("x", {"2"}).Output("y").Node("Relu", {"missing"}, {"y"});
  ExpectRefused(dangling, absl::StatusCode::kInvalidArgument, "reads 'missing', which no input");
  Builder text;
  text.Input("x", {"2"}).Output("y").Node("Relu", {"x"}, {"y"});
  text.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::STRING);
  ExpectRefused(text, absl::StatusCode::kUnimplemented,
                "input 'x': element type STRING is not supported");
}

TEST(Import, UnusedPartsMayBeAnything) {
  Builder model;
  model.Input("x", {"2"}).Output("y").Node("Relu", {"x"}, {"y"});
  model.Node("NonZero", {"x"}, {"nobody reads this"});
  auto& tensor = *model.graph().add_initializer();
  tensor.set_name("text");
  tensor.set_data_type(onnx::TensorProto::STRING);
  EXPECT_THAT(Text(model), HasSubstr("Relu"));
}

TEST(Import, UnknownFieldsAreRefused) {
  Builder model;
  model.Input("x", {"2"}).Output("y");
  auto& node = model.Node("Relu", {"x"}, {"y"});
  node.GetReflection()->MutableUnknownFields(&node)->AddVarint(77, 1);
  ExpectRefused(model, absl::StatusCode::kUnimplemented,
                "NodeProto 'the_Relu' has field number 77");
  node.GetReflection()->MutableUnknownFields(&node)->Clear();
  auto& note = *model.model().add_metadata_props();
  note.GetReflection()->MutableUnknownFields(&note)->AddVarint(77, 1);
  EXPECT_TRUE(Import(model).ok()) << "documentation may carry any field";
}

TEST(Import, EveryTensorEncoding) {
  struct Case {
    DType dtype;
    std::function<void(onnx::TensorProto&)> fill;
  };
  const auto ints = [](onnx::TensorProto& t) { t.add_int32_data(1), t.add_int32_data(3); };
  const Case cases[] = {
      {DType::kF32, [](auto& t) { t.add_float_data(1), t.add_float_data(3); }},
      {DType::kF64, [](auto& t) { t.add_double_data(1), t.add_double_data(3); }},
      {DType::kI64, [](auto& t) { t.add_int64_data(1), t.add_int64_data(3); }},
      {DType::kI32, ints},
      {DType::kI8, ints},
      {DType::kU8, ints},
      {DType::kF16,
       [](auto& t) { t.add_int32_data(FloatToHalf(1)), t.add_int32_data(FloatToHalf(3)); }},
      {DType::kBF16,
       [](auto& t) { t.add_int32_data(FloatToBFloat16(1)), t.add_int32_data(FloatToBFloat16(3)); }},
  };
  for (const Case& test : cases) {
    onnx::TensorProto proto;
    proto.set_data_type(DTypeToOnnx(test.dtype));
    proto.add_dims(2);
    test.fill(proto);
    const auto tensor = DecodeTensor(proto);
    ASSERT_TRUE(tensor.ok()) << DTypeName(test.dtype) << tensor.status();
    EXPECT_EQ(tensor->ToDoubles(), (std::vector<double>{1, 3})) << DTypeName(test.dtype);
    proto.add_dims(2);
    EXPECT_FALSE(DecodeTensor(proto).ok()) << "too few elements";
    onnx::TensorProto raw;
    Builder::SetTensor(*tensor, "raw", raw);
    EXPECT_TRUE(DecodeTensor(raw).value() == *tensor);
    raw.mutable_raw_data()->push_back(0);
    EXPECT_FALSE(DecodeTensor(raw).ok()) << "a byte too many";
  }
}

}  // namespace
}  // namespace mendel
