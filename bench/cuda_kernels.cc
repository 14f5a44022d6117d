// The CUDA text of the corrections of models' mutants: every rule that needs correction is tried at
// every place of a model, and what is corrected by recomputation is written, compiled where NVRTC
// is found, and reported as a row of a table. Of places with one rule and the same shapes the first
// that can be corrected stands for all. Seconds are estimates (roofline of published figures);
// nothing runs on a GPU.
//
// usage: cuda_kernels [--keep DIR] MODEL.onnx...   (--keep: also writes the .cu files)

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "corrector/corrector.h"
#include "mutator/rule.h"
#include "onnx/import.h"
#include "runtime/kernel_text.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

constexpr double kMaxWrongShare = 0.3;
constexpr double kVerifySeconds = 60;
constexpr int kMostTries = 3;  // of one rule and shape

struct Row {
  std::string model, rule, where;
  int places = 1;
  double wrong_share = 0;
  KernelTexts texts;
};

std::string ChoicesText(const Match& match) {
  std::string text;
  for (const auto& [name, value] : match.choices) text += Cat(" ", name, "=", value);
  return text;
}

std::string ShapeOf(const Graph& graph, ValueId value) {
  std::string text;
  for (int64_t extent : graph.type(value).shape) text += Cat(text.empty() ? "" : "x", extent);
  return text;
}

double WrongShare(const VerifierReport& report) {
  int64_t wrong = 0, all = 0;
  for (const OutputReport& output : report.outputs) {
    wrong += output.wrong_elements;
    all += NumElements(output.shape);
  }
  return static_cast<double>(wrong) / static_cast<double>(std::max<int64_t>(1, all));
}

/// Every corrected mutant of one model, by what its kernels compute.
class Collector {
 public:
  explicit Collector(std::string model) : model_(std::move(model)) {}

  void Collect(const Graph& graph) {
    for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
      for (const Rule* rule : AllRules()) {
        if (rule->claim != Claim::kPartial) continue;
        for (const Match& match : rule->match(graph, node, DefaultPredictor()))
          Try(graph, *rule, match);
      }
    }
  }
  const std::vector<Row>& rows() const { return rows_; }
  const std::map<std::string, int>& refused() const { return refused_; }

 private:
  void Try(const Graph& graph, const Rule& rule, const Match& match) {
    const auto mutant = MakeMutant(graph, rule, match, DefaultPredictor());
    if (!mutant.ok()) return;
    const std::string shape =
        Cat(ShapeOf(mutant->original, {mutant->original.inputs()[0], 0}), " to ",
            ShapeOf(mutant->original, mutant->original.outputs()[0].value));
    const std::string alike = Cat(rule.name, " ", shape);
    Seen& seen = seen_[alike];
    if (seen.row >= 0 || ++seen.tries > kMostTries) {
      if (seen.row >= 0) ++rows_[static_cast<size_t>(seen.row)].places;
      return;
    }
    const auto report = Localize(mutant->original, mutant->mutant,
                                 {.target_log2 = 0, .deadline = Deadline::After(kVerifySeconds)});
    if (!report.ok() || report->verdict != Verdict::kPartial) return;
    const auto corrected = Recompute(mutant->original, mutant->mutant, *report, kMaxWrongShare);
    if (!corrected.ok()) return;
    auto texts = FindKernelWriter("cuda")->Write(corrected->graph, {.estimates = true});
    if (!texts.ok()) {
      std::fprintf(stderr, "%s: %s\n", alike.c_str(),
                   std::string(texts.status().message()).c_str());
      return;
    }
    for (const std::string& reason : texts->refused) ++refused_[reason];
    if (texts->kernels.empty()) return;
    seen.row = static_cast<int64_t>(rows_.size());
    std::fprintf(stderr, "%s: %s%s, %s\n", model_.c_str(), std::string(rule.name).c_str(),
                 ChoicesText(match).c_str(), shape.c_str());
    rows_.push_back({model_, Cat(rule.name, ChoicesText(match)), shape, 1, WrongShare(*report),
                     *std::move(texts)});
  }

  struct Seen {
    int64_t row = -1;
    int tries = 0;
  };

  std::string model_;
  std::map<std::string, Seen> seen_;  ///< by rule and shapes
  std::vector<Row> rows_;
  std::map<std::string, int> refused_;
};

void PrintRow(const Row& row, size_t number) {
  for (const KernelText& kernel : row.texts.kernels) {
    std::printf("| %zu | %s | %s | %s | %d | %.1f | %zu | %ld | %ld x %ld | %ld |", number,
                row.model.c_str(), row.rule.c_str(), row.where.c_str(), row.places,
                100 * row.wrong_share, row.texts.kernels.size(), static_cast<long>(kernel.boxes),
                static_cast<long>(kernel.blocks), static_cast<long>(kernel.threads),
                static_cast<long>(kernel.shared));
    for (const KernelEstimate& e : kernel.estimates) {
      if (e.registers > 0) {
        std::printf(" %d / %d / %.0f %% /", e.registers, e.spilled_bytes, 100 * e.occupancy);
      } else {
        std::printf(" not compiled /");
      }
      std::printf(" %.1f / %.1f |", e.kernel_seconds * 1e6, e.mutant_seconds * 1e6);
    }
    std::printf("\n");
  }
}

void Keep(const Row& row, size_t number, const std::string& folder) {
  std::filesystem::create_directories(folder);
  for (const KernelText& kernel : row.texts.kernels) {
    std::ofstream(std::filesystem::path(folder) /
                  Cat(row.model, "_", number, "_", kernel.file_name))
        << kernel.text;
  }
}

int Run(const std::vector<std::string>& models, const std::string& folder) {
  const KernelWriter* writer = FindKernelWriter("cuda");
  if (writer == nullptr) {
    std::printf("SKIP: this build writes no CUDA text\n");
    return 77;
  }
  for (const std::string& line : writer->Describe()) std::printf("%s\n\n", line.c_str());
  std::printf(
      "| # | model | mutant | from, to | places | wrong %% | launches | boxes | blocks x threads | "
      "shared bytes |");
  for (const auto* device : {"A100, sm_80", "H100, sm_90", "B200, sm_100"}) {
    std::printf(
        " %s: registers / spilled bytes / occupancy / estimated us of the correction / of the "
        "mutant |",
        device);
  }
  std::printf("\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const std::string& path : models) {
    const auto model = ImportOnnxFile(path);
    if (!model.ok()) {
      std::fprintf(stderr, "%s: %s\n", path.c_str(), std::string(model.status().message()).c_str());
      return 1;
    }
    Collector collector(std::filesystem::path(path).stem().string());
    collector.Collect(model->graph);
    size_t number = 0;
    for (const Row& row : collector.rows()) {
      PrintRow(row, ++number);
      if (!folder.empty()) Keep(row, number, folder);
    }
    for (const auto& [reason, count] : collector.refused())
      std::fprintf(stderr, "%d x no kernel: %s\n", count, reason.c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace mendel

int main(int argc, char** argv) {
  std::vector<std::string> models;
  std::string folder;
  for (int k = 1; k < argc; ++k) {
    if (std::strcmp(argv[k], "--keep") == 0 && k + 1 < argc) {
      folder = argv[++k];
    } else {
      models.emplace_back(argv[k]);
    }
  }
  if (models.empty()) {
    std::fprintf(stderr, "usage: cuda_kernels [--keep DIR] MODEL.onnx...\n");
    return 2;
  }
  return mendel::Run(models, folder);
}
