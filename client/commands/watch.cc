// mendel watch JOB [-o M.plan]: follows a job on a server until it has ended.

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/status.h"
#include "client/command.h"
#include "client/remote.h"

namespace mendel::commands::watch {
namespace {

struct Options {
  std::string job;
  std::string output;
  int64_t after = 0;
  ServerOptions server;
};

absl::Status Run(const Options& options, Context& context) {
  MENDEL_ASSIGN_OR_RETURN(const auto client, Connect(options.server, context));
  MENDEL_ASSIGN_OR_RETURN(
      const v1::Job job, FollowJob(*client, FullName("jobs", options.job), options.after, context));
  if (job.has_verdict()) return ReportVerdict(job.verdict(), false, context);
  if (!options.output.empty()) return FetchPlan(*client, job.plan(), options.output, context);
  context.Line(JobLine(job));
  return absl::OkStatus();
}

Action Setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("job", options->job, "Name of the job")->required();
  app.add_option("-o,--output", options->output, "Write the plan to this file");
  app.add_option("--after", options->after, "Only events with numbers above this one")
      ->check(CLI::NonNegativeNumber);
  AddServerOptions(app, options->server);
  return [options](Context& context) { return Run(*options, context); };
}

Command Make() { return {"watch", "Follows a job on a server until it has ended", &Setup}; }

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel::commands::watch
