// Emitted texts compiled for real architectures, for tests.
#ifndef MENDEL_KERNELS_CUDA_NVRTC_EXPECT_COMPILED_H_
#define MENDEL_KERNELS_CUDA_NVRTC_EXPECT_COMPILED_H_

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/fusion/preamble.h"
#include "kernels/cuda/nvrtc/architectures.h"
#include "kernels/cuda/nvrtc/compiler.h"

namespace mendel::cuda {

/// Null where there is no NVRTC: then the test is skipped, and failed where CUDA is installed.
inline const Compiler* FoundCompiler() {
  const auto compiler = Compiler::Get();
  if (compiler.ok()) return *compiler;
  EXPECT_FALSE(std::filesystem::exists("/usr/local/cuda")) << compiler.status();
  [&] { GTEST_SKIP() << compiler.status(); }();
  return nullptr;
}

/// The module for this architecture, without spilled registers. Returns nullopt if NVRTC does not
/// know the architecture, or after a failure.
inline std::optional<CompiledKernel> CompiledWithoutSpills(const Compiler& compiler,
                                                           const std::string& module,
                                                           const std::string& name,
                                                           int architecture) {
  if (!compiler.Supports(architecture)) return {};
  auto compiled = compiler.Compile(module, name, architecture);
  EXPECT_TRUE(compiled.ok()) << std::string(compiled.status().message()).substr(0, 4000);
  if (!compiled.ok()) return {};
  EXPECT_EQ(compiled->usage.spilled_bytes, 0) << name << " for sm_" << architecture;
  return *std::move(compiled);
}

struct DescribedKernel {
  std::string description, name, text;
  int architecture = 0;  ///< the oldest that has its instructions
};

/// Every second kernel for one of the architectures in turn; every kernel for all of them with
/// MENDEL_CUDA_SEEDS in the environment: no spills, no local memory. The first kernel of a name
/// counts.
inline void ExpectCompiled(const Compiler& compiler, const std::vector<DescribedKernel>& kernels,
                           const std::string& name) {
  struct Module {
    std::string text = PreambleText();
    std::map<std::string, std::string> description;
  };
  const bool all = std::getenv("MENDEL_CUDA_SEEDS") != nullptr;
  std::map<int, Module> modules;
  std::set<std::string> names;
  for (const DescribedKernel& kernel : kernels) {
    if (!names.insert(kernel.name).second) continue;
    std::vector<int> architectures(kCompiledArchitectures.begin(), kCompiledArchitectures.end());
    std::erase_if(architectures,
                  [&](int one) { return one < kernel.architecture || !compiler.Supports(one); });
    for (size_t k = 0; k < architectures.size(); ++k) {
      if (!all && names.size() % (2 * architectures.size()) != 2 * k) continue;
      Module& module = modules[architectures[k]];
      module.text += kernel.text;
      module.description[kernel.name] = kernel.description;
    }
  }
  for (auto& [architecture, module] : modules) {
    const auto compiled = CompiledWithoutSpills(compiler, module.text, name, architecture);
    if (!compiled.has_value()) continue;
    EXPECT_EQ(compiled->entries.size(), module.description.size());
    for (const auto& [entry, usage] : compiled->entries) {
      EXPECT_EQ(usage.spilled_bytes, 0) << module.description[entry] << ", sm_" << architecture
                                        << ", " << usage.registers << " registers";
      EXPECT_EQ(usage.stack_bytes, 0) << module.description[entry] << ", sm_" << architecture;
    }
    std::printf("%zu of %zu kernels for sm_%d: %d registers a thread on average\n",
                module.description.size(), names.size(), architecture,
                compiled->usage.registers / static_cast<int>(module.description.size()));
  }
}

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_NVRTC_EXPECT_COMPILED_H_
