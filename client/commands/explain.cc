// mendel explain M.plan: the mutants, their places, the corrected boxes, and the gain.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "client/command.h"
#include "client/format.h"
#include "client/html/pages.h"
#include "client/library_path.h"
#include "client/members.h"
#include "client/plan_explanation.h"
#include "client/step_bounds.h"
#include "runtime/kernel_text.h"
#include "runtime/measure.h"
#include "runtime/offline_device.h"
#include "runtime/session.h"

namespace mendel::commands::explain {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string plan;
  std::vector<std::string> shapes;
  bool steps = false;
  bool no_times = false;
  bool candidates = false;
  bool sites = false;
  std::string cuda_folder;
  std::string html;
  bool channels_last = false;
  SessionOptions session;
};

constexpr double kNoticeableShare = 0.02;  // of the steps' time

/// One step; flagged where it takes a noticeable share and runs below a quarter of its bound.
void ReportStep(const Step& step, double ms, double all, const StepBound& bound, Json& facts,
                Context& context) {
  Json fact = {{"name", step.name}, {"kernel", step.kernel}, {"ms", ms}};
  std::string line = Cat("  ", Decimals(ms, 3), " ms  ", step.name, "  [", step.kernel, "]");
  if (bound.seconds > 0) {
    fact["bound_ms"] = bound.seconds * 1e3;
    fact["bound_by"] = bound.limit;
    const bool slow = bound.IsMissedBy(ms / 1e3) && ms > kNoticeableShare * all;
    fact["slow"] = slow;
    if (slow)
      line += Cat("  slow: below a quarter of its bound, ", Decimals(bound.seconds * 1e3, 3),
                  " ms by ", bound.limit);
  }
  facts.push_back(fact);
  context.Line(line);
}

/// Milliseconds of every step, in place: the median of some runs.
absl::Status ReportSteps(Session& session, const Graph& graph, const DeviceRates& rates,
                         const std::string& what, Context& context) {
  const std::vector<Tensor> inputs = RandomInputs(graph, 1);
  std::vector<std::span<const std::byte>> sources;
  for (const Tensor& input : inputs) sources.push_back(input.bytes());
  std::vector<std::vector<std::byte>> storage;
  std::vector<std::span<std::byte>> sinks;
  for (const ValueInfo& output : session.outputs())
    storage.emplace_back(static_cast<size_t>(ByteSize(output.type)));
  for (auto& bytes : storage) sinks.emplace_back(bytes);
  std::vector<std::vector<double>> times(session.executable().steps().size());
  for (int run = 0; run < 8; ++run) {
    std::vector<double> seconds;
    MENDEL_RETURN_IF_ERROR(session.executable().RunTimed(sources, sinks, seconds));
    for (size_t k = 0; run > 0 && k < seconds.size(); ++k) times[k].push_back(seconds[k] * 1e3);
  }
  context.Line(Cat(what, ":"));
  const std::vector<Step>& steps = session.executable().steps();
  std::vector<double> medians;
  for (const std::vector<double>& one : times) medians.push_back(Summarize(one).median_ms);
  const double all = std::accumulate(medians.begin(), medians.end(), 0.0);
  const std::vector<StepBound> bounds = BoundsOf(graph, steps, rates, session.threads());
  for (size_t k = 0; k < steps.size(); ++k)
    ReportStep(steps[k], medians[k], all, bounds[k], context.facts()[what], context);
  return absl::OkStatus();
}

