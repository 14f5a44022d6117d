// For tests: a job store with models, and functions that wait for jobs.
#ifndef MENDEL_SERVER_JOBS_JOB_TEST_SUPPORT_H_
#define MENDEL_SERVER_JOBS_JOB_TEST_SUPPORT_H_

#include <memory>
#include <string>

#include "server/jobs/job_runner.h"

namespace mendel::server {

/// Makes stores in a new folder, which the destructor deletes, or opens the folder of another
/// JobWorld. CHECK-fails if a store fails.
class JobWorld {
 public:
  JobWorld();
  explicit JobWorld(const std::string& existing);
  ~JobWorld();

  JobStore& jobs() { return *jobs_; }
  BlobStore& blobs() { return *blobs_; }
  const std::string& folder() const { return folder_; }

  /// A model of one file.
  std::string AddModel(const std::string& file_name, const std::string& bytes);
  std::string Submit(const v1::JobSpec& spec, const std::string& client = "alice");
  /// `optimize` of a new model whose file is called `behavior` (fake_worker.cc).
  std::string SubmitFake(const std::string& behavior, const std::string& shapes = "");
  v1::Job Get(const std::string& job);
  /// The job once it has ended; fails the test after a while.
  v1::Job Await(const std::string& job);
  /// Waits until the job has reported progress of this phase.
  void AwaitPhase(const std::string& job, const std::string& phase);
  std::string BlobBytes(const std::string& name);

 private:
  void OpenStores();

  std::string folder_;
  bool owned_ = true;
  std::unique_ptr<JobStore> jobs_;
  std::unique_ptr<BlobStore> blobs_;
};

v1::JobSpec OptimizeJob(const std::string& model, const std::string& shapes = "");

/// ErrorInfo.reason of a job's error.
std::string ReasonOf(const v1::Job& job);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_JOBS_JOB_TEST_SUPPORT_H_
