// A fake image is what the fake NVRTC makes of a text and the fake driver loads: a library for the
// emulator under a head that names the architecture. For tests.
#ifndef MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_IMAGE_H_
#define MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_IMAGE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/emit/kernel_text.h"

namespace mendel::cuda {

/// The entries of `text`, declared extern "C" __global__, in order; the first one contains the
/// text. An entry NAME that lies in a namespace is in NAME_text.
std::vector<EmittedKernel> FakeKernelsOf(const std::string& text);

struct FakeImage {
  int architecture = 0;
  std::vector<std::string> entries;
  std::vector<char> library;  ///< of EmulatedModule::Build
};

/// InvalidArgument with the host compiler's output when the text does not compile.
absl::StatusOr<std::vector<char>> BuildFakeImage(const std::string& text, int architecture);
/// True if an image that a driver is given begins like a fake image.
bool IsFakeImage(const void* image);
FakeImage ReadFakeImage(const void* image);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_IMAGE_H_
