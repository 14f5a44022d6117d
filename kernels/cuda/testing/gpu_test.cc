// The kernels of the emulator's tests on a real GPU, and what the libraries there compute; exit 77
// where there is none. usage: cuda_gpu_test [COUNT [FIRST_SEED [SECONDS [PART]]]]: COUNT
// corrections from this seed, and an end after SECONDS; PART: streams, operators,
// libraries, compiled, tiled, tensor_cores or corrections alone.
//
// Errors that are not wrong numbers, crashes and kernels that never end cost the case that had them
// (guarded_cases.h); the test ends after 20 failures. What an end comes before is reported.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/cuda/cublaslt/table.h"
#include "kernels/cuda/cudnn/table.h"
#include "kernels/cuda/gpu_device.h"
#include "kernels/cuda/gpu_streams.h"
#include "kernels/cuda/testing/convolution_case.h"
#include "kernels/cuda/testing/correction_case.h"
#include "kernels/cuda/testing/device_case.h"
#include "kernels/cuda/testing/guarded_cases.h"
#include "kernels/cuda/testing/product_case.h"
#include "kernels/cuda/tiled/chain_case.h"
#include "kernels/cuda/tiled/product_chain_case.h"
#include "kernels/cuda/tiled/tensor_cores.h"
#include "runtime/backend.h"

