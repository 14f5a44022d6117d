#include "client/remote.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/status.h"
#include "client/format.h"
#include "client/progress_line.h"

namespace mendel {
namespace {

/// Written by a signal handler, hence prepared.
std::array<char, 256> farewell{};

void SayFarewell(int) {
  const ssize_t written = write(STDERR_FILENO, farewell.data(), std::strlen(farewell.data()));
  _exit(written < 0 ? kExitInterrupted : kExitInterrupted);
}

ProgressEvent TransferEvent(const char* phase, int64_t done, int64_t total) {
  const double part =
      total > 0 ? 100.0 * static_cast<double>(done) / static_cast<double>(total) : 100;
  ProgressEvent event;
  event.phase = phase;
  event.detail = Cat(ByteText(static_cast<double>(done)), " of ",
                     ByteText(static_cast<double>(total)), " (", Decimals(part, 0), " %)");
  return event;
}

ProgressEvent EventOf(const v1::Progress& progress) {
  ProgressEvent event;
  event.phase = progress.phase();
  event.detail = progress.detail();
  event.candidates = progress.candidates();
  event.candidates_per_second = progress.candidates_per_second();
  if (progress.best_speedup() > 0) event.best_speedup = progress.best_speedup();
  event.seconds_left = progress.has_time_left()
                           ? static_cast<double>(progress.time_left().seconds()) +
                                 1e-9 * progress.time_left().nanos()
                           : -1;
  return event;
}

}  // namespace

void AddServerOptions(CLI::App& app, ServerOptions& options, bool with_default) {
  ServiceOptions& service = options.service;
  if (!with_default) service.address.clear();
  CLI::Option* server =
      app.add_option("--server", service.address, "Address of the server: HOST:PORT or unix:/PATH");
  if (with_default) server->envname("MENDEL_SERVER")->capture_default_str();
  app.add_option("--token-file", service.token_file, "File with the bearer token (or MENDEL_TOKEN)")
      ->envname("MENDEL_TOKEN_FILE");
  app.add_option("--project", service.project,
                 "Project of uploads and lists; default: the project 'default'")
      ->envname("MENDEL_PROJECT");
  app.add_flag("--ssl-grpc-use-ssl", service.use_ssl, "Talk TLS");
  app.add_option("--ssl-grpc-root-certifications-file", service.root_certifications_file,
                 "Certificates to trust (PEM)");
  app.add_option("--ssl-grpc-private-key-file", service.private_key_file,
                 "Own key, for mutual TLS (PEM)");
  app.add_option("--ssl-grpc-certificate-chain-file", service.certificate_chain_file,
                 "Own certificate, for mutual TLS (PEM)");
  app.add_option("--call-timeout", options.call_time, "Longest time of one call")
      ->capture_default_str();
  app.add_option("--retry-time", options.retry_time,
                 "Give up after this time without progress: the server is unreachable or full")
      ->capture_default_str();
}

absl::StatusOr<std::unique_ptr<ServiceClient>> Connect(const ServerOptions& options,
                                                       Context& context) {
  ServiceOptions service = options.service;
  MENDEL_ASSIGN_OR_RETURN(service.call_seconds, ParseDuration(options.call_time));
  MENDEL_ASSIGN_OR_RETURN(service.retry_seconds, ParseDuration(options.retry_time));
  if (const char* token = std::getenv("MENDEL_TOKEN"); token != nullptr) service.token = token;
  service.on_retry = [&context](const std::string& message) {
    context.Note(Cat("note: ", message));
  };
  return ConnectService(service);
}

absl::Status FromServer(const absl::Status& status) {
  if (!absl::IsInternal(status) && !absl::IsUnknown(status)) return status;
  return absl::DataLossError(Cat("the server failed: ", std::string(status.message())));
}

std::string FullName(const std::string& collection, const std::string& name) {
  const bool full = name.rfind(collection + "/", 0) == 0 || name.rfind("projects/", 0) == 0;
  return full ? name : Cat(collection, "/", name);
}

google::protobuf::Duration DurationOf(double seconds) {
  google::protobuf::Duration duration;
  duration.set_seconds(static_cast<int64_t>(seconds));
  duration.set_nanos(static_cast<int32_t>(std::lround((seconds - std::floor(seconds)) * 1e6)) *
                     1000);
  return duration;
}

absl::StatusOr<v1::Model> UploadModel(ServiceClient& client, const std::string& path,
                                      Context& context) {
  context.Input(path);
  ProgressLine line(context.json());
  auto model = client.Upload(
      path, [&](int64_t done, int64_t total) { line.Show(TransferEvent("upload", done, total)); });
  line.Finish();
  if (!model.ok()) return FromServer(model.status());
  context.facts()["model"] = model->name();
  return model;
}

absl::StatusOr<v1::Job> FollowJob(ServiceClient& client, const std::string& job,
                                  int64_t after_sequence, Context& context) {
  std::snprintf(farewell.data(), farewell.size(),
                "\nmendel: the job goes on; come back with: mendel watch %s\n", job.c_str());
  std::signal(SIGINT, &SayFarewell);
  ProgressLine line(context.json());
  auto ended = client.Watch(job, after_sequence, [&](const v1::JobEvent& event) {
    if (event.has_progress()) line.Show(EventOf(event.progress()));
    if (event.event_case() == v1::JobEvent::kWarning) {
      line.Finish();
      context.Note(Cat("note: ", event.warning()));
      context.facts()["notices"].push_back(event.warning());
    }
    if (event.event_case() == v1::JobEvent::kState)
      line.Show({.phase = StateWord(event.state()), .detail = "", .seconds_left = -1});
  });
  line.Finish();
  std::signal(SIGINT, SIG_DFL);
  if (!ended.ok()) return FromServer(ended.status());
  context.facts()["job"] = JobJson(*ended);
  MENDEL_RETURN_IF_ERROR(FromServer(OutcomeOf(*ended)));
  return ended;
}

absl::Status FetchPlan(ServiceClient& client, const std::string& plan, const std::string& path,
                       Context& context) {
  ProgressLine line(context.json());
  const auto got = client.Download(plan, path, [&](int64_t done, int64_t total) {
    line.Show(TransferEvent("download", done, total));
  });
  line.Finish();
  if (!got.ok()) return FromServer(got.status());
  context.facts()["plan"] = PlanJson(*got);
  context.facts()["file"] = path;
  const std::string unit = got->unmeasured() ? " ms (unmeasured, predicted)" : " ms";
  context.Line(Cat("baseline    ", Decimals(got->baseline_ms(), 3), unit));
  context.Line(Cat("plan        ", Decimals(got->plan_ms(), 3), unit));
  int mutants = 0;
  for (const auto& [rule, count] : got->mutants()) mutants += count;
  context.Line(Cat("speed-up    ", Decimals(got->speedup(), 2), "x  (", mutants,
                   " mutants; the search ended: ", got->stop_reason(), ")"));
  context.Line(Cat("certificate every element equal, bound 2^", Decimals(got->bound_log2(), 0),
                   ", ", got->weights(), " weights"));
  context.Line(Cat("wrote       ", path));
  return absl::OkStatus();
}

}  // namespace mendel
