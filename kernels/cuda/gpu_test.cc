// The kernels of the emulator's tests on a real GPU: exit 77 where there is none. usage: cuda_gpu_test [COUNT [FIRST_SEED]]

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "kernels/cuda/convolution_case.h"
#include "kernels/cuda/cublaslt/table.h"
#include "kernels/cuda/cudnn/table.h"
#include "kernels/cuda/device_case.h"
#include "kernels/cuda/gpu_device.h"
#include "kernels/cuda/mending_case.h"
#include "kernels/cuda/product_case.h"
#include "runtime/backend.h"

namespace mendel::cuda {
namespace {

/// The correction as part of a plan, in place; 1 when it is wrong.
int RunPlan(const MendingCase& one) {
  const Backend* backend = FindBackend("cuda");
  if (backend == nullptr) return 1;  // RunOperators tells it
  const DeviceCase plan{one.told, WithComputedMutant(one.graph), SmallInputs(one.graph, one.seed), {}};
  const auto executable = backend->Compile(plan.graph, {});
  const std::string failure = executable.ok() ? FailureOf(**executable, plan) : std::string(executable.status().message());
  if (failure.empty()) return 0;
  std::printf("FAILED: plan of seed %llu: %s\n", static_cast<unsigned long long>(one.seed), failure.c_str());
  return 1;
}

/// Sampled instances of every operator through the backend; the number that is wrong.
int RunOperators() {
  const Backend* backend = FindBackend("cuda");
  const auto sampled = SampleOperators(3);
  if (backend == nullptr || !sampled.ok()) {
    std::printf("FAILED: %s\n", backend == nullptr ? "no backend" : std::string(sampled.status().message()).c_str());
    return 1;
  }
  int wrong = 0;
  for (const DeviceCase& one : sampled->cases) {
    const auto executable = backend->Compile(one.graph, {});
    const std::string failure = executable.ok() ? FailureOf(**executable, one) : std::string(executable.status().message());
    if (failure.empty()) continue;
    std::printf("FAILED: %s: %s\n", one.told.c_str(), failure.c_str());
    ++wrong;
  }
  std::printf("%zu instances of %d operators on the GPU: %d wrong\n", sampled->cases.size(), sampled->operators, wrong);
  return wrong;
}

/// Random programs by every algorithm that the libraries of this machine offer for their nodes; the number of runs that are wrong.
/// `offered`: there is a library that should offer some.
int RunLibraries(const char* what, DeviceCase (*make)(uint64_t seed), uint64_t seeds, bool offered) {
  const Backend* backend = FindBackend("cuda");
  if (backend == nullptr) return 1;  // RunOperators has told it
  int wrong = 0, runs = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const DeviceCase one = make(seed);
    std::map<std::string, std::map<int32_t, std::string>> by_name;
    for (int32_t node = 0; node < static_cast<int32_t>(one.graph.nodes().size()); ++node) {
      for (const std::string& name : backend->Algorithms(one.graph, node, Numerics::kDefault)) by_name[name][node] = name;
    }
    for (const auto& [name, algorithms] : by_name) {
      const auto executable = backend->Compile(one.graph, {.algorithms = algorithms});
      const std::string failure = executable.ok() ? FailureOf(**executable, one) : std::string(executable.status().message());
      ++runs;
      if (failure.empty()) continue;
      std::printf("FAILED: %s: %s: %s\n", name.c_str(), failure.c_str(), one.told.c_str());
      ++wrong;
    }
  }
  std::printf("%llu programs of %s by libraries (%s): %d runs, %d wrong\n", static_cast<unsigned long long>(seeds), what,
              backend->Identity().c_str(), runs, wrong);
  if (offered && runs == 0) std::printf("FAILED: no library offers algorithms of %s\n", what);
  return wrong + (offered && runs == 0 ? 1 : 0);
}

int Main(int count, uint64_t first) {
  const auto device = OpenGpu();
  if (!device.ok()) {
    std::printf("SKIP: %s\n", std::string(device.status().message()).c_str());
    return 77;
  }
  std::printf("%s\n", (*device)->Identity().c_str());
  int wrong = 0;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(count); ++seed) {
    const MendingCase one = RandomCase(seed);
    const auto module = (*device)->Load(one.kernels);
    for (const bool misaligned : {false, true}) {
      const absl::Status status = module.ok() ? RunCase(one, **module, misaligned) : module.status();
      if (status.ok()) continue;
      std::printf("FAILED: seed %llu: %s\n", static_cast<unsigned long long>(seed), std::string(status.message()).c_str());
      ++wrong;
    }
    wrong += RunPlan(one);
  }
  std::printf("%d random corrections from seed %llu on the GPU, alone and in plans: %d runs wrong\n", count,
              static_cast<unsigned long long>(first), wrong);
  wrong += RunOperators();
  wrong += RunLibraries("convolutions", &RandomConvolutions, 100, Cudnn::Get().ok());
  wrong += RunLibraries("matrix products", &RandomProduct, 100, CublasLt::Get().ok());
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace mendel::cuda

int main(int argc, char** argv) {
  return mendel::cuda::Main(argc > 1 ? std::atoi(argv[1]) : 36, argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
}
