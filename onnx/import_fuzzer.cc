// libFuzzer target: no sequence of bytes may crash the importer, or import to a graph that fails
// its check.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "onnx/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto result = mendel::ImportOnnxBytes({reinterpret_cast<const char*>(data), size}, "");
  if (!result.ok()) MENDEL_CHECK(result.status().code() != absl::StatusCode::kInternal);
  return 0;
}
