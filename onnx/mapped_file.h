// Read-only memory maps of model files and of the external data beneath their folder.
#ifndef MENDEL_ONNX_MAPPED_FILE_H_
#define MENDEL_ONNX_MAPPED_FILE_H_

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace mendel {

/// Bytes that `owner` keeps alive.
struct OwnedBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
  bool mapped = false;  ///< pages of a file, read again when they are needed
};

/// Lets go of the memory behind the whole pages of a part of `bytes`; nothing where these are not
/// mapped.
void ForgetPages(const OwnedBytes& bytes, std::span<const std::byte> part);

/// Maps a regular file. The file must not be truncated while any tensor of it lives.
absl::StatusOr<OwnedBytes> MapFile(const std::string& path);

/// External data of one model. Every file is opened beneath `directory` by the kernel's own rules
/// (openat2 with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS), must be regular and have one link, and
/// is mapped once. Not thread-safe.
class ExternalFiles {
 public:
  /// `directory` empty: the model came without a folder and may have no external data.
  explicit ExternalFiles(std::string directory) : directory_(std::move(directory)) {}

  /// InvalidArgument names `location`, never the folder.
  absl::StatusOr<OwnedBytes> Open(const std::string& location);

 private:
  std::string directory_;
  std::map<std::string, OwnedBytes> open_;
};

}  // namespace mendel

#endif  // MENDEL_ONNX_MAPPED_FILE_H_
