// mendel plans [ls] [--model MODEL], mendel plans get PLAN -o M.plan: the plans of a server.

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"
#include "client/command.h"
#include "client/remote.h"

namespace mendel::commands::plans {
namespace {

struct Options {
  std::string action = "ls";
  std::string plan;
  std::string output;
  PlanQuery query;
  ServerOptions server;
};

absl::Status List(ServiceClient& client, const Options& options, Context& context) {
  PlanQuery query = options.query;
  if (!query.model.empty()) query.model = FullName("models", query.model);
  const auto plans = client.ListPlans(query);
  if (!plans.ok()) return FromServer(plans.status());
  context.facts()["plans"] = nlohmann::ordered_json::array();
  for (const v1::Plan& plan : *plans) {
    context.facts()["plans"].push_back(PlanJson(plan));
    context.Line(PlanLine(plan));
  }
  return absl::OkStatus();
}

absl::Status Run(const Options& options, Context& context) {
  const bool get = options.action == "get";
  if (get == options.plan.empty())
    return InvalidInput("plans takes 'ls', or 'get' and a plan's name");
  if (get && options.output.empty()) return InvalidInput("plans get needs -o FILE");
  MENDEL_ASSIGN_OR_RETURN(const auto client, Connect(options.server, context));
  if (!get) return List(*client, options, context);
  return FetchPlan(*client, FullName("plans", options.plan), options.output, context);
}

Action Setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("action", options->action, "ls or get")
      ->check(CLI::IsMember({"ls", "get"}))
      ->capture_default_str();
  app.add_option("plan", options->plan, "get: name of the plan");
  app.add_option("-o,--output", options->output, "get: file to write");
  app.add_option("--model", options->query.model, "ls: only plans for this model");
  app.add_option("--filter", options->query.filter,
                 "ls: only plans that match, e.g. 'speedup > 1.2 AND device = cpu'");
  app.add_option("--limit", options->query.limit, "ls: how many plans, newest first; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  AddServerOptions(app, options->server);
  return [options](Context& context) { return Run(*options, context); };
}

Command Make() { return {"plans", "Lists or downloads the plans of a server", &Setup}; }

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel::commands::plans
