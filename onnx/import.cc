#include "onnx/import.h"

#include <cstring>
#include <memory>

#include "base/hash.h"
#include "base/status.h"
#include "onnx/importer.h"
#include "onnx/mapped_file.h"
#include "onnx/model_reader.h"

namespace mendel {
namespace {

absl::StatusOr<ImportResult> Import(OwnedBytes bytes, const std::string& directory,
                                    const ImportOptions& options) {
  std::string hash = Sha256Hex(bytes.bytes);
  MENDEL_ASSIGN_OR_RETURN(const ModelFile file, ReadModel(std::move(bytes)));
  MENDEL_ASSIGN_OR_RETURN(ImportResult result, Importer(file, options, directory).Run());
  MENDEL_RETURN_IF_ERROR(CheckGraph(result.graph));
  result.model_hash = std::move(hash);
  return result;
}

}  // namespace

absl::StatusOr<ImportResult> ImportOnnxFile(const std::string& path, const ImportOptions& options) {
  MENDEL_ASSIGN_OR_RETURN(OwnedBytes bytes, MapFile(path));
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  return Import(std::move(bytes), directory, options);
}

absl::StatusOr<ImportResult> ImportOnnxBytes(std::string_view bytes,
                                             const std::string& external_data_directory,
                                             const ImportOptions& options) {
  std::shared_ptr<std::byte[]> copy(new std::byte[bytes.size()]);
  if (!bytes.empty()) std::memcpy(copy.get(), bytes.data(), bytes.size());
  const std::span<const std::byte> span(copy.get(), bytes.size());
  return Import({span, std::shared_ptr<const void>(copy, copy.get())}, external_data_directory,
                options);
}

}  // namespace mendel
