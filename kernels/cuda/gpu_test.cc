// The kernels of the emulator's tests on a real GPU, and what the libraries there compute; exit 77 where there is none.
// usage: cuda_gpu_test [COUNT [FIRST_SEED [SECONDS]]]: so many corrections from this seed, and an end after so many seconds.
//
// Ends at the first error that is not a wrong number, since after most of them every call on the context fails, and after 20 wrong
// ones. What an end comes before is told.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/text.h"
#include "kernels/cuda/convolution_case.h"
#include "kernels/cuda/cublaslt/table.h"
#include "kernels/cuda/cudnn/table.h"
#include "kernels/cuda/device_case.h"
#include "kernels/cuda/driver_table/driver.h"
#include "kernels/cuda/gpu_device.h"
#include "kernels/cuda/mending_case.h"
#include "kernels/cuda/product_case.h"
#include "kernels/cuda/tiled/chain_case.h"
#include "runtime/backend.h"
#include "runtime/measuring_device.h"

namespace mendel::cuda {
namespace {

constexpr int kMostFailures = 20;

/// What has failed so far, and whether to go on.
class Report {
 public:
  explicit Report(int seconds) : end_(std::chrono::steady_clock::now() + std::chrono::seconds(seconds)) {}

  /// "": it was right.
  void Add(const std::string& told, const absl::StatusOr<std::string>& wrong) {
    ++runs_;
    if (wrong.ok() && wrong->empty()) return;
    ++failures_;
    std::printf("FAILED: %s: %s\n", told.c_str(), wrong.ok() ? wrong->c_str() : wrong.status().ToString().c_str());
    if (!wrong.ok()) stop_ = "an error that is not a wrong number";
    if (failures_ >= kMostFailures) stop_ = "too many failures";
  }
  void Fail(const std::string& told) { Add(told, std::string("failed")); }

  bool GoesOn() {
    if (stop_ == nullptr && std::chrono::steady_clock::now() >= end_) stop_ = "the time is over";
    return stop_ == nullptr;
  }
  /// After a part of `all` cases, of which `done` were run.
  void EndPart(const std::string& what, size_t done, size_t all) {
    std::printf("%s: %zu of %zu, %d runs, %d wrong%s%s\n", what.c_str(), done, all, runs_, failures_ - before_,
                done < all ? "; ended early: " : "", done < all && stop_ != nullptr ? stop_ : "");
    runs_ = 0;
    before_ = failures_;
  }
  int runs() const { return runs_; }
  int failures() const { return failures_; }

