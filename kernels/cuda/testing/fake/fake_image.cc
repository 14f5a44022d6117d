#include "kernels/cuda/testing/fake/fake_image.h"

#include <cstring>
#include <sstream>
#include <utility>

#include "base/status.h"
#include "kernels/cuda/testing/emulator/device.h"

namespace mendel::cuda {
namespace {

/// A line "MAGIC ARCHITECTURE BYTES ENTRIES...", then the library's bytes.
constexpr std::string_view kMagic = "mendel fake image";

}  // namespace

std::vector<EmittedKernel> FakeKernelsOf(const std::string& text) {
  constexpr std::string_view kBegin = "extern \"C\" __global__ void ",
                             kBounds = "__launch_bounds__(";
  std::vector<EmittedKernel> kernels;
  for (size_t at = text.find(kBegin); at != std::string::npos; at = text.find(kBegin, at)) {
    at += kBegin.size();
    if (text.compare(at, kBounds.size(), kBounds) == 0) at = text.find(')', at) + 2;
    const std::string name = text.substr(at, text.find('(', at) - at);
    const std::string name_space = name + "_text";
    const bool is_inside = text.find(Cat("namespace ", name_space, " {")) != std::string::npos;
    kernels.push_back(
        {name, is_inside ? name_space : "", kernels.empty() ? text : "", {}, {}, 0, false});
  }
  return kernels;
}

absl::StatusOr<std::vector<char>> BuildFakeImage(const std::string& text, int architecture) {
  const std::vector<EmittedKernel> kernels = FakeKernelsOf(text);
  // A text without entries is compiled, too.
  MENDEL_ASSIGN_OR_RETURN(const std::vector<char> library,
                          EmulatedModule::Build(kernels, kernels.empty() ? text : ""));
  std::string head = Cat(kMagic, " ", architecture, " ", library.size());
  for (const EmittedKernel& kernel : kernels) head += Cat(" ", kernel.name);
  head += "\n";
  std::vector<char> image(head.begin(), head.end());
  image.insert(image.end(), library.begin(), library.end());
  return image;
}

bool IsFakeImage(const void* image) {
  return std::strncmp(static_cast<const char*>(image), kMagic.data(), kMagic.size()) == 0;
}

FakeImage ReadFakeImage(const void* image) {
  const char* begin = static_cast<const char*>(image);
  const char* end = std::strchr(begin, '\n');
  std::istringstream head(std::string(begin + kMagic.size(), end));
  FakeImage read;
  size_t bytes = 0;
  head >> read.architecture >> bytes;
  for (std::string entry; head >> entry;) read.entries.push_back(std::move(entry));
  read.library.assign(end + 1, end + 1 + bytes);
  return read;
}

}  // namespace mendel::cuda
