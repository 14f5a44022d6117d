// The kernels of the emulator's tests on a real GPU, and what the libraries there compute; exit 77 where there is none.
// usage: cuda_gpu_test [COUNT [FIRST_SEED [SECONDS]]]: so many corrections from this seed, and an end after so many seconds.
//
// Ends at the first error that is not a wrong number, since after most of them every call on the context fails, and after 20 wrong
// ones. What an end comes before is told.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "kernels/cuda/convolution_case.h"
#include "kernels/cuda/cublaslt/table.h"
#include "kernels/cuda/cudnn/table.h"
#include "kernels/cuda/device_case.h"
#include "kernels/cuda/gpu_device.h"
#include "kernels/cuda/mending_case.h"
#include "kernels/cuda/product_case.h"
#include "kernels/cuda/tiled/chain_case.h"
#include "runtime/backend.h"

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
