#include "client/c_api/mendel_optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "onnx/model_builder.h"

namespace mendel {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

const std::string kCamera = std::string(MENDEL_EXAMPLES) + "/camera.onnx";

std::string Take(char* text) {
  std::string result = text == nullptr ? "" : text;
  mendel_text_free(text);
  return result;
}

std::string TemporaryFile(const std::string& name) {
  return (std::filesystem::path(testing::TempDir()) / ("mendel_optimizer_test_" + name)).string();
}

std::string BytesOfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// The baseline of the example: no search. Expects success.
mendel_program* Baseline(const mendel_model& model) {
  const std::string cache = "--cache=" + TemporaryFile("cache");
  const char* const options[] = {"--budget=0", "--threads=1", cache.c_str(), nullptr};
  const mendel_call call = {sizeof call, options, nullptr, nullptr, nullptr};
  mendel_program* program = nullptr;
  EXPECT_EQ(mendel_optimize(&model, &call, &program), MENDEL_OK) << mendel_last_error();
  return program;
}

TEST(MendelOptimizer, OptimizesBytesAndRunsWhatItMade) {
  const std::string bytes = BytesOfFile(kCamera);
  mendel_program* program = Baseline({nullptr, bytes.data(), bytes.size()});
  ASSERT_NE(program, nullptr);
  char* text = nullptr;
  ASSERT_EQ(mendel_program_facts(program, &text), MENDEL_OK);
  const Json facts = Json::parse(Take(text));
  ASSERT_EQ(facts["members"].size(), 1u);
  EXPECT_LT(facts["members"][0]["certificate"]["bound_log2"], -80);
  EXPECT_EQ(facts["report"]["search"]["chosen"], 0);

  const std::string plan_path = TemporaryFile("plan");
  ASSERT_EQ(mendel_program_write(program, plan_path.c_str()), MENDEL_OK) << mendel_last_error();
  const std::string onnx_path = TemporaryFile("export.onnx");
  ASSERT_EQ(mendel_program_export(program, 0, onnx_path.c_str()), MENDEL_OK);
  EXPECT_EQ(mendel_program_export(program, 1, onnx_path.c_str()), MENDEL_INVALID);

  mendel_plan* plan = nullptr;
  ASSERT_EQ(mendel_program_compile(program, nullptr, &plan), MENDEL_OK) << mendel_last_error();
  mendel_program_free(program);  // the plan lives on
  mendel_plan* as_it_is = nullptr;
  const mendel_model model = {kCamera.c_str(), nullptr, 0};
  ASSERT_EQ(mendel_compile_model(&model, nullptr, nullptr, &as_it_is), MENDEL_OK)
      << mendel_last_error();
  mendel_value input, output;
  ASSERT_EQ(mendel_input(plan, 0, &input), MENDEL_OK);
  ASSERT_EQ(mendel_output(plan, 0, &output), MENDEL_OK);
  std::vector<float> x(input.bytes / sizeof(float));
  for (size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k % 17) * 0.25F;
  std::vector<float> y(output.bytes / sizeof(float)), z(y.size());
  const void* inputs[] = {x.data()};
  void* outputs[] = {y.data()};
  void* others[] = {z.data()};
  ASSERT_EQ(mendel_run(plan, inputs, outputs), MENDEL_OK);
  ASSERT_EQ(mendel_run(as_it_is, inputs, others), MENDEL_OK);
  EXPECT_NE(*std::max_element(y.begin(), y.end()), 0.0F);
  for (size_t k = 0; k < y.size(); ++k) ASSERT_NEAR(y[k], z[k], 1e-3) << k;
  mendel_free(plan);
  mendel_free(as_it_is);

  mendel_program* read = nullptr;
  ASSERT_EQ(mendel_program_read(plan_path.c_str(), &read), MENDEL_OK) << mendel_last_error();
  ASSERT_EQ(mendel_program_facts(read, &text), MENDEL_OK);
  EXPECT_TRUE(Json::parse(Take(text))["report"].is_null());
  mendel_program_free(read);

  const mendel_model exported = {onnx_path.c_str(), nullptr, 0};
  ASSERT_EQ(mendel_verify(&model, &exported, nullptr, &text), MENDEL_OK) << mendel_last_error();
  EXPECT_EQ(Json::parse(Take(text))["verdict"], "equivalent");
}

TEST(MendelOptimizer, MistakesAreSentences) {
  const mendel_model model = {kCamera.c_str(), nullptr, 0};
  const char* const options[] = {"--budget=soon", nullptr};
  const char* const unknown[] = {"--no-such-option", nullptr};
  const char* const memory[] = {"--memory-limit=1GB", nullptr};
  mendel_call call = {sizeof call, options, nullptr, nullptr, nullptr};
  mendel_program* program = nullptr;
  char* text = nullptr;
  EXPECT_EQ(mendel_optimize(&model, &call, &program), MENDEL_INVALID);
  EXPECT_THAT(mendel_last_error(), HasSubstr("soon"));
  call.options = unknown;
  EXPECT_EQ(mendel_optimize(&model, &call, &program), MENDEL_INVALID);
  EXPECT_THAT(mendel_last_error(), HasSubstr("--no-such-option"));
  call.options = memory;
  EXPECT_EQ(mendel_verify(&model, &model, &call, &text), MENDEL_INVALID);
  call.size = 3;
  EXPECT_EQ(mendel_optimize(&model, &call, &program), MENDEL_INVALID);
  EXPECT_EQ(mendel_optimize(nullptr, nullptr, &program), MENDEL_INVALID);
  EXPECT_EQ(mendel_optimize(&model, nullptr, nullptr), MENDEL_INVALID);
  const mendel_model absent = {"no/such.onnx", nullptr, 0};
  EXPECT_EQ(mendel_optimize(&absent, nullptr, &program), MENDEL_NOT_FOUND);
  EXPECT_EQ(program, nullptr);
  const mendel_model garbage = {nullptr, "garbage", 7};
  EXPECT_EQ(mendel_describe_model(&garbage, &text), MENDEL_INVALID);
  EXPECT_EQ(mendel_program_read(kCamera.c_str(), &program), MENDEL_INVALID);
}

/// y = relu(x) of the model, through mendel_run_shapes; "" or the error.
std::string RunRelu(mendel_plan* plan, int64_t rows, int64_t columns) {
  const int64_t extents[] = {rows, columns};
  const int64_t* const shapes[] = {extents};
  const int ranks[] = {2};
  std::vector<float> x(static_cast<size_t>(rows * columns)), y(x.size(), 7.0F);
  for (size_t k = 0; k < x.size(); ++k) x[k] = k % 2 == 0 ? 1.5F : -1.5F;
  const void* inputs[] = {x.data()};
  void* outputs[] = {y.data()};
  if (mendel_run_shapes(plan, ranks, shapes, inputs, outputs) != MENDEL_OK)
    return mendel_last_error();
  for (size_t k = 0; k < x.size(); ++k) EXPECT_EQ(y[k], std::max(x[k], 0.0F)) << k;
  return "";
}

TEST(MendelOptimizer, SymbolicDimensionsAreBoundByEveryRun) {
  ModelBuilder builder;
  builder.Input("x", {"N", "4"}).Output("y").Node("Relu", {"x"}, {"y"});
  const std::string bytes = builder.Bytes();
  const mendel_model model = {nullptr, bytes.data(), bytes.size()};
  const mendel_dynamic_limits limits = {sizeof limits, 2, 0};
  mendel_plan* plan = nullptr;
  ASSERT_EQ(mendel_open_model(&model, nullptr, &limits, &plan), MENDEL_OK) << mendel_last_error();
  EXPECT_EQ(mendel_input_count(plan), -1);
  EXPECT_EQ(mendel_member_count(plan), 0);
  EXPECT_EQ(mendel_run(plan, nullptr, nullptr), MENDEL_INVALID);
  EXPECT_THAT(mendel_last_error(), HasSubstr("mendel_select_shapes"));
  for (const int64_t rows : {1, 2, 1, 3}) EXPECT_EQ(RunRelu(plan, rows, 4), "");
  EXPECT_EQ(mendel_input_count(plan), 1);
  EXPECT_THAT(RunRelu(plan, 3, 5), HasSubstr("dimension 1 of input 'x' is 4, not 5"));
  mendel_dynamic_use use = {sizeof use, 0, 0, 0, 0, 0};
  ASSERT_EQ(mendel_dynamic_use_of(plan, &use), MENDEL_OK);
  EXPECT_EQ(use.plans, 2u);
  EXPECT_EQ(use.hits, 1);
  EXPECT_EQ(use.made, 3);
  EXPECT_EQ(use.dropped, 1);

  const std::string cache = "--cache=" + TemporaryFile("cache");
  const char* const options[] = {"--budget=0", "--threads=1", "--shapes=x:9x4", cache.c_str(),
                                 nullptr};
  const mendel_call call = {sizeof call, options, nullptr, nullptr, nullptr};
  mendel_program* program = nullptr;
  ASSERT_EQ(mendel_optimize(&model, &call, &program), MENDEL_OK) << mendel_last_error();
  ASSERT_EQ(mendel_adopt(plan, program), MENDEL_OK) << mendel_last_error();
  EXPECT_EQ(RunRelu(plan, 9, 4), "");
  ASSERT_EQ(mendel_dynamic_use_of(plan, &use), MENDEL_OK);
  EXPECT_EQ(use.hits, 2);
  mendel_free(plan);

  const mendel_model camera = {kCamera.c_str(), nullptr, 0};
  ASSERT_EQ(mendel_open_model(&camera, nullptr, nullptr, &plan), MENDEL_OK);
  EXPECT_EQ(mendel_adopt(plan, program), MENDEL_INVALID);
  EXPECT_THAT(mendel_last_error(), HasSubstr("not of this one"));
  mendel_free(plan);
  mendel_program_free(program);
}

TEST(MendelOptimizer, AnInputThatDecidesIsReadWhereBranchesDiffer) {
  ModelBuilder builder;
  builder.Input("rate", {}, DType::kI64).Input("x", {"N", "3"}).Output("y");
  builder.Initializer("fast", Tensor::FromInts({DType::kI64, {}}, {{16000}}));
  builder.Node("Equal", {"rate", "fast"}, {"is_fast"});
  auto& node = builder.Node("If", {"is_fast"}, {"y"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto& graph = *ModelBuilder::Attribute(node, branch, onnx::AttributeProto::GRAPH).mutable_g();
    graph.add_output()->set_name("inner");
    ModelBuilder::AddNode(*graph.mutable_node(), branch[0] == 't' ? "Neg" : "Transpose", {"x"},
                          {"inner"});
  }
  const std::string bytes = builder.Bytes();
  const mendel_model model = {nullptr, bytes.data(), bytes.size()};
  mendel_plan* plan = nullptr;
  ASSERT_EQ(mendel_open_model(&model, nullptr, nullptr, &plan), MENDEL_OK) << mendel_last_error();
  const int64_t extents[] = {2, 3};
  const int64_t* const shapes[] = {nullptr, extents};
  const int ranks[] = {0, 2};
  const float x[] = {1, 2, 3, 4, 5, 6};
  for (const int64_t rate : {16000, 8000, 16000, 8000}) {
    float y[6] = {};
    const void* inputs[] = {&rate, x};
    void* outputs[] = {y};
    ASSERT_EQ(mendel_run_shapes(plan, ranks, shapes, inputs, outputs), MENDEL_OK)
        << mendel_last_error();
    mendel_value output;
    ASSERT_EQ(mendel_output(plan, 0, &output), MENDEL_OK);
    EXPECT_EQ(output.shape[0], rate == 16000 ? 2 : 3);
    EXPECT_EQ(y[1], rate == 16000 ? -2 : 4);
  }
  mendel_dynamic_use use = {sizeof use, 0, 0, 0, 0, 0};
  ASSERT_EQ(mendel_dynamic_use_of(plan, &use), MENDEL_OK);
  EXPECT_EQ(use.made, 2);
  EXPECT_EQ(use.hits, 2);
  EXPECT_EQ(mendel_select_shapes(plan, ranks, shapes), MENDEL_UNSUPPORTED) << "no values";
  mendel_free(plan);
}

struct Watch {
  mendel_stop* stop;
  std::vector<std::string> phases;
};

TEST(MendelOptimizer, AStopKeepsTheBestProgram) {
  const mendel_model model = {kCamera.c_str(), nullptr, 0};
  const std::string cache = "--cache=" + TemporaryFile("cache");
  const char* const options[] = {"--budget=300s", "--threads=1", cache.c_str(), nullptr};
  Watch watch{mendel_stop_new(), {}};
  mendel_call call = {sizeof call, options, nullptr, &watch, watch.stop};
  call.progress = [](void* user, const char* json) {
    auto* const seen = static_cast<Watch*>(user);
    seen->phases.push_back(Json::parse(json)["phase"]);
    if (seen->phases.back() == "search") mendel_stop_request(seen->stop);
  };
  mendel_program* program = nullptr;
  ASSERT_EQ(mendel_optimize(&model, &call, &program), MENDEL_OK) << mendel_last_error();
  EXPECT_EQ(watch.phases.front(), "import");
  EXPECT_EQ(watch.phases.back(), "search");  // none after the stop
  char* text = nullptr;
  ASSERT_EQ(mendel_program_facts(program, &text), MENDEL_OK);
  EXPECT_EQ(Json::parse(Take(text))["report"]["search"]["stop_reason"], "interrupted");
  mendel_program_free(program);
  program = nullptr;
  EXPECT_EQ(mendel_optimize(&model, &call, &program), MENDEL_STOPPED);
  EXPECT_EQ(program, nullptr);
  mendel_stop_free(watch.stop);
}

TEST(MendelOptimizer, DescribesAModel) {
  const mendel_model model = {kCamera.c_str(), nullptr, 0};
  char* text = nullptr;
  ASSERT_EQ(mendel_describe_model(&model, &text), MENDEL_OK) << mendel_last_error();
  const Json facts = Json::parse(Take(text));
  ASSERT_EQ(facts["inputs"].size(), 1u);
  EXPECT_EQ(facts["inputs"][0]["type"], "f32");
  EXPECT_EQ(facts["inputs"][0]["shape"].size(), 4u);
  EXPECT_FALSE(facts["outputs"].empty());
  EXPECT_EQ(facts["producer_name"], "mendel examples");
}

}  // namespace
}  // namespace mendel
