#include "onnx/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/hash.h"
#include "base/random.h"
#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/text.h"
#include "onnx/export.h"
#include "onnx/model_builder.h"
#include "onnx/op_context.h"

namespace mendel {
namespace {

using testing::HasSubstr;
using Builder = ModelBuilder;

Tensor Floats(Shape shape, std::vector<double> values) { return Tensor::FromDoubles({DType::kF32, std::move(shape)}, values); }

absl::StatusOr<ImportResult> Import(const Builder& model, const ImportOptions& options = {}) {
  return ImportOnnxBytes(model.Bytes(), "", options);
}

std::string Message(const absl::Status& status) { return std::string(status.message().data(), status.message().size()); }

/// The graph's text without names; fails the test when the import does.
std::string Text(const Builder& model, const ImportOptions& options = {}) {
  const auto result = Import(model, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? PrintGraph(result->graph, {.node_names = false}) : "";
}

void ExpectRefused(const Builder& model, absl::StatusCode code, const std::string& sentence) {
  const auto result = Import(model);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), code) << result.status();
  EXPECT_THAT(Message(result.status()), HasSubstr(sentence));
}

/// A folder of its own that disappears with the test.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "mendel_import_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  std::string string() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

void Write(const std::filesystem::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

TEST(ParseShapes, TrtexecGrammar) {
  const auto shapes = ParseShapes("input:8x3x224x224,a:0:1x5,s:scalar");
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  ASSERT_EQ(shapes->size(), 3u);
  EXPECT_EQ((*shapes)[0], (std::pair<std::string, Shape>("input", {8, 3, 224, 224})));
  EXPECT_EQ((*shapes)[1], (std::pair<std::string, Shape>("a:0", {1, 5})));
  EXPECT_EQ((*shapes)[2].second, Shape());
  for (const char* bad : {"input", "input:3y4", "input:-1x2", "x:1,x:2", ":3", "x:9999999999999999999", "x:1x"}) {
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
  EXPECT_THAT(Message(Import(model, options).status()), HasSubstr("dimension 1 of input 'x' is 3, not 5"));
  options.shapes = {{"x", {4, 3}}, {"y", {5, 3}}};
  EXPECT_THAT(Message(Import(model, options).status()), HasSubstr("given both as"));
  options.shapes = {{"w", {4, 3}}};
  EXPECT_THAT(Message(Import(model, options).status()), HasSubstr("no input 'w'"));
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

TEST(Import, WeightsAreSymbolsScalarsAndIntegersLiterals) {
  Builder model;
  model.Input("x", {"2"}).Initializer("w", Floats({2}, {1, 2})).Initializer("s", Floats({1}, {3})).Output("z");
  model.Node("Mul", {"x", "w"}, {"y"});
  model.Node("Add", {"y", "s"}, {"z"});
  const std::string text = Text(model);
  EXPECT_THAT(text, HasSubstr("symbol = \"w\""));
  EXPECT_EQ(text.find("symbol = \"s\""), std::string::npos) << text;
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
  const auto value = [](Shape shape, const std::vector<double>& v) { return HostValue::FromTensor(Floats(std::move(shape), v)); };
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
  model.Input("x", {"2", "3"}).Input("shape", {"1"}, DType::kI64).Output("y").Node("Reshape", {"x", "shape"}, {"y"});
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
    Builder::AddNode(*graph.mutable_node(), branch[0] == 't' ? "Relu" : "Loop", {"x"}, {"inner"});
  }
  EXPECT_THAT(Text(model), HasSubstr("Relu"));
  Builder running;
  running.Input("c", {}, DType::kBool).Input("x", {"2"}).Output("y").Node("If", {"c"}, {"y"}) = node;
  running.graph().mutable_node(0)->set_input(0, "c");
  ExpectRefused(running, absl::StatusCode::kUnimplemented, "node 'the_If' (If): the condition depends on run-time values");
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
    auto& node = Builder::AddNode(*function.mutable_node(), inner_op, {k == 0 ? "a" : "b"}, {k == 0 ? "b" : "c"});
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

TEST(Import, RefusesWithOneSentence) {
  const auto unary = [](const std::string& op) {
    Builder model;
    model.Input("x", {"2", "2"}).Output("y").Node(op, {"x"}, {"y"});
    return model;
  };
  ExpectRefused(unary("NonZero"), absl::StatusCode::kUnimplemented,
                "node 'the_NonZero' (NonZero): operator 'NonZero' is not supported");
  ExpectRefused(unary("Patch"), absl::StatusCode::kUnimplemented, "operator 'Patch' is not supported");
  Builder domain = unary("Relu");
  domain.graph().mutable_node(0)->set_domain("com.example");
  ExpectRefused(domain, absl::StatusCode::kUnimplemented, "operator 'Relu' of domain 'com.example' is not supported");
  Builder attribute = unary("Relu");
  Builder::Set(*attribute.graph().mutable_node(0), "mystery", int64_t{1});
  ExpectRefused(attribute, absl::StatusCode::kUnimplemented, "node 'the_Relu' (Relu): attribute 'mystery' is not supported");
  Builder kind = unary("Softmax");
  Builder::Set(*kind.graph().mutable_node(0), "axis", 1.0f);
  ExpectRefused(kind, absl::StatusCode::kInvalidArgument, "attribute 'axis' is of the wrong kind");
  for (int64_t opset : {6, 22}) {
    Builder other(opset);
    other.Input("x", {"2"}).Output("y").Node("Relu", {"x"}, {"y"});
    ExpectRefused(other, absl::StatusCode::kUnimplemented, Cat("opset ", opset, " is not supported, only 7 to 21"));
  }
  for (int64_t ir : {2, 11}) {
    Builder other(17, ir);
    other.Input("x", {"2"}).Output("y").Node("Relu", {"x"}, {"y"});
    ExpectRefused(other, absl::StatusCode::kUnimplemented, Cat("IR version ", ir, " is not supported"));
  }
  Builder dangling;
  dangling.Input("x", {"2"}).Output("y").Node("Relu", {"missing"}, {"y"});
  ExpectRefused(dangling, absl::StatusCode::kInvalidArgument, "reads 'missing', which no input");
  Builder text;
  text.Input("x", {"2"}).Output("y").Node("Relu", {"x"}, {"y"});
  text.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::STRING);
  ExpectRefused(text, absl::StatusCode::kUnimplemented, "input 'x': element type STRING is not supported");
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
  ExpectRefused(model, absl::StatusCode::kUnimplemented, "NodeProto 'the_Relu' has field number 77");
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
      {DType::kF16, [](auto& t) { t.add_int32_data(FloatToHalf(1)), t.add_int32_data(FloatToHalf(3)); }},
      {DType::kBF16, [](auto& t) { t.add_int32_data(FloatToBFloat16(1)), t.add_int32_data(FloatToBFloat16(3)); }},
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

/// x + w with w in external data at `location`.
Builder External(const std::string& location, const std::string& offset = "", const std::string& length = "") {
  Builder model;
  model.Input("x", {"4"}).Output("y").Node("Add", {"x", "w"}, {"y"});
  auto& tensor = *model.graph().add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(4);
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : {std::pair{"location", location}, {"offset", offset}, {"length", length}}) {
    if (value.empty()) continue;
    auto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
  return model;
}

TEST(Import, ExternalDataIsReadBeneathTheFolderOnly) {
  const Folder folder;
  std::filesystem::create_directory(folder / "model");
  Write(folder / "secret.bin", std::string(64, 'x'));
  Write(folder / "model/w.bin", std::string(32, '\0'));
  std::filesystem::create_symlink("w.bin", folder / "model/symlink.bin");
  std::filesystem::create_symlink("..", folder / "model/up");
  std::filesystem::create_directory(folder / "model/x");
  Write(folder / "model/linked.bin", std::string(32, '\0'));
  std::filesystem::create_hard_link(folder / "model/linked.bin", folder / "model/hard.bin");
  ASSERT_EQ(mkfifo((folder / "model/pipe").c_str(), 0600), 0);
  const auto import = [&](const Builder& model) {
    Write(folder / "model/m.onnx", model.Bytes());
    return ImportOnnxFile((folder / "model/m.onnx").string()).status();
  };
  EXPECT_TRUE(import(External("w.bin")).ok());
  EXPECT_TRUE(import(External("x/../w.bin", "16", "16")).ok());
  EXPECT_TRUE(import(External("w.bin", "3", "16")).ok()) << "misaligned data are copied";
  const Builder attacks[] = {External("../secret.bin"),
                             External("x/../../secret.bin"),
                             External((folder / "secret.bin").string()),
                             External("up/secret.bin"),
                             External("symlink.bin"),
                             External("hard.bin"),
                             External("pipe"),
                             External("x"),
                             External("missing.bin"),
                             External(""),
                             External("w.bin", "17"),
                             External("w.bin", "-1"),
                             External("w.bin", "9223372036854775807"),
                             External("w.bin", "0", "15"),
                             External("w.bin", "0", "9223372036854775807"),
                             External("w.bin", "0x0")};
  for (const Builder& attack : attacks) {
    const absl::Status status = import(attack);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << attack.Bytes();
    EXPECT_EQ(Message(status).find(folder.string() + "/model"), std::string::npos) << "no server paths: " << status;
  }
  EXPECT_FALSE(ImportOnnxBytes(External("w.bin").Bytes(), "").ok());
}

TEST(Import, LargeSparseFile) {
  // 2.2 GB of raw weights in one file that takes no space: 550 million zeros.
  const Folder folder;
  const uint64_t count = uint64_t{550} << 20;
  Builder model;
  model.Input("x", {"1"}).Output("y").Node("Gather", {"w", "index"}, {"y"});
  model.graph().mutable_input(0)->set_name("unused");
  model.Initializer("index", Tensor::Ints({5}));
  model.model().set_producer_name("aligned");
  // A second piece of the same GraphProto (protobuf merges them) that holds the initializer, written by hand.
  const auto varint = [](uint64_t value) {
    std::string text;
    for (; value >= 0x80; value >>= 7) text.push_back(static_cast<char>(value | 0x80));
    text.push_back(static_cast<char>(value));
    return text;
  };
  const std::string tensor_head = "\x08" + varint(count) + "\x10\x01\x42\x01w\x4a" + varint(4 * count);
  const uint64_t tensor_size = tensor_head.size() + 4 * count;
  const std::string graph_head = "\x2a" + varint(tensor_size);
  std::string bytes;
  do {  // aligned data are shared with the mapping, not copied
    model.model().mutable_producer_name()->push_back('!');
    bytes = model.Bytes() + "\x3a" + varint(graph_head.size() + tensor_size) + graph_head + tensor_head;
  } while (bytes.size() % 4 != 0);
  const std::string path = (folder / "large.onnx").string();
  Write(path, bytes);
  std::filesystem::resize_file(path, bytes.size() + 4 * count);
  const auto result = ImportOnnxFile(path);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->graph.nodes().size(), 4u);
  for (const Node& node : result->graph.nodes()) {
    if (!IsConstant(node) || SymbolName(node) != "w") continue;
    EXPECT_EQ(ConstantValue(node).size(), static_cast<int64_t>(count));
  }
}

/// A model with many kinds of field, for damage.
Builder Varied() {
  Builder model;
  model.Input("x", {"N", "3", "8", "8"}).Initializer("w", Floats({2, 3, 3, 3}, std::vector<double>(54, 0.5))).Output("y");
  auto& conv = model.Node("Conv", {"x", "w"}, {"c"});
  Builder::Set(conv, "pads", std::vector<int64_t>{1, 1, 1, 1});
  Builder::Set(conv, "auto_pad", std::string("NOTSET"));
  model.Ints("starts", {1}).Ints("ends", {100}).Ints("axes", {-1});
  model.Node("Slice", {"c", "starts", "ends", "axes"}, {"s"});
  model.Node("Shape", {"s"}, {"shape"});
  model.Node("ConstantOfShape", {"shape"}, {"zeros"});
  model.Node("Add", {"s", "zeros"}, {"a"});
  Builder::Set(model.Node("Softmax", {"a"}, {"y"}), "axis", int64_t{1});
  return model;
}

TEST(Import, DamagedFilesNeverCrash) {
  const std::string bytes = Varied().Bytes();
  ASSERT_TRUE(ImportOnnxBytes(bytes, "").ok()) << ImportOnnxBytes(bytes, "").status();
  for (size_t length = 0; length < bytes.size(); ++length) (void)ImportOnnxBytes(bytes.substr(0, length), "").ok();
  constexpr uint64_t kSeed = 1;
  Rng rng(kSeed);
  int survived = 0;
  for (int k = 0; k < 3000; ++k) {
    std::string damaged = bytes;
    for (int64_t flips = rng.Between(1, 3); flips > 0; --flips) {
      damaged[rng.Below(damaged.size())] ^= static_cast<char>(1 << rng.Below(8));
    }
    const auto result = ImportOnnxBytes(damaged, "");
    if (result.ok()) {
      ++survived;
    } else {
      EXPECT_NE(result.status().code(), absl::StatusCode::kInternal)
          << "seed " << kSeed << " round " << k << ": " << result.status();
    }
  }
  EXPECT_GT(survived, 0) << "flips in names do not matter";
  EXPECT_FALSE(ImportOnnxFile("/dev/null").ok());
  EXPECT_FALSE(ImportOnnxFile("/nowhere.onnx").ok());
}

TEST(Export, ComesBackEqual) {
  const Folder folder;
  const auto original = Import(Varied());
  ASSERT_TRUE(original.ok()) << original.status();
  const std::string path = (folder / "out.onnx").string();
  ASSERT_TRUE(ExportOnnx(original->graph, path).ok());
  const auto again = ImportOnnxFile(path);
  ASSERT_TRUE(again.ok()) << again.status();
  Rng rng(7);
  std::vector<double> x(192);
  for (double& value : x) value = rng.Uniform(-1, 1);
  const std::vector<HostValue> inputs = {HostValue::FromTensor(Floats({1, 3, 8, 8}, x))};
  EXPECT_EQ(Evaluate(original->graph, inputs).value()[0].scalars, Evaluate(again->graph, inputs).value()[0].scalars);
}

TEST(Export, PatchIsSlicesAndConcats) {
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {4, 5, 6}});
  const ValueId p = builder.Input("p", {DType::kF32, {2, 3, 6}});
  const ValueId q = builder.Input("q", {DType::kF32, {4, 1, 1}});
  const Boxes boxes = {{{1, 1, 0}, {3, 4, 6}}, {{0, 4, 5}, {4, 5, 6}}};
  builder.Output("y", builder.Add("Patch", {x, p, q}, {{"boxes", boxes}}).value());
  const Graph graph = builder.Build().value();
  const Folder folder;
  const std::string path = (folder / "patch.onnx").string();
  const absl::Status written = ExportOnnx(graph, path);
  ASSERT_TRUE(written.ok()) << written;
  const auto again = ImportOnnxFile(path);
  ASSERT_TRUE(again.ok()) << again.status();
  const auto filled = [](Shape shape, double value) { return HostValue::FromTensor(Tensor::Filled({DType::kF32, shape}, value)); };
  const std::vector<HostValue> inputs = {filled({4, 5, 6}, 1), filled({2, 3, 6}, 2), filled({4, 1, 1}, 3)};
  EXPECT_EQ(Evaluate(graph, inputs).value()[0].scalars, Evaluate(again->graph, inputs).value()[0].scalars);
}

}  // namespace
}  // namespace mendel
