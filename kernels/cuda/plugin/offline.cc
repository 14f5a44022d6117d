// The devices "cuda:sm_75" and so on, for plans that are made without a GPU.

#include <set>
#include <utility>

#include "base/status.h"
#include "graph/rewrite.h"
#include "kernels/cuda/backend/kernel_images.h"
#include "kernels/cuda/backend/program.h"
#include "kernels/cuda/fusion/grouping.h"
#include "kernels/cuda/nvrtc/compiler.h"
#include "kernels/cuda/nvrtc/module_cache.h"
#include "kernels/cuda/offline/predictor.h"
#include "runtime/offline_device.h"

namespace mendel::cuda::plugin::offline {
namespace {

class OfflineBackend final : public Backend {
 public:
  explicit OfflineBackend(const GpuModel& gpu) : gpu_(gpu) {}

  std::string_view name() const override { return "cuda"; }
  absl::Status Probe() const override { return absl::OkStatus(); }
  std::string Identity() const override {
    return Cat("cuda:", Isa(), ":unmeasured, predicted for ", gpu_.name, " by roofline ", kPredictorVersion);
  }
  std::string Isa() const override { return Cat("sm_", gpu_.compute_capability); }
  std::vector<std::string> Algorithms(const Graph&, int32_t, Numerics) const override { return {}; }

  absl::StatusOr<std::unique_ptr<Executable>> Compile(const Graph& graph, const CompileOptions& options) const override {
    MENDEL_RETURN_IF_ERROR(GroupsOf(graph, ConstantExpressions(graph)).status());
    const Backend* reference = FindBackend("reference");
    if (reference == nullptr) return Unsupported("offline plans need the backend 'reference', which this program does not have");
    return reference->Compile(graph, options);
  }

 private:
  const GpuModel& gpu_;
};

class OfflineGpu final : public OfflineDevice {
 public:
  explicit OfflineGpu(const GpuModel& gpu) : gpu_(gpu), backend_(gpu) {}

  const Backend& backend() const override { return backend_; }
  std::vector<double> Seconds(const Graph& graph) const override { return PredictSeconds(graph, gpu_); }
  std::string Told() const override {
    return Cat("predicted for ", gpu_.name, " (", backend_.Isa(), ") by roofline of published figures (", gpu_.source, ")");
  }

  absl::StatusOr<std::string> BuildKernels(const Graph& graph) const override {
    MENDEL_ASSIGN_OR_RETURN(const DeviceProgram program, LowerToDevice(graph));
    const std::string told = Cat(program.texts.size(), " kernels in ", program.launches.size(), " launches");
    if (program.texts.empty()) return told;
    const auto compiler = Compiler::Get();
    if (!compiler.ok()) return Cat(told, ", not compiled: ", std::string(compiler.status().message()));
    if (!(*compiler)->Supports(gpu_.compute_capability)) {
      return Cat(told, ", not compiled: NVRTC ", (*compiler)->version(), " does not know ", backend_.Isa());
    }
    const auto cubins =
        CompileKernels(program, [&](const std::string& text) { return CompiledModule(**compiler, text, gpu_.compute_capability); });
    if (!cubins.ok()) return InternalError("the plan's kernels do not compile: ", std::string(cubins.status().message()));
    size_t bytes = 0;
    for (const std::vector<char>& cubin : *cubins) bytes += cubin.size();
    return Cat(told, ", compiled by NVRTC ", (*compiler)->version(), " for ", backend_.Isa(), ": ", bytes, " bytes");
  }

 private:
  const GpuModel& gpu_;
  OfflineBackend backend_;
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
