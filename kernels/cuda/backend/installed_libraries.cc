#include "kernels/cuda/backend/installed_libraries.h"

#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "base/status.h"
#include "kernels/cuda/backend/executable.h"
#include "kernels/cuda/backend/experiments.h"
#include "kernels/cuda/cublaslt/library.h"
#include "kernels/cuda/cublaslt/table.h"
#include "kernels/cuda/cudnn/attention_library.h"
#include "kernels/cuda/cudnn/compiled_engines.h"
#include "kernels/cuda/cudnn/convolution.h"
#include "kernels/cuda/cudnn/library.h"
#include "kernels/cuda/cudnn/table.h"
#include "kernels/cuda/driver_table/driver.h"
#include "kernels/cuda/emit/roofline.h"
#include "kernels/cuda/nvrtc/module_cache.h"
#include "kernels/cuda/tiled/library.h"

namespace mendel::cuda {
namespace {

constexpr char kWorkspaceVariable[] = "MENDEL_CUDA_WORKSPACE_MIB";
constexpr char kAlgorithmsVariable[] = "MENDEL_CUDA_ALGORITHMS";
constexpr char kSecondsVariable[] = "MENDEL_CUDA_COMPILE_SECONDS";
constexpr double kDefaultSeconds = 10, kMostSeconds = 86400;
constexpr int64_t kDefaultMiB = 256, kMostMiB = int64_t{1} << 20;

/// cuDNN's convolutions and attention share their compiled engines.
absl::StatusOr<std::vector<const CallLibrary*>> OpenCudnnLibraries() {
  MENDEL_ASSIGN_OR_RETURN(const Cudnn* cudnn, Cudnn::Get());
  MENDEL_ASSIGN_OR_RETURN(const double seconds, CompileSeconds());
  MENDEL_ASSIGN_OR_RETURN(const int64_t workspace, WorkspaceLimit());
  MENDEL_ASSIGN_OR_RETURN(const size_t offered, OfferedAlgorithms());
  MENDEL_ASSIGN_OR_RETURN(const std::string device, DevicePropertiesOf(*cudnn, 0));
  auto* const compiled = new CompiledEngines(seconds, {.folder = DefaultModuleFolder()});
  return std::vector<const CallLibrary*>{
      new CudnnLibrary(*cudnn, device, workspace, offered, compiled),
      new CudnnAttentionLibrary(*cudnn, device, workspace, *compiled)};
}

absl::StatusOr<const CallLibrary*> OpenCublasLtLibrary() {
  MENDEL_ASSIGN_OR_RETURN(const CublasLt* lt, CublasLt::Get());
  MENDEL_ASSIGN_OR_RETURN(const Driver* driver, Driver::Get());
  MENDEL_ASSIGN_OR_RETURN(const int64_t workspace, WorkspaceLimit());
  MENDEL_ASSIGN_OR_RETURN(const size_t offered, OfferedAlgorithms());
  return new CublasLtLibrary(*lt, *driver, workspace, offered);
}

int ArchitectureOf(const Driver& driver) {
  int major = 0, minor = 0;
  driver.DeviceGetAttribute(&major, kAttributeMajor, 0);
  driver.DeviceGetAttribute(&minor, kAttributeMinor, 0);
  return 10 * major + minor;
}

/// The number that the table of GPUs has for the architecture. It only ranks candidates, so that
/// this GPU's own number may differ.
int MultiprocessorsOf(int architecture) {
  const GpuModel* gpu = GpuOf(architecture);
  return gpu == nullptr ? TiledLibrary::kUsualMultiprocessors : gpu->multiprocessors;
}

}  // namespace

absl::StatusOr<int64_t> WorkspaceLimit() {
  const char* text = std::getenv(kWorkspaceVariable);
  if (text == nullptr) return kDefaultMiB << 20;
  int64_t mib = -1;
  if (!absl::SimpleAtoi(text, &mib) || mib < 0 || mib > kMostMiB) {
    return InvalidInput(kWorkspaceVariable, " must be a number of MiB from 0 to ", kMostMiB,
                        ", not '", text, "'");
  }
  return mib << 20;
}

absl::StatusOr<size_t> OfferedAlgorithms() {
  const char* text = std::getenv(kAlgorithmsVariable);
  if (text == nullptr) return kOffered;
  if (std::string_view(text) == "all") return kEveryEngine;
  int64_t count = -1;
  if (!absl::SimpleAtoi(text, &count) || count < 1 || count > static_cast<int64_t>(kMostOffered)) {
    return InvalidInput(kAlgorithmsVariable, " must be 'all' or a number from 1 to ", kMostOffered,
                        ", not '", text, "'");
  }
  return static_cast<size_t>(count);
}

absl::StatusOr<double> CompileSeconds() {
  const char* text = std::getenv(kSecondsVariable);
  if (text == nullptr) return kDefaultSeconds;
  double seconds = -1;
  if (absl::SimpleAtod(text, &seconds) && seconds >= 0 && seconds <= kMostSeconds) return seconds;
  return InvalidInput(kSecondsVariable, " must be a number of seconds from 0 to ", kMostSeconds,
                      ", not '", text, "'");
}

std::span<const CallLibrary* const> InstalledLibraries() {
  static const auto* libraries = [] {
    auto* found = new std::vector<const CallLibrary*>();
    const auto driver = Driver::Get();
    if (!driver.ok() || !KeepPrimaryContext(**driver).ok()) return found;
    if (const auto cudnn = OpenCudnnLibraries(); cudnn.ok()) *found = *cudnn;
    if (const auto cublaslt = OpenCublasLtLibrary(); cublaslt.ok()) found->push_back(*cublaslt);
    const int architecture = ArchitectureOf(**driver);
    found->push_back(
        new TiledLibrary(MultiprocessorsOf(architecture), architecture, OffersExperiments()));
    return found;
  }();
  return *libraries;
}

}  // namespace mendel::cuda
