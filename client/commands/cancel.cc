// mendel cancel JOB: queries a job on a server to end; a search keeps its best plan so far.

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"
#include "client/command.h"
#include "client/remote.h"

namespace mendel::commands::cancel {
namespace {

struct Options {
  std::string job;
  ServerOptions server;
};

absl::Status Run(const Options& options, Context& context) {
  MENDEL_ASSIGN_OR_RETURN(const auto client, Connect(options.server, context));
  const auto job = client->Cancel(FullName("jobs", options.job));
  if (!job.ok()) return FromServer(job.status());
  context.facts()["job"] = JobJson(*job);
  context.Line(JobLine(*job));
  return absl::OkStatus();
}

Action Setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("job", options->job, "Name of the job")->required();
  AddServerOptions(app, options->server);
  return [options](Context& context) { return Run(*options, context); };
}

Command Make() { return {"cancel", "Requests that a job on a server ends", &Setup}; }

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel::commands::cancel
