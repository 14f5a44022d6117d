#include "server/store/fsck.h"

#include <iterator>
#include <set>

#include "base/status.h"
#include "server/store/project_name.h"

namespace mendel::server {
namespace {

/// Calls `visit` for every item of a listing.
template <class List, class Visit>
absl::Status ForAll(const List& list, const Visit& visit) {
  std::string token;
  do {
    MENDEL_ASSIGN_OR_RETURN(const auto page, list(token));
    for (const auto& item : page.items) visit(item);
    token = page.next_token;
  } while (!token.empty());
  return absl::OkStatus();
}

class Checker {
 public:
  Checker(JobStore& jobs, BlobStore& blobs) : jobs_(jobs), blobs_(blobs) {}

  absl::StatusOr<FsckReport> Run() {
    MENDEL_ASSIGN_OR_RETURN(report_.violations, jobs_.Check());
    MENDEL_RETURN_IF_ERROR(CheckReferences());
    MENDEL_ASSIGN_OR_RETURN(std::vector<std::string> damaged, blobs_.Check());
    std::move(damaged.begin(), damaged.end(), std::back_inserter(report_.violations));
    MENDEL_ASSIGN_OR_RETURN(const std::vector<BlobEntry> entries, blobs_.List());
    for (const BlobEntry& entry : entries) {
      ++report_.blobs;
      report_.bytes += entry.blob.size;
      report_.unreferenced += named_.contains(BlobKey(entry.blob)) ? 0 : 1;
    }
    return std::move(report_);
  }

 private:
  /// Everything that names a blob must find it.
  absl::Status CheckReferences() {
    constexpr int kPage = 1000;
    MENDEL_RETURN_IF_ERROR(ForAll(
        [&](const std::string& token) { return jobs_.ListModels(std::nullopt, kPage, token); },
        [&](const v1::Model& model) {
          ++report_.models;
          for (const v1::ModelFile& file : model.files()) {
            Demand({file.digest().sha256(), file.digest().size_bytes(), ProjectOf(model.name())},
                   model.name());
          }
        }));
    MENDEL_RETURN_IF_ERROR(ForAll(
        [&](const std::string& token) { return jobs_.ListPlans(std::nullopt, "", kPage, token); },
        [&](const v1::Plan& plan) {
          ++report_.plans;
          DemandNamed(plan.blob(), plan.name());
        }));
    return ForAll([&](const std::string& token) { return jobs_.ListJobs({}, kPage, token); },
                  [&](const StoredJob& job) {
                    ++report_.jobs;
                    if (!job.job.bundle().empty()) DemandNamed(job.job.bundle(), job.job.name());
                  });
  }

  void DemandNamed(const std::string& blob_name, const std::string& by) {
    const absl::StatusOr<BlobId> blob = ParseBlobName(blob_name);
    if (blob.ok()) return Demand(*blob, by);
    report_.violations.push_back(
        Cat(by, ": names the blob '", blob_name, "', which is no blob's name"));
  }
  void Demand(const BlobId& blob, const std::string& by) {
    named_.insert(BlobKey(blob));
    if (!blobs_.Contains(blob))
      report_.violations.push_back(Cat(by, ": ", BlobName(blob), " is missing"));
  }

  JobStore& jobs_;
  BlobStore& blobs_;
  FsckReport report_;
  std::set<std::string> named_;
};

}  // namespace

absl::StatusOr<FsckReport> Fsck(JobStore& jobs, BlobStore& blobs) {
  return Checker(jobs, blobs).Run();
}

}  // namespace mendel::server
