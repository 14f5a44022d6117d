// Calls of a library as steps of a program: a made-up one, whose calls are kernels of this file.

#include "kernels/cuda/backend/library_groups.h"

#include <stdlib.h>

#include <memory>
#include <utility>

#include "base/random.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/random_graph.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/backend/installed_libraries.h"
#include "kernels/cuda/cublaslt/product_match.h"
#include "kernels/cuda/cudnn/match.h"
#include "kernels/cuda/testing/device_case.h"
#include "kernels/cuda/testing/fake/fake_driver.h"

namespace mendel::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr unsigned kElements = 64;

/// p1 is a workspace: what lay there must not matter, and nobody else may write to it between the
/// two.
constexpr char kTexts[] =
    R"(extern "C" __global__ void __launch_bounds__(64) made_up_keep(const float* p0, float* p1) {
  p1[threadIdx.x] = p0[threadIdx.x];
}
extern "C" __global__ void __launch_bounds__(64) made_up_relu(const float* p1, float* y) {
  y[threadIdx.x] = p1[threadIdx.x] > 0.0f ? p1[threadIdx.x] : 0.0f;
}
extern "C" __global__ void __launch_bounds__(64) made_up_relu_neg(const float* p1, float* y) {
  y[threadIdx.x] = p1[threadIdx.x] > 0.0f ? -p1[threadIdx.x] : 0.0f;
}
)";

class MadeUpHandle : public LibraryHandle {
 public:
  explicit MadeUpHandle(const Driver& driver) : driver_(driver) {}
  ~MadeUpHandle() override {
    if (module_ != nullptr) driver_.ModuleUnload(module_);
  }
  absl::Status Open() {
    return driver_.Check(driver_.ModuleLoadData(&module_, kTexts), "cuModuleLoadData");
  }
  absl::StatusOr<DriverFunction*> Entry(const char* name) const {
    DriverFunction* function = nullptr;
    MENDEL_RETURN_IF_ERROR(
        driver_.Check(driver_.ModuleGetFunction(&function, module_, name), "cuModuleGetFunction"));
    return function;
  }

 private:
  const Driver& driver_;
  DriverModule* module_ = nullptr;
};

class LoadedMadeUp : public LoadedCall {
 public:
  LoadedMadeUp(const Driver& driver, CallSite site, DriverFunction* keep, DriverFunction* compute)
      : driver_(driver), site_(std::move(site)), keep_(keep), compute_(compute) {}
  absl::Status Enqueue() override {
    MENDEL_RETURN_IF_ERROR(Launch(keep_, site_.pointers[0], site_.workspace));
    return Launch(compute_, site_.workspace, site_.pointers[1]);
  }

 private:
  absl::Status Launch(DriverFunction* function, uint64_t from, uint64_t to) const {
    void* arguments[] = {&from, &to};
    return driver_.Check(driver_.LaunchKernel(function, 1, 1, 1, kElements, 1, 1, 0, site_.stream,
                                              arguments, nullptr),
                         "cuLaunchKernel");
  }
  const Driver& driver_;
  const CallSite site_;
  DriverFunction* keep_;
  DriverFunction* compute_;
};

class MadeUpCall : public LibraryCall {
 public:
  MadeUpCall(const Driver& driver, bool negated) : driver_(driver), negated_(negated) {}
  std::string name() const override { return negated_ ? "made_up relu, neg" : "made_up relu"; }
  int64_t workspace_bytes() const override { return 4 * kElements; }
  absl::StatusOr<std::unique_ptr<LoadedCall>> Load(const CallSite& site,
                                                   LibraryHandles& handles) const override {
    std::unique_ptr<LibraryHandle>& handle = handles["made_up"];
    if (handle == nullptr) {
      auto made = std::make_unique<MadeUpHandle>(driver_);
      MENDEL_RETURN_IF_ERROR(made->Open());
      handle = std::move(made);
    }
    const auto& library = static_cast<const MadeUpHandle&>(*handle);
    MENDEL_ASSIGN_OR_RETURN(DriverFunction * keep, library.Entry("made_up_keep"));
    MENDEL_ASSIGN_OR_RETURN(DriverFunction * compute,
                            library.Entry(negated_ ? "made_up_relu_neg" : "made_up_relu"));
    return std::make_unique<LoadedMadeUp>(driver_, site, keep, compute);
  }

 private:
  const Driver& driver_;
  const bool negated_;
};

