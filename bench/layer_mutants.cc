// PET's question, layer by layer. The subjects are the different convolutions of models, and the
// samples of the rules (matrix products, chains, merges, attention). Each subject is timed as it
// is, as its fastest mutant, and with the mutant's correction. All use the fastest of the backend's
// algorithms, interleaved in one process. The time of a correction is that of the corrected program
// less that of the mutant. It is reported for the fastest mutant that needs correction, next to the
// fastest that does not. The table adds the correction's share of the layer's arithmetic. Its last
// line counts the corrections that take at most that share plus one percent of their mutant.
// Algorithms with channels first and last have separate rows. With --each, every mutant of a layer
// and every way of correction has a row. Layers with the most arithmetic come first, --samples of
// each rule last. Work left when --seconds are over is counted; --rows FILE keeps finished rows for
// another run. Nothing is asserted.
//
// usage: layer_mutants [--device cpu|cuda] [--batch 1,8,16,64] [--numerics strict,tf32] [--threads
// N] [--seconds N] [--each]
//                      [--layers N] [--samples N] [--rows FILE] MODEL.onnx...        (exit 77: the
//                      device is not here)

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "bench/conv_layers.h"
#include "bench/expect.h"
#include "bench/laboratory.h"
#include "bench/layer_candidates.h"
#include "bench/layer_rows.h"
#include "mutator/rule.h"
#include "runtime/backend.h"
#include "runtime/numerics.h"

namespace mendel {
namespace {

struct Options {
  std::string device = "cuda";
  std::vector<int64_t> batches = {1, 8, 16, 64};
  std::vector<Numerics> numerics = {Numerics::kStrict, Numerics::kTf32};
  int threads = 1;
  double seconds = 600;
  size_t layers = 100000;
  size_t samples = 1;  // samples of each rule
  std::string rows;
  bool each = false;
  std::vector<std::string> models;
};

std::string Algorithm(const Program& program) {
  return program.algorithm.empty() ? "default" : program.algorithm;
}

/// A subject as one of the backend's precisions and layouts computes it.
struct Combination {
  const Subject& subject;
  Numerics numerics;
  std::string_view layout;

