// The kernels of the emulator's tests on a real GPU: exit 77 where there is none. usage: cuda_gpu_test [COUNT [FIRST_SEED]]

#include <cstdio>
#include <cstdlib>

#include "kernels/cuda/gpu_device.h"
#include "kernels/cuda/mending_case.h"

namespace mendel::cuda {
namespace {

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
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace mendel::cuda

int main(int argc, char** argv) {
  return mendel::cuda::Main(argc > 1 ? std::atoi(argv[1]) : 36, argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
}