/// Relu of 64 floats, by "made_up:more" with the Neg after it.
class MadeUpLibrary : public CallLibrary {
 public:
  explicit MadeUpLibrary(const Driver& driver) : driver_(driver) {}
  std::string_view name() const override { return "made_up"; }
  std::string Identity() const override { return "made_up 1.0"; }
  bool Multiplies(Numerics numerics) const override {
    return numerics == Numerics::kBf16 || numerics == Numerics::kF16;
  }
  std::vector<std::string> Algorithms(const GroupingScope& scope, int32_t node,
                                      Numerics) const override {
    const Node& it = scope.graph.node(node);
    if (it.op->name != "Relu" || !scope.IsFree(node) || NumElements(it.outputs[0]) != kElements)
      return {};
    return {"made_up", "made_up:more"};
  }
  absl::StatusOr<LibraryGroup> Group(const GroupingScope& scope, int32_t node,
                                     const std::string& algorithm, Numerics) const override {
    LibraryGroup group{{node, 0}, {node}, {}, nullptr};
    const ValueId x = scope.graph.node(node).inputs[0];
    group.operands.push_back({x, {}, scope.graph.type(x).dtype});
    const int32_t user = scope.OnlyUser(node);
    const bool more = algorithm == "made_up:more" && user >= 0 && scope.IsFree(user) &&
                      scope.graph.node(user).op->name == "Neg";
    if (more) group.nodes.insert(user), group.result = {user, 0};
    group.call = std::make_shared<MadeUpCall>(driver_, more);
    return group;
  }

 private:
  const Driver& driver_;
};

Graph Parsed(const std::string& body) {
  auto graph = ParseGraph("graph \"g\" {\n" + body + "\n}");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

/// Calls among kernels that could be fused with them, of a value that is also read elsewhere, and
/// before and after a view.
Graph Net() {
  return Parsed(R"(%0 = Input() {name = "x", shape = [8, 8]}
    %1 = Sin(%0)
    %2 = Relu(%1)
    %3 = Neg(%2)
    %4 = Reshape(%3) {shape = [64]}
    %5 = Relu(%4)
    %6 = Neg(%4)
    %7 = Relu(%6)
    %8 = Add(%5, %7)
    return "y" = %8, "z" = %7)");
}
const std::map<int32_t, std::string> kByCalls = {
    {2, "made_up:more"}, {5, "made_up"}, {7, "made_up:more"}};

HostValue Input() {
  std::vector<double> values;
  for (unsigned k = 0; k < kElements; ++k) values.push_back(static_cast<double>(k % 13) - 6);
  return HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, {8, 8}}, values));
}

std::vector<std::string> Kernels(const DeviceProgram& program) {
  std::vector<std::string> names;
  for (const DeviceLaunch& launch : program.launches) names.push_back(launch.info.kernel);
  return names;
}

TEST(LibraryGroups, AreStepsOfTheProgram) {
  FakeDriver driver;
  const MadeUpLibrary library(driver.table());
  const CallLibrary* const libraries[] = {&library};
  for (const bool reuse : {true, false}) {
    DeviceCase one{"calls", Net(), {Input()}, {}};
    auto program = LowerToDevice(
        one.graph, {.reuse_memory = reuse, .algorithms = kByCalls, .libraries = libraries});
    ASSERT_TRUE(program.ok()) << program.status();
    // A call reads a view as it is stored.
    EXPECT_THAT(Kernels(*program),
                ElementsAre("elements_by_4", "made_up relu, neg", "elements_by_4", "made_up relu",
                            "elements_by_4", "made_up relu", "elements_by_4"));
    EXPECT_THAT(program->launches[1].info.nodes, ElementsAre(2, 3));
    EXPECT_EQ(program->launches[1].info.name, "Relu 3");
    one.program = *std::move(program);
    const absl::Status prepared = driver.Prepare(one.program.ModuleText() + kTexts);
    ASSERT_TRUE(prepared.ok()) << prepared;
    EXPECT_EQ(FailureOn(driver.table(), &TextImage, one), "");
    EXPECT_EQ(driver.Leaks(), "");
  }
}

/// A call is several nodes of the captured graph; what they share is kept in order whichever of the
/// allowed orders is drawn.
TEST(LibraryGroups, CallsOfOtherBranchesRunInAnyOrder) {
  FakeDriver driver;
  const MadeUpLibrary library(driver.table());
  const CallLibrary* const libraries[] = {&library};
  const Graph graph = Net();
  for (const double apart_up_to : {0.0, 10.0}) {
    DeviceCase one{"calls", graph, {Input()}, {}};
    const auto program = LowerToDevice(graph, {.order = LaunchOrder::kBranches,
                                               .apart_up_to = apart_up_to,
                                               .algorithms = kByCalls,
                                               .libraries = libraries});
    ASSERT_TRUE(program.ok()) << program.status();
    ASSERT_TRUE(driver.Prepare(program->ModuleText() + kTexts).ok());
    const auto executable = MakeExecutable(driver.table(), *program, &TextImage);
    ASSERT_TRUE(executable.ok()) << executable.status();
    Rng rng(1);
    for (int run = 0; run < 20; ++run) {
      one.inputs = RandomInputs(rng, graph);
      EXPECT_EQ(FailureOf(**executable, one), "") << run;
    }
  }
  EXPECT_EQ(driver.Leaks(), "");
}

