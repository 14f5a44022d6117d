#include "kernels/cuda/nvrtc/installation.h"

#include <cstdio>

#include "base/status.h"
#include "kernels/cuda/cublaslt/table.h"
#include "kernels/cuda/cudnn/convolution.h"
#include "kernels/cuda/cudnn/table.h"
#include "kernels/cuda/driver_table/driver.h"
#include "kernels/cuda/driver_table/nvml.h"
#include "kernels/cuda/nvrtc/compiler.h"

namespace mendel::cuda {
namespace {

// The numbers of these attributes are those of cuda.h.
constexpr int kAttributeClockKhz = 13, kAttributeMultiprocessors = 16,
              kAttributeMemoryClockKhz = 36;

std::string Line(const char* name, const absl::StatusOr<std::string>& found, const char* cost) {
  return found.ok() ? Cat(name, " ", *found)
                    : Cat(name, ": ", std::string(found.status().message()), "; ", cost);
}

absl::StatusOr<std::string> NvrtcLine() {
  MENDEL_ASSIGN_OR_RETURN(const Compiler* compiler, Compiler::Get());
  return Cat(compiler->version(), " at ", compiler->path());
}

absl::StatusOr<std::string> CublasLtLine() {
  MENDEL_ASSIGN_OR_RETURN(const CublasLt* lt, CublasLt::Get());
  return Cat(CublasLtVersionText(lt->version), " at ", lt->path);
}

absl::StatusOr<std::string> CudnnLine() {
  MENDEL_ASSIGN_OR_RETURN(const Cudnn* cudnn, Cudnn::Get());
  if (Driver::Get().ok()) MENDEL_RETURN_IF_ERROR(DevicePropertiesOf(*cudnn, 0).status());
  return Cat(cudnn->VersionText(), " at ", cudnn->path);
}

absl::StatusOr<std::string> NvmlLine() {
  MENDEL_ASSIGN_OR_RETURN(const Nvml* nvml, Nvml::Get());
  return Cat("of driver ", nvml->driver_version, " at ", nvml->path);
}

absl::StatusOr<std::string> DriverLine() {
  MENDEL_ASSIGN_OR_RETURN(const Driver* driver, Driver::Get());
  return Cat("for CUDA ", driver->version / 1000, ".", driver->version % 1000 / 10, " at ",
             driver->path);
}

}  // namespace

std::string DescribeDevice(const Driver& driver) {
  char name[128] = "";
  int device = 0;
  if (driver.DeviceGet(&device, 0) != 0 || driver.DeviceGetName(name, sizeof name, device) != 0)
    return "device: not reported";
  const auto attribute = [&](int which) {
    int value = 0;
    return driver.DeviceGetAttribute(&value, which, device) == 0 ? value : 0;
  };
  const auto at_clock = [&](int which) {
    const int khz = attribute(which);
    return khz > 0 ? Cat(" at ", khz / 1000, " MHz") : "";
  };
  std::string line = Cat("device: ", name);
  const int major = attribute(kAttributeMajor), minor = attribute(kAttributeMinor);
  if (major > 0) line += Cat(", sm_", major * 10 + minor);
  if (const int count = attribute(kAttributeMultiprocessors); count > 0) {
    line += Cat(", ", count, " multiprocessors", at_clock(kAttributeClockKhz));
  }
  if (size_t bytes = 0; driver.DeviceTotalMem(&bytes, device) == 0) {
    char text[40];
    std::snprintf(text, sizeof text, ", %.1f GiB", static_cast<double>(bytes) / (1 << 30));
    line += text + at_clock(kAttributeMemoryClockKhz);
  }
  return line;
}

std::vector<std::string> DescribeInstallation() {
  std::vector<std::string> lines = {
      Line("NVRTC", NvrtcLine(), "no kernel can be compiled"),
      Line("cuBLASLt", CublasLtLine(),
           "matrix products run this program's native kernels only, which are far slower"),
      Line("cuDNN", CudnnLine(),
           "convolutions run this program's native kernels only, which are far slower"),
      Line("driver", DriverLine(), "nothing runs on a GPU"),
      Line("NVML", NvmlLine(), "measurements do not report the GPU's clock and power"),
  };
  if (const auto driver = Driver::Get(); driver.ok()) lines.push_back(DescribeDevice(**driver));
  return lines;
}

}  // namespace mendel::cuda