/// Estimates of a kernel for which there is no device.
void ReportEstimates(const KernelText& kernel, Json& fact, Context& context) {
  context.Line(Cat("  ", kernel.boxes, " boxes in one launch: ", kernel.blocks, " blocks of ",
                   kernel.threads, " threads, ", kernel.shared, " bytes of shared memory"));
  fact["boxes"] = kernel.boxes;
  fact["launch"] = {
      {"blocks", kernel.blocks}, {"threads", kernel.threads}, {"shared_bytes", kernel.shared}};
  for (const KernelEstimate& e : kernel.estimates) {
    std::string line =
        Cat("  ", e.device, ": ", Decimals(e.kernel_seconds * 1e6, 1), " us beside the mutant's ",
            Decimals(e.mutant_seconds * 1e6, 1), " us (estimates by roofline, not measured)");
    fact["estimates"].push_back({{"device", e.device},
                                 {"architecture", e.architecture},
                                 {"kernel_us", e.kernel_seconds * 1e6},
                                 {"mutant_us", e.mutant_seconds * 1e6}});
    if (e.registers > 0) {
      line += Cat("; ", e.architecture, ": ", e.registers, " registers, ", e.spilled_bytes,
                  " bytes spilled, occupancy about ", Decimals(100 * e.occupancy, 0), " %");
      Json& compiled = fact["estimates"].back();
      compiled["registers"] = e.registers;
      compiled["spilled_bytes"] = e.spilled_bytes;
      compiled["occupancy"] = e.occupancy;
    }
    context.Line(line);
  }
}

absl::Status WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file ? absl::OkStatus() : absl::UnavailableError(Cat("cannot write ", path));
}

/// Writes the plan's own text of every correction into .cu files, and reports their properties.
absl::Status EmitCuda(const Plan& plan, const Options& options, Context& context) {
  const KernelWriter* writer = FindKernelWriter("cuda");
  if (writer == nullptr) return Unsupported("this build writes no CUDA text");
  MENDEL_ASSIGN_OR_RETURN(
      const KernelTexts fresh,
      writer->Write(plan.graph, {.channels_last = options.channels_last, .estimates = true}));
  std::map<std::string, const PlanKernel*> stored;
  for (const PlanKernel& kernel : plan.kernels) {
    if (kernel.language == "cuda" && kernel.channels_last == options.channels_last)
      stored[kernel.file_name] = &kernel;
  }
  const bool carried = !stored.empty();
  std::error_code error;
  std::filesystem::create_directories(options.cuda_folder, error);
  const auto path_of = [&](const std::string& name) {
    return (std::filesystem::path(options.cuda_folder) / name).string();
  };
  context.facts()["cuda_kernels"] = Json::array();
  for (const KernelText& kernel : fresh.kernels) {
    const auto own = stored.extract(kernel.file_name);
    if (carried && own.empty()) continue;
    const bool same = !carried || own.mapped()->text == kernel.text;
    const std::string path = path_of(kernel.file_name);
    MENDEL_RETURN_IF_ERROR(WriteText(path, carried ? own.mapped()->text : kernel.text));
    context.Line(Cat(path, " corrects ", kernel.mutant));
    Json fact = {{"file", path},
                 {"mutant", kernel.mutant},
                 {"sha256", Sha256Hex(carried ? own.mapped()->text : kernel.text)}};
    fact["from_plan"] = carried;
    fact["as_this_version_writes"] = same;
    if (same) {
      ReportEstimates(kernel, fact, context);
    } else {
      context.Line(
          "  the plan's own text; this version of the program writes another one, so that nothing "
          "is said about it");
    }
    context.facts()["cuda_kernels"].push_back(std::move(fact));
  }
  for (const auto& [name, kernel] : stored) {
    MENDEL_RETURN_IF_ERROR(WriteText(path_of(name), kernel->text));
    context.Line(Cat(path_of(name), " corrects ", kernel->mutant,
                     " (the plan's own text; this version of the program writes none)"));
    context.facts()["cuda_kernels"].push_back(
        {{"file", path_of(name)}, {"mutant", kernel->mutant}, {"from_plan", true}});
  }
  if (!carried && !fresh.kernels.empty())
    context.Line("the plan carries no texts: these were written from its graph");
  for (const std::string& refused : fresh.refused) context.Line(Cat("no CUDA kernel: ", refused));
  context.facts()["cuda_refused"] = fresh.refused;
  if (fresh.kernels.empty() && fresh.refused.empty())
    context.Line("no corrected boxes: no CUDA kernels");
  return absl::OkStatus();
}