TEST(LibraryGroups, WorkspacesShareTheArena) {
  FakeDriver driver;
  const MadeUpLibrary library(driver.table());
  const CallLibrary* const libraries[] = {&library};
  const Graph chain = Parsed(R"(%0 = Input() {name = "x", shape = [64]}
    %1 = Relu(%0)
    %2 = Relu(%1)
    %3 = Relu(%2)
    return "y" = %3)");
  const std::map<int32_t, std::string> algorithms = {
      {1, "made_up"}, {2, "made_up"}, {3, "made_up"}};
  const auto shared = LowerToDevice(chain, {.algorithms = algorithms, .libraries = libraries});
  const auto apart = LowerToDevice(
      chain, {.reuse_memory = false, .algorithms = algorithms, .libraries = libraries});
  ASSERT_TRUE(shared.ok() && apart.ok()) << shared.status() << apart.status();
  EXPECT_EQ(shared->arena_bytes, 3 * 256);  // operand, result and workspace of one step
  EXPECT_EQ(apart->arena_bytes, 7 * 256);
  EXPECT_TRUE(shared->texts.empty());
}

TEST(LibraryGroups, EveryCallOfTheDriverMayFail) {
  FakeDriver driver;
  const MadeUpLibrary library(driver.table());
  const CallLibrary* const libraries[] = {&library};
  const Graph graph = Net();
  const auto program = LowerToDevice(graph, {.algorithms = kByCalls, .libraries = libraries});
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_TRUE(driver.Prepare(program->ModuleText() + kTexts).ok());
  const DeviceCase one{"calls", graph, {Input()}, *program};
  driver.FailAt(0);
  ASSERT_EQ(FailureOn(driver.table(), &TextImage, one), "");
  const int64_t calls = driver.Calls();
  for (int64_t call = 1; call <= calls; ++call) {
    driver.FailAt(call);
    const std::string failure = FailureOn(driver.table(), &TextImage, one);
    const std::string entry = driver.FailedCall();
    const bool gives_back =
        entry.find("Destroy") != std::string::npos || entry.find("Free") != std::string::npos ||
        entry == "ModuleUnload" || entry == "DevicePrimaryCtxRelease" ||
        (entry == "CtxSetCurrent" && failure.empty());  // that of the destructor
    EXPECT_EQ(failure.empty(), gives_back) << call << " " << entry;
    EXPECT_THAT(failure, HasSubstr(gives_back ? "" : "cu" + entry));
    EXPECT_EQ(driver.Leaks(), "") << call << " " << entry;
  }
}

TEST(LibraryGroups, AlgorithmsOfAbsentLibrariesAreRefused) {
  FakeDriver driver;
  const MadeUpLibrary library(driver.table());
  const CallLibrary* const libraries[] = {&library};
  const Graph graph = Net();
  EXPECT_THAT(LibraryAlgorithms(graph, 2, Numerics::kStrict, libraries),
              ElementsAre("made_up", "made_up:more"));
  EXPECT_TRUE(LibraryAlgorithms(graph, 3, Numerics::kStrict, libraries).empty());
  EXPECT_TRUE(LibraryAlgorithms(graph, 2, Numerics::kStrict, {}).empty());
  const auto other = LowerToDevice(graph, {.algorithms = {{2, "other:1"}}, .libraries = libraries});
  EXPECT_EQ(other.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(other.status().message()),
              HasSubstr("(Relu 2) is to be computed by 'other:1'"));
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("made_up 1.0"));
  const auto none = LowerToDevice(graph, {.algorithms = {{2, "made_up"}}});
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("found here are: none"));
}

TEST(LibraryGroups, ClassesAreThoseOfTheLibrariesAndTheArchitecture) {
  FakeDriver driver;
  const MadeUpLibrary library(driver.table());
  const CallLibrary* const libraries[] = {&library};
  EXPECT_TRUE(LibrariesSupport(Numerics::kBf16, 80, libraries).ok());
  EXPECT_TRUE(LibrariesSupport(Numerics::kF16, 75, libraries).ok());
  const absl::Status old = LibrariesSupport(Numerics::kBf16, 75, libraries);
  EXPECT_TRUE(absl::IsUnimplemented(old));
  EXPECT_THAT(std::string(old.message()), HasSubstr("sm_75 do not multiply in bf16"));
  for (const Numerics numerics : {Numerics::kHigh, Numerics::kTf32}) {
    EXPECT_THAT(std::string(LibrariesSupport(numerics, 90, libraries).message()),
                HasSubstr("made_up 1.0"));
    EXPECT_TRUE(absl::IsUnimplemented(LibrariesSupport(numerics, 90, {})))
        << NumericsName(numerics);
  }
}

