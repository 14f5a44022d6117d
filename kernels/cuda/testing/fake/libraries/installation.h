// The fakes as one CUDA installation: a shared library that exports the entry points of libcuda,
// NVRTC, cuDNN, cuBLASLt and NVML under their own names. Links to it by the names of those
// libraries, in a folder of the build, are found by the ordinary search (LD_LIBRARY_PATH for the
// driver's, MENDEL_CUDA_PATH for the others). For tests.
//
// The environment of the process sets what a test wants of it; a setting that cannot be read ends
// the process:
//   MENDEL_FAKE_DRIVER_VERSION   13000     of the CUDA that the driver supports
//   MENDEL_FAKE_ARCHITECTURE     90        of the device
//   MENDEL_FAKE_MEMORY           1048576   bytes of the device; no limit by default
//   MENDEL_FAKE_CUDNN_VERSION    91900
//   MENDEL_FAKE_NVRTC_VERSION    1399
//   MENDEL_FAKE_FAILURE          MemAlloc:3:2   the third cuMemAlloc fails with error 2
//   (FakeDriver::FailAt)
#ifndef MENDEL_KERNELS_CUDA_TESTING_FAKE_LIBRARIES_INSTALLATION_H_
#define MENDEL_KERNELS_CUDA_TESTING_FAKE_LIBRARIES_INSTALLATION_H_

#include "kernels/cuda/cublaslt/table.h"
#include "kernels/cuda/cudnn/table.h"
#include "kernels/cuda/driver_table/driver.h"
#include "kernels/cuda/driver_table/nvml.h"
#include "kernels/cuda/nvrtc/compiler.h"

namespace mendel::cuda {

/// Tables of the fakes, which live as long as the process.
struct FakeInstallation {
  const Driver& driver;
  const Nvrtc& nvrtc;
  const Cudnn& cudnn;
  const CublasLt& cublaslt;
  const Nvml& nvml;

  /// Made at the first call.
  static const FakeInstallation& Get();
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_FAKE_LIBRARIES_INSTALLATION_H_
