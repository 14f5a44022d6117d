// The fake driver, and executables on it: faults of every call, misuse, memory.

#include "kernels/cuda/backend/executable.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/driver_table/library.h"
#include "kernels/cuda/testing/device_case.h"
#include "kernels/cuda/testing/fake/fake_driver.h"

namespace mendel::cuda {
namespace {

using testing::HasSubstr;

Graph Net() {
  auto graph = ParseGraph(R"(graph "net" {
    %0 = Input() {name = "x", shape = [1, 2, 5, 5]}
    %1 = Constant() {symbol = "w", value = f32[2, 2, 1, 1]{1, -2, 3, 0.5}}
    %2 = Conv(%0, %1) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}
    %3 = Relu(%2)
    %4 = MaxPool(%3) {ceil_mode = 0, dilations = [1, 1], kernel_shape = [2, 2], pads = [0, 0, 0, 0], strides = [2, 2]}
    %5 = ReduceMean(%4) {axes = [2, 3], keepdims = 0}
    %6 = Softmax(%5) {axis = 1}
    return "y" = %6, "w" = %1, "features" = %4
  })");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

Tensor Input() {
  std::vector<double> values;
  for (int k = 0; k < 50; ++k) values.push_back(k % 7 - 3);
  return Tensor::FromDoubles({DType::kF32, {1, 2, 5, 5}}, values);
}

absl::StatusOr<std::vector<Tensor>> CompileAndRun(FakeDriver& driver, const Graph& graph,
                                                  bool timed) {
  MENDEL_ASSIGN_OR_RETURN(DeviceProgram program, LowerToDevice(graph));
  MENDEL_ASSIGN_OR_RETURN(const std::unique_ptr<Executable> executable,
                          MakeExecutable(driver.table(), std::move(program), &TextImage));
  MENDEL_ASSIGN_OR_RETURN(std::vector<Tensor> results,
                          RunOnTensors(*executable, graph, std::vector<Tensor>{Input()}));
  if (!timed) return results;
  const Tensor x = Input();
  std::vector<std::vector<std::byte>> bytes;
  std::vector<std::span<std::byte>> outputs;
  for (const Tensor& result : results) bytes.emplace_back(result.bytes().size());
  for (auto& one : bytes) outputs.emplace_back(one);
  std::vector<double> seconds;
  const std::vector<std::span<const std::byte>> inputs = {x.bytes()};
  MENDEL_RETURN_IF_ERROR(executable->RunTimed(inputs, outputs, seconds));
  if (seconds.size() != executable->steps().size()) return InternalError("a time is missing");
  for (size_t k = 0; k < bytes.size(); ++k) {
    if (!std::equal(bytes[k].begin(), bytes[k].end(), results[k].bytes().begin()))
      return InternalError("the timed run differs");
  }
  return results;
}

void PrepareFor(FakeDriver& driver, const Graph& graph) {
  const auto program = LowerToDevice(graph);
  ASSERT_TRUE(program.ok()) << program.status();
  const absl::Status prepared = driver.Prepare(program->ModuleText());
  ASSERT_TRUE(prepared.ok()) << prepared;
}

TEST(CudaExecutable, EveryCallMayFail) {
  const Graph graph = Net();
  FakeDriver driver;
  PrepareFor(driver, graph);
  driver.FailAt(0);
  const auto expected = Evaluate(graph, std::vector<HostValue>{HostValue::FromTensor(Input())});
  const auto right = CompileAndRun(driver, graph, true);
  ASSERT_TRUE(right.ok()) << right.status();
  for (size_t k = 0; k < right->size(); ++k)
    EXPECT_EQ(Difference((*expected)[k], (*right)[k], 1e-5), "");
  EXPECT_EQ(driver.Leaks(), "");
  const int64_t calls = driver.Calls();
  int destructions = 0;
  for (int64_t call = 1; call <= calls; ++call) {
    for (const int error : {2, 999}) {
      driver.FailAt(call, error);
      const auto result = CompileAndRun(driver, graph, true);
      ASSERT_TRUE(driver.HasFailed()) << call;
      const std::string entry = driver.FailedCall();
      // Giving back cannot fail for the caller.
      const bool gives_back = entry.find("Destroy") != std::string::npos ||
                              entry.find("Free") != std::string::npos || entry == "ModuleUnload" ||
                              entry == "DevicePrimaryCtxRelease";
      destructions += gives_back ? 1 : 0;
      if (entry == "CtxSetCurrent" && result.ok()) continue;  // that of the destructor
      EXPECT_EQ(result.ok(), gives_back) << call << " " << entry;
      if (!result.ok()) {
        EXPECT_THAT(std::string(result.status().message()), HasSubstr("cu" + entry)) << call;
        EXPECT_EQ(result.status().code(),
                  error == 2 ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInternal)
            << entry;
      }
      EXPECT_EQ(driver.Leaks(), "") << call << " " << entry;
    }
  }
  std::printf(
      "%lld calls, each failed once with each of two errors, %d of them while giving back\n",
      static_cast<long long>(calls), destructions);
}

TEST(CudaExecutable, TheContextOutlivesExecutables) {
  const Graph graph = Net();
  FakeDriver driver;
  PrepareFor(driver, graph);
  ASSERT_TRUE(KeepPrimaryContext(driver.table()).ok());
  ASSERT_TRUE(CompileAndRun(driver, graph, false).ok());
  EXPECT_EQ(driver.Leaks(), "1 contexts");
  for (int64_t call = 1; call <= 2; ++call) {
    driver.FailAt(call, 2);
    EXPECT_EQ(KeepPrimaryContext(driver.table()).ok(), false) << call;
    EXPECT_EQ(driver.Leaks(), "1 contexts");
  }
}

TEST(CudaExecutable, RefusesWrongBuffers) {
  const Graph graph = Net();
  FakeDriver driver;
  PrepareFor(driver, graph);
  const auto executable = MakeExecutable(driver.table(), *LowerToDevice(graph), &TextImage);
  ASSERT_TRUE(executable.ok()) << executable.status();
  std::vector<std::byte> x(200), y(8), w(16), features(32), small(20);
  const std::vector<std::span<const std::byte>> in = {x}, small_in = {small}, none;
  const std::vector<std::span<std::byte>> out = {y, w, features}, few = {y};
  EXPECT_TRUE((*executable)->Run(in, out).ok());
  EXPECT_EQ((*executable)->Run(none, out).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ((*executable)->Run(in, few).code(), absl::StatusCode::kInvalidArgument);
  const absl::Status wrong = (*executable)->Run(small_in, out);
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("'x'"));
  EXPECT_GT((*executable)->memory().arena_bytes, 0);
  EXPECT_GT((*executable)->memory().weight_bytes, 0);
}

TEST(CudaExecutable, MemoryIsReused) {
  // No more than two of these values are alive at a time.
  const auto graph = ParseGraph(R"(graph "chain" {
    %0 = Input() {name = "x", shape = [2, 512]}
    %1 = Softmax(%0) {axis = 1}
    %2 = Softmax(%1) {axis = 1}
    %3 = Softmax(%2) {axis = 1}
    %4 = Softmax(%3) {axis = 1}
    return "y" = %4
  })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(LowerToDevice(*graph)->arena_bytes, 2 * 4096);
  EXPECT_EQ(LowerToDevice(*graph, {.reuse_memory = false})->arena_bytes, 5 * 4096);
}