/// The algorithms of nodes are chosen one by one: who takes an addition along must not depend on
/// what others have claimed.
TEST(LibraryGroups, ASumBelongsToTheSummandThatIsComputedLast) {
  const char* const inputs = R"(%0 = Input() {name = "x", shape = [1, 2, 3]}
    %1 = Input() {name = "w", shape = [2, 2, 1]}
    %2 = Input() {name = "m", shape = [3, 3]}
    )";
  const std::string
      conv = " = Conv(%0, %1) {dilations = [1], group = 1, pads = [0, 0], strides = [1]}\n",
      product = " = MatMul(%0, %2)\n";
  const std::string sum = "%5 = Add(%3, %4)\nreturn \"y\" = %5\n}";
  for (const bool product_is_last : {false, true}) {
    const auto graph =
        ParseGraph(Cat("graph \"g\" {\n", inputs, "%3", product_is_last ? conv : product, "%4",
                       product_is_last ? product : conv, sum));
    ASSERT_TRUE(graph.ok()) << graph.status();
    const int32_t of_product = product_is_last ? 4 : 3;
    std::vector<bool> none(graph->nodes().size(), false), claimed = none;
    const auto products = MatchProduct({*graph, none, none}, of_product, Numerics::kDefault);
    const auto convolutions =
        MatchConvolution({*graph, none, none}, 7 - of_product, Numerics::kDefault);
    EXPECT_EQ(products.size(), product_is_last ? 2u : 1u);
    EXPECT_EQ(convolutions.size(), product_is_last ? 1u : 2u);
    for (const int32_t node : product_is_last ? products[0].nodes : convolutions[0].group.nodes)
      claimed[static_cast<size_t>(node)] = true;
    EXPECT_TRUE(claimed[5]);
    const GroupingScope afterwards{*graph, none, claimed};
    if (product_is_last) {
      EXPECT_EQ(MatchConvolution(afterwards, 3, Numerics::kDefault).size(), 1u);
    } else {
      EXPECT_EQ(MatchProduct(afterwards, 3, Numerics::kDefault).size(), 1u);
    }
  }
}

TEST(InstalledLibraries, TheLimitOfWorkspaceIsANumber) {
  const char* const variable = "MENDEL_CUDA_WORKSPACE_MIB";
  ::unsetenv(variable);
  EXPECT_EQ(*WorkspaceLimit(), int64_t{256} << 20);
  ::setenv(variable, "3", 1);
  EXPECT_EQ(*WorkspaceLimit(), int64_t{3} << 20);
  for (const char* bad : {"", "-1", "1e3", "2000000", "8 MiB"}) {
    ::setenv(variable, bad, 1);
    EXPECT_EQ(WorkspaceLimit().status().code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(WorkspaceLimit().status().message()),
                HasSubstr(Cat("not '", bad, "'")));
  }
  ::unsetenv(variable);
}

TEST(InstalledLibraries, TheNumberOfAlgorithmsIsOne) {
  const char* const variable = "MENDEL_CUDA_ALGORITHMS";
  ::unsetenv(variable);
  EXPECT_EQ(*OfferedAlgorithms(), kOffered);
  ::setenv(variable, "64", 1);
  EXPECT_EQ(*OfferedAlgorithms(), kMostOffered);
  ::setenv(variable, "all", 1);
  EXPECT_EQ(*OfferedAlgorithms(), kEveryEngine);
  for (const char* bad : {"", "0", "65", "every"}) {
    ::setenv(variable, bad, 1);
    EXPECT_EQ(OfferedAlgorithms().status().code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(OfferedAlgorithms().status().message()),
                HasSubstr(Cat("from 1 to 64, not '", bad, "'")));
  }
  ::unsetenv(variable);
}

TEST(InstalledLibraries, TheSecondsOfCompilationAreANumber) {
  const char* const variable = "MENDEL_CUDA_COMPILE_SECONDS";
  ::unsetenv(variable);
  EXPECT_EQ(*CompileSeconds(), 10);
  ::setenv(variable, "0", 1);
  EXPECT_EQ(*CompileSeconds(), 0);
  ::setenv(variable, "2.5", 1);
  EXPECT_EQ(*CompileSeconds(), 2.5);
  for (const char* bad : {"", "-1", "86401", "nan", "ten"}) {
    ::setenv(variable, bad, 1);
    EXPECT_EQ(CompileSeconds().status().code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(CompileSeconds().status().message()),
                HasSubstr(Cat("from 0 to 86400, not '", bad, "'")));
  }
  ::unsetenv(variable);
}

}  // namespace
}  // namespace mendel::cuda
