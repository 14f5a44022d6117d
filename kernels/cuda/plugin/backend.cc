// The backend "cuda": graphs on device 0 as emitted kernels, compiled by NVRTC when a plan is
// loaded, and as calls of the libraries that are there.

#include "runtime/backend.h"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "kernels/cuda/backend/compile.h"
#include "kernels/cuda/backend/experiments.h"
#include "kernels/cuda/backend/form_regions.h"
#include "kernels/cuda/backend/horizontal_fusion.h"
#include "kernels/cuda/backend/installed_libraries.h"
#include "kernels/cuda/backend/library_groups.h"
#include "kernels/cuda/backend/measuring_gpu.h"
#include "kernels/cuda/backend/partition.h"
#include "kernels/cuda/backend/program.h"
#include "kernels/cuda/driver_table/driver.h"
#include "kernels/cuda/driver_table/nvml.h"
#include "kernels/cuda/emit/roofline.h"
#include "kernels/cuda/nvrtc/compiler.h"
#include "kernels/cuda/nvrtc/module_cache.h"
#include "kernels/cuda/nvrtc/target_gpu.h"

namespace mendel::cuda::plugin::backend {
namespace {

/// The driver, the compiler and the device that run texts on this machine.
struct Gpu {
  const Driver* driver = nullptr;
  const Compiler* compiler = nullptr;
  TargetGpu target;
};

absl::StatusOr<Gpu> FindGpu() {
  Gpu gpu;
  MENDEL_ASSIGN_OR_RETURN(gpu.driver, Driver::Get());
  MENDEL_ASSIGN_OR_RETURN(gpu.compiler, Compiler::Get());
  MENDEL_ASSIGN_OR_RETURN(gpu.target, FindTargetGpu(*gpu.driver, *gpu.compiler));
  return gpu;
}

std::string DeviceReported(const Gpu& gpu) { return Cat("sm_", gpu.target.architecture); }

class CudaBackend final : public Backend {
 public:
  std::string_view name() const override { return "cuda"; }

  absl::Status Probe() const override {
    MENDEL_RETURN_IF_ERROR(WorkspaceLimit().status());
    MENDEL_RETURN_IF_ERROR(OfferedAlgorithms().status());
    MENDEL_RETURN_IF_ERROR(CompileSeconds().status());
    MENDEL_RETURN_IF_ERROR(ExperimentsHere().status());
    const absl::Status found = FindGpu().status();
    if (found.ok()) return found;
    // Whatever is missing: what was requested is not supported here.
    return absl::UnimplementedError(Cat(
        std::string(found.message()),
        " - without a GPU, 'mendel optimize MODEL --device cuda:sm_90 --offline -o PLAN' makes an "
        "unmeasured plan for one (sm_75 to sm_120)"));
  }

  DeviceRates Rates() const override {
    const auto gpu = FindGpu();
    const GpuModel* nearest = nullptr;  // of those that are no newer
    for (const GpuModel& model : AllGpus()) {
      const int capability = model.compute_capability;
      if (gpu.ok() && capability <= gpu->target.architecture &&
          (nearest == nullptr || capability > nearest->compute_capability))
        nearest = &model;
    }
    return RatesOf(nearest != nullptr ? *nearest : AllGpus().front());
  }

  std::string Identity() const override {
    const auto gpu = FindGpu();
    if (!gpu.ok()) return "cuda:none";
    std::string identity =
        Cat("cuda:", gpu->target.name, ":sm_", gpu->target.architecture, ":driver ",
            gpu->driver->version, ":nvrtc ", gpu->compiler->version());
    for (const CallLibrary* library : InstalledLibraries())
      identity += Cat(":", library->Identity());
    return identity;
  }
  std::string Isa() const override {
    const auto gpu = FindGpu();
    return gpu.ok() ? DeviceReported(*gpu) : "";
  }

  absl::Status Supports(Numerics numerics) const override {
    if (OperandRounding(numerics) == 0) return absl::OkStatus();
    MENDEL_ASSIGN_OR_RETURN(const Gpu gpu, FindGpu());
    return LibrariesSupport(numerics, gpu.target.architecture, InstalledLibraries());
  }

  std::vector<std::string> Algorithms(const Graph& graph, int32_t node,
                                      Numerics numerics) const override {
    if (!FindGpu().ok()) return {};
    std::vector<std::string> names = LibraryAlgorithms(graph, node, numerics, InstalledLibraries());
    if (OffersExperiments() && horizontal_fusion_.Has(graph, node))
      names.emplace_back(kHorizontalFusion);
    return names;
  }

  std::string AlgorithmKind(std::string_view algorithm) const override {
    return LibraryAlgorithmKind(algorithm, InstalledLibraries());
  }
  std::vector<std::vector<int32_t>> KindRegions(const Graph& graph,
                                                const std::set<int32_t>& nodes) const override {
    return FormRegions(graph, nodes);
  }

  absl::StatusOr<std::unique_ptr<Executable>> Compile(
      const Graph& graph, const CompileOptions& options) const override {
    MENDEL_RETURN_IF_ERROR(Probe());
    MENDEL_ASSIGN_OR_RETURN(const Gpu gpu, FindGpu());
    MENDEL_ASSIGN_OR_RETURN(const Experiments experiments, ExperimentsHere());
    const OrderSetting orders = OrdersOf(experiments);
    MENDEL_RETURN_IF_ERROR(CheckDevice(options.engines, DeviceReported(gpu)));
    return CompileGraph(*gpu.driver, graph,
                        {.order = orders.order,
                         .apart_up_to = orders.apart_up_to,
                         .numerics = options.numerics,
                         .algorithms = options.algorithms,
                         .libraries = InstalledLibraries(),
                         .engines = options.engines},
                        [&gpu](const std::string& text) {
                          return CompiledModule(*gpu.compiler, text, gpu.target.architecture);
                        });
  }

  absl::StatusOr<std::map<int32_t, StoredEngine>> Engines(
      const Graph& graph, const CompileOptions& options) const override {
    MENDEL_ASSIGN_OR_RETURN(const Gpu gpu, FindGpu());
    MENDEL_ASSIGN_OR_RETURN(
        const Partition partition,
        PartitionOf(graph, options.algorithms, options.numerics, InstalledLibraries()));
    return EnginesOf(partition, DeviceReported(gpu));
  }

  const MeasuringDevice* measuring_device() const override {
    const auto driver = Driver::Get();
    if (!driver.ok()) return nullptr;
    static const MeasuringGpu gpu(**driver, Nvml::Get());
    return &gpu;
  }

 private:
  HorizontalFusionOffers horizontal_fusion_;
};

const Backend* Make() {
  static const CudaBackend backend;
  return &backend;
}

MENDEL_REGISTER_BACKEND(&Make);

}  // namespace
}  // namespace mendel::cuda::plugin::backend