constexpr char kCopy[] =
    R"(extern "C" __global__ void __launch_bounds__(32) copy(const float* p0, float* y) {
  y[threadIdx.x] = p0[threadIdx.x];
}
)";

/// A module with one kernel that copies 32 floats, and memory for both sides.
struct CopyRig {
  FakeDriver driver;
  const Driver& table = driver.table();
  DriverModule* module = nullptr;
  DriverFunction* function = nullptr;
  DriverStream* stream = nullptr;
  uint64_t from = 0, to = 0;

  explicit CopyRig(size_t bytes = 128) {
    EXPECT_EQ(table.ModuleLoadData(&module, kCopy), 0);
    EXPECT_EQ(table.ModuleGetFunction(&function, module, "copy"), 0);
    EXPECT_EQ(table.StreamCreate(&stream, 0), 0);
    EXPECT_EQ(table.MemAlloc(&from, bytes), 0);
    EXPECT_EQ(table.MemAlloc(&to, bytes), 0);
  }
  int Launch(unsigned threads = 32, unsigned shared = 0) {
    void* arguments[] = {&from, &to};
    return table.LaunchKernel(function, 1, 1, 1, threads, 1, 1, shared, stream, arguments, nullptr);
  }
};

TEST(FakeDriver, RefusesLaunchesThatADriverRefuses) {
  CopyRig rig;
  EXPECT_EQ(rig.Launch(), 0);
  EXPECT_NE(rig.Launch(33), 0) << "beyond the kernel's bounds";
  EXPECT_NE(rig.Launch(0), 0);
  EXPECT_EQ(rig.Launch(32, 48 << 10), 0);
  EXPECT_NE(rig.Launch(32, (48 << 10) + 1), 0) << "not requested";
  constexpr int kDynamicSharedBytes = 8;
  EXPECT_NE(rig.table.FuncSetAttribute(rig.function, kDynamicSharedBytes, (227 << 10) + 1), 0);
  EXPECT_NE(rig.table.FuncSetAttribute(rig.function, 99, 1), 0) << "no such attribute";
  EXPECT_EQ(rig.table.FuncSetAttribute(rig.function, kDynamicSharedBytes, 227 << 10), 0);
  EXPECT_EQ(rig.Launch(32, 227 << 10), 0);
  EXPECT_EQ(rig.table.StreamSynchronize(rig.stream), 0);
}

