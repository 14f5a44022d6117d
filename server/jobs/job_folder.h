// The folder of one job: `<work_folder>/jobs/<uuid>/`, or `<uuid>_<project>/`, with in, out, tmp
// and cache (sandbox.h).
//
// It is locked while an attempt runs. A new attempt finds only cache/ in it. The job continues from
// the measurements there. The cache is deleted when the job ends.
#ifndef MENDEL_SERVER_JOBS_JOB_FOLDER_H_
#define MENDEL_SERVER_JOBS_JOB_FOLDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/jobs/child_process.h"

namespace mendel::server {

class JobFolder {
 public:
  /// `job`: "jobs/{uuid}" in its project. An earlier attempt that lost its lease ends within a
  /// second. A server that is cut off from the store may share the work folder and not notice. This
  /// attempt then gets another folder, `<uuid>.<fence>`.
  static absl::StatusOr<std::unique_ptr<JobFolder>> Open(const std::string& work_folder,
                                                         const std::string& job, int64_t fence);

  const std::string& path() const { return path_; }
  std::string CachePath() const { return path_ + "/cache/profiles.sqlite"; }
  /// Bytes and files that the worker wrote.
  struct Usage {
    int64_t bytes = 0;
    int64_t files = 0;
  };
  Usage Used() const;
  /// Returns the path of `out/name`. FailedPrecondition unless it is a regular file with one name
  /// and no symbolic link in its path.
  absl::StatusOr<std::string> Delivered(const std::string& name) const;
  /// Deletes everything, or everything but the cache.
  void Clear(bool keep_cache);

 private:
  JobFolder(std::string path, Descriptor lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  Descriptor lock_;
};

/// Deletes the folders of jobs for which `ended` is true (a job's name) and that no attempt holds;
/// Calls `leave` with each folder before it is deleted. Nobody starts that job again, so `leave`
/// must remove what its last attempt left elsewhere.
void SweepJobFolders(const std::string& work_folder,
                     const std::function<bool(const std::string& job)>& ended,
                     const std::function<void(const std::string& folder)>& leave);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_JOBS_JOB_FOLDER_H_
