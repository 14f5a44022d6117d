// The files of a model on this machine, with their digests.
#ifndef MENDEL_CLIENT_SERVICE_MODEL_FILES_H_
#define MENDEL_CLIENT_SERVICE_MODEL_FILES_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "mendel/v1/models.pb.h"

namespace mendel {

struct LocalModel {
  /// Ready to be sent: paths relative to the model's folder, sorted, and digests.
  v1::CreateModelRequest manifest;
  /// The file that contains the bytes of a digest (its sha256).
  std::map<std::string, std::string> path_of;
  int64_t size_bytes = 0;
};

/// Finds the external data of the ONNX file at `path` and hashes all files, as a stream.
/// InvalidArgument names an external file that lies outside the model's folder or is missing.
absl::StatusOr<LocalModel> FindModelFiles(const std::string& path);

}  // namespace mendel

#endif  // MENDEL_CLIENT_SERVICE_MODEL_FILES_H_
