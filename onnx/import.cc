#include "onnx/import.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/hash.h"
#include "base/status.h"
#include "onnx/deciding_inputs.h"
#include "onnx/importer.h"
#include "onnx/mapped_file.h"
#include "onnx/model_reader.h"

namespace mendel {
namespace {

constexpr double kMostSeconds = 3;

using TryImport = std::function<absl::StatusOr<ImportResult>(const ImportOptions& options)>;
using Sizes = std::map<std::string, int64_t>;

/// Sizes of open dimensions that many models accept. Batches are 1. The others have a multiple of
/// the strides of detectors and of segmentation, a window of speech, or the size of a classifier's
/// images: all of them, or one alone. Else the last is the width of a line of text.
std::vector<Sizes> UsualSizes(const std::vector<OpenDimension>& open) {
  constexpr int64_t kExtents[] = {320, 512, 224}, kHeights[] = {48, 32, 64};
  Sizes ones;
  std::set<std::string> batches, extents, last;  // a batch is the first dimension of some input
  for (size_t k = 0; k < open.size(); ++k) {
    ones[open[k].name] = 1;
    (open[k].dimension == 0 ? batches : extents).insert(open[k].name);
    if (k + 1 == open.size() || open[k + 1].input != open[k].input) last.insert(open[k].name);
  }
  for (const std::string& name : batches) extents.erase(name);
  if (extents.empty()) extents = batches;
  std::vector<std::set<std::string>> chosen = {extents};
  for (const std::string& name : extents) chosen.push_back({name});
  std::vector<Sizes> all;
  for (const std::set<std::string>& names : chosen) {
    for (const int64_t extent : kExtents) {
      all.push_back(ones);
      for (const std::string& name : names) all.back()[name] = extent;
    }
  }
  for (const int64_t height : kHeights) {
    all.push_back(ones);
    for (const std::string& name : extents)
      all.back()[name] = last.contains(name) ? kExtents[0] : height;
  }
  return all;
}

/// "x:1x3x320x320,y:1x320" of the inputs with open dimensions if the model imports with it; else
/// empty. A failed import is repeated with other sizes, for kMostSeconds.
std::string ProposedShapes(ImportOptions options, const TryImport& import,
                           const std::vector<OpenDimension>& open) {
  const Deadline end = Deadline::After(kMostSeconds);
  absl::StatusOr<ImportResult> tried = absl::NotFoundError("no size was tried");
  for (const Sizes& sizes : UsualSizes(open)) {
    if (tried.ok() || absl::IsCancelled(tried.status()) || end.Passed()) break;
    for (const auto& [name, size] : sizes) options.symbol_sizes[name] = size;
    tried = import(options);
  }
  if (!tried.ok()) return "";
  std::set<std::string> inputs;
  for (const OpenDimension& dimension : open) inputs.insert(dimension.input);
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

/// The error with the dimensions that were taken as 1, which may be its reason.
absl::Status WithOpenDimensions(const absl::Status& status, const ImportOptions& options,
                                const TryImport& import, const std::vector<OpenDimension>& open) {
  if (open.empty()) return status;
  std::string text = Cat(status.message(), "; taken as 1, since the model does not fix them:");
  for (const OpenDimension& dimension : open) {
    text += Cat(&dimension == &open[0] ? "" : ",", " dimension ", dimension.dimension,
                " of input '", dimension.input, "'");
  }
  const std::string proposed = ProposedShapes(options, import, open);
  text += proposed.empty() ? "; give sizes with --shapes"
                           : Cat("; give sizes, e.g. --shapes ", proposed);
  return absl::Status(status.code(), text);
}

/// The folder of `path`, where its external data is.
std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

}  // namespace

struct OnnxModel::Parsed {
  ModelFile file;
  std::string directory;
  std::string hash;

