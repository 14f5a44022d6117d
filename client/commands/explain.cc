// mendel explain M.plan: what was mutated where, which boxes were mended, what it brought.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"
#include "client/command.h"
#include "client/format.h"
#include "runtime/kernel_text.h"
#include "runtime/measure.h"
#include "runtime/session.h"

namespace mendel {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string plan;
  bool steps = false;
  std::string cuda_folder;
  bool channels_last = false;
  SessionOptions session;
};

std::string BoxText(const plan::BoxProto& box) {
  return BoxString({Shape(box.begin().begin(), box.begin().end()), Shape(box.end().begin(), box.end().end())});
}

void TellMutant(const plan::AppliedMutant& mutant, Context& context) {
  Json fact = {{"rule", mutant.rule()},
               {"claim", mutant.claim()},
               {"original_ms", mutant.original_ns() / 1e6},
               {"mutant_ms", mutant.mutant_ns() / 1e6}};
  std::string where, choices;
  for (const std::string& name : mutant.where()) where += (where.empty() ? "" : ", ") + (name.empty() ? "?" : name);
  for (const auto& [name, value] : std::map<std::string, int64_t>(mutant.choices().begin(), mutant.choices().end())) {
    choices += Cat(" ", name, "=", value);
    fact["choices"][name] = value;
  }
  fact["where"] = where;
  context.Line(Cat(mutant.rule(), choices, " (", mutant.claim(), ")  ", Decimals(mutant.original_ns() / 1e6, 3), " -> ",
                   Decimals(mutant.mutant_ns() / 1e6, 3), " ms alone"));
  context.Line(Cat("  at ", where));
  for (const plan::MendedOutput& output : mutant.mended()) {
    context.Line(Cat("  mended by ", mutant.mending(), ": ", output.wrong_elements(), " of ", output.elements(), " elements of ",
                     output.output()));
    Json mended = {{"output", output.output()}, {"elements", output.elements()}, {"wrong_elements", output.wrong_elements()}};
    for (const plan::BoxProto& box : output.boxes()) {
      context.Line(Cat("    box ", BoxText(box)));
      mended["boxes"].push_back(BoxText(box));
    }
    fact["mending"] = mutant.mending();
    fact["mended"].push_back(std::move(mended));
  }
  context.facts()["mutants"].push_back(std::move(fact));
}

/// Milliseconds of every step, in place: the median of some runs.
absl::Status TellSteps(Session& session, const std::string& what, Context& context) {
  const std::vector<Tensor> inputs = RandomInputs(session.graph(), 1);
  std::vector<std::span<const std::byte>> sources;
  for (const Tensor& input : inputs) sources.push_back(input.bytes());
  std::vector<std::vector<std::byte>> storage;
  std::vector<std::span<std::byte>> sinks;
  for (const ValueInfo& output : session.outputs()) storage.emplace_back(static_cast<size_t>(ByteSize(output.type)));
  for (auto& bytes : storage) sinks.emplace_back(bytes);
  std::vector<std::vector<double>> times(session.executable().steps().size());
  for (int run = 0; run < 8; ++run) {
    std::vector<double> seconds;
    MENDEL_RETURN_IF_ERROR(session.executable().RunTimed(sources, sinks, seconds));
    for (size_t k = 0; run > 0 && k < seconds.size(); ++k) times[k].push_back(seconds[k] * 1e3);
  }
  context.Line(Cat(what, ":"));
  for (size_t k = 0; k < times.size(); ++k) {
    const Step& step = session.executable().steps()[k];
    const double median = Summarise(times[k]).median_ms;
    context.Line(Cat("  ", Decimals(median, 3), " ms  ", step.name, "  [", step.kernel, "]"));
    context.facts()[what].push_back({{"name", step.name}, {"kernel", step.kernel}, {"ms", median}});
  }
  return absl::OkStatus();
}

