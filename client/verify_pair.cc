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
#include "client/html/pages.h"
#include "client/limits.h"
#include "client/symbolic_sizes.h"
#include "client/verdict.h"
#include "graph/rewrite.h"
#include "optimizer/refit/refit.h"
#include "runtime/npy.h"
#include "runtime/plan.h"
#include "runtime/plan_file.h"
#include "verifier/compare.h"
#include "verifier/constants.h"
#include "verifier/regions/explain_regions.h"

namespace mendel {
namespace {

/// Time limit of a comparison of small models; larger models get more.
constexpr double kLeastSeconds = 60;

using Names = std::map<std::string, std::string>;

/// Loads a program and adds dimensions that no shape fixes to `open`.
absl::StatusOr<Graph> LoadProgram(const std::string& path, ModelOptions import, Context& context,
                                  std::set<std::string>& open) {
  if (!import.bytes.has_value() && IsPlanFile(path)) {
    context.Input(path);
    MENDEL_ASSIGN_OR_RETURN(const Plan plan, ReadPlan(path));
    return plan.graph;
  }
  import.keep_inexact_constants = true;
  absl::StatusOr<ImportResult> model = ImportModel(path, import, context);
  if (!model.ok()) return Annotate(model.status(), path);
  open.merge(model->open_dimensions);
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

/// Options of B's importer: --shapes and --bind name inputs of A.
absl::StatusOr<ModelOptions> OptionsOfB(const ModelOptions& options, const Names& names) {
  const auto renamed = [&](const std::string& name) {
    const auto pair = names.find(name);
    return pair == names.end() ? name : pair->second;
  };
  ModelOptions result;
  for (const auto& [dimension, size] : options.symbol_sizes) {
    const size_t colon = dimension.rfind(':');
    const std::string name = dimension.substr(0, colon);
    const bool unnamed = colon != std::string::npos && names.contains(name);
    result.symbol_sizes[unnamed ? renamed(name) + dimension.substr(colon) : dimension] = size;
    result.symbol_sizes[dimension] = size;
  }
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
  for (int32_t id : graph.inputs())
    inputs.push_back(builder.Input(InputName(graph.node(id)), graph.node(id).outputs[0]));
  MENDEL_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, Inline(graph, inputs, builder));
  for (size_t k : positions) builder.Output(graph.outputs()[k].name, outputs[k]);
  return builder.Build();
}

std::vector<size_t>::difference_type PositionOf(const Graph& graph, const std::string& name) {
  const auto found = std::find_if(graph.outputs().begin(), graph.outputs().end(),
                                  [&](const auto& output) { return output.name == name; });
  return found == graph.outputs().end() ? -1 : found - graph.outputs().begin();
}

absl::Status NoOutput(const char* side, const Graph& graph, const std::string& name) {
  std::string names;
  for (const GraphOutput& output : graph.outputs())
    names += Cat(names.empty() ? "'" : ", '", output.name, "'");
  return InvalidInput(side, " has no output '", name, "'; its outputs are ", names);
}

/// Leaves the wanted outputs of A and, in B, those of the same name (after --map), else of the same
/// position.
absl::Status SelectOutputs(const std::vector<std::string>& wanted, const Names& names, Graph& a,
                           Graph& b) {
  std::vector<size_t> of_a;
  std::vector<size_t> of_b;
  for (const std::string& name : wanted) {
    const auto position = PositionOf(a, name);
    if (position < 0) return NoOutput("A", a, name);
    const auto pair = names.find(name);
    auto twin = PositionOf(b, pair == names.end() ? name : pair->second);
    if (twin < 0 && pair == names.end() && a.outputs().size() == b.outputs().size())
      twin = position;
    if (twin < 0) return NoOutput("B", b, pair == names.end() ? name : pair->second);
    of_a.push_back(static_cast<size_t>(position));
    of_b.push_back(static_cast<size_t>(twin));
  }
  MENDEL_ASSIGN_OR_RETURN(a, WithOutputs(a, of_a));
  MENDEL_ASSIGN_OR_RETURN(b, WithOutputs(b, of_b));
  return absl::OkStatus();
}

/// Floats as float64: a witness is representable in the input's own dtype.
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
      const std::filesystem::path place =
          std::filesystem::path(folder) / Cat("witness_", written++);
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
  std::set<std::string> open;  ///< symbolic dimensions that no shape fixes
};

absl::StatusOr<Pair> LoadPair(const PairOptions& options, Context& context) {
  std::set<std::string> open;
  MENDEL_ASSIGN_OR_RETURN(const Names names, ParseNames(options.names));
  ModelOptions import_a = options.import;
  import_a.bytes = options.a_bytes;
  MENDEL_ASSIGN_OR_RETURN(Graph a, LoadProgram(options.a, import_a, context, open));
  MENDEL_ASSIGN_OR_RETURN(ModelOptions import_b, OptionsOfB(options.import, names));
  import_b.bytes = options.b_bytes;
  MENDEL_ASSIGN_OR_RETURN(Graph b, LoadProgram(options.b, import_b, context, open));
  if (!options.outputs.empty()) MENDEL_RETURN_IF_ERROR(SelectOutputs(options.outputs, names, a, b));
  MENDEL_ASSIGN_OR_RETURN(MatchedModel matched, MatchInterfaces(a, b, names));
  MENDEL_ASSIGN_OR_RETURN(b, HoldEqualWeightsOnce(a, matched.graph));
  return Pair{std::move(a), std::move(b), std::move(matched.notes), std::move(open)};
}

CompareOptions ComparisonOf(const PairOptions& options, const Deadline& deadline) {
  CompareOptions compare;
  compare.verifier.weights = options.weights;
  compare.verifier.min_tests = options.tests;
  compare.verifier.seed = options.seed;
  compare.verifier.deadline = deadline;
  compare.regions = options.regions;
  compare.cut_points = options.cut_points;
  return compare;
}

/// Tries whether folded constants explain the difference, which says more than a witness of
/// rounding. If no element differs after refit, folding may have been exact: this answer is used
/// only when `last` is set, after all proofs have failed.
absl::StatusOr<bool> TryRefit(const Graph& a, const Graph& b, const VerifierOptions& verifier,
                              bool last, PairVerdict& verdict) {
  if (!verdict.refit.has_value()) {
    RefitOptions options;
    options.tolerance_ulps = verdict.fold_tolerance;
    options.verifier = verifier;
    options.seed = verifier.seed;
    absl::StatusOr<RefitReport> refit = Refit(a, b, options);
    if (absl::IsUnimplemented(refit.status()) || absl::IsDeadlineExceeded(refit.status()))
      return false;
    MENDEL_RETURN_IF_ERROR(refit.status());
    verdict.refit = *std::move(refit);
  }
  const auto rounded = [](const RefitTensor& tensor) { return tensor.differing > 0; };
  const std::vector<RefitTensor>& tensors = verdict.refit->tensors;
  return verdict.refit->applies && (last || std::any_of(tensors.begin(), tensors.end(), rounded));
}

/// The verdict on one pair of programs of fixed shapes.
absl::StatusOr<PairVerdict> Compared(const PairOptions& options, const Pair& pair,
                                     const Deadline& deadline) {
  CompareOptions compare = ComparisonOf(options, deadline);
  PairVerdict verdict;
  verdict.file_a = options.a;
  verdict.file_b = options.b;
  verdict.notes = pair.notes;
  verdict.weights = options.weights;
  verdict.seed = options.seed;
  verdict.accept_refit = options.fold_tolerance.has_value();
  verdict.fold_tolerance = options.fold_tolerance.value_or(verdict.fold_tolerance);
  if (options.weights == WeightMode::kExact) {
    compare.before_explaining = [&](const Graph& a, const Graph& b,
                                    bool last) -> absl::StatusOr<bool> {
      return TryRefit(a, b, compare.verifier, last, verdict);
    };
  }
  MENDEL_ASSIGN_OR_RETURN(verdict.report, ComparePrograms(pair.a, pair.b, compare));
  if (verdict.report.verdict == Verdict::kEquivalent) verdict.refit.reset();
  const int rounded = verdict.report.RoundedConstants();
  if (verdict.report.verdict == Verdict::kEquivalent && rounded > 0 && verdict.accept_refit &&
      verdict.fold_tolerance < kRoundedUlps) {
    verdict.report.verdict = Verdict::kUnproven;
    verdict.report.reason = Cat(rounded, " constants are rounded by up to ", kRoundedUlps,
                                " ulps, which --fold-tolerance forbids");
  }
  if (options.explain_regions) {
    MENDEL_ASSIGN_OR_RETURN(verdict.regions, ExplainRegions(pair.a, pair.b, compare.verifier));
  }
  return verdict;
}

bool IsEquivalent(const PairVerdict& verdict) {
  return VerdictWord(verdict) == "equivalent" || VerdictWord(verdict) == "equivalent-after-refit";
}

/// Programs with symbolic dimensions are compared at several sizes: `pair` and `verdict` are those
/// of the first size that shows a difference, or of the last one.
absl::Status CompareAtSizes(const PairOptions& options, const Deadline& deadline, Context& context,
                            Pair& pair, PairVerdict& verdict) {
  std::set<std::string> open = pair.open;
  verdict.sizes = {Sizes()};
  for (const std::string& dimension : open) verdict.sizes[0][dimension] = 1;
  std::vector<Sizes> trials = TellingSizes(open, {pair.a, pair.b});
  std::set<std::string> larger;  // dimensions that were larger than 1 in some comparison
  for (size_t k = 0; k < trials.size() && IsEquivalent(verdict); ++k) {
    PairOptions sized = options;
    sized.import.symbol_sizes = trials[k];
    absl::StatusOr<Pair> loaded = LoadPair(sized, context);
    if (absl::IsInvalidArgument(loaded.status()) || absl::IsUnimplemented(loaded.status()))
      continue;  // no program of this size
    MENDEL_RETURN_IF_ERROR(loaded.status());
    // The first four sizes do not depend on the programs; positions in them give the others.
    if (k + 1 == 4) trials = TellingSizes(open, {pair.a, pair.b, loaded->a, loaded->b});
    std::vector<Sizes> proven = std::move(verdict.sizes);
    const bool refitted = VerdictWord(verdict) != "equivalent";
    MENDEL_ASSIGN_OR_RETURN(PairVerdict next, Compared(sized, *loaded, deadline));
    pair = *std::move(loaded);
    if (refitted && VerdictWord(next) == "equivalent") {
      next = std::move(verdict);  // the weaker of two good answers
    }
    const bool equivalent = IsEquivalent(next);
    const bool undecided = next.report.verdict == Verdict::kUnproven && !equivalent;
    verdict = std::move(next);
    verdict.sizes = equivalent || undecided ? std::move(proven) : std::vector<Sizes>();
    if (undecided) {
      verdict.report.reason += Cat("; at the sizes ", SizesText(trials[k]));
      return absl::OkStatus();
    }
    verdict.sizes.push_back(trials[k]);
    for (const auto& [dimension, size] : trials[k]) larger.insert(dimension);
  }
  if (!IsEquivalent(verdict) || larger == open) return absl::OkStatus();
  verdict.refit.reset();
  verdict.report.verdict = Verdict::kUnproven;
  verdict.report.reason = "symbolic dimensions could only be taken as 1; give --shapes for others";
  return absl::OkStatus();
}

/// Reports the verdict for people, as JSON and as JUnit.
absl::Status Report(const PairOptions& options, const PairVerdict& verdict, Context& context) {
  for (const std::string& line : VerdictLines(verdict)) context.Line(line);
  if (verdict.regions.has_value()) context.Line(PrintRegions(*verdict.regions));
  context.facts().update(VerdictJson(verdict));
  context.Answer(ExitCodeOf(verdict));
  if (!options.junit.empty())
    MENDEL_RETURN_IF_ERROR(WriteText(options.junit, VerdictJUnit(verdict)));
  if (options.html.empty()) return absl::OkStatus();
  return WriteText(options.html,
                   VerdictPage(VerdictJson(verdict), Cat("mendel verify ", options.a, " ",
                                                         options.b, " --html ", options.html)));
}

/// Time limit in seconds for two programs, if the caller gives none.
double DefaultSeconds(const Pair& pair) {
  constexpr double kFlops = 2e10;
  return kLeastSeconds * std::max(1.0, (TotalFlops(pair.a) + TotalFlops(pair.b)) / kFlops);
}

/// The report of programs whose comparison is stopped.
StoppedAnswer AnswerWhenStopped(const PairOptions& options, bool json, std::string_view reason) {
  PairVerdict verdict;
  verdict.file_a = options.a;
  verdict.file_b = options.b;
  verdict.weights = options.weights;
  verdict.seed = options.seed;
  verdict.report.reason = std::string(reason);
  StoppedAnswer answer{"", options.junit, "", ExitCodeOf(verdict)};
  if (json)
    answer.text =
        VerdictJson(verdict).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  for (const std::string& line : VerdictLines(verdict)) answer.text += json ? "" : line + "\n";
  if (!options.junit.empty()) answer.file_text = VerdictJUnit(verdict);
  return answer;
}

absl::StatusOr<Limits> LimitsOf(const PairOptions& options) {
  Limits limits{kLeastSeconds, DefaultMemoryLimit()};
  if (!options.time_limit.empty()) {
    MENDEL_ASSIGN_OR_RETURN(limits.seconds, ParseDuration(options.time_limit));
  }
  if (!options.memory_limit.empty()) {
    MENDEL_ASSIGN_OR_RETURN(limits.memory_bytes, ParseBytes(options.memory_limit));
  }
  return limits;
}

}  // namespace

