// An installation report lists this machine's CUDA libraries, driver and device, for people.
#ifndef MENDEL_KERNELS_CUDA_NVRTC_INSTALLATION_H_
#define MENDEL_KERNELS_CUDA_NVRTC_INSTALLATION_H_

#include <string>
#include <vector>

#include "kernels/cuda/driver_table/driver.h"

namespace mendel::cuda {

/// A line each for NVRTC, cuBLASLt, cuDNN and the driver: version and path, or why there is none
/// and what that costs; then one for the device, where there is one. Opens the libraries, which
/// takes a moment.
std::vector<std::string> DescribeInstallation();

/// "NAME: sm_90, 132 multiprocessors at 1980 MHz, 139.8 GiB at 3201 MHz" of device 0; what the
/// driver does not report is left out.
std::string DescribeDevice(const Driver& driver);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_NVRTC_INSTALLATION_H_
