// PET's question, layer by layer: for the different convolutions of models, the layer as it is, its fastest mutant, and what
// mending the mutant costs, each by the fastest of the backend's algorithms, interleaved in one process. A mutant's correction is
// the time of the mended program less that of the mutant, told for the fastest mutant that needs mending beside the fastest that
// does not; beside it stand its share of the layer's arithmetic, and at the end, how
// many corrections take at most that share plus one percent of their mutant. With --each, every mutant of a layer and every way of
// mending has a row. Layers that most arithmetic of the models goes to come first; what is left when --seconds are over is counted.
// Nothing is asserted.
//
// usage: layer_mutants [--device cpu|cuda] [--batch 1,8,16] [--numerics strict,tf32] [--threads N] [--seconds N] [--each]
//                      [--layers N] MODEL.onnx...        (exit 77: the device is not here)

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "bench/conv_layers.h"
#include "bench/expect.h"
#include "bench/laboratory.h"
#include "corrector/corrector.h"
#include "mutator/rule.h"
#include "runtime/backend.h"
#include "runtime/numerics.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

constexpr double kMaxWrongShare = 0.3;
constexpr double kJudgeSeconds = 20;

struct Options {
  std::string device = "cuda";
  std::vector<int64_t> batches = {1, 8, 16};
  std::vector<Numerics> numerics = {Numerics::kStrict, Numerics::kTf32};
  int threads = 1;
  double seconds = 600;
  size_t layers = 100000;
  bool each = false;
  std::vector<std::string> models;
};

std::string Told(const Rule& rule, const Match& match) {
  std::string text(rule.name);
  for (const auto& [name, value] : match.choices) text += Cat(" ", name, "=", value);
  return text;
}

/// A mutant that can be compiled, by the algorithm that the layer itself takes where it is offered.
struct Candidate {
  Mutant mutant;
  Program program;
};

/// The fastest first; those of the first rules only when the time is over before all were tried.
std::vector<Candidate> Candidates(const Graph& layer, const std::string& algorithm, const Laboratory& laboratory,
                                  const Deadline& deadline) {
  std::vector<Candidate> all;
  for (const Rule* rule : AllRules()) {
    if (rule->stage != Stage::kSearch || rule->reads_values) continue;
    for (const Match& match : rule->match(layer, layer.outputs()[0].value.node)) {
      if (!all.empty() && deadline.Passed()) break;
      auto mutant = MakeMutant(layer, *rule, match);
      if (!mutant.ok()) continue;  // the match turned out not to apply
      Candidate candidate{*std::move(mutant), {}};
      candidate.program.graph = candidate.mutant.mutant;
      candidate.program.told = Told(*rule, match);
      const std::vector<std::string> offered = laboratory.Algorithms(candidate.program.graph);
      const bool same = std::find(offered.begin(), offered.end(), algorithm) != offered.end();
      const absl::Status tuned = laboratory.Tune(candidate.program, {same ? algorithm : offered.back()});
      if (!tuned.ok()) {
        std::fprintf(stderr, "%s: %s\n", candidate.program.told.c_str(), std::string(tuned.message()).c_str());
        continue;
      }
      all.push_back(std::move(candidate));
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.program.milliseconds < b.program.milliseconds; });
  return all;
}

/// The mutant mended in every way; empty for one that is equal everywhere, and FailedPrecondition for one that cannot be mended.
absl::StatusOr<std::vector<Program>> MendedPrograms(const Mutant& mutant, const Laboratory& laboratory) {
  std::vector<Program> programs;
  if (mutant.rule->claim == Claim::kExact) return programs;
  MENDEL_ASSIGN_OR_RETURN(const auto report,
                          Localise(mutant.original, mutant.mutant, {.target_log2 = 0, .deadline = Deadline::After(kJudgeSeconds)}));
  if (report.verdict == Verdict::kEquivalent) return programs;
  if (report.verdict != Verdict::kPartial) return absl::FailedPreconditionError(Cat("not partly equal: ", report.reason));
  for (const Mend mend : kWaysOfMending) {
    auto mended = mend(mutant.original, mutant.mutant, report, kMaxWrongShare);
    if (!mended.ok()) continue;  // not of the kind that this way mends
    Program program{std::move(mended->graph), std::string(MendingName(mended->mending)), mended->flop_share, "", nullptr, 0};
    MENDEL_RETURN_IF_ERROR(laboratory.Tune(program, laboratory.Algorithms(program.graph)));
    programs.push_back(std::move(program));
  }
  if (programs.empty()) return absl::FailedPreconditionError("no way of mending applies");
  return programs;
}

