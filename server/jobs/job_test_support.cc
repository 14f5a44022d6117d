#include "server/jobs/job_test_support.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/check.h"
#include "base/deadline.h"
#include "base/hash.h"
#include "base/status.h"
#include "google/rpc/error_details.pb.h"

namespace mendel::server {
namespace {

constexpr double kPatience = 600;  // a cold disk may take minutes to load the libraries of a device

}  // namespace

JobWorld::JobWorld() {
  std::string name = (std::filesystem::temp_directory_path() / "mendel-jobs-XXXXXX").string();
  MENDEL_CHECK(mkdtemp(name.data()) != nullptr);
  folder_ = name;
  OpenStores();
}

JobWorld::JobWorld(const std::string& existing) : folder_(existing), owned_(false) { OpenStores(); }

void JobWorld::OpenStores() {
  auto jobs = OpenSqliteStore(folder_ + "/jobs.sqlite", SystemClock());
  MENDEL_CHECK(jobs.ok());
  jobs_ = *std::move(jobs);
  auto blobs = OpenBlobStore(folder_ + "/blobs", {}, SystemClock());
  MENDEL_CHECK(blobs.ok());
  blobs_ = *std::move(blobs);
}

JobWorld::~JobWorld() {
  jobs_.reset();
  blobs_.reset();
  std::error_code code;
  if (owned_) std::filesystem::remove_all(folder_, code);
}

std::string JobWorld::AddModel(const std::string& file_name, const std::string& bytes) {
  const std::string path = folder_ + "/upload";
  std::ofstream(path, std::ios::binary) << bytes;
  const auto blob = blobs_->Adopt(path, "");
  MENDEL_CHECK(blob.ok());
  v1::Model model;
  model.set_name(Cat("models/", Sha256Hex(Cat(file_name, " ", blob->sha256))));
  model.set_main_file(file_name);
  model.set_size_bytes(blob->size);
  v1::ModelFile& file = *model.add_files();
  file.set_path(file_name);
  file.mutable_digest()->set_sha256(blob->sha256);
  file.mutable_digest()->set_size_bytes(blob->size);
  MENDEL_CHECK(jobs_->PutModel(model).ok());
  return model.name();
}

std::string JobWorld::Submit(const v1::JobSpec& spec, const std::string& client) {
  const auto job = jobs_->Submit(spec, client, "", 0, {});
  MENDEL_CHECK(job.ok());
  return job->job.name();
}

std::string JobWorld::SubmitFake(const std::string& behavior, const std::string& shapes) {
  return Submit(OptimizeJob(AddModel(behavior, "bytes of a model"), shapes));
}

v1::Job JobWorld::Get(const std::string& job) {
  const auto stored = jobs_->GetJob(job);
  MENDEL_CHECK(stored.ok());
  return stored->job;
}

v1::Job JobWorld::Await(const std::string& job) {
  for (const Deadline deadline = Deadline::After(kPatience); !deadline.Passed();) {
    v1::Job stored = Get(job);
    if (stored.has_end_time()) return stored;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ADD_FAILURE() << job << " does not end: " << Get(job).DebugString();
  return Get(job);
}

void JobWorld::AwaitPhase(const std::string& job, const std::string& phase) {
  for (const Deadline deadline = Deadline::After(kPatience); !deadline.Passed();) {
    const v1::Job stored = Get(job);
    if (stored.progress().phase() == phase && stored.state() == v1::JOB_STATE_RUNNING) return;
    if (stored.has_end_time()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ADD_FAILURE() << job << " never reported phase " << phase << ": " << Get(job).DebugString();
}

std::string JobWorld::BlobBytes(const std::string& name) {
  const auto blob = ParseBlobName(name);
  const auto path = blob.ok() ? blobs_->Path(*blob) : blob.status();
  if (!path.ok()) return "";
  std::ifstream file(*path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

v1::JobSpec OptimizeJob(const std::string& model, const std::string& shapes) {
  v1::JobSpec spec;
  spec.mutable_optimize()->set_model(model);
  spec.mutable_optimize()->set_shapes(shapes);
  spec.mutable_optimize()->set_seed(1);
  return spec;
}

std::string ReasonOf(const v1::Job& job) {
  google::rpc::ErrorInfo info;
  if (job.error().details_size() == 0 || !job.error().details(0).UnpackTo(&info)) return "";
  return info.reason();
}

}  // namespace mendel::server