TEST(OpenLibraryFor, TakesWhatTheDriverRuns) {
  namespace fs = std::filesystem;
  Dl_info self;
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&dlclose), &self), 0);
  const fs::path root = fs::path(testing::TempDir()) / "two_toolkits";
  fs::remove_all(root);
  std::vector<std::string> folders;
  for (const char* major : {"13", "12"}) {
    const fs::path folder = root / major;
    fs::create_directories(folder);
    fs::create_symlink(fs::canonical(self.dli_fname), folder / Cat("libmade_up.so.", major));
    folders.push_back(folder.string());
  }
  const std::vector<std::string> names = {"libmade_up.so.13", "libmade_up.so.12"};
  const auto found = [&](int driver, const std::vector<std::string>& where) {
    const auto library = OpenLibraryFor(driver, names, where);
    return library.ok() ? fs::path(library->path).filename().string()
                        : std::string(library.status().message());
  };
  EXPECT_EQ(found(13000, folders), "libmade_up.so.13");
  EXPECT_EQ(found(0, folders), "libmade_up.so.13");
  EXPECT_EQ(found(12080, folders), "libmade_up.so.12");
  EXPECT_EQ(found(12080, {folders[0]}), "libmade_up.so.13") << "the only one there is";
  EXPECT_EQ(found(13000, {folders[1], folders[0]}), "libmade_up.so.12") << "the first folder's";
  EXPECT_THAT(found(12080, {}), HasSubstr("no libmade_up.so.13"));
  fs::remove_all(root);
}

