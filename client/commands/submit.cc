// mendel submit M.onnx [--server ..] [--wait] [-o M.plan]: an optimization on a server.

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/command.h"
#include "client/format.h"
#include "client/model_options.h"
#include "client/pipes.h"
#include "client/remote.h"
#include "runtime/numerics.h"

namespace mendel::commands::submit {
namespace {

struct Options {
  std::string model;
  std::string output;
  bool wait = false;
  ServerOptions server;
  SubmitOptions submit;
  std::vector<std::string> shapes;
  std::string backend;
  std::string isa;
  int threads = 0;
  std::string budget;
  int64_t max_candidates = 0;
  int64_t max_weight_growth = 0;
  int64_t memory = 0;
  std::string wall_time;
  std::string numerics;
  std::string weights;
  uint64_t seed = 1;
  std::vector<std::string> disabled;
  int target_bound = 0;
  std::string rebind;
};

absl::Status FillBudget(const Options& options, v1::Budget& budget) {
  if (!options.budget.empty()) {
    MENDEL_ASSIGN_OR_RETURN(const double seconds, ParseDuration(options.budget));
    *budget.mutable_time() = DurationOf(seconds);
  }
  if (!options.wall_time.empty()) {
    MENDEL_ASSIGN_OR_RETURN(const double seconds, ParseDuration(options.wall_time));
    *budget.mutable_wall_time() = DurationOf(seconds);
  }
  budget.set_candidates(options.max_candidates);
  budget.set_memory_bytes(options.memory);
  return absl::OkStatus();
}

absl::StatusOr<v1::JobSpec> MakeSpec(const Options& options, const std::string& model) {
  v1::JobSpec spec;
  if (!options.rebind.empty()) {
    spec.mutable_refit_plan()->set_plan(FullName("plans", options.rebind));
    spec.mutable_refit_plan()->set_model(model);
    return spec;
  }
  v1::OptimizeSpec& optimize = *spec.mutable_optimize();
  optimize.set_model(model);
  for (const std::string& shape : options.shapes) {
    *optimize.mutable_shapes() += Cat(optimize.shapes().empty() ? "" : ",", shape);
  }
  optimize.set_device(options.backend);
  optimize.set_isa(options.isa);
  optimize.set_threads(options.threads);
  optimize.set_numerics(options.numerics);
  optimize.set_weights(options.weights);
  MENDEL_RETURN_IF_ERROR(FillBudget(options, *optimize.mutable_budget()));
  optimize.set_seed(options.seed);
  for (const std::string& rule : options.disabled) optimize.add_disabled_rules(rule);
  optimize.set_target_bound_log2(options.target_bound);
  optimize.set_max_weight_growth_bytes(options.max_weight_growth);
  return spec;
}

absl::StatusOr<v1::Model> Upload(ServiceClient& client, const std::string& path, Context& context) {
  if (path != "-") return UploadModel(client, path, context);
  MENDEL_ASSIGN_OR_RETURN(const PipeFolder folder, PipeFolder::Make());
  const std::string file = folder.File("model.onnx");
  MENDEL_RETURN_IF_ERROR(ReadStandardInput(file));
  return UploadModel(client, file, context);
}

absl::Status Fetch(ServiceClient& client, const std::string& plan, const std::string& path,
                   Context& context) {
  if (path != "-") return FetchPlan(client, plan, path, context);
  MENDEL_ASSIGN_OR_RETURN(const PipeFolder folder, PipeFolder::Make());
  const std::string file = folder.File("model.plan");
  MENDEL_RETURN_IF_ERROR(FetchPlan(client, plan, file, context));
  return WriteStandardOutput(file);
}

absl::Status Submit(const Options& options, Context& context) {
  MENDEL_ASSIGN_OR_RETURN(const auto sets, ShapeSets(options.shapes));
  if (sets.size() > 1)
    return Unsupported("the service makes no bundles: a job takes one shape of every input");
  MENDEL_ASSIGN_OR_RETURN(const auto client, Connect(options.server, context));
  MENDEL_ASSIGN_OR_RETURN(const v1::Model model, Upload(*client, options.model, context));
  MENDEL_ASSIGN_OR_RETURN(const v1::JobSpec spec, MakeSpec(options, model.name()));
  const auto name = client->Submit(spec, options.submit);
  if (!name.ok()) return FromServer(name.status());
  context.facts()["job"] = {{"name", *name}};
  context.Line(Cat("job         ", *name));
  if (!options.wait && options.output.empty()) return absl::OkStatus();
  MENDEL_ASSIGN_OR_RETURN(const v1::Job job, FollowJob(*client, *name, 0, context));
  if (!options.output.empty()) return Fetch(*client, job.plan(), options.output, context);
  context.Line(Cat("plan        ", job.plan()));
  return absl::OkStatus();
}

absl::Status Run(const Options& options, Context& context) {
  if (options.output != "-") return Submit(options, context);
  MENDEL_ASSIGN_OR_RETURN(const auto aside, LinesAside(context));
  return Submit(options, *aside);
}

Action Setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("model", options->model,
                 "ONNX file, its external data goes along; -: standard input")
      ->required();
  app.add_option("-o,--output", options->output,
                 "Wait, and write the plan to this file; -: standard output");
  app.add_flag("--wait", options->wait, "Wait for the job's end");
  AddServerOptions(app, options->server);
  app.add_option("--shapes", options->shapes, "Input shapes, e.g. input:8x3x224x224,mask:8x128")
      ->take_all();
  app.add_option("--backend,--device", options->backend,
                 "Backend that the plan is for (default: cpu). For a GPU that no server has, "
                 "e.g. cuda:sm_90, times are predicted");
  app.add_option("--isa", options->isa,
                 "Instruction set that the plan must run on, e.g. avx2 (default: the server's)");
  app.add_option("--threads", options->threads, "Threads of the plan (default: the server's cores)")
      ->check(CLI::PositiveNumber);
  app.add_option("--budget", options->budget,
                 "Time for the search, e.g. 60s (default: the server's)");
  app.add_option("--max-candidates", options->max_candidates,
                 "Candidates after which the search stops")
      ->check(CLI::PositiveNumber);
  app.add_option("--max-weight-growth", options->max_weight_growth,
                 "Limit on the bytes of weights that mutants make at load time (default: 1.5 times "
                 "the model's weights or 64 MiB, whichever is more)")
      ->check(CLI::PositiveNumber);
  app.add_option("--worker-memory", options->memory, "Bytes of memory of the worker")
      ->check(CLI::PositiveNumber);
  app.add_option("--wall-time", options->wall_time,
                 "Time for the whole job (default: the server's)");
  std::vector<std::string> classes;
  for (const Numerics numerics : kAllNumerics) classes.emplace_back(NumericsName(numerics));
  app.add_option("--numerics", options->numerics, "Class of the plan")
      ->check(CLI::IsMember(classes));
  app.add_option(
         "--weights", options->weights,
         "symbolic: the plan holds for all weights (default); exact: it may use the stored ones")
      ->check(CLI::IsMember({"exact", "symbolic"}));
  app.add_option("--seed", options->seed, "Seed of everything random in the search")
      ->capture_default_str();
  app.add_option("--disable", options->disabled, "Rules to leave out, comma-separated")
      ->delimiter(',');
  app.add_option("--target-bound", options->target_bound,
                 "The certificate's bound must be at most 2 to this power (default: -80)")
      ->check(CLI::Range(-1000, -1));
  app.add_option("--rebind", options->rebind,
                 "No search: this plan of the server with the weights of the model");
  // The old name of --rebind, hidden and kept for version 0.1.
  app.add_option("--refit", options->rebind)->group("");
  app.add_option("--priority", options->submit.priority, "Among one's own jobs, higher first")
      ->check(CLI::Range(-10, 10));
  app.add_option("--request-id", options->submit.request_id, "The same id gives the same job");
  return [options](Context& context) { return Run(*options, context); };
}

Command Make() { return {"submit", "Optimizes a model on a server", &Setup}; }

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel::commands::submit
