#include "client/service/model_files.h"

#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "client/service/local_file.h"
#include "onnx/external_locations.h"

namespace mendel {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<v1::Digest> DigestOf(const std::string& path) {
  MENDEL_ASSIGN_OR_RETURN(const LocalFile file, LocalFile::Open(path));
  MENDEL_ASSIGN_OR_RETURN(const int64_t size, file.Size());
  Sha256 hash;
  MENDEL_RETURN_IF_ERROR(file.Hash(size, hash));
  v1::Digest digest;
  digest.set_sha256(hash.HexDigest());
  digest.set_size_bytes(size);
  return digest;
}

/// InvalidArgument where `local` is a link, or lies behind one, that leaves the model's folder.
absl::Status CheckInside(const fs::path& folder, const fs::path& local, const std::string& name) {
  std::error_code error;
  const fs::path root = fs::canonical(folder.empty() ? "." : folder, error);
  const fs::path target = error ? fs::path() : fs::canonical(local, error);
  if (error) return InvalidInput("external data '", name, "': ", error.message());
  const fs::path inside = target.lexically_relative(root);
  if (*inside.begin() != "..") return absl::OkStatus();
  return InvalidInput("external data '", name, "' is a link to '", target.string(),
                      "', outside the model's folder '", root.string(),
                      "'; copy the file into the folder");
}

}  // namespace

absl::StatusOr<LocalModel> FindModelFiles(const std::string& path) {
  MENDEL_ASSIGN_OR_RETURN(const std::vector<std::string> locations, ExternalLocations(path));
  const fs::path main(path);
  std::set<std::string> names = {main.filename().string()};
  for (const std::string& location : locations) {
    const fs::path relative = fs::path(location).lexically_normal();
    if (relative.empty() || relative.is_absolute() || *relative.begin() == "..") {
      return InvalidInput("external data '", location, "' lies outside the model's folder");
    }
    names.insert(relative.generic_string());
  }
  LocalModel model;
  for (const std::string& name : names) {
    const std::string local = (main.parent_path() / name).string();
    if (name != main.filename())
      MENDEL_RETURN_IF_ERROR(CheckInside(main.parent_path(), local, name));
    absl::StatusOr<v1::Digest> digest = DigestOf(local);
    if (!digest.ok() && name != main.filename()) {
      return InvalidInput("external data '", name, "': ", std::string(digest.status().message()));
    }
    MENDEL_RETURN_IF_ERROR(digest.status());
    v1::ModelFile& file = *model.manifest.add_files();
    file.set_path(name);
    *file.mutable_digest() = *digest;
    model.path_of.emplace(digest->sha256(), local);
    model.size_bytes += digest->size_bytes();
  }
  model.manifest.set_main_file(main.filename().string());
  return model;
}

}  // namespace mendel