  std::string Description() const {
    return Cat(subject.models, " | ", subject.text, " | ", subject.batch, " | ",
               NumericsName(numerics), " | ", layout);
  }
};

std::string Number(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

MutantRow RowOf(const Combination& combination, const Program& direct, const Program* mutant,
                const Program* corrected) {
  const auto timed = [](const Program& program) {
    return Cat(Number("%.4f", program.milliseconds), " (", Algorithm(program), ")");
  };
  MutantRow row{direct.milliseconds, (mutant != nullptr ? *mutant : direct).milliseconds,
                std::nullopt, 0, ""};
  row.text = Cat("| ", combination.Description(), " | ", timed(direct), " | ");
  if (mutant == nullptr) {
    row.text += "none | - | - | - | - | - | 1.00 |";
  } else if (corrected == nullptr) {
    row.text += Cat(mutant->description, " | ", timed(*mutant), " | - | - | - | - | ",
                    Number("%.2f", row.direct / row.mutant), " |");
  } else {
    row.corrected = corrected->milliseconds;
    row.share = corrected->share;
    const double correction = corrected->milliseconds - mutant->milliseconds;
    row.text += Cat(mutant->description, " | ", timed(*mutant), " | ", corrected->description, ", ",
                    timed(*corrected), " | ", Number("%.4f", correction), " | ",
                    Number("%.2f", 100 * correction / row.mutant), " | ",
                    Number("%.2f", 100 * corrected->share), " | ",
                    Number("%.2f", row.direct / corrected->milliseconds), " |");
  }
  return row;
}

/// Times one mutant beside the layer: a row for the fastest way of correction, or for each.
absl::Status MeasureMutant(const Combination& combination, Program& direct, Candidate& candidate,
                           const Laboratory& laboratory, bool each, std::vector<MutantRow>& rows) {
  MENDEL_ASSIGN_OR_RETURN(std::vector<Program> corrected,
                          CorrectedPrograms(candidate.mutant, laboratory));
  MENDEL_RETURN_IF_ERROR(
      laboratory.Tune(candidate.program, laboratory.Algorithms(candidate.program.graph)));
  std::vector<Program*> programs = {&direct, &candidate.program};
  for (Program& program : corrected) programs.push_back(&program);
  MENDEL_RETURN_IF_ERROR(Laboratory::Compare(programs));
  std::stable_sort(corrected.begin(), corrected.end(), [](const Program& a, const Program& b) {
    return a.milliseconds < b.milliseconds;
  });
  for (size_t k = 0; k < std::max<size_t>(1, each ? corrected.size() : 1); ++k) {
    rows.push_back(RowOf(combination, direct, &candidate.program,
                         corrected.empty() ? nullptr : &corrected[k]));
  }
  return absl::OkStatus();
}

/// The rows of one combination for which the backend has an algorithm in the layout; none where it
/// fails, and the failure is printed.
std::vector<MutantRow> MeasureCombination(const Combination& combination, const Backend& backend,
                                          const Options& options, const Deadline& deadline) {
  const Laboratory laboratory(backend, options.threads, combination.numerics, combination.layout);
  Program direct{combination.subject.graph, "", 0, "", nullptr, 0};
  const absl::Status tuned = laboratory.Tune(direct, laboratory.Algorithms(direct.graph));
  if (!tuned.ok()) {
    std::fprintf(stderr, "%s: %s\n", combination.Description().c_str(),
                 std::string(tuned.message()).c_str());
    return {};
  }
  std::vector<MutantRow> rows;
  std::set<Claim> reported;  // unless each is wanted: the fastest of those that need correction,
                             // and the fastest of the others
  for (Candidate& candidate :
       Candidates(combination.subject, direct.algorithm, laboratory, deadline)) {
    const Claim claim = candidate.mutant.rule->claim;
    if (!reported.empty() && deadline.Passed()) break;
    if (!options.each && reported.count(claim) > 0) continue;
    const absl::Status status =
        MeasureMutant(combination, direct, candidate, laboratory, options.each, rows);
    if (status.ok()) {
      reported.insert(claim);
    } else {
      std::fprintf(stderr, "%s, %s: %s\n", combination.Description().c_str(),
                   candidate.program.description.c_str(), std::string(status.message()).c_str());
    }
  }
  if (rows.empty()) rows.push_back(RowOf(combination, direct, nullptr, nullptr));
  return rows;
}

/// The table while it is printed.
struct Table {
  const Backend& backend;
  const Options& options;
  const Deadline& deadline;
  RowFile& file;
  TableSummary summary = {};
  size_t skipped = 0, measured = 0;  // combinations

  /// The rows of both layouts: those that an earlier run has finished, or new ones until the time
  /// is over.
  void Add(const Subject& subject, Numerics numerics) {
    for (const std::string_view layout : {kChannelsFirst, kChannelsLast}) {
      const Combination combination{subject, numerics, layout};
      const std::string key =
          Cat(backend.Identity(), " | ", combination.Description(), options.each ? " | each" : "");
      if (const std::vector<MutantRow>* const kept = file.Find(key); kept != nullptr) {
        Print(*kept);
        continue;
      }
      if (Laboratory(backend, options.threads, numerics, layout).Algorithms(subject.graph).empty())
        continue;
      if (deadline.Passed()) {
        ++skipped;
        continue;
      }
      const std::vector<MutantRow> rows =
          MeasureCombination(combination, backend, options, deadline);
      Print(rows);
      // Rows cut by the deadline are measured again, unless the whole time was too short.
      const bool cut = measured++ > 0 && deadline.Passed();
      if (rows.empty() || cut) continue;
      const absl::Status status = file.Keep(key, rows);
      if (!status.ok())
        std::fprintf(stderr, "layer_mutants: %s\n", std::string(status.message()).c_str());
    }
  }
  void Print(const std::vector<MutantRow>& rows) {
    for (const MutantRow& row : rows) {
      std::printf("%s\n", row.text.c_str());
      summary.Add(row);
    }
    std::fflush(stdout);
  }
};

/// The requested classes that the backend has kernels of; the others are printed.
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
      backend == nullptr ? absl::NotFoundError(Cat("this build has no backend ", options.device))
                         : backend->Probe();
  if (!there.ok()) {
    std::printf("SKIP: %s\n", std::string(there.message()).c_str());
    return 77;
  }
  std::vector<ConvLayer> layers = Expect(ConvLayersOf(options.models));
  std::printf("%s; %zu different convolutions in %zu models\n\n", backend->Identity().c_str(),
              layers.size(), options.models.size());
  const std::vector<Numerics> classes = Supported(*backend, options);
  layers.resize(std::min(layers.size(), options.layers));
  std::printf(
      "| models | layer | batch | numerics | layout | direct ms | mutant | mutant ms | corrected "
      "ms | "
      "correction ms | %% of the "
      "mutant | "
      "%% of the layer's arithmetic | speed-up "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  const Deadline deadline = Deadline::After(options.seconds);
  RowFile file;
  if (const absl::Status opened = file.Open(options.rows); !opened.ok()) {
    std::fprintf(stderr, "layer_mutants: %s\n", std::string(opened.message()).c_str());
    return 1;
  }
  Table table{*backend, options, deadline, file};
  for (const ConvLayer& layer : layers) {
    for (const int64_t batch : options.batches) {
      const Subject subject{layer.models, LayerText(layer), batch,
                            Expect(LayerGraph(layer, batch))};
      for (const Numerics numerics : classes) table.Add(subject, numerics);
    }
  }
  for (const Subject& subject : Samples(options.samples)) {
    for (const Numerics numerics : classes) table.Add(subject, numerics);
  }
  table.summary.Print(table.skipped);
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
      for (const std::string& part : Parts(value))
        options.batches.push_back(std::atoll(part.c_str()));
    } else if (word == "--numerics") {
      options.numerics.clear();
      for (const std::string& part : Parts(value))
        options.numerics.push_back(Expect(ParseNumerics(part)));
    } else if (word == "--threads") {
      options.threads = std::atoi(value.c_str());
    } else if (word == "--seconds") {
      options.seconds = std::atof(value.c_str());
    } else if (word == "--layers") {
      options.layers = static_cast<size_t>(std::atoll(value.c_str()));
    } else if (word == "--samples") {
      options.samples = static_cast<size_t>(std::atoll(value.c_str()));
    } else if (word == "--rows") {
      options.rows = value;
    } else {
      return false;
    }
  }
  const auto positive = [](int64_t value) { return value > 0; };
  return !options.models.empty() &&
         std::all_of(options.batches.begin(), options.batches.end(), positive) &&
         !options.batches.empty() && !options.numerics.empty() && options.threads > 0 &&
         options.seconds > 0 && options.layers + options.samples > 0;
}

}  // namespace
}  // namespace mendel

int main(int argc, char** argv) {
  mendel::Options options;
  if (!mendel::Parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: layer_mutants [--device cpu|cuda] [--batch 1,8,16,64] [--numerics "
                 "strict,tf32] [--threads N] [--seconds N] "
                 "[--each] [--layers N] [--samples N] [--rows FILE] MODEL.onnx...\n");
    return 2;
  }
  return mendel::Run(options);
}