 private:
  const std::chrono::steady_clock::time_point end_;
  const char* stop_ = nullptr;  // why
  int runs_ = 0, failures_ = 0, before_ = 0;
};

absl::StatusOr<std::string> RunOn(const Backend& backend, const DeviceCase& one, const CompileOptions& options = {}) {
  MENDEL_ASSIGN_OR_RETURN(const auto executable, backend.Compile(one.graph, options));
  return WrongNumber(*executable, one);
}

/// Sampled instances of every operator.
void RunOperators(const Backend& backend, Report& report) {
  const auto sampled = SampleOperators(3);
  if (!sampled.ok()) return report.Fail(std::string(sampled.status().message()));
  size_t done = 0;
  for (; done < sampled->cases.size() && report.GoesOn(); ++done) {
    report.Add(sampled->cases[done].told, RunOn(backend, sampled->cases[done]));
  }
  report.EndPart(Cat("instances of ", sampled->operators, " operators"), done, sampled->cases.size());
}

/// Random programs by every algorithm that `library` offers for their nodes on this machine. `found`: that it is there.
void RunLibrary(const Backend& backend, const std::string& what, std::string_view library,
                DeviceCase (*make)(uint64_t seed, Numerics numerics), Numerics numerics, const absl::Status& found,
                Report& report) {
  constexpr size_t kPrograms = 100;
  if (!found.ok()) return static_cast<void>(std::printf("SKIPPED: %s: %s\n", what.c_str(), std::string(found.message()).c_str()));
  size_t done = 0;
  for (; done < kPrograms && report.GoesOn(); ++done) {
    const DeviceCase one = make(done + 1, numerics);
    std::map<std::string, std::map<int32_t, std::string>> by_name;
    for (int32_t node = 0; node < static_cast<int32_t>(one.graph.nodes().size()); ++node) {
      for (const std::string& name : backend.Algorithms(one.graph, node, numerics)) {
        if (name.rfind(library, 0) == 0) by_name[name][node] = name;
      }
    }
    for (const auto& [name, algorithms] : by_name) {
      if (report.GoesOn())
        report.Add(Cat(name, ": ", one.told), RunOn(backend, one, {.numerics = numerics, .algorithms = algorithms}));
    }
  }
  if (report.GoesOn() && report.runs() == 0) report.Fail(Cat("no library offers algorithms of ", what));
  report.EndPart(what, done, kPrograms);
}

DeviceCase RandomFloatChain(uint64_t seed, Numerics) { return RandomChain(seed, ChainValues::kFloats); }

/// "" when TimeRun's outputs are right, cold and warm, and the times can be.
absl::StatusOr<std::string> WrongTimes(Executable& executable, const DeviceCase& one) {
  MENDEL_ASSIGN_OR_RETURN(const std::vector<HostValue> expected, Evaluate(one.graph, one.inputs));
  const Tensor x = one.inputs[0].ToTensor();
  Tensor y = expected[0].ToTensor();
  std::vector<std::byte> bytes(y.bytes().size());
  const std::vector<std::span<const std::byte>> inputs = {x.bytes()};
  const std::vector<std::span<std::byte>> outputs = {bytes};
  for (const bool cold : {false, true}) {
    std::function<void()> evict;
    if (cold) evict = [] {};
    MENDEL_ASSIGN_OR_RETURN(const double seconds, executable.TimeRun(inputs, outputs, evict));
    std::printf("%s run of %zu launches: %.1f us\n", cold ? "cold" : "warm", executable.steps().size(), seconds * 1e6);
    if (!(seconds > 0 && seconds < 1)) return Cat(seconds, " seconds");
    const std::string wrong = Difference(expected[0], Tensor(y.type(), bytes), 1e-5);
    if (!wrong.empty()) return Cat(cold ? "cold: " : "warm: ", wrong);
  }
  return "";
}

/// "" when runs on two streams with device memory give what the graph means.
absl::StatusOr<std::string> WrongOnStreams(const Driver& driver, Executable& executable, const DeviceCase& one) {
  MENDEL_ASSIGN_OR_RETURN(const std::vector<HostValue> expected, Evaluate(one.graph, one.inputs));
  const Tensor x = one.inputs[0].ToTensor();
  const TensorType type = expected[0].ToTensor().type();
  std::vector<std::byte> bytes(static_cast<size_t>(ByteSize(type)));
  for (const unsigned flags : {0u, 1u}) {
    DriverStream* stream = nullptr;
    uint64_t from = 0, to = 0;
    MENDEL_RETURN_IF_ERROR(driver.Check(driver.StreamCreate(&stream, flags), "cuStreamCreate"));
    MENDEL_RETURN_IF_ERROR(driver.Check(driver.MemAlloc(&from, x.bytes().size()), "cuMemAlloc"));
    MENDEL_RETURN_IF_ERROR(driver.Check(driver.MemAlloc(&to, bytes.size()), "cuMemAlloc"));
    MENDEL_RETURN_IF_ERROR(driver.Check(driver.MemcpyHtoD(from, x.bytes().data(), x.bytes().size()), "cuMemcpyHtoD"));
    MENDEL_RETURN_IF_ERROR(driver.Check(driver.CtxSynchronize(), "cuCtxSynchronize"));
    for (int run = 0; run < 3; ++run) MENDEL_RETURN_IF_ERROR(executable.RunOnDevice({{&from, 1}, {&to, 1}, stream, nullptr}));
    MENDEL_RETURN_IF_ERROR(driver.Check(driver.StreamSynchronize(stream), "cuStreamSynchronize"));
    MENDEL_RETURN_IF_ERROR(driver.Check(driver.MemcpyDtoH(bytes.data(), to, bytes.size()), "cuMemcpyDtoH"));
    driver.MemFree(from);
    driver.MemFree(to);
    driver.StreamDestroy(stream);
    const std::string wrong = Difference(expected[0], Tensor(type, bytes), 1e-5);
    if (!wrong.empty()) return Cat("stream of flags ", flags, ": ", wrong);
  }
  return "";
}

/// What the backend does besides Run: times, the caller's streams, the device's conditions.
void RunStreams(const Backend& backend, Report& report) {
  const auto graph = ParseGraph(R"(graph "chain" {
    %0 = Input() {name = "x", shape = [64, 1000]}
    %1 = Softmax(%0) {axis = 1}
    %2 = Softmax(%1) {axis = 1}
    %3 = Softmax(%2) {axis = 0}
    return "y" = %3
  })");
  if (!graph.ok()) return report.Fail(std::string(graph.status().message()));
  Rng rng(1);
  std::vector<double> values(64000);
  for (double& value : values) value = rng.Normal();
  const DeviceCase one{"chain", *graph, {HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, {64, 1000}}, values))}, {}};
  const auto driver = Driver::Get();
  const auto executable = backend.Compile(one.graph, {});
  if (!driver.ok() || !executable.ok()) return report.Fail("no executable");
  report.Add("times", WrongTimes(**executable, one));
  if (report.GoesOn()) report.Add("streams", WrongOnStreams(**driver, **executable, one));
  if (report.GoesOn()) report.Add("a run of the host afterwards", WrongNumber(**executable, one));
  const auto conditions = backend.measuring_device()->Conditions();
  std::printf("conditions: %s\n",
              conditions.ok() ? ConditionsText(*conditions).c_str() : std::string(conditions.status().message()).c_str());
  report.EndPart("times and streams", static_cast<size_t>(report.runs()), 3);
}