/// What the whole table shows.
class Summary {
 public:
  void Add(const Program& direct, const Program& mutant, const Program* mended) {
    logs_ += std::log(std::max(1.0, direct.milliseconds / (mended != nullptr ? mended : &mutant)->milliseconds));
    ++rows_;
    if (mended == nullptr) return;
    ++corrections_;
    const double correction = mended->milliseconds - mutant.milliseconds;
    within_ += correction <= (mended->share * direct.milliseconds + 0.01 * mutant.milliseconds) ? 1 : 0;
    over_.push_back(100 * correction / mutant.milliseconds);
  }
  void Print(size_t skipped) {
    std::printf("\n%d rows, geometric mean of the speed-ups where there is one (else 1) %.3f", rows_,
                rows_ > 0 ? std::exp(logs_ / rows_) : 1);
    if (!over_.empty()) {
      std::sort(over_.begin(), over_.end());
      std::printf(
          "; %d of %d corrections take at most their arithmetic share of the layer's time plus 1 %% of the mutant's; median %.2f "
          "%% "
          "of the mutant, largest %.2f %%",
          within_, corrections_, over_[over_.size() / 2], over_.back());
    }
    std::printf("%s\n", skipped > 0 ? Cat("; ", skipped, " not measured: the time was over").c_str() : "");
  }

 private:
  int rows_ = 0, corrections_ = 0, within_ = 0;
  double logs_ = 0;
  std::vector<double> over_;
};

std::string Algorithm(const Program& program) { return program.algorithm.empty() ? "default" : program.algorithm; }

void PrintRow(const ConvLayer& layer, int64_t batch, Numerics numerics, const Program& direct, const Program& mutant,
              const Program* mended) {
  std::printf("| %s | %s | %d | %s | %.4f (%s) | %s | %.4f (%s) |", layer.models.c_str(), LayerText(layer).c_str(),
              static_cast<int>(batch), std::string(NumericsName(numerics)).c_str(), direct.milliseconds, Algorithm(direct).c_str(),
              mutant.told.c_str(), mutant.milliseconds, Algorithm(mutant).c_str());
  if (mended == nullptr) {
    std::printf(" - | - | - | - | %.2f |\n", direct.milliseconds / mutant.milliseconds);
  } else {
    const double correction = mended->milliseconds - mutant.milliseconds;
    std::printf(" %s, %.4f (%s) | %.4f | %.2f | %.2f | %.2f |\n", mended->told.c_str(), mended->milliseconds,
                Algorithm(*mended).c_str(), correction, 100 * correction / mutant.milliseconds, 100 * mended->share,
                direct.milliseconds / mended->milliseconds);
  }
  std::fflush(stdout);
}

/// Times one mutant beside the layer: a row for the fastest way of mending, or for each.
absl::Status MeasureMutant(const ConvLayer& layer, int64_t batch, Numerics numerics, Program& direct, Candidate& candidate,
                           const Laboratory& laboratory, bool each, Summary& summary) {
  MENDEL_ASSIGN_OR_RETURN(std::vector<Program> mended, MendedPrograms(candidate.mutant, laboratory));
  MENDEL_RETURN_IF_ERROR(laboratory.Tune(candidate.program, laboratory.Algorithms(candidate.program.graph)));
  std::vector<Program*> programs = {&direct, &candidate.program};
  for (Program& program : mended) programs.push_back(&program);
  MENDEL_RETURN_IF_ERROR(Laboratory::Compare(programs));
  std::stable_sort(mended.begin(), mended.end(),
                   [](const Program& a, const Program& b) { return a.milliseconds < b.milliseconds; });
  for (size_t k = 0; k < std::max<size_t>(1, each ? mended.size() : 1); ++k) {
    const Program* const way = mended.empty() ? nullptr : &mended[k];
    PrintRow(layer, batch, numerics, direct, candidate.program, way);
    summary.Add(direct, candidate.program, way);
  }
  return absl::OkStatus();
}

void MeasureLayer(const ConvLayer& layer, int64_t batch, Numerics numerics, const Backend& backend, const Options& options,
                  const Deadline& deadline, Summary& summary) {
  const Laboratory laboratory(backend, options.threads, numerics);
  Program direct{Expect(LayerGraph(layer, batch)), "", 0, "", nullptr, 0};
  const absl::Status tuned = laboratory.Tune(direct, laboratory.Algorithms(direct.graph));
  const std::string where = Cat(LayerText(layer), ", batch ", batch, ", ", NumericsName(numerics));
  if (!tuned.ok()) return static_cast<void>(std::fprintf(stderr, "%s: %s\n", where.c_str(), std::string(tuned.message()).c_str()));
  std::set<Claim> told;  // unless each is wanted: the fastest of those that need mending, and the fastest of the others
  for (Candidate& candidate : Candidates(direct.graph, direct.algorithm, laboratory, deadline)) {
    const Claim claim = candidate.mutant.rule->claim;
    if (!told.empty() && deadline.Passed()) break;
    if (!options.each && told.count(claim) > 0) continue;
    const absl::Status status = MeasureMutant(layer, batch, numerics, direct, candidate, laboratory, options.each, summary);
    if (status.ok()) {
      told.insert(claim);
    } else {
      std::fprintf(stderr, "%s, %s: %s\n", where.c_str(), candidate.program.told.c_str(), std::string(status.message()).c_str());
    }
  }
  if (told.empty()) {
    std::printf("| %s | %s | %d | %s | %.4f (%s) | none | - | - | - | - | - | 1.00 |\n", layer.models.c_str(),
                LayerText(layer).c_str(), static_cast<int>(batch), std::string(NumericsName(numerics)).c_str(), direct.milliseconds,
                Algorithm(direct).c_str());
  }
}