absl::Status ComparePair(const PairOptions& options, const std::atomic<bool>* stop,
                         const std::function<void(double seconds)>& set_limit, Context& context) {
  MENDEL_ASSIGN_OR_RETURN(const Limits limits, LimitsOf(options));
  const Deadline given = Deadline::After(limits.seconds);
  MENDEL_ASSIGN_OR_RETURN(Pair pair, LoadPair(options, context));
  const double left = options.time_limit.empty() ? DefaultSeconds(pair) : given.SecondsLeft();
  if (set_limit != nullptr) set_limit(left);
  const Deadline deadline = Deadline::After(left).StoppedBy(stop);
  MENDEL_ASSIGN_OR_RETURN(PairVerdict verdict, Compared(options, pair, deadline));
  if (!pair.open.empty() && IsEquivalent(verdict))
    MENDEL_RETURN_IF_ERROR(CompareAtSizes(options, deadline, context, pair, verdict));
  if (!options.witness_folder.empty())
    MENDEL_RETURN_IF_ERROR(WriteWitnesses(pair.a, options.witness_folder, verdict));
  return Report(options, verdict, context);
}

absl::Status VerifyPair(const PairOptions& options, Context& context) {
  MENDEL_ASSIGN_OR_RETURN(const Limits limits, LimitsOf(options));
  LimitGuard guard(limits, [&](std::string_view reason) {
    return AnswerWhenStopped(options, context.json(), reason);
  });
  return ComparePair(
      options, nullptr, [&](double seconds) { guard.SetTime(seconds); }, context);
}

}  // namespace mendel