absl::Status TimeSteps(const Plan& plan, const Options& options, Context& context) {
  SessionOptions baseline_options = options.session;
  baseline_options.baseline = true;
  MENDEL_ASSIGN_OR_RETURN(const auto baseline, Session::Create(plan, baseline_options));
  const Backend* const backend = FindBackend(plan.info.target().backend());
  const DeviceRates rates = backend == nullptr ? DeviceRates{} : backend->Rates();
  MENDEL_RETURN_IF_ERROR(ReportSteps(*baseline, plan.baseline, rates, "baseline steps", context));
  MENDEL_ASSIGN_OR_RETURN(const auto chosen, Session::Create(plan, options.session));
  return ReportSteps(*chosen, plan.graph, rates, "plan steps", context);
}

absl::Status ExplainPlan(const Plan& plan, const Options& options, Context& context) {
  ReportExplanation(plan, context);
  if (options.candidates) ReportCandidates(plan.info, context);
  if (options.sites) ReportSites(plan.baseline, context);
  if (!options.cuda_folder.empty()) MENDEL_RETURN_IF_ERROR(EmitCuda(plan, options, context));
  if (options.html.empty() && !options.steps) return absl::OkStatus();
  absl::Status timed = absl::OkStatus();
  if (options.no_times) {
    context.Note("note: steps are not timed");
  } else if (IsUnmeasured(plan.info)) {
    context.Note("note: the plan is for a device that is not here: its steps have no times");
  } else {
    timed = TimeSteps(plan, options, context);
  }
  if (options.html.empty()) return timed;
  if (!timed.ok()) context.Note(Cat("note: steps have no times: ", std::string(timed.message())));
  MENDEL_RETURN_IF_ERROR(WriteText(
      options.html, PlanPage(plan, context.facts(),
                             Cat("mendel explain ", options.plan, " --html ", options.html))));
  context.facts()["html"] = options.html;
  context.Line(Cat("wrote ", options.html));
  return absl::OkStatus();
}

absl::Status Explain(const Options& options, Context& context) {
  context.Input(options.plan);
  std::vector<Plan> plans;
  if (options.cuda_folder.empty() && options.html.empty()) {
    MENDEL_ASSIGN_OR_RETURN(plans, ReadMembers(options.plan, options.shapes));
  } else {  // one folder or page is about one plan
    MENDEL_ASSIGN_OR_RETURN(Plan plan, ReadMember(options.plan, options.shapes));
    plans.push_back(std::move(plan));
  }
  return ReportMembers(OfferedShapes(plans), context, [&](size_t k, Context& member) {
    return ExplainPlan(plans[k], options, member);
  });
}

Action Setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("plan", options->plan, "Plan file")->required();
  AddMemberOption(app, options->shapes);
  AddLibraryPathOption(app);
  app.add_flag("--steps", options->steps,
               "Also time every step of baseline and plan; slow ones are flagged");
  app.add_flag("--candidates", options->candidates,
               "Also list the candidates of the search: used, slower, refused and why");
  app.add_flag("--sites", options->sites,
               "Also list the sums of products of the model, and the operators at which they end");
  CLI::Option* emit = app.add_option("--emit-cuda", options->cuda_folder,
                                     "Write the CUDA text of the corrections into this folder");
  app.add_flag("--channels-last", options->channels_last,
               "CUDA text for activations with the channels last")
      ->needs(emit);
  app.add_option("--html", options->html,
                 "Also write all of it, with the graphs and the times of steps, as one page")
      ->excludes(emit);
  app.add_flag("--no-times", options->no_times, "The page has no times of steps: nothing is run")
      ->excludes("--steps");
  app.add_option("--threads", options->session.threads, "Threads (default: as the plan was tuned)")
      ->check(CLI::PositiveNumber);
  app.add_option("--affinity", options->session.affinity,
                 "Where they run: none (the system decides), cores, or CPUs such as 0,2-3")
      ->capture_default_str();
  return [options](Context& context) { return Explain(*options, context); };
}

Command Make() {
  return {"explain", "Reports the mutants of a plan: their places, corrections and gains", &Setup};
}

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel::commands::explain
