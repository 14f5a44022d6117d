#include "client/verify_pair.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "base/deadline.h"
#include "base/status.h"
#include "client/format.h"
#include "client/verdict.h"
#include "graph/rewrite.h"
#include "optimizer/refit.h"
#include "runtime/npy.h"
#include "runtime/plan.h"
#include "verifier/compare.h"
#include "verifier/constants.h"
#include "verifier/explain_regions.h"

namespace mendel {
namespace {

constexpr std::string_view kPlanMagic = "MENDELPL";

using Names = std::map<std::string, std::string>;

absl::StatusOr<Graph> LoadProgram(const std::string& path, const ModelOptions& import, Context& context) {
  if (IsPlanFile(path)) {
    context.Input(path);
    MENDEL_ASSIGN_OR_RETURN(const Plan plan, ReadPlan(path));
    return plan.graph;
  }
  absl::StatusOr<ImportResult> model = ImportModel(path, import, context);
  if (!model.ok()) return Annotate(model.status(), path);
  return std::move(model->graph);
}

absl::StatusOr<Names> ParseNames(const std::vector<std::string>& texts) {
  Names names;
  for (const std::string& text : texts) {
    MENDEL_ASSIGN_OR_RETURN(const auto pair, ParseAssignment(text));
    if (!names.insert(pair).second) return InvalidInput("--map pairs '", pair.first, "' twice");
  }
  return names;
}

/// --shapes and --bind name inputs of A: what B's importer is told.
absl::StatusOr<ModelOptions> OptionsOfB(const ModelOptions& options, const Names& names) {
  const auto renamed = [&](const std::string& name) {
    const auto pair = names.find(name);
    return pair == names.end() ? name : pair->second;
  };
  ModelOptions result;
  for (const std::string& text : options.shapes) {
    MENDEL_ASSIGN_OR_RETURN(const auto shapes, ParseShapes(text));
    for (const auto& [name, shape] : shapes) {
      std::string extents;
      for (int64_t extent : shape) extents += Cat(extents.empty() ? "" : "x", extent);
      result.shapes.push_back(Cat(renamed(name), ":", extents.empty() ? "scalar" : extents));
    }
  }
  for (const std::string& text : options.bindings) {
    MENDEL_ASSIGN_OR_RETURN(const auto assignment, ParseAssignment(text));
    result.bindings.push_back(Cat(renamed(assignment.first), "=", assignment.second));
  }
  return result;
}

/// `graph` with only the outputs at these positions.
absl::StatusOr<Graph> WithOutputs(const Graph& graph, const std::vector<size_t>& positions) {
  GraphBuilder builder(graph.name());
  std::vector<ValueId> inputs;
  for (int32_t id : graph.inputs()) inputs.push_back(builder.Input(InputName(graph.node(id)), graph.node(id).outputs[0]));
  MENDEL_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, Inline(graph, inputs, builder));
  for (size_t k : positions) builder.Output(graph.outputs()[k].name, outputs[k]);
  return builder.Build();
}

std::vector<size_t>::difference_type PositionOf(const Graph& graph, const std::string& name) {
  const auto found =
      std::find_if(graph.outputs().begin(), graph.outputs().end(), [&](const auto& output) { return output.name == name; });
  return found == graph.outputs().end() ? -1 : found - graph.outputs().begin();
}

/// Leaves the wanted outputs of A and, in B, those of the same name (after --map), else of the same position.
absl::Status SelectOutputs(const std::vector<std::string>& wanted, const Names& names, Graph& a, Graph& b) {
  std::vector<size_t> of_a;
  std::vector<size_t> of_b;
  for (const std::string& name : wanted) {
    const auto position = PositionOf(a, name);
    if (position < 0) return InvalidInput("A has no output '", name, "'");
    const auto pair = names.find(name);
    auto twin = PositionOf(b, pair == names.end() ? name : pair->second);
    if (twin < 0 && pair == names.end() && a.outputs().size() == b.outputs().size()) twin = position;
    if (twin < 0) return InvalidInput("B has no output '", pair == names.end() ? name : pair->second, "'");
    of_a.push_back(static_cast<size_t>(position));
    of_b.push_back(static_cast<size_t>(twin));
  }
  MENDEL_ASSIGN_OR_RETURN(a, WithOutputs(a, of_a));
  MENDEL_ASSIGN_OR_RETURN(b, WithOutputs(b, of_b));
  return absl::OkStatus();
}

/// Floats as float64: what a witness holds is representable in the input's own dtype.
Tensor ForFile(const Tensor& tensor) {
  if (!IsFloat(tensor.dtype())) return tensor;
  return Tensor::FromDoubles({DType::kF64, tensor.shape()}, tensor.ToDoubles());
}

absl::Status WriteWitnesses(const Graph& a, const std::string& folder, PairVerdict& verdict) {
  int written = 0;
  for (size_t k = 0; k < verdict.report.outputs.size(); ++k) {
    const ComparedOutput& output = verdict.report.outputs[k];
    for (size_t i = 0; i < output.boxes.size(); ++i) {
      if (!output.boxes[i].witness.has_value()) continue;
      const std::filesystem::path place = std::filesystem::path(folder) / Cat("witness_", written++);
      std::error_code code;
      std::filesystem::create_directories(place, code);
      if (code) return absl::ErrnoToStatus(code.value(), Cat("cannot create ", place.string()));
      std::set<std::string> taken;
      for (size_t n = 0; n < a.inputs().size(); ++n) {
        const std::string& name = InputName(a.node(a.inputs()[n]));
        std::string file = FileNameOf(name);
        while (!taken.insert(file).second) file += "_";
        const std::string path = (place / (file + ".npy")).string();
        MENDEL_RETURN_IF_ERROR(WriteNpy(ForFile(output.boxes[i].witness->inputs[n]), path));
        verdict.witness_files[{k, i}][name] = path;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file ? absl::OkStatus() : absl::UnavailableError(Cat("cannot write ", path));
}

struct Pair {
  Graph a;
  Graph b;  ///< with the names of A
  std::vector<std::string> notes;
};

absl::StatusOr<Pair> LoadPair(const PairOptions& options, Context& context) {
  MENDEL_ASSIGN_OR_RETURN(const Names names, ParseNames(options.names));
  MENDEL_ASSIGN_OR_RETURN(Graph a, LoadProgram(options.a, options.import, context));
  MENDEL_ASSIGN_OR_RETURN(const ModelOptions import_b, OptionsOfB(options.import, names));
  MENDEL_ASSIGN_OR_RETURN(Graph b, LoadProgram(options.b, import_b, context));
  if (!options.outputs.empty()) MENDEL_RETURN_IF_ERROR(SelectOutputs(options.outputs, names, a, b));
  MENDEL_ASSIGN_OR_RETURN(MatchedModel matched, MatchInterfaces(a, b, names));
  MENDEL_ASSIGN_OR_RETURN(b, HoldEqualWeightsOnce(a, matched.graph));
  return Pair{std::move(a), std::move(b), std::move(matched.notes)};
}

CompareOptions ComparisonOf(const PairOptions& options, const Deadline& deadline) {
  CompareOptions compare;
  compare.judge.weights = options.weights;
  compare.judge.min_tests = options.tests;
  compare.judge.seed = options.seed;
  compare.judge.deadline = deadline;
  compare.regions = options.regions;
  compare.cut_points = options.cut_points;
  return compare;
}

/// Folded constants explain a "no" better than a witness of rounding does. Where every stored element is the folded one, folding
/// may even have been exact: `last` tells that no proof of that has succeeded.
absl::StatusOr<bool> TryRefit(const Graph& a, const Graph& b, const JudgeOptions& judge, bool last, PairVerdict& verdict) {
  if (!verdict.refit.has_value()) {
    RefitOptions options;
    options.tolerance_ulps = verdict.fold_tolerance;
    options.judge = judge;
    options.seed = judge.seed;
    absl::StatusOr<RefitReport> refit = Refit(a, b, options);
    if (absl::IsUnimplemented(refit.status()) || absl::IsDeadlineExceeded(refit.status())) return false;
    MENDEL_RETURN_IF_ERROR(refit.status());
    verdict.refit = *std::move(refit);
  }
  const auto rounded = [](const RefitTensor& tensor) { return tensor.differing > 0; };
  const std::vector<RefitTensor>& tensors = verdict.refit->tensors;
  return verdict.refit->applies && (last || std::any_of(tensors.begin(), tensors.end(), rounded));
}

}  // namespace

bool IsPlanFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string magic(kPlanMagic.size(), '\0');
  return file.read(magic.data(), static_cast<std::streamsize>(magic.size())) && magic == kPlanMagic;
}

absl::Status VerifyPair(const PairOptions& options, Context& context) {
  Deadline deadline = Deadline::Never();
  if (!options.time_limit.empty()) {
    MENDEL_ASSIGN_OR_RETURN(const double seconds, ParseDuration(options.time_limit));
    deadline = Deadline::After(seconds);
  }
  MENDEL_ASSIGN_OR_RETURN(Pair pair, LoadPair(options, context));
  CompareOptions compare = ComparisonOf(options, deadline);
  PairVerdict verdict;
  verdict.file_a = options.a;
  verdict.file_b = options.b;
  verdict.notes = std::move(pair.notes);
  verdict.weights = options.weights;
  verdict.seed = options.seed;
  verdict.accept_refit = options.fold_tolerance.has_value();
  verdict.fold_tolerance = options.fold_tolerance.value_or(verdict.fold_tolerance);
  if (options.weights == WeightMode::kExact) {
    compare.before_explaining = [&](const Graph& a, const Graph& b, bool last) -> absl::StatusOr<bool> {
      return TryRefit(a, b, compare.judge, last, verdict);
    };
  }
  MENDEL_ASSIGN_OR_RETURN(verdict.report, ComparePrograms(pair.a, pair.b, compare));
  if (verdict.report.verdict == Verdict::kEquivalent) verdict.refit.reset();
  if (!options.witness_folder.empty()) MENDEL_RETURN_IF_ERROR(WriteWitnesses(pair.a, options.witness_folder, verdict));
  if (options.explain_regions) {
    MENDEL_ASSIGN_OR_RETURN(verdict.regions, ExplainRegions(pair.a, pair.b, compare.judge));
  }
  for (const std::string& line : VerdictLines(verdict)) context.Line(line);
  if (verdict.regions.has_value()) context.Line(PrintRegions(*verdict.regions));
  context.facts().update(VerdictJson(verdict));
  context.Answer(ExitCodeOf(verdict));
  if (!options.junit.empty()) MENDEL_RETURN_IF_ERROR(WriteText(options.junit, VerdictJUnit(verdict)));
  return absl::OkStatus();
}

}  // namespace mendel
