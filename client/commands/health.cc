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
  bool alive = false;
  ServerOptions server;
};

absl::Status Run(const Options& options, Context& context) {
  MENDEL_ASSIGN_OR_RETURN(const auto client, Connect(options.server, context));
  const absl::StatusOr<bool> serving = client->Health(options.service);
  const absl::Status& status = serving.status();
  context.facts()["serving"] = serving.ok() && *serving;
  // A probe that got no answer in time has found an unhealthy server, not an open question.
  if (absl::IsDeadlineExceeded(status)) return absl::UnavailableError(status.message());
  MENDEL_RETURN_IF_ERROR(FromServer(status));
  if (!*serving && !options.alive) return absl::UnavailableError("the server answers NOT_SERVING");
  context.Line(*serving ? "serving" : "alive, and not serving");
  return absl::OkStatus();
}

Action Setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  options->server.call_time = "5s";
  app.add_option("--service", options->service,
                 "Full name of one service, e.g. mendel.v1.Jobs (default: the server)");
  app.add_flag("--alive", options->alive,
               "Succeed when the server answers, though it cannot be used");
  AddServerOptions(app, options->server);
  return [options](Context& context) { return Run(*options, context); };
}

Command Make() { return {"health", "Reports whether a server can be used", &Setup}; }

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel::commands::health