/// Wrong elements are Aborted (mending_case.h).
absl::StatusOr<std::string> RunAlone(const MendingCase& one, const Device& device, bool misaligned) {
  MENDEL_ASSIGN_OR_RETURN(const auto module, device.Load(one.kernels));
  const absl::Status status = RunCase(one, *module, misaligned);
  if (absl::IsAborted(status)) return std::string(status.message());
  MENDEL_RETURN_IF_ERROR(status);
  return "";
}

/// Random corrections: their kernels alone, and as part of plans, in place.
void RunCorrections(const Backend& backend, const Device& device, size_t count, uint64_t first, Report& report) {
  size_t done = 0;
  for (; done < count && report.GoesOn(); ++done) {
    const MendingCase one = RandomCase(first + done);
    for (const bool misaligned : {false, true}) {
      if (report.GoesOn()) report.Add(one.told, RunAlone(one, device, misaligned));
    }
    const DeviceCase plan{one.told, WithComputedMutant(one.graph), SmallInputs(one.graph, one.seed), {}};
    if (report.GoesOn()) report.Add(Cat("plan of ", plan.told), RunOn(backend, plan));
  }
  report.EndPart(Cat("random corrections from seed ", first, ", alone and in plans"), done, count);
}

int Main(size_t count, uint64_t first, int seconds) {
  const auto device = OpenGpu();
  if (!device.ok()) {
    std::printf("SKIP: %s\n", std::string(device.status().message()).c_str());
    return 77;
  }
  std::printf("%s\n", (*device)->Identity().c_str());
  const Backend* backend = FindBackend("cuda");
  if (backend == nullptr) {
    std::printf("FAILED: no backend\n");
    return 1;
  }
  std::printf("%s\n", backend->Identity().c_str());
  Report report(seconds);
  RunStreams(*backend, report);
  RunOperators(*backend, report);
  for (const Numerics numerics : kAllNumerics) {
    if (numerics == Numerics::kStrict || !backend->Supports(numerics).ok()) continue;
    const std::string name(NumericsName(numerics));
    RunLibrary(*backend, "convolutions by cuDNN, " + name, "cudnn", &RandomConvolutions, numerics, Cudnn::Get().status(), report);
    RunLibrary(*backend, "matrix products by cuBLASLt, " + name, "cublaslt", &RandomProduct, numerics, CublasLt::Get().status(),
               report);
  }
  const Numerics exact = Numerics::kDefault;
  RunLibrary(*backend, "convolutions by tiled kernels", "tile", &RandomConvolutions, exact, absl::OkStatus(), report);
  RunLibrary(*backend, "matrix products by tiled kernels", "tile", &RandomProduct, exact, absl::OkStatus(), report);
  RunLibrary(*backend, "chains by tiled kernels", "tile", &RandomFloatChain, exact, absl::OkStatus(), report);
  RunCorrections(*backend, **device, count, first, report);
  return report.failures() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace mendel::cuda

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what was told is there when a kernel never ends
  const auto number = [&](int k, uint64_t otherwise) { return argc > k ? std::strtoull(argv[k], nullptr, 10) : otherwise; };
  return mendel::cuda::Main(number(1, 36), number(2, 1), static_cast<int>(number(3, 300)));
}