TEST(FakeDriver, AnswersAsADriver) {
  CopyRig rig;
  std::vector<float> x(32, 3.5f), y(32);
  EXPECT_EQ(rig.table.MemcpyHtoD(rig.from, x.data(), 128), 0);
  EXPECT_EQ(rig.Launch(), 0);
  EXPECT_EQ(rig.table.MemcpyDtoH(y.data(), rig.to, 128), 0);
  EXPECT_EQ(y, x);
  EXPECT_NE(rig.table.MemcpyDtoH(y.data(), rig.to, 129), 0) << "beyond the allocation";
  EXPECT_NE(rig.table.MemcpyDtoHAsync(y.data(), rig.to, 128, rig.stream), 0)
      << "memory that is not pinned";
  DriverFunction* absent = nullptr;
  EXPECT_NE(rig.table.ModuleGetFunction(&absent, rig.module, "absent"), 0);
  EXPECT_EQ(rig.table.MemFree(rig.from), 0);
  EXPECT_NE(rig.table.MemFree(rig.from), 0) << "freed twice";
  EXPECT_EQ(rig.Launch(), 700) << "memory that was freed";
  EXPECT_EQ(rig.table.ModuleUnload(rig.module), 0);
  EXPECT_NE(rig.Launch(), 0) << "a module that was unloaded";
  EXPECT_EQ(rig.driver.Leaks(), "1 allocations, 1 streams");
}

TEST(FakeDriver, KernelsFaultsAreTheLaunchs) {
  CopyRig rig(64);
  EXPECT_EQ(rig.Launch(), 700);
  EXPECT_THAT(std::string(rig.table.Check(700, "cuLaunchKernel").message()),
              HasSubstr("out of bounds"));
}

TEST(FakeDriver, ANonBlockingStreamDoesNotWaitForACopy) {
  for (const bool synchronize : {false, true}) {
    CopyRig rig;
    ASSERT_EQ(rig.table.StreamDestroy(rig.stream), 0);
    ASSERT_EQ(rig.table.StreamCreate(&rig.stream, 1), 0);
    std::vector<float> x(32, 3.5f), y(32);
    EXPECT_EQ(rig.table.MemcpyHtoD(rig.from, x.data(), 128), 0);
    const int waited = synchronize ? rig.table.CtxSynchronize() : 0;
    EXPECT_EQ(waited, 0);
    EXPECT_EQ(rig.Launch(), 0);
    EXPECT_EQ(rig.table.MemcpyDtoH(y.data(), rig.to, 128), 0);
    EXPECT_EQ(y == x, synchronize);
  }
}

TEST(FakeDriver, CapturesAndReplays) {
  CopyRig rig;
  std::vector<float> x(32, 1.0f), y(32);
  EXPECT_EQ(rig.table.StreamBeginCapture(rig.stream, 1), 0);
  EXPECT_EQ(rig.Launch(), 0);
  EXPECT_NE(rig.table.MemcpyHtoDAsync(rig.to, x.data(), 128, rig.stream), 0)
      << "memory that is not pinned";
  uint64_t more = 0;
  EXPECT_EQ(rig.table.MemAlloc(&more, 16), 900) << "while it captures";
  EXPECT_EQ(rig.table.StreamSynchronize(rig.stream), 900);
  DriverGraph* graph = nullptr;
  DriverGraphExec* exec = nullptr;
  EXPECT_EQ(rig.table.StreamEndCapture(rig.stream, &graph), 0);
  EXPECT_EQ(rig.table.GraphInstantiate(&exec, graph, 0), 0);
  EXPECT_EQ(rig.table.GraphDestroy(graph), 0);
  for (const float value : {2.0f, 5.0f}) {
    std::fill(x.begin(), x.end(), value);
    EXPECT_EQ(rig.table.MemcpyHtoD(rig.from, x.data(), 128), 0);
    EXPECT_EQ(rig.table.GraphLaunch(exec, rig.stream), 0);
    EXPECT_EQ(rig.table.MemcpyDtoH(y.data(), rig.to, 128), 0);
    EXPECT_EQ(y, x);
  }
  EXPECT_EQ(rig.table.GraphExecDestroy(exec), 0);
  EXPECT_NE(rig.table.GraphLaunch(exec, rig.stream), 0);
}

TEST(FakeDriver, TextThatDoesNotCompileIsReported) {
  FakeDriver driver;
  DriverModule* module = nullptr;
  EXPECT_EQ(
      driver.table().ModuleLoadData(&module, "extern \"C\" __global__ void f() { nonsense; }"),
      200);
}

}  // namespace
}  // namespace mendel::cuda