/// Of the classes asked for, those that the backend has kernels of; the others are named.
std::vector<Numerics> Supported(const Backend& backend, const Options& options) {
  std::vector<Numerics> supported;
  for (const Numerics numerics : options.numerics) {
    const absl::Status status = backend.Supports(numerics);
    if (status.ok()) {
      supported.push_back(numerics);
    } else {
      std::printf("left out: numerics %s: %s\n\n", std::string(NumericsName(numerics)).c_str(),
                  std::string(status.message()).c_str());
    }
  }
  return supported;
}

int Run(const Options& options) {
  const Backend* const backend = FindBackend(options.device);
  const absl::Status there =
      backend == nullptr ? absl::NotFoundError(Cat("this build has no backend ", options.device)) : backend->Probe();
  if (!there.ok()) {
    std::printf("SKIP: %s\n", std::string(there.message()).c_str());
    return 77;
  }
  std::vector<ConvLayer> layers = Expect(ConvLayersOf(options.models));
  std::printf("%s; %zu different convolutions in %zu models\n\n", backend->Identity().c_str(), layers.size(),
              options.models.size());
  const std::vector<Numerics> classes = Supported(*backend, options);
  layers.resize(std::min(layers.size(), options.layers));
  std::printf(
      "| models | layer | batch | numerics | direct ms | mutant | mutant ms | mended ms | correction ms | %% of the mutant | "
      "%% of the layer's arithmetic | speed-up |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  const Deadline deadline = Deadline::After(options.seconds);
  Summary summary;
  size_t skipped = 0;
  for (const ConvLayer& layer : layers) {
    for (const int64_t batch : options.batches) {
      for (const Numerics numerics : classes) {
        if (deadline.Passed()) {
          ++skipped;
        } else {
          MeasureLayer(layer, batch, numerics, *backend, options, deadline, summary);
        }
      }
    }
  }
  summary.Print(skipped);
  return 0;
}

std::vector<std::string> Parts(const std::string& list) {
  std::vector<std::string> parts;
  std::stringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

/// False for wrong usage.
bool Parse(int argc, char** argv, Options& options) {
  for (int k = 1; k < argc; ++k) {
    const std::string word = argv[k];
    if (word == "--each") {
      options.each = true;
      continue;
    }
    if (word.compare(0, 2, "--") != 0) {
      options.models.push_back(word);
      continue;
    }
    if (k + 1 >= argc) return false;
    const std::string value = argv[++k];
    if (word == "--device") {
      options.device = value;
    } else if (word == "--batch") {
      options.batches.clear();
      for (const std::string& part : Parts(value)) options.batches.push_back(std::atoll(part.c_str()));
    } else if (word == "--numerics") {
      options.numerics.clear();
      for (const std::string& part : Parts(value)) options.numerics.push_back(Expect(ParseNumerics(part)));
    } else if (word == "--threads") {
      options.threads = std::atoi(value.c_str());
    } else if (word == "--seconds") {
      options.seconds = std::atof(value.c_str());
    } else if (word == "--layers") {
      options.layers = static_cast<size_t>(std::atoll(value.c_str()));
    } else {
      return false;
    }
  }
  const auto positive = [](int64_t value) { return value > 0; };
  return !options.models.empty() && std::all_of(options.batches.begin(), options.batches.end(), positive) &&
         !options.batches.empty() && !options.numerics.empty() && options.threads > 0 && options.seconds > 0 && options.layers > 0;
}

}  // namespace
}  // namespace mendel

int main(int argc, char** argv) {
  mendel::Options options;
  if (!mendel::Parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: layer_mutants [--device cpu|cuda] [--batch 1,8,16] [--numerics strict,tf32] [--threads N] [--seconds "
                 "N] [--each] "
                 "[--layers N] MODEL.onnx...\n");
    return 2;
  }
  return mendel::Run(options);
}
