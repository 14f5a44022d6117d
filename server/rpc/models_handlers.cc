// Models: manifests over blobs.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "server/rpc/errors.h"
#include "server/rpc/filter_records.h"
#include "server/rpc/handlers.h"
#include "server/rpc/names.h"
#include "server/store/blob_store.h"
#include "server/store/project_name.h"

namespace mendel::server::handlers {
namespace {

absl::Status CheckDigest(const std::string& field, const v1::Digest& digest, int64_t max_bytes) {
  if (!IsSha256(digest.sha256()))
    return FieldError(field + ".sha256", "is not 64 lower-case hexadecimal digits");
  if (digest.size_bytes() < 0 || digest.size_bytes() > max_bytes) {
    return FieldError(field + ".size_bytes", Cat("is not within 0 and ", max_bytes));
  }
  return absl::OkStatus();
}

/// Sorted by path, so that a file that is also another's folder stands before it.
absl::Status CheckPathsDiffer(const std::vector<v1::ModelFile>& files) {
  std::map<std::string, bool> paths;
  for (const v1::ModelFile& file : files) {
    if (!paths.emplace(file.path(), true).second)
      return FieldError("files", Cat("path '", Quoted(file.path()), "' twice"));
  }
  for (const v1::ModelFile& file : files) {
    for (size_t slash = file.path().find('/'); slash != std::string::npos;
         slash = file.path().find('/', slash + 1)) {
      if (paths.count(file.path().substr(0, slash)) != 0) {
        return FieldError("files", Cat("'", Quoted(file.path().substr(0, slash)),
                                       "' is both a file and a folder"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckManifest(const ServerOptions& options, const v1::CreateModelRequest& request) {
  if (request.files().empty()) return FieldError("files", "a model has at least one file");
  if (request.files_size() > options.max_model_files)
    return FieldError("files", Cat("more than ", options.max_model_files, " files"));
  int64_t total = 0;
  for (int i = 0; i < request.files_size(); ++i) {
    const v1::ModelFile& file = request.files(i);
    const std::string field = Cat("files[", i, "]");
    MENDEL_RETURN_IF_ERROR(CheckModelPath(field + ".path", file.path(), options.max_path_bytes));
    MENDEL_RETURN_IF_ERROR(CheckDigest(field + ".digest", file.digest(), options.max_blob_bytes));
    total += file.digest().size_bytes();
    if (total > options.max_model_bytes)
      return FieldError("files", Cat("more than ", options.max_model_bytes, " bytes"));
  }
  return absl::OkStatus();
}

/// Files in order, name and size.
v1::Model ModelOf(const std::string& project, const v1::CreateModelRequest& request) {
  v1::Model model;
  std::vector<v1::ModelFile> files(request.files().begin(), request.files().end());
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.path() < b.path(); });
  model.set_main_file(request.main_file().empty() && files.size() == 1 ? files.front().path()
                                                                       : request.main_file());
  std::string manifest = Cat("mendel.model/1\n", model.main_file(), "\n");
  int64_t size = 0;
  for (const v1::ModelFile& file : files) {
    manifest +=
        Cat(file.digest().sha256(), " ", file.digest().size_bytes(), " ", file.path(), "\n");
    size += file.digest().size_bytes();
    *model.add_files() = file;
  }
  model.set_size_bytes(size);
  model.set_name(JoinName(project, Cat("models/", Sha256Hex(std::string_view(manifest)))));
  return model;
}

}  // namespace

absl::Status FindMissingBlobs(Environment& env, const Caller& caller,
                              const v1::FindMissingBlobsRequest& request,
                              v1::FindMissingBlobsResponse& response) {
  if (request.digests_size() > env.options.max_digests) {
    return FieldError("digests", Cat("more than ", env.options.max_digests, " digests"));
  }
  for (int i = 0; i < request.digests_size(); ++i) {
    MENDEL_RETURN_IF_ERROR(
        CheckDigest(Cat("digests[", i, "]"), request.digests(i), env.options.max_blob_bytes));
  }
  for (const v1::Digest& digest : request.digests()) {
    const BlobId blob{digest.sha256(), digest.size_bytes(), caller.project};
    // Touched before it is looked up: between the two, garbage collection cannot take it.
    env.blobs.Touch(blob);
    if (!env.blobs.Contains(blob)) *response.add_missing() = digest;
  }
  return absl::OkStatus();
}

absl::Status CreateModel(Environment& env, const Caller& caller,
                         const v1::CreateModelRequest& request, v1::Model& response) {
  MENDEL_RETURN_IF_ERROR(CheckManifest(env.options, request));
  const v1::Model model = ModelOf(caller.project, request);
  const std::vector<v1::ModelFile> files(model.files().begin(), model.files().end());
  MENDEL_RETURN_IF_ERROR(CheckPathsDiffer(files));
  const bool has_main = std::any_of(files.begin(), files.end(), [&](const auto& file) {
    return file.path() == model.main_file();
  });
  if (!has_main) return FieldError("main_file", "is not the path of one of the files");
  std::vector<std::string> missing;
  for (const v1::ModelFile& file : files) {
    const BlobId blob{file.digest().sha256(), file.digest().size_bytes(), caller.project};
    env.blobs.Touch(blob);
    if (!env.blobs.Contains(blob)) missing.push_back(BlobName(blob));
  }
  if (!missing.empty())
    return PreconditionError(Cat(missing.size(), " files have not been uploaded"), "MISSING_BLOB",
                             missing);
  MENDEL_ASSIGN_OR_RETURN(response, env.jobs.PutModel(model));
  env.log.Log(LogLevel::kInfo, "model created",
              {{"model", response.name()},
               {"client", caller.name},
               {"files", int64_t{response.files_size()}},
               {"bytes", response.size_bytes()}});
  return absl::OkStatus();
}

absl::Status GetModel(Environment& env, const Caller&, const v1::GetModelRequest& request,
                      v1::Model& response) {
  MENDEL_RETURN_IF_ERROR(CheckModelName("name", request.name()));
  MENDEL_ASSIGN_OR_RETURN(response, env.jobs.GetModel(request.name()));
  return absl::OkStatus();
}

absl::Status ListModels(Environment& env, const Caller& caller,
                        const v1::ListModelsRequest& request, v1::ListModelsResponse& response) {
  MENDEL_ASSIGN_OR_RETURN(const int page_size, PageSize(env.options, request.page_size()));
  MENDEL_ASSIGN_OR_RETURN(const ListFilter filter,
                          ListFilter::Parse(request.filter(), ModelFields()));
  FilterRecords records(env);
  MENDEL_ASSIGN_OR_RETURN(const Page<v1::Model> page,
                          FilteredPage<v1::Model>(
                              filter, page_size, request.page_token(),
                              [&](int size, const std::string& token) {
                                return env.jobs.ListModels(caller.project, size, token);
                              },
                              [&](const v1::Model& model) { return records.Of(model); }));
  for (const v1::Model& model : page.items) *response.add_models() = model;
  response.set_next_page_token(page.next_token);
  return absl::OkStatus();
}

absl::Status DeleteModel(Environment& env, const Caller& caller,
                         const v1::DeleteModelRequest& request, Empty&) {
  MENDEL_RETURN_IF_ERROR(CheckModelName("name", request.name()));
  MENDEL_RETURN_IF_ERROR(env.jobs.DeleteModel(request.name()));
  env.log.Log(LogLevel::kInfo, "model deleted",
              {{"model", request.name()}, {"client", caller.name}});
  return absl::OkStatus();
}

absl::Status QueryWriteStatus(Environment& env, const Caller&,
                              const google::bytestream::QueryWriteStatusRequest& request,
                              google::bytestream::QueryWriteStatusResponse& response) {
  const absl::StatusOr<UploadId> upload = ParseUploadName(request.resource_name());
  if (!upload.ok())
    return FieldError("resource_name", "is not uploads/{uuid}/blobs/{sha256}/{size}");
  MENDEL_ASSIGN_OR_RETURN(const UploadStatus status, env.blobs.Status(*upload));
  response.set_committed_size(status.committed);
  response.set_complete(status.complete);
  return absl::OkStatus();
}

}  // namespace mendel::server::handlers
