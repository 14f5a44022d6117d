#include "onnx/import.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "onnx/importer.h"
#include "onnx/mapped_file.h"
#include "onnx/model_reader.h"

namespace mendel {
namespace {

/// Sizes of open dimensions that many models accept; the first that imports is proposed.
constexpr std::array<int64_t, 5> kUsualSizes = {224, 320, 640, 128, 512};

/// "x:1x3x224x224,y:1x224" of the inputs with open dimensions, for sizes that import; else empty.
std::string ProposedShapes(const ModelFile& file, ImportOptions options,
                           const std::string& directory, const std::vector<OpenDimension>& open) {
  std::set<std::string> inputs, all, first;  // a batch is the first dimension of some input
  for (const OpenDimension& dimension : open) {
    inputs.insert(dimension.input);
    all.insert(dimension.name);
    if (dimension.dimension == 0) first.insert(dimension.name);
  }
  for (const int64_t size : kUsualSizes) {
    for (const std::string& name : all) {
      if (first.count(name) == 0 || first == all) options.symbol_sizes[name] = size;
    }
    const auto tried = Importer(file, options, directory).Run();
    if (!tried.ok()) continue;
    std::string text;
    for (const int32_t id : tried->graph.inputs()) {
      const std::string& name = InputName(tried->graph.node(id));
      if (inputs.count(name) == 0) continue;
      text += Cat(text.empty() ? "" : ",", name, ":");
      const Shape& shape = tried->graph.type({id, 0}).shape;
      for (size_t d = 0; d < shape.size(); ++d) text += Cat(d == 0 ? "" : "x", shape[d]);
    }
    return text;
  }
  return "";
}

/// The error with the dimensions that were taken as 1, which may be its reason.
absl::Status WithOpenDimensions(const absl::Status& status, const ModelFile& file,
                                const ImportOptions& options, const std::string& directory,
                                const std::vector<OpenDimension>& open) {
  if (open.empty()) return status;
  std::string text = Cat(status.message(), "; taken as 1, since the model does not fix them:");
  for (const OpenDimension& dimension : open) {
    text += Cat(&dimension == &open[0] ? "" : ",", " dimension ", dimension.dimension,
                " of input '", dimension.input, "'");
  }
  const std::string proposed = ProposedShapes(file, options, directory, open);
  text += proposed.empty() ? "; give sizes with --shapes"
                           : Cat("; give sizes, e.g. --shapes ", proposed);
  return absl::Status(status.code(), text);
}

absl::StatusOr<ImportResult> Import(OwnedBytes bytes, const std::string& directory,
                                    const ImportOptions& options) {
  std::string hash = Sha256Hex(bytes.bytes);
  MENDEL_ASSIGN_OR_RETURN(const ModelFile file, ReadModel(std::move(bytes)));
  Importer importer(file, options, directory);
  absl::StatusOr<ImportResult> result = importer.Run();
  if (!result.ok()) {
    return WithOpenDimensions(result.status(), file, options, directory,
                              importer.result().taken_as_one);
  }
  MENDEL_RETURN_IF_ERROR(CheckGraph(result->graph));
  result->model_hash = std::move(hash);
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
