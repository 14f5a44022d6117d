// The devices "cuda:sm_75" and so on, for plans that are made without a GPU.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/rewrite.h"
#include "kernels/cuda/backend/installed_libraries.h"
#include "kernels/cuda/backend/kernel_images.h"
#include "kernels/cuda/backend/library_groups.h"
#include "kernels/cuda/backend/program.h"
#include "kernels/cuda/cudnn/convolution.h"
#include "kernels/cuda/cudnn/library.h"
#include "kernels/cuda/cudnn/table.h"
#include "kernels/cuda/nvrtc/compiler.h"
#include "kernels/cuda/nvrtc/module_cache.h"
#include "kernels/cuda/offline/predictor.h"
#include "runtime/offline_device.h"

namespace mendel::cuda::plugin::offline {
namespace {

class OfflineBackend final : public Backend {
 public:
  explicit OfflineBackend(const Predictor& predictor) : predictor_(predictor) {}

  std::string_view name() const override { return "cuda"; }
  absl::Status Probe() const override { return absl::OkStatus(); }
  std::string Identity() const override {
    return Cat("cuda:", Isa(), ":unmeasured, predicted for ", predictor_.gpu().name,
               " by roofline ", kPredictorVersion);
  }
  DeviceRates Rates() const override { return RatesOf(predictor_.gpu()); }
  std::string Isa() const override { return Cat("sm_", predictor_.gpu().compute_capability); }
  absl::Status Supports(Numerics numerics) const override {
    if (OperandRounding(numerics) == 0) return absl::OkStatus();
    return LibrariesSupport(numerics, predictor_.gpu().compute_capability, predictor_.libraries());
  }
  std::vector<std::string> Algorithms(const Graph& graph, int32_t node,
                                      Numerics numerics) const override {
    return LibraryAlgorithms(graph, node, numerics, predictor_.libraries());
  }

  absl::StatusOr<std::unique_ptr<Executable>> Compile(
      const Graph& graph, const CompileOptions& options) const override {
    MENDEL_ASSIGN_OR_RETURN(const Partition partition,
                            predictor_.PartitionFor(graph, options.algorithms, options.numerics));
    MENDEL_RETURN_IF_ERROR(partition.Groups().status());
    const Backend* reference = FindBackend("reference");
    if (reference == nullptr)
      return Unsupported(
          "offline plans need the backend 'reference', which this program does not have");
    return reference->Compile(graph, {.threads = options.threads});
  }

 private:
  const Predictor& predictor_;
};

/// The number of the plan's convolutions for which an installed cuDNN has engines on `gpu`. ""
/// without cuDNN or if no convolution is cuDNN's. Engines that compile nothing at run time need no
/// device.
std::string EnginesReported(const Graph& graph, const CompileOptions& options,
                            const GpuModel& gpu) {
  const auto cudnn = Cudnn::Get();
  const auto workspace = WorkspaceLimit();
  if (!cudnn.ok() || !workspace.ok()) return "";
  const CudnnLibrary library(**cudnn, DevicePropertiesJson(gpu), *workspace, 1);
  const CallLibrary* const libraries[] = {&library};
  const std::vector<bool> constant = ConstantExpressions(graph);
  size_t asked = 0, found = 0;
  std::string missing;
  for (const auto& [node, algorithm] : options.algorithms) {
    if (!algorithm.starts_with(library.name())) continue;
    ++asked;
    std::vector<bool> claimed(constant.size(), false);
    const auto group = FindLibraryGroups(graph, constant, {{node, algorithm}}, options.numerics,
                                         libraries, claimed);
    found += group.ok() ? 1 : 0;
    if (!group.ok() && missing.empty())
      missing = Cat(" (", std::string(group.status().message()), ")");
  }
  if (asked == 0) return "";
  return Cat("; ", library.Identity(), ", has engines for ", found, " of its ", asked,
             " convolutions on ", gpu.name, missing);
}

class OfflineGpu final : public OfflineDevice {
 public:
  explicit OfflineGpu(const GpuModel& gpu) : predictor_(gpu), backend_(predictor_) {}

  const Backend& backend() const override { return backend_; }
  absl::StatusOr<std::vector<double>> Seconds(const Graph& graph,
                                              const CompileOptions& options) const override {
    return predictor_.Seconds(graph, options.algorithms, options.numerics);
  }
  std::string Description() const override {
    return Cat("predicted for ", gpu().name, " (", backend_.Isa(),
               ") by roofline of published figures (", gpu().source,
               ") and assumed shares of them, with cuDNN and cuBLASLt");
  }

  absl::StatusOr<std::string> BuildKernels(const Graph& graph,
                                           const CompileOptions& options) const override {
    MENDEL_ASSIGN_OR_RETURN(const DeviceProgram program,
                            LowerToDevice(graph, {.numerics = options.numerics,
                                                  .algorithms = options.algorithms,
                                                  .libraries = predictor_.libraries()}));
    MENDEL_ASSIGN_OR_RETURN(const std::string compiled, CompileReported(program));
    return Cat(program.texts.size(), " kernels in ", program.launches.size(), " launches", compiled,
               EnginesReported(graph, options, gpu()));
  }

 private:
  const GpuModel& gpu() const { return predictor_.gpu(); }

  absl::StatusOr<std::string> CompileReported(const DeviceProgram& program) const {
    if (program.texts.empty()) return std::string();
    const auto compiler = Compiler::Get();
    if (!compiler.ok()) return Cat(", not compiled: ", std::string(compiler.status().message()));
    if (!(*compiler)->Supports(gpu().compute_capability)) {
      return Cat(", not compiled: NVRTC ", (*compiler)->version(), " does not know ",
                 backend_.Isa());
    }
    const auto cubins = CompileKernels(program, [&](const std::string& text) {
      return CompiledModule(**compiler, text, gpu().compute_capability);
    });
    if (!cubins.ok())
      return InternalError("the plan's kernels do not compile: ",
                           std::string(cubins.status().message()));
    size_t bytes = 0;
    for (const std::vector<char>& cubin : *cubins) bytes += cubin.size();
    return Cat(", compiled by NVRTC ", (*compiler)->version(), " for ", backend_.Isa(), ": ", bytes,
               " bytes");
  }

  const Predictor predictor_;
  const OfflineBackend backend_;
};

std::string NameOf(const GpuModel& gpu) { return Cat("cuda:sm_", gpu.compute_capability); }

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const GpuModel& gpu : AllGpus()) names.push_back(NameOf(gpu));
  return names;
}

std::unique_ptr<OfflineDevice> Make(const std::string& name) {
  for (const GpuModel& gpu : AllGpus()) {
    if (NameOf(gpu) == name) return std::make_unique<OfflineGpu>(gpu);
  }
  return nullptr;
}

MENDEL_REGISTER_OFFLINE_DEVICES(Names(), &Make);

}  // namespace
}  // namespace mendel::cuda::plugin::offline
