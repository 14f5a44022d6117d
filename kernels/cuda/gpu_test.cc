// The kernels of the emulator's tests on a real GPU: exit 77 where there is none. usage: cuda_gpu_test [COUNT [FIRST_SEED]]

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "kernels/cuda/cublaslt/product_case.h"
#include "kernels/cuda/device_case.h"
#include "kernels/cuda/gpu_device.h"
#include "kernels/cuda/mending_case.h"
#include "runtime/backend.h"

namespace mendel::cuda {
namespace {

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

/// Random matrix products by every algorithm that libraries offer for them; the number that is wrong.
int RunProducts() {
  const Backend* backend = FindBackend("cuda");
  int wrong = 0;
  std::map<std::string, int> runs;  // by algorithm
  for (uint64_t seed = 1; backend != nullptr && seed <= 60; ++seed) {
    const auto one = RandomProduct(seed);
    if (!one.ok()) return 1;
    for (const std::string& algorithm : backend->Algorithms(one->graph, one->product, Numerics::kStrict)) {
      const auto executable =
          backend->Compile(one->graph, {.numerics = Numerics::kStrict, .algorithms = {{one->product, algorithm}}});
      const DeviceCase as_case{one->told, one->graph, one->inputs, {}};
      const std::string failure = executable.ok() ? FailureOf(**executable, as_case) : std::string(executable.status().message());
      ++runs[algorithm];
      if (failure.empty()) continue;
      std::printf("FAILED: %s, %s: %s\n", algorithm.c_str(), one->told.c_str(), failure.c_str());
      ++wrong;
    }
  }
  if (runs.empty()) std::printf("no library offers matrix products here\n");
  for (const auto& [algorithm, count] : runs) std::printf("%d matrix products by %s\n", count, algorithm.c_str());
  return wrong;
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
  }
  std::printf("%d random corrections from seed %llu on the GPU: %d runs wrong\n", count, static_cast<unsigned long long>(first),
              wrong);
  wrong += RunOperators();
  wrong += RunProducts();
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace mendel::cuda

int main(int argc, char** argv) {
  return mendel::cuda::Main(argc > 1 ? std::atoi(argv[1]) : 36, argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
}