namespace mendel::cuda {
namespace {

constexpr int kSkip = 77;

absl::StatusOr<std::string> RunOn(const Backend& backend, const DeviceCase& one,
                                  const CompileOptions& options = {}) {
  MENDEL_ASSIGN_OR_RETURN(const auto executable, backend.Compile(one.graph, options));
  return WrongNumber(*executable, one);
}

/// The answer of WrongNumber for the algorithms `chosen`; where numbers are wrong, also which
/// node's algorithm makes them so without the others, and its step.
absl::StatusOr<std::string> RunChosen(const Backend& backend, const DeviceCase& one,
                                      const std::vector<HostValue>& expected, Numerics numerics,
                                      const std::map<int32_t, std::string>& chosen) {
  const CompileOptions options{.numerics = numerics, .algorithms = chosen};
  MENDEL_ASSIGN_OR_RETURN(const auto chosen_by_all, backend.Compile(one.graph, options));
  MENDEL_ASSIGN_OR_RETURN(std::string wrong, WrongNumber(*chosen_by_all, one, expected));
  if (wrong.empty()) return wrong;
  for (const auto& [node, name] : chosen) {
    const CompileOptions alone{.numerics = numerics, .algorithms = {{node, name}}};
    MENDEL_ASSIGN_OR_RETURN(const auto executable, backend.Compile(one.graph, alone));
    MENDEL_ASSIGN_OR_RETURN(const std::string found, WrongNumber(*executable, one, expected));
    wrong += Cat("\nnode %", node, " alone: ", found.empty() ? "right" : found);
    for (const Step& step : executable->steps()) {
      if (std::find(step.nodes.begin(), step.nodes.end(), node) != step.nodes.end())
        wrong += Cat("; step ", step.name, " ", step.kernel);
    }
  }
  return wrong;
}

/// All patterns of half precision, and sampled instances of every operator.
void RunOperators(const Backend& backend, GuardedCases& report) {
  const auto halves = HalfPrecisionCases();
  if (!halves.ok()) return report.GiveUp(std::string(halves.status().message()));
  size_t done = 0;
  for (; done < halves->size() && report.GoesOn(); ++done)
    report.Case((*halves)[done].description, [&] { return RunOn(backend, (*halves)[done]); });
  report.EndPart("casts of all patterns of f16 and bf16", done, halves->size());
  const auto sampled = SampleOperators(3);
  if (!sampled.ok()) return report.GiveUp(std::string(sampled.status().message()));
  for (done = 0; done < sampled->cases.size() && report.GoesOn(); ++done) {
    report.Case(sampled->cases[done].description,
                [&] { return RunOn(backend, sampled->cases[done]); });
  }
  report.EndPart(Cat("instances of ", sampled->operators, " operators"), done,
                 sampled->cases.size());
}

/// Random programs by every algorithm that `library` offers for their nodes on this machine.
/// `library`: a part of their names. `found`: that it is there.
void RunLibrary(const Backend& backend, const std::string& what, std::string_view library,
                DeviceCase (*make)(uint64_t seed, Numerics numerics), Numerics numerics,
                const absl::Status& found, GuardedCases& report, size_t programs = 100) {
  if (!found.ok())
    return static_cast<void>(
        std::printf("SKIPPED: %s: %s\n", what.c_str(), std::string(found.message()).c_str()));
  size_t done = 0;
  for (; done < programs && report.GoesOn(); ++done) {
    const DeviceCase one = make(done + 1, numerics);
    const auto expected = Evaluate(one.graph, one.inputs);
    if (!expected.ok()) return report.GiveUp(std::string(expected.status().message()));
    std::map<std::string, std::map<int32_t, std::string>> by_name;
    for (int32_t node = 0; node < static_cast<int32_t>(one.graph.nodes().size()); ++node) {
      for (const std::string& name : backend.Algorithms(one.graph, node, numerics)) {
        if (name.find(library) != std::string::npos) by_name[name][node] = name;
      }
    }
    for (const auto& [name, algorithms] : by_name) {
      if (report.GoesOn())
        report.Case(Cat(name, ": ", one.description), [&, &chosen = algorithms] {
          return RunChosen(backend, one, *expected, numerics, chosen);
        });
    }
  }
  if (report.GoesOn() && report.runs() == 0)
    report.Case(what, []() -> absl::StatusOr<std::string> { return "no library offers any"; });
  report.EndPart(what, done, programs);
}

DeviceCase RandomFloatChain(uint64_t seed, Numerics numerics) {
  DeviceCase one = RandomChain(seed, ChainValues::kFloats);
  one.numerics = numerics;
  return one;
}

DeviceCase RandomFloatProducts(uint64_t seed, Numerics) {
  return seed % 2 == 0 ? RandomMatrixChain(seed, ChainValues::kFloats)
                       : RandomConvolutionChain(seed, ChainValues::kFloats);
}

/// Engines that cuDNN compiles at run time: of attention, and of epilogues of convolutions.
void RunCompiled(const Backend& backend, GuardedCases& report) {
  constexpr size_t kAttentions = 25, kEpilogues = 100;  // a few of these have one
  const absl::Status found = Cudnn::Get().status();
  for (const Numerics numerics : {Numerics::kDefault, Numerics::kF16, Numerics::kBf16}) {
    if (!backend.Supports(numerics).ok()) continue;
    const std::string name(NumericsName(numerics));
    RunLibrary(backend, Cat("attention by cuDNN, ", name), "attention", &RandomAttention, numerics,
               found, report, kAttentions);
    RunLibrary(backend, Cat("fused epilogues by cuDNN, ", name), "fused", &RandomConvolutions,
               numerics, found, report, kEpilogues);
  }
}

constexpr size_t kTiledPrograms = 25;  // of a kind: each compiles many kernels

void RunTiles(const Backend& backend, const std::string& how, const std::string& names,
              Numerics numerics, GuardedCases& report) {
  const absl::Status there = absl::OkStatus();
  RunLibrary(backend, Cat("layers of networks by tiled kernels", how), names, &LayerConvolution,
             numerics, there, report, LayerConvolutions());
  RunLibrary(backend, Cat("convolutions by tiled kernels", how), names, &RandomConvolutions,
             numerics, there, report, kTiledPrograms);
  RunLibrary(backend, Cat("matrix products by tiled kernels", how), names, &RandomProduct, numerics,
             there, report, kTiledPrograms);
  RunLibrary(backend, Cat("chains by tiled kernels", how), names, &RandomFloatChain, numerics,
             there, report, kTiledPrograms);
}

/// Tiled kernels without tensor cores.
void RunTiled(const Backend& backend, GuardedCases& report) {
  RunTiles(backend, "", "tile:", Numerics::kDefault, report);
  RunLibrary(backend, "chains of two products", "tile:", &RandomFloatProducts, Numerics::kDefault,
             absl::OkStatus(), report, kTiledPrograms);
}

/// Tiled kernels by the tensor cores of each class that the GPU has.
void RunTensorCores(const Backend& backend, GuardedCases& report) {
  for (const TensorCores& cores : AllTensorCores()) {
    if (!backend.Supports(cores.numerics).ok()) continue;
    const std::string name(NumericsName(cores.numerics));
    RunTiles(backend, Cat(", tensor cores of ", name), Cat("tile-", name, ":"), cores.numerics,
             report);
  }
}

/// Wrong elements are Aborted (correction_case.h).
absl::StatusOr<std::string> RunAlone(const CorrectionCase& one, const Device& device,
                                     bool misaligned) {
  MENDEL_ASSIGN_OR_RETURN(const auto module, device.Load(one.kernels));
  const absl::Status status = RunCase(one, *module, misaligned);
  if (absl::IsAborted(status)) return std::string(status.message());
  MENDEL_RETURN_IF_ERROR(status);
  return "";
}

/// Random corrections: their kernels alone, and as part of plans, in place.
void RunCorrections(const Backend& backend, const Device& device, size_t count, uint64_t first,
                    GuardedCases& report) {
  size_t done = 0;
  for (; done < count && report.GoesOn(); ++done) {
    const CorrectionCase one = RandomCase(first + done);
    for (const bool misaligned : {false, true}) {
      if (report.GoesOn())
        report.Case(one.description, [&] { return RunAlone(one, device, misaligned); });
    }
    const CorrectionCase divided =
        WithDividedSums(one, static_cast<int>(2 + one.seed % 7), "divided_");
    if (report.GoesOn())
      report.Case(divided.description, [&] { return RunAlone(divided, device, false); });
    const DeviceCase plan{
        one.description, WithComputedMutant(one.graph), SmallInputs(one.graph, one.seed), {}};
    if (report.GoesOn())
      report.Case(Cat("plan of ", plan.description), [&] { return RunOn(backend, plan); });
  }
  report.EndPart(Cat("random corrections from seed ", first, ", alone and in plans"), done, count);
}

/// 77 where there is no GPU; reports which there is.
int Probe() {
  const auto device = OpenGpu();
  if (!device.ok()) {
    std::printf("SKIP: %s\n", std::string(device.status().message()).c_str());
    return kSkip;
  }
  std::printf("%s\n%s\n", (*device)->Identity().c_str(), FindBackend("cuda")->Identity().c_str());
  return 0;
}

struct Options {
  size_t count = 36;  ///< random corrections
  uint64_t first = 1;
  double seconds = 300;
  std::string part;  ///< "": all

