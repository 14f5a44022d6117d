#include "onnx/size_relations.h"

#include <gtest/gtest.h>

#include "base/status.h"
#include "onnx/import.h"
#include "onnx/model_builder.h"

namespace mendel {
namespace {

/// Adds nodes that compute y from x[1, 1, N, N] and its shape n[4].
using MakeNodes = void (*)(ModelBuilder& model);

SizeRelations RelationsAt(MakeNodes nodes, int64_t size) {
  ModelBuilder model(18);
  model.Input("x", {"1", "1", "N", "N"}).Output("y");
  model.Node("Shape", {"x"}, {"n"});
  nodes(model);
  ImportOptions options;
  options.symbol_sizes = {{"N", size}};
  options.size_relations = true;
  const auto imported = ImportOnnxBytes(model.Bytes(), "", options);
  EXPECT_TRUE(imported.ok()) << imported.status();
  return imported.ok() ? imported->size_relations : SizeRelations();
}

/// The program changes from `size` to the next one, and not shortly before.
void ExpectTurn(MakeNodes nodes, int64_t size) {
  EXPECT_FALSE(SameSizeRelations(RelationsAt(nodes, size), RelationsAt(nodes, size + 1)));
  EXPECT_TRUE(SameSizeRelations(RelationsAt(nodes, size - 3), RelationsAt(nodes, size - 2)));
}

/// y = x times `factor` of dtype i64.
void Times(ModelBuilder& model, const std::string& factor) {
  ModelBuilder::Set(model.Node("Cast", {factor}, {"float factor"}), "to", int64_t{1});
  model.Node("Mul", {"x", "float factor"}, {"y"});
}

TEST(SizeRelations, CountsAreCompared) {
  for (const char* op : {"Min", "Max", "Sub", "Div", "Mod"}) {
    SCOPED_TRACE(op);
    static const char* current;
    current = op;
    ExpectTurn(
        [](ModelBuilder& model) {
          model.Ints("limit", {1, 1, 20, 1});
          model.Node(current, {"n", "limit"}, {"limited"});
          model.Node("ReduceProd", {"limited"}, {"factor"});
          Times(model, "factor");
        },
        20);
  }
}

TEST(SizeRelations, BoundsOfSlices) {
  for (const int64_t bound : {20, -20}) {
    static int64_t current;
    current = bound;
    ExpectTurn(
        [](ModelBuilder& model) {
          model.Ints("start", {current}).Ints("end", {1 << 30}).Ints("axis", {2});
          model.Node("Slice", {"x", "start", "end", "axis"}, {"y"});
        },
        20);
  }
}

TEST(SizeRelations, RowsOfATable) {
  ExpectTurn(
      [](ModelBuilder& model) {
        model.Ints("third", {2})
            .Ints("zero", {0})
            .Initializer("table",
                         Tensor::FromDoubles({DType::kF32, {40}}, std::vector<double>(40, 0.5)));
        model.Node("Gather", {"n", "third"}, {"row"});
        model.Ints("two", {2});
        model.Node("Sub", {"row", "two"}, {"last"});
        model.Node("Gather", {"table", "last"}, {"element"});
        model.Node("Mul", {"x", "element"}, {"y"});
      },
      40);
}

TEST(SizeRelations, CastsAndProductsThatWrap) {
  ExpectTurn(
      [](ModelBuilder& model) {
        ModelBuilder::Set(model.Node("Cast", {"n"}, {"byte"}), "to", int64_t{2});
        model.Node("ReduceMax", {"byte"}, {"factor"});
        Times(model, "factor");
      },
      255);
  ExpectTurn(
      [](ModelBuilder& model) {
        model.Ints("third", {2});
        model.Node("Gather", {"n", "third"}, {"count"});
        ModelBuilder::Set(model.Node("Cast", {"count"}, {"i32"}), "to", int64_t{6});
        model.Node("Mul", {"i32", "i32"}, {"square"});
        model.Node("Mul", {"square", "i32"}, {"factor"});
        Times(model, "factor");
      },
      1290);
}

/// Sets n0 to N, of dtype i64.
void TakeSize(ModelBuilder& model) {
  model.Ints("third", {2});
  model.Node("Gather", {"n", "third"}, {"row"});
  model.Node("Squeeze", {"row"}, {"n0"});
}

TEST(SizeRelations, FloatsThatHoldNotEveryWholeNumber) {
  ExpectTurn(
      [](ModelBuilder& model) {
        ModelBuilder::Set(model.Node("Cast", {"n"}, {"half"}), "to", int64_t{10});
        ModelBuilder::Set(model.Node("Cast", {"half"}, {"whole"}), "to", int64_t{7});
        model.Node("ReduceMax", {"whole"}, {"factor"});
        Times(model, "factor");
      },
      2048);
}

TEST(SizeRelations, TruncatedNumbers) {
  for (const bool floor : {false, true}) {
    static bool floors;
    floors = floor;
    ExpectTurn(
        [](ModelBuilder& model) {
          ModelBuilder::Set(model.Node("Cast", {"n"}, {"float n"}), "to", int64_t{1});
          model.Initializer("share", Tensor::Scalar(DType::kF32, 0.0050125f));
          model.Node("Mul", {"float n", "share"}, {"part"});
          if (floors) model.Node("Floor", {"part"}, {"floor"});
          const std::string last = floors ? "floor" : "part";
          ModelBuilder::Set(model.Node("Cast", {last}, {"count"}), "to", int64_t{7});
          model.Node("ReduceMax", {"count"}, {"factor"});
          Times(model, "factor");
        },
        199);
  }
}

/// y = x plus a number that `nodes` compute of the float size "float n".
void Plus(ModelBuilder& model, const std::string& number) {
  model.Node("Add", {"x", number}, {"y"});
}

void FloatSize(ModelBuilder& model) {
  TakeSize(model);
  ModelBuilder::Set(model.Node("Cast", {"n0"}, {"float n"}), "to", int64_t{1});
}

TEST(SizeRelations, PiecesOfFunctions) {
  ExpectTurn(
      [](ModelBuilder& model) {
        FloatSize(model);
        ModelBuilder::Set(model.Node("ThresholdedRelu", {"float n"}, {"number"}), "alpha", 20.0f);
        Plus(model, "number");
      },
      20);
  ExpectTurn(
      [](ModelBuilder& model) {
        FloatSize(model);
        ModelBuilder::Set(model.Node("HardSigmoid", {"float n"}, {"number"}), "alpha", 0.025f);
        Plus(model, "number");
      },
      19);
  ExpectTurn(
      [](ModelBuilder& model) {
        FloatSize(model);
        model.Ints("axis", {0});
        model.Node("Unsqueeze", {"float n", "axis"}, {"size"});
        model.Initializer("limit",
                          Tensor::FromDoubles({DType::kF32, {1}}, std::vector<double>{20}));
        ModelBuilder::Set(model.Node("Concat", {"limit", "size"}, {"both"}), "axis", int64_t{0});
        model.Node("Hardmax", {"both"}, {"places"});
        model.Node("Gather", {"places", "axis"}, {"number"});
        Plus(model, "number");
      },
      20);
}

TEST(SizeRelations, FunctionsThatBecomeTheirOperand) {
  ExpectTurn(
      [](ModelBuilder& model) {
        FloatSize(model);
        model.Initializer("eighth", Tensor::Scalar(DType::kF32, 0.125));
        model.Node("Mul", {"float n", "eighth"}, {"share"});
        model.Node("HardSwish", {"share"}, {"number"});
        Plus(model, "number");
      },
      23);  // 24 / 8 is 3, from where on HardSwish is the identity
}

TEST(SizeRelations, SumsThatAreOneOfTheirTerms) {
  ExpectTurn(
      [](ModelBuilder& model) {
        FloatSize(model);
        model.Initializer("one", Tensor::Scalar(DType::kF32, 1));
        model.Initializer("little", Tensor::Scalar(DType::kF32, 3e-9));
        model.Node("Mul", {"float n", "little"}, {"share"});
        model.Node("Add", {"share", "one"}, {"number"});
        Plus(model, "number");
      },
      19);  // 20 x 3e-9 is more than half a unit of f32's 1
}

TEST(SizeRelations, PlacesOfATable) {
  ExpectTurn(
      [](ModelBuilder& model) {
        TakeSize(model);
        model.Ints("hundred", {100})
            .Initializer("table", Tensor::FromDoubles({DType::kF32, {8}},
                                                      std::vector<double>{1, 1, 1, 5, 1, 1, 1, 1}));
        model.Node("Div", {"n0", "hundred"}, {"place"});
        model.Node("Gather", {"table", "place"}, {"element"});
        model.Node("Mul", {"x", "element"}, {"y"});
      },
      299);
}

/// y = x after `steps` steps, each of which changes the sign unless "keeps" is true. The caller
/// adds nodes that compute it, which may read the step's number "k".
google::protobuf::RepeatedPtrField<onnx::NodeProto>& LoopOver(ModelBuilder& model,
                                                              const char* steps) {
  auto& loop = model.Node("Loop", {steps, "", "x"}, {"y"});
  auto& attribute = ModelBuilder::Attribute(loop, "body", onnx::AttributeProto::GRAPH);
  auto& body = *attribute.mutable_g();
  for (const char* name : {"k", "go", "before"}) body.add_input()->set_name(name);
  for (const char* name : {"go", "after"}) body.add_output()->set_name(name);
  return *body.mutable_node();
}

/// The sign changes unless "keeps" is true.
void KeepOrNegate(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
  ModelBuilder::AddNode(nodes, "Neg", {"before"}, {"other"});
  ModelBuilder::AddNode(nodes, "Where", {"keeps", "before", "other"}, {"after"});
}

TEST(SizeRelations, NumbersOfSteps) {
  ExpectTurn(
      [](ModelBuilder& model) {
        TakeSize(model);
        model.Initializer("hundred", Tensor::Ints({100}).Reshaped({}));
        auto& nodes = LoopOver(model, "n0");
        ModelBuilder::AddNode(nodes, "Less", {"k", "hundred"}, {"keeps"});
        KeepOrNegate(nodes);
      },
      100);
}

/// A loop of two steps; each compares N with another number.
TEST(SizeRelations, OneStepHidesNoChangeOfAnother) {
  ExpectTurn(
      [](ModelBuilder& model) {
        TakeSize(model);
        model.Ints("windows", {20, 100}).Initializer("two", Tensor::Ints({2}).Reshaped({}));
        auto& nodes = LoopOver(model, "two");
        ModelBuilder::AddNode(nodes, "Gather", {"windows", "k"}, {"window"});
        ModelBuilder::AddNode(nodes, "Less", {"n0", "window"}, {"keeps"});
        KeepOrNegate(nodes);
      },
      100);
}

TEST(SizeRelations, BranchesHaveTheirOwnKeys) {
  ExpectTurn(
      [](ModelBuilder& model) {
        TakeSize(model);
        model.Ints("one", {1}).Ints("two", {2}).Ints("limit", {50});
        model.Initializer("always", Tensor::Filled({DType::kBool, {}}, 1));
        const std::pair<const char*, const char*> pairs[] = {
            {"one", "two"}, {"two", "one"}, {"two", "two"}, {"n0", "limit"}};
        for (const auto& [left, right] : pairs) {
          auto& node = model.Node("If", {"always"}, {Cat("of ", left, right)});
          auto& attribute =
              ModelBuilder::Attribute(node, "then_branch", onnx::AttributeProto::GRAPH);
          auto& branch = *attribute.mutable_g();
          branch.add_output()->set_name("least");
          ModelBuilder::AddNode(*branch.mutable_node(), "Min", {left, right}, {"least"});
        }
        Times(model, "of n0limit");
        model.Node("Add", {"of onetwo", "of twoone"}, {"sum"});
        model.Node("Add", {"sum", "of twotwo"}, {"other"});
        model.Output("other");
      },
      50);
}

TEST(SizeRelations, RowsThatAreReadOfATable) {
  ModelBuilder model(18);
  model.Input("x", {"1", "1", "N", "N"}).Output("y");
  model.Node("Shape", {"x"}, {"n"});
  TakeSize(model);
  model.Initializer("table",
                    Tensor::FromDoubles({DType::kF32, {40}}, std::vector<double>(40, 0.5)));
  model.Node("Gather", {"table", "n0"}, {"element"});
  model.Node("Mul", {"x", "element"}, {"y"});
  ImportOptions options;
  options.symbol_sizes = {{"N", 7}};
  options.size_relations = true;
  const auto imported = ImportOnnxBytes(model.Bytes(), "", options);
  ASSERT_TRUE(imported.ok()) << imported.status();
  int64_t tables = 0;
  for (const auto& [key, read] : imported->table_reads) {
    if (read.rows.size() != 40) continue;
    ++tables;
    for (size_t row = 0; row < 40; ++row) EXPECT_EQ(read.rows[row], row == 7);
  }
  EXPECT_EQ(tables, 1);
}

TEST(SizeRelations, DiagonalsAndWindows) {
  ExpectTurn(
      [](ModelBuilder& model) {
        model.Ints("k", {-30});
        model.Node("Trilu", {"x", "k"}, {"y"});
      },
      30);
  ExpectTurn(
      [](ModelBuilder& model) {
        auto& pool = model.Node("AveragePool", {"x"}, {"y"});
        ModelBuilder::Set(pool, "kernel_shape", std::vector<int64_t>{401, 1});
        ModelBuilder::Set(pool, "pads", std::vector<int64_t>{200, 0, 200, 0});
      },
      201);
}

TEST(SizeRelations, NothingIsNotedUnlessRequested) {
  ModelBuilder model(18);
  model.Input("x", {"4"}).Ints("k", {2}).Ints("zero", {0}).Output("y");
  model.Node("Slice", {"x", "zero", "k"}, {"y"});
  const auto imported = ImportOnnxBytes(model.Bytes(), "");
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_TRUE(imported->size_relations.empty());
}

TEST(SizeRelations, KeysOfOneProgramAloneSayNothing) {
  EXPECT_TRUE(SameSizeRelations({{"a", 1}, {"b", 2}}, {{"b", 2}, {"c", 4}}));
  EXPECT_FALSE(SameSizeRelations({{"a", 1}, {"b", 2}}, {{"b", 4}, {"c", 4}}));
}

}  // namespace
}  // namespace mendel
