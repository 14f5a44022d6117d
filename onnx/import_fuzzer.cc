// libFuzzer target: no sequence of bytes may crash the importer, or import to a graph that fails its check.

#include <google/protobuf/stubs/logging.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "onnx/import.h"

// Protocol Buffers reports every malformed string on the standard error stream.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto result = mendel::ImportOnnxBytes({reinterpret_cast<const char*>(data), size}, "");
  if (!result.ok()) MENDEL_CHECK(result.status().code() != absl::StatusCode::kInternal);
  return 0;
}
