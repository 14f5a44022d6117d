// mendel fsck --data DIR: the consistency of a server's data folder, and its garbage.
#include "server/store/fsck.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"
#include "client/command.h"
#include "client/format.h"
#include "server/clock.h"
#include "server/store/garbage.h"

namespace mendel::commands::fsck {
namespace {

struct Options {
  std::string data;
  std::string store;
  bool collect = false;
  bool dry_run = false;
  int64_t retain_jobs_hours = 720;
  int64_t retain_blobs_hours = 24;
  int64_t target_bytes = 0;
};

absl::Status Collect(const Options& options, server::JobStore& jobs, server::BlobStore& blobs,
                     Context& context) {
  constexpr int64_t kHour = int64_t{3600} * 1'000'000;
  const server::GarbagePolicy policy = {.retain_jobs_micros = options.retain_jobs_hours * kHour,
                                        .retain_blobs_micros = options.retain_blobs_hours * kHour,
                                        .target_bytes = options.target_bytes,
                                        .dry_run = options.dry_run};
  MENDEL_ASSIGN_OR_RETURN(const server::GarbageReport report,
                          CollectGarbage(jobs, blobs, policy, server::SystemClock().WallMicros()));
  context.facts()["garbage"] = {{"dry_run", options.dry_run},
                                {"jobs", report.jobs},
                                {"bytes", report.bytes},
                                {"bytes_before", report.bytes_before}};
  context.Line(Cat(options.dry_run ? "would delete " : "deleted ", report.jobs, " ended jobs and ",
                   ByteText(static_cast<double>(report.bytes)), " of ",
                   ByteText(static_cast<double>(report.bytes_before))));
  return absl::OkStatus();
}

/// Opening makes what is missing, which a check must not.
absl::Status CheckFolder(const Options& options) {
  if (options.store.empty() &&
      access((options.data + "/" + server::kJobStoreFile).c_str(), F_OK) != 0) {
    return InvalidInput(options.data, " is no data folder: it has no ",
                        std::string(server::kJobStoreFile));
  }
  if (access((options.data + "/blobs").c_str(), F_OK) == 0) return absl::OkStatus();
  return InvalidInput(options.data, " is no data folder: it has no folder blobs");
}

absl::Status Run(const Options& options, Context& context) {
  MENDEL_RETURN_IF_ERROR(CheckFolder(options));
  MENDEL_ASSIGN_OR_RETURN(const std::unique_ptr<server::JobStore> jobs,
                          options.store.empty()
                              ? server::OpenSqliteStore(options.data + "/" + server::kJobStoreFile,
                                                        server::SystemClock())
                              : server::OpenPostgresStore(options.store, server::SystemClock()));
  MENDEL_ASSIGN_OR_RETURN(const std::unique_ptr<server::BlobStore> blobs,
                          server::OpenBlobStore(options.data, {}, server::SystemClock()));
  if (options.collect) MENDEL_RETURN_IF_ERROR(Collect(options, *jobs, *blobs, context));
  MENDEL_ASSIGN_OR_RETURN(const server::FsckReport report, server::Fsck(*jobs, *blobs));
  context.facts()["violations"] = report.violations;
  context.facts()["jobs"] = report.jobs;
  context.facts()["models"] = report.models;
  context.facts()["plans"] = report.plans;
  context.facts()["blobs"] = report.blobs;
  context.facts()["bytes"] = report.bytes;
  context.facts()["unreferenced"] = report.unreferenced;
  context.Line(Cat(report.jobs, " jobs, ", report.models, " models, ", report.plans, " plans, ",
                   report.blobs, " blobs of ", ByteText(static_cast<double>(report.bytes)), " (",
                   report.unreferenced, " named by nothing)"));
  for (const std::string& violation : report.violations) context.Line(violation);
  context.Line(report.violations.empty() ? "consistent"
                                         : Cat(report.violations.size(), " violations"));
  if (!report.violations.empty()) context.Answer(kExitNo);
  return absl::OkStatus();
}

Action Setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("--data", options->data, "The server's data folder")->required();
  app.add_option("--store", options->store,
                 "The job store, where it is not in the data folder: postgresql://...");
  CLI::Option* const collect = app.add_flag("--collect", options->collect, "Collect garbage first");
  app.add_flag("--dry-run", options->dry_run, "Only report what would be collected")
      ->needs(collect);
  app.add_option("--retain-jobs-hours", options->retain_jobs_hours,
                 "Hours that an ended job is kept")
      ->needs(collect)
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--retain-blobs-hours", options->retain_blobs_hours,
                 "Hours that a file that nothing names is kept")
      ->needs(collect)
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--target-bytes", options->target_bytes,
                 "Above so many bytes such files are kept for an hour only; 0: no such limit")
      ->needs(collect)
      ->check(CLI::NonNegativeNumber);
  return [options](Context& context) { return Run(*options, context); };
}

Command Make() {
  return {"fsck", "Checks a server's data folder, and collects its garbage", &Setup};
}

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel::commands::fsck