  static absl::StatusOr<std::shared_ptr<const Parsed>> Of(OwnedBytes bytes, std::string directory) {
    auto parsed = std::make_shared<Parsed>();
    parsed->hash = Sha256Hex(bytes.bytes);
    parsed->directory = std::move(directory);
    MENDEL_ASSIGN_OR_RETURN(parsed->file, ReadModel(std::move(bytes)));
    return parsed;
  }
};

absl::StatusOr<OnnxModel> OnnxModel::Read(const std::string& path) {
  MENDEL_ASSIGN_OR_RETURN(OwnedBytes bytes, MapFile(path));
  MENDEL_ASSIGN_OR_RETURN(auto parsed, Parsed::Of(std::move(bytes), FolderOf(path)));
  return OnnxModel(std::move(parsed));
}

absl::StatusOr<OnnxModel> OnnxModel::Parse(std::string_view bytes,
                                           const std::string& external_data_directory) {
  std::shared_ptr<std::byte[]> copy(new std::byte[bytes.size()]);
  if (!bytes.empty()) std::memcpy(copy.get(), bytes.data(), bytes.size());
  const std::span<const std::byte> span(copy.get(), bytes.size());
  MENDEL_ASSIGN_OR_RETURN(
      auto parsed,
      Parsed::Of({span, std::shared_ptr<const void>(copy, copy.get())}, external_data_directory));
  return OnnxModel(std::move(parsed));
}

absl::StatusOr<ImportResult> OnnxModel::Import(const ImportOptions& options) const {
  absl::StatusOr<ImportResult> result = ImportAsGiven(options);
  if (result.ok() || absl::IsCancelled(result.status()) || !options.choose_deciding) return result;
  absl::StatusOr<ImportResult> chosen = ImportChosen(options);
  return chosen.ok() ? chosen : result;
}

/// NotFound unless exactly one integer that the model compares with makes it import.
absl::StatusOr<ImportResult> OnnxModel::ImportChosen(const ImportOptions& options) const {
  constexpr size_t kMostTried = 4;  // each is an import
  const absl::Status none = absl::NotFoundError("no single value decides");
  const auto inputs = deciding_inputs();
  if (inputs.size() != 1 || options.bindings.count(inputs.begin()->first) != 0) return none;
  const std::set<int64_t> values = ComparedIntegers(parsed_->file);
  if (values.size() > kMostTried) return none;
  const auto& [name, type] = *inputs.begin();
  std::optional<ImportResult> chosen;
  for (const int64_t value : values) {
    if (value < LowestInteger(type.dtype) || value > HighestInteger(type.dtype)) continue;
    ImportOptions bound = options;
    bound.bindings.insert_or_assign(name, Tensor::FromInts(type, {{value}}));
    absl::StatusOr<ImportResult> result = ImportAsGiven(bound);
    if (!result.ok()) continue;
    if (chosen.has_value()) return none;
    chosen = *std::move(result);
    chosen->notices.push_back(
        Cat("input '", name, "' is bound to ", value,
            ", which the model compares it with: a branch for other values does not suit the "
            "shapes; --bind ",
            name, "=file.npy sets another"));
  }
  if (!chosen.has_value()) return none;
  return *std::move(chosen);
}

absl::StatusOr<ImportResult> OnnxModel::ImportAsGiven(const ImportOptions& options) const {
  Importer importer(parsed_->file, options, parsed_->directory);
  absl::StatusOr<ImportResult> result = importer.Run();
  if (absl::IsCancelled(result.status())) return result.status();
  if (!result.ok()) {
    const auto import = [this](const ImportOptions& tried) {
      absl::StatusOr<ImportResult> given = Importer(parsed_->file, tried, parsed_->directory).Run();
      return given.ok() || !tried.choose_deciding ? given : ImportChosen(tried);
    };
    return WithOpenDimensions(result.status(), options, import, importer.result().taken_as_one);
  }
  MENDEL_RETURN_IF_ERROR(CheckGraph(result->graph));
  result->model_hash = parsed_->hash;
  return result;
}

std::vector<std::string> OnnxModel::inputs() const {
  const onnx::GraphProto& graph = parsed_->file.model.graph();
  std::set<std::string> stored;
  for (const onnx::TensorProto& tensor : graph.initializer()) stored.insert(tensor.name());
  std::vector<std::string> names;
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (stored.count(input.name()) == 0) names.push_back(input.name());
  }
  return names;
}

std::map<std::string, TensorType> OnnxModel::deciding_inputs() const {
  return DecidingInputs(parsed_->file.model.graph());
}

absl::StatusOr<ImportResult> OnnxModel::ImportDecided(ImportOptions options,
                                                      const std::map<std::string, Tensor>& deciding,
                                                      std::set<std::string>& bound) const {
  bound.clear();
  absl::StatusOr<ImportResult> imported = Import(options);
  if (imported.ok()) return imported;
  std::set<std::string> names;
  for (const auto& [name, type] : deciding_inputs()) {
    const auto value = deciding.find(name);
    if (value == deciding.end()) return imported;
    options.bindings.insert_or_assign(name, value->second);
    names.insert(name);
  }
  if (names.empty()) return imported;
  absl::StatusOr<ImportResult> decided = Import(options);
  if (decided.ok()) bound = std::move(names);
  return decided;
}

const std::string& OnnxModel::hash() const { return parsed_->hash; }

absl::StatusOr<ImportResult> ImportOnnxFile(const std::string& path, const ImportOptions& options) {
  MENDEL_ASSIGN_OR_RETURN(const OnnxModel model, OnnxModel::Read(path));
  return model.Import(options);
}

absl::StatusOr<ImportResult> ImportOnnxBytes(std::string_view bytes,
                                             const std::string& external_data_directory,
                                             const ImportOptions& options) {
  MENDEL_ASSIGN_OR_RETURN(const OnnxModel model, OnnxModel::Parse(bytes, external_data_directory));
  return model.Import(options);
}

}  // namespace mendel
