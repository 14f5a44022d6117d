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
#include "client/compare_at_sizes.h"
#include "client/format.h"
#include "client/html/pages.h"
#include "client/limits.h"
#include "client/load_pair.h"
#include "client/size_looks.h"
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

/// CompareAtSizes for programs of files.
absl::Status CompareSymbolic(const PairOptions& options, const Deadline& deadline, Context& context,
                             Pair& pair, PairVerdict& verdict) {
  const auto sized = [&, groups = pair.groups](const Sizes& sizes) {
    PairOptions result = options;
    result.import.symbol_sizes = SizesOfNames(groups, &DimensionGroup::a, sizes);
    result.b_sizes = SizesOfNames(groups, &DimensionGroup::b, sizes);
    return result;
  };
  // Most of the time is for the comparisons.
  const auto search = [&] { return deadline.Share(0.25); };
  const SizedComparison by = {[&](const Sizes& sizes) { return LoadPair(sized(sizes), context); },
                              [&](const Sizes& sizes, const Pair& loaded) {
                                return Compared(sized(sizes), loaded, deadline);
                              },
                              [&](const Sizes& sizes) -> absl::StatusOr<PairRelations> {
                                if (deadline.Passed())
                                  return absl::DeadlineExceededError("out of time");
                                return RelationsOfPair(sized(sizes));
                              },
                              [&](const Pair& loaded, bool folded) {
                                return DifferAtOnce(loaded, folded, options.weights, options.seed,
                                                    deadline);
                              },
                              search};
  return CompareAtSizes(by, pair, verdict);
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
    MENDEL_RETURN_IF_ERROR(CompareSymbolic(options, deadline, context, pair, verdict));
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
