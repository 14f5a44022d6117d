// mendel jobs [JOB]: the jobs of a server, or one of them.

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/command.h"
#include "client/remote.h"

namespace mendel::commands::jobs {
namespace {

struct Options {
  std::string job;
  std::vector<std::string> states;
  JobQuery query;
  ServerOptions server;
};

absl::Status Run(const Options& options, Context& context) {
  MENDEL_ASSIGN_OR_RETURN(const auto client, Connect(options.server, context));
  if (!options.job.empty()) {
    const auto job = client->GetJob(FullName("jobs", options.job));
    if (!job.ok()) return FromServer(job.status());
    context.facts()["job"] = JobJson(*job);
    context.Line(JobLine(*job));
    return absl::OkStatus();
  }
  JobQuery query = options.query;
  for (const std::string& word : options.states) {
    MENDEL_ASSIGN_OR_RETURN(const v1::JobState state, ParseState(word));
    query.states.push_back(state);
  }
  const auto jobs = client->ListJobs(query);
  if (!jobs.ok()) return FromServer(jobs.status());
  context.facts()["jobs"] = nlohmann::ordered_json::array();
  for (const v1::Job& job : *jobs) {
    context.facts()["jobs"].push_back(JobJson(job));
    context.Line(JobLine(job));
  }
  return absl::OkStatus();
}

Action Setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("job", options->job, "Only this job");
  app.add_option("--state", options->states, "Only jobs in these states, comma-separated")
      ->delimiter(',');
  app.add_option("--client", options->query.client, "Only jobs of this client");
  app.add_option(
      "--filter", options->query.filter,
      "Only jobs that match, e.g. 'model : resnet AND create_time > \"2026-05-01T00:00:00Z\"'");
  app.add_option("--limit", options->query.limit, "The newest so many; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  AddServerOptions(app, options->server);
  return [options](Context& context) { return Run(*options, context); };
}

Command Make() { return {"jobs", "Lists the jobs of a server", &Setup}; }

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel::commands::jobs