  bool Wants(const char* name) const { return part.empty() || part == name; }
};

/// All cases, in a process of their own.
void RunAll(const Options& options, GuardedCases& report) {
  const auto device = OpenGpu();
  if (!device.ok()) return report.GiveUp(std::string(device.status().message()));
  const Backend& backend = *FindBackend("cuda");
  if (options.Wants("streams")) {
    std::vector<std::pair<std::string, std::function<absl::StatusOr<std::string>()>>> cases = {
        {"times", [&] { return WrongTimes(backend); }},
        {"streams", [&] { return WrongOnStreams(backend); }},
        {"replays", [&] { return WrongReplays(backend); }}};
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      cases.emplace_back(Cat("branches of seed ", seed),
                         [&, seed] { return WrongBranches(backend, seed); });
    }
    size_t done = 0;
    for (; done < cases.size() && report.GoesOn(); ++done)
      report.Case(cases[done].first, cases[done].second);
    report.EndPart("times, streams, replays and branches", done, cases.size());
  }
  if (options.Wants("operators")) RunOperators(backend, report);
  if (options.Wants("libraries")) {
    for (const Numerics numerics : kAllNumerics) {
      if (numerics == Numerics::kStrict || !backend.Supports(numerics).ok()) continue;
      const std::string name(NumericsName(numerics));
      RunLibrary(backend, Cat("layers of networks by cuDNN, ", name), "cudnn", &LayerConvolution,
                 numerics, Cudnn::Get().status(), report, 2 * LayerConvolutions());
      RunLibrary(backend, Cat("convolutions by cuDNN, ", name), "cudnn", &RandomConvolutions,
                 numerics, Cudnn::Get().status(), report);
      RunLibrary(backend, Cat("matrix products by cuBLASLt, ", name), "cublaslt", &RandomProduct,
                 numerics, CublasLt::Get().status(), report);
    }
  }
  if (options.Wants("compiled")) RunCompiled(backend, report);
  if (options.Wants("tensor_cores")) RunTensorCores(backend, report);
  if (options.Wants("tiled")) RunTiled(backend, report);
  if (options.Wants("corrections"))
    RunCorrections(backend, **device, options.count, options.first, report);
}

/// This process never touches the GPU.
int Main(const Options& options) {
  const auto probed = ExitCodeInChild(&Probe);
  if (probed.ok() && *probed != 0) return *probed;
  GuardedCases report({.seconds = options.seconds});
  const auto failures = probed.ok() ? report.Run([&] { RunAll(options, report); }) : probed;
  if (!failures.ok()) std::printf("FAILED: %s\n", std::string(failures.status().message()).c_str());
  return failures.ok() && *failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace mendel::cuda

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what was reported is there when a kernel never ends
  mendel::cuda::Options options;
  if (argc > 1) options.count = std::strtoull(argv[1], nullptr, 10);
  if (argc > 2) options.first = std::strtoull(argv[2], nullptr, 10);
  if (argc > 3) options.seconds = std::atof(argv[3]);
  if (argc > 4) options.part = argv[4];
  // The programs of this part have more engines to compile than the default allows.
  if (options.Wants("compiled")) setenv("MENDEL_CUDA_COMPILE_SECONDS", "86400", 0);
  const std::set<std::string> parts = {"",         "streams", "operators",    "libraries",
                                       "compiled", "tiled",   "tensor_cores", "corrections"};
  if (argc > 5 || !parts.contains(options.part)) {
    std::fprintf(stderr,
                 "usage: cuda_gpu_test [COUNT [FIRST_SEED [SECONDS "
                 "[streams|operators|libraries|compiled|tiled|tensor_cores|corrections]]]]\n");
    return 2;
  }
  return mendel::cuda::Main(options);
}
