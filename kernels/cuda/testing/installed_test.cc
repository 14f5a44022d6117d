// The backend as the program has it, on fakes of CUDA's libraries that it finds by its ordinary
// search: the C interface on the device, and threads that load and run plans side by side.

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/evaluate.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/driver_table/driver.h"
#include "runtime/backend.h"
#include "runtime/measure.h"
#include "runtime/mendel.h"
#include "runtime/plan.h"
#include "runtime/test_plan.h"

namespace mendel::cuda {
namespace {

using testing::HasSubstr;

/// Before any library is opened. The driver is found by the loader: the folder is in the test's run
/// path.
const bool kSearchesTheFakes = [] {
  const std::string cache =
      (std::filesystem::temp_directory_path() / Cat("mendel_installed_test_", ::getpid())).string();
  return ::setenv("MENDEL_CUDA_PATH", MENDEL_FAKE_CUDA, 1) == 0 &&
         ::setenv("XDG_CACHE_HOME", cache.c_str(), 1) == 0;
}();

/// Removes the kernels' cache in the end.
class RemovesCache : public testing::Environment {
 public:
  void TearDown() override { std::filesystem::remove_all(::getenv("XDG_CACHE_HOME")); }
};
testing::Environment* const kRemovesCache = testing::AddGlobalTestEnvironment(new RemovesCache());

const Backend& Cuda() {
  EXPECT_TRUE(kSearchesTheFakes && kRemovesCache != nullptr);
  const Backend* backend = FindBackend("cuda");
  EXPECT_NE(backend, nullptr);
  return *backend;
}

/// Convolutions for cuDNN, a product for cuBLASLt, and elementwise operators that may share a
/// launch.
Graph Net(int64_t channels) {
  const std::string text = Cat(R"(graph "net" {
    %0 = Input() {name = "x", shape = [1, 2, 6, 6]}
    %1 = Input() {name = "w", shape = [)",
                               channels, R"(, 2, 3, 3]}
    %2 = Conv(%0, %1) {dilations = [1, 1], group = 1, pads = [1, 1, 1, 1], strides = [1, 1]}
    %3 = Relu(%2)
    %4 = Sigmoid(%0)
    %5 = Tanh(%0)
    %6 = MatMul(%4, %5)
    return "a" = %3, "b" = %6
  })");
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

/// "" or what is wrong with a run on inputs that `number` draws.
std::string Failure(Executable& executable, const Graph& graph, int number) {
  const std::vector<Tensor> inputs = RandomInputs(graph, static_cast<uint64_t>(number));
  std::vector<HostValue> values;
  for (const Tensor& input : inputs) values.push_back(HostValue::FromTensor(input));
  const auto expected = Evaluate(graph, values);
  const auto results = RunOnTensors(executable, graph, inputs);
  if (!expected.ok() || !results.ok())
    return (expected.ok() ? results.status() : expected.status()).ToString();
  for (size_t k = 0; k < results->size(); ++k) {
    const Tensor wanted = (*expected)[k].ToTensor();
    for (int64_t at = 0; at < wanted.size(); ++at) {
      const double difference = std::abs((*results)[k].DoubleAt(at) - wanted.DoubleAt(at));
      if (!(difference < 1e-4))
        return Cat("output ", k, " element ", at, " differs by ", difference);
    }
  }
  return "";
}

/// The library's algorithm of each node that has one; else the first offer.
std::map<int32_t, std::string> Choices(const Graph& graph) {
  std::map<int32_t, std::string> choices;
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    const auto names = Cuda().Algorithms(graph, static_cast<int32_t>(id), Numerics::kDefault);
    const auto library = std::find_if(names.begin(), names.end(), [](const std::string& name) {
      return !name.starts_with("tile");
    });
    if (library != names.end()) choices[static_cast<int32_t>(id)] = *library;
  }
  return choices;
}

TEST(Installed, EnginesThatCudnnCompilesAreOffered) {
  GraphBuilder builder;
  const TensorType half = {DType::kF16, {6, 8}};
  const ValueId q = builder.Input("q", half), k = builder.Input("k", half);
  const ValueId keys = *builder.Add("Transpose", {k}, {{"perm", std::vector<int64_t>{1, 0}}});
  const ValueId scores = *builder.Add("MatMul", {q, keys});
  const ValueId weights = *builder.Add("Softmax", {scores}, {{"axis", 1}});
  builder.Output("y", *builder.Add("MatMul", {weights, k}));
  const Graph graph = *builder.Build();
  EXPECT_THAT(Cuda().Algorithms(graph, scores.node, Numerics::kDefault),
              testing::Contains("attention"));
  EXPECT_THAT(Cuda().Algorithms(graph, scores.node, Numerics::kStrict),
              testing::Not(testing::Contains("attention")));
}

TEST(Installed, LibrariesAreFoundAndOffered) {
  ASSERT_TRUE(Cuda().Probe().ok()) << Cuda().Probe();
  EXPECT_THAT(Cuda().Identity(), testing::AllOf(HasSubstr("emulated device:sm_90"),
                                                HasSubstr("cuDNN 9.19.0"), HasSubstr("cublaslt")));
  EXPECT_EQ(Cuda().Isa(), "sm_90");
  EXPECT_NE(Cuda().measuring_device(), nullptr);
  const auto names = [] {
    std::vector<std::string> chosen;
    for (const auto& choice : Choices(Net(3))) chosen.push_back(choice.second);
    return chosen;
  };
  EXPECT_THAT(names(), testing::IsSupersetOf({HasSubstr("cudnn"), HasSubstr("cublaslt")}));
  EXPECT_THAT(names(), testing::Not(testing::Contains(HasSubstr("beside"))));
  ::setenv("MENDEL_CUDA_EXPERIMENTS", "measured", 1);
  EXPECT_THAT(names(), testing::Contains(HasSubstr("beside")));
  ::unsetenv("MENDEL_CUDA_EXPERIMENTS");
}

TEST(Installed, ThreadsLoadAndRunSideBySide) {
  constexpr int kThreads = 4, kRuns = 3;
  std::vector<std::string> failures(kThreads);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([thread, &failure = failures[static_cast<size_t>(thread)]] {
      const Graph graph = Net(2 + thread % 2);
      CompileOptions options;
      if (thread < 3) options.algorithms = Choices(graph);
      const auto executable = Cuda().Compile(graph, options);
      if (!executable.ok()) {
        failure = executable.status().ToString();
        return;
      }
      for (int run = 0; run < kRuns && failure.empty(); ++run)
        failure = Failure(**executable, graph, 10 * thread + run);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(failures, testing::Each(""));
}

/// Memory and a stream of the caller's own, as a program around Mendel has them.
struct Caller {
  explicit Caller(const Driver& driver) : table(driver) {
    EXPECT_EQ(table.StreamCreate(&stream, 1), 0);
    EXPECT_EQ(table.EventCreate(&ready, 0), 0);
    EXPECT_EQ(table.MemAlloc(&x, kInputBytes), 0);
    EXPECT_EQ(table.MemAlloc(&y, kOutputBytes), 0);
  }
  ~Caller() {
    table.StreamDestroy(stream);
    table.EventDestroy(ready);
    table.MemFree(x);
    table.MemFree(y);
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  static constexpr size_t kInputBytes = 2 * 8 * sizeof(float), kOutputBytes = 2 * 3 * sizeof(float);
  const Driver& table;
  DriverStream* stream = nullptr;
  DriverEvent* ready = nullptr;
  uint64_t x = 0, y = 0;
};

class InstalledPlan : public testing::Test {
 protected:
  InstalledPlan() : path_(TestPath("installed.plan")) { EXPECT_TRUE(Cuda().Probe().ok()); }
  ~InstalledPlan() override { std::remove(path_.c_str()); }

  mendel_plan* Load(const Plan& plan) {
    EXPECT_TRUE(WritePlan(plan, path_).ok());
    return mendel_load(path_.c_str(), 0);
  }
  const std::string path_;
};

TEST_F(InstalledPlan, RunsOnTheCallersStreamThroughTheCInterface) {
  const Plan small = SmallPlan("cuda");
  mendel_plan* plan = Load(small);
  ASSERT_NE(plan, nullptr) << mendel_last_error();
  EXPECT_STREQ(mendel_device(plan), "cuda:0");
  const Tensor x = RandomInputs(small.graph, 3)[0];
  std::vector<float> want(6), have(6);
  const void* host_inputs[] = {x.bytes().data()};
  void* host_outputs[] = {want.data()};
  ASSERT_EQ(mendel_run(plan, host_inputs, host_outputs), MENDEL_OK) << mendel_last_error();
  EXPECT_TRUE(std::any_of(want.begin(), want.end(), [](float value) { return value != 0; }));

  const auto driver = Driver::Get();
  ASSERT_TRUE(driver.ok());
  Caller caller(**driver);
  ASSERT_EQ(caller.table.MemcpyHtoD(caller.x, x.bytes().data(), Caller::kInputBytes), 0);
  ASSERT_EQ(caller.table.CtxSynchronize(), 0);
  const void* inputs[] = {reinterpret_cast<const void*>(caller.x)};
  void* outputs[] = {reinterpret_cast<void*>(caller.y)};
  ASSERT_EQ(mendel_run_device(plan, inputs, outputs, caller.stream, caller.ready), MENDEL_OK)
      << mendel_last_error();
  ASSERT_EQ(caller.table.EventSynchronize(caller.ready), 0);
  ASSERT_EQ(caller.table.MemcpyDtoH(have.data(), caller.y, Caller::kOutputBytes), 0);
  EXPECT_EQ(have, want) << "the same kernels";

  outputs[0] = nullptr;
  EXPECT_EQ(mendel_run_device(plan, inputs, outputs, caller.stream, nullptr), MENDEL_INVALID);
  EXPECT_THAT(mendel_last_error(), HasSubstr("'y'"));
  outputs[0] = reinterpret_cast<void*>(caller.y);
  EXPECT_EQ(mendel_run_device(plan, inputs, outputs, caller.stream, nullptr), MENDEL_OK)
      << "the plan lives on";
  mendel_free(plan);
}

TEST_F(InstalledPlan, OfAnotherMachineIsRefusedByName) {
  Plan small = SmallPlan("cuda");
  small.info.mutable_target()->set_identity("cuda:some GPU:sm_80");
  EXPECT_EQ(Load(small), nullptr);
  EXPECT_THAT(mendel_last_error(), testing::AllOf(HasSubstr("tuned for 'cuda:some GPU:sm_80'"),
                                                  HasSubstr("emulated device:sm_90")));
}

TEST_F(InstalledPlan, CorrectedMutantsRunTheCorrectorsKernels) {
  const Plan corrected = CorrectedPlan("cuda");
  mendel_plan* plan = Load(corrected);
  ASSERT_NE(plan, nullptr) << mendel_last_error();
  const Tensor x = RandomInputs(corrected.graph, 3)[0];
  const auto expected = Evaluate(corrected.graph, std::vector<HostValue>{HostValue::FromTensor(x)});
  ASSERT_TRUE(expected.ok()) << expected.status();
  const Tensor want = (*expected)[0].ToTensor();
  std::vector<float> have(static_cast<size_t>(want.size()));
  const void* inputs[] = {x.bytes().data()};
  void* outputs[] = {have.data()};
  ASSERT_EQ(mendel_run(plan, inputs, outputs), MENDEL_OK) << mendel_last_error();
  for (size_t k = 0; k < have.size(); ++k) ASSERT_NEAR(have[k], want.As<float>()[k], 1e-4) << k;
  mendel_free(plan);
}

}  // namespace
}  // namespace mendel::cuda