/// Writes a .cu file for every correction of the plan, and tells what is in it.
absl::Status EmitCuda(const Graph& graph, const Options& options, Context& context) {
  const KernelWriter* writer = FindKernelWriter("cuda");
  if (writer == nullptr) return Unsupported("this build writes no CUDA text");
  MENDEL_ASSIGN_OR_RETURN(const KernelTexts texts, writer->Write(graph, !options.channels_last));
  std::error_code error;
  std::filesystem::create_directories(options.cuda_folder, error);
  context.facts()["cuda_kernels"] = Json::array();
  for (const KernelText& kernel : texts.kernels) {
    const std::string path = std::filesystem::path(options.cuda_folder) / kernel.file_name;
    std::ofstream file(path);
    file << kernel.text;
    file.close();
    if (!file) return absl::UnavailableError(Cat("cannot write ", path));
    context.Line(Cat(path, " mends ", kernel.mutant));
    for (const std::string& remark : kernel.remarks) context.Line(Cat("  ", remark));
    context.facts()["cuda_kernels"].push_back({{"file", path}, {"mutant", kernel.mutant}, {"remarks", kernel.remarks}});
  }
  for (const std::string& refused : texts.refused) context.Line(Cat("no CUDA kernel: ", refused));
  context.facts()["cuda_refused"] = texts.refused;
  if (texts.kernels.empty() && texts.refused.empty()) context.Line("no mended boxes: no CUDA kernels");
  return absl::OkStatus();
}

absl::Status Explain(const Options& options, Context& context) {
  context.Input(options.plan);
  MENDEL_ASSIGN_OR_RETURN(const Plan plan, ReadPlan(options.plan));
  const plan::PlanInfo& info = plan.info;
  context.Line(Cat(info.model_name(), ": ", Decimals(info.baseline_ms().median_ms(), 3), " -> ",
                   Decimals(info.plan_ms().median_ms(), 3), " ms on ", info.target().identity(), ", ", info.target().threads(),
                   " threads"));
  context.facts()["model"] = info.model_name();
  context.facts()["baseline_ms"] = info.baseline_ms().median_ms();
  context.facts()["plan_ms"] = info.plan_ms().median_ms();
  context.facts()["mutants"] = Json::array();
  if (info.mutants().empty()) context.Line("no mutant won: the plan is the baseline's graph");
  for (const plan::AppliedMutant& mutant : info.mutants()) TellMutant(mutant, context);
  for (const auto& [node, name] : std::map<int32_t, std::string>(info.algorithms().begin(), info.algorithms().end())) {
    const Node& chosen = plan.graph.node(node);
    context.Line(Cat("algorithm ", name, " for ", chosen.name.empty() ? Cat("%", node) : chosen.name));
    context.facts()["algorithms"].push_back({{"node", chosen.name}, {"algorithm", name}});
  }
  if (!options.cuda_folder.empty()) MENDEL_RETURN_IF_ERROR(EmitCuda(plan.graph, options, context));
  if (!options.steps) return absl::OkStatus();
  SessionOptions baseline_options = options.session;
  baseline_options.baseline = true;
  MENDEL_ASSIGN_OR_RETURN(const auto baseline, Session::Create(plan, baseline_options));
  MENDEL_RETURN_IF_ERROR(TellSteps(*baseline, "baseline steps", context));
  MENDEL_ASSIGN_OR_RETURN(const auto chosen, Session::Create(plan, options.session));
  return TellSteps(*chosen, "plan steps", context);
}

Action Setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("plan", options->plan, "Plan file")->required();
  app.add_flag("--steps", options->steps, "Also time every step of baseline and plan");
  CLI::Option* emit =
      app.add_option("--emit-cuda", options->cuda_folder, "Write the CUDA text of the corrections into this folder");
  app.add_flag("--channels-last", options->channels_last, "CUDA text for activations with the channels last")->needs(emit);
  app.add_option("--threads", options->session.threads, "Threads (default: as the plan was tuned)")->check(CLI::PositiveNumber);
  return [options](Context& context) { return Explain(*options, context); };
}

Command Make() { return {"explain", "Tells what was mutated where, what was mended, and what it brought", &Setup}; }

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel
