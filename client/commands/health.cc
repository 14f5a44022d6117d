// mendel health: does a server answer, and can it be used? For probes: tried once, exit code 0
// or 5.

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"
#include "client/command.h"
#include "client/remote.h"

namespace mendel::commands::health {
namespace {

struct Options {
  std::string service;
  ServerOptions server;
};

absl::Status Run(const Options& options, Context& context) {
  MENDEL_ASSIGN_OR_RETURN(const auto client, Connect(options.server, context));
  const absl::Status status = client->Health(options.service);
  context.facts()["serving"] = status.ok();
  // A probe that got no answer in time has found an unhealthy server, not an open question.
  if (absl::IsDeadlineExceeded(status)) return absl::UnavailableError(status.message());
  MENDEL_RETURN_IF_ERROR(FromServer(status));
  context.Line("serving");
  return absl::OkStatus();
}

Action Setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  options->server.call_time = "5s";
  app.add_option("--service", options->service,
                 "Full name of one service, e.g. mendel.v1.Jobs (default: the server)");
  AddServerOptions(app, options->server);
  return [options](Context& context) { return Run(*options, context); };
}

Command Make() { return {"health", "Reports whether a server can be used", &Setup}; }

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel::commands::health
