#include "kernels/cuda/testing/fake/libraries/installation.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "kernels/cuda/testing/fake/fake_cublaslt.h"
#include "kernels/cuda/testing/fake/fake_cudnn.h"
#include "kernels/cuda/testing/fake/fake_driver.h"
#include "kernels/cuda/testing/fake/fake_nvml.h"
#include "kernels/cuda/testing/fake/fake_nvrtc.h"

namespace mendel::cuda {
namespace {

[[noreturn]] void Refuse(const char* variable, const char* text) {
  std::fprintf(stderr, "fake CUDA installation: %s cannot be '%s'\n", variable, text);
  std::abort();
}

std::optional<int64_t> Number(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < 0) Refuse(variable, text);
  return number;
}

/// ENTRY:CALL:ERROR.
void SetFailure(FakeDriver& driver, const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return;
  const std::vector<std::string> words = absl::StrSplit(text, ':');
  int64_t call = 0;
  int error = 0;
  if (words.size() != 3 || !absl::SimpleAtoi(words[1], &call) ||
      !absl::SimpleAtoi(words[2], &error))
    Refuse(variable, text);
  driver.FailAt(call, error, words[0]);
}

std::string UuidOf(const FakeDriver& driver) {
  DeviceUuid uuid;
  driver.table().DeviceGetUuid(&uuid, 0);
  return UuidText(uuid);
}

}  // namespace

const FakeInstallation& FakeInstallation::Get() {
  static const auto* installation = [] {
    auto* driver = new FakeDriver();
    auto* nvrtc = new FakeNvrtc();
    auto* cudnn = new FakeCudnn();
    const auto* cublaslt = new FakeCublasLt();
    const auto* nvml = new FakeNvml(UuidOf(*driver));
    if (const auto version = Number("MENDEL_FAKE_DRIVER_VERSION"))
      driver->SetVersion(static_cast<int>(*version));
    if (const auto architecture = Number("MENDEL_FAKE_ARCHITECTURE"))
      driver->SetArchitecture(static_cast<int>(*architecture));
    if (const auto bytes = Number("MENDEL_FAKE_MEMORY"))
      driver->SetMemory(static_cast<size_t>(*bytes));
    if (const auto version = Number("MENDEL_FAKE_CUDNN_VERSION"))
      cudnn->SetVersion(static_cast<int>(*version));
    if (const auto version = Number("MENDEL_FAKE_NVRTC_VERSION")) {
      nvrtc->SetVersion(static_cast<int>(*version / 100), static_cast<int>(*version % 100));
    }
    SetFailure(*driver, "MENDEL_FAKE_FAILURE");
    return new FakeInstallation{driver->table(), nvrtc->table(), cudnn->table(), cublaslt->table(),
                                nvml->table()};
  }();
  return *installation;
}

}  // namespace mendel::cuda
