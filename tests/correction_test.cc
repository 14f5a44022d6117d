// Every family of partial mutants, at random shapes. The mutant, its wrong boxes, and each way of
// correcting it (recompute, difference, inside, end, elementwise, prevent) are verified. They are
// evaluated in double, and executed on the CPU backend against float64 at every element.
// MENDEL_CORRECTION_CASES and MENDEL_CORRECTION_SEED choose the number of cases and their seed
// (scripts/soak correction). With MENDEL_CORRECTION_EMULATE the CUDA text of every correction is
// executed too (scripts/soak cuda_correction).

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "base/status.h"
#include "corrector/corrector.h"
#include "graph/evaluate.h"
#include "graph/random_graph.h"
#include "graph/text.h"
#include "kernels/cuda/testing/correction_case.h"
#include "kernels/cuda/testing/emulator/device.h"
#include "mutator/conv_chain.h"
#include "mutator/rule.h"
#include "runtime/backend.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

uint64_t Setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// The exact rule that does the same as this partial one without correction.
const Rule* Preventing(std::string_view partial) {
  const std::pair<std::string_view, std::string_view> kPairs[] = {
      {"batch_to_space", "batch_to_space_gap"},
      {"dilation_stack", "dilation_to_batch"},
      {"space_to_batch", "space_to_batch_halo"}};
  for (const auto& [rule, exact] : kPairs) {
    if (rule == partial) return FindRule(exact);
  }
  return nullptr;
}

/// Convolutions of every geometry that the families accept: odd extents, groups, dilations, uneven
/// padding, 1-D to 3-D, batches.
absl::StatusOr<Graph> RandomChain(Rng& rng) {
  ConvSample sample;
  const size_t spatial = rng.Flip(0.7) ? 2 : rng.Flip() ? 1 : 3;
  constexpr int64_t kBatches[] = {1, 2, 3, 4, 6, 8, 16};
  const int64_t batch = kBatches[rng.Below(spatial == 3 ? 4 : 7)];
  sample.group = rng.Flip(0.25) ? rng.Between(2, 3) : 1;
  const int64_t in = sample.group * rng.Between(1, 5);
  sample.length = rng.Flip(0.3) ? static_cast<int>(rng.Between(2, 6)) : 1;
  const int64_t out = sample.length > 1 ? in : sample.group * rng.Between(1, 5);
  sample.input = {batch, in};
  sample.weight = {out, in / sample.group};
  sample.pads.resize(2 * spatial);
  const int64_t dilation = rng.Flip(0.4) ? rng.Between(2, 3) : 1;
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t kernel = rng.Flip(0.2) ? 1 : rng.Between(2, spatial == 3 ? 3 : 5);
    const int64_t own = kernel == 1 ? 1 : dilation;
    const int64_t reach = (kernel - 1) * own;
    const bool keeps = rng.Flip(0.8) || sample.length > 1;
    sample.strides.push_back(rng.Flip(0.15) && sample.length == 1 ? 2 : 1);
    sample.dilations.push_back(own);
    sample.weight.push_back(kernel);
    // Mostly padding that keeps the extent, even or uneven; sometimes any other.
    sample.pads[d] = rng.Flip() ? rng.Between(0, reach / own) * own : reach / 2;
    sample.pads[spatial + d] = keeps ? reach - sample.pads[d] : rng.Between(0, reach);
    const int64_t least = std::max<int64_t>(2, reach + 1);
    const int64_t largest = spatial == 3 ? 6 : 13;
    sample.input.push_back(rng.Flip(0.4) ? own * rng.Between(4, 9)
                                         : rng.Between(least, least + largest));
  }
  sample.bias = rng.Flip();
  sample.relu = rng.Flip(0.6);
  return MakeConvSample(sample);
}

/// Corrections as CUDA text in the emulator, compiled in groups and compared with their meaning
/// over the mutant's whole output.
class Emulation {
 public:
  void Add(const Graph& corrected, const std::string& key, const std::string& description,
           uint64_t seed) {
    const auto layout = seed % 2 == 0 ? cuda::Layout::kNchw : cuda::Layout::kNhwc;
    auto one = cuda::MakeCase(corrected, layout, Cat("m", cases_.size(), "_"));
    if (absl::IsUnimplemented(one.status())) {
      const std::string message(one.status().message());
      ++refused_[Cat(
          key, ": ",
          message.substr(message.find(':') == std::string::npos ? 0 : message.find(':') + 2))];
      return;
    }
    ASSERT_TRUE(one.ok()) << one.status() << description;
    one->description = description;
    one->seed = seed;
    one->exact = false;  // weights are any numbers
    ++executed_[key];
    boxes_ += corrected.node(PatchOf(corrected)).inputs.size() - 1;
    texts_.insert(texts_.end(), one->kernels.begin(), one->kernels.end());
    cases_.push_back(*std::move(one));
    if (texts_.size() >= kTogether) Run();
  }

  void Run() {
    if (cases_.empty()) return;
    const auto module = cuda::EmulatorDevice().Load(texts_);
    ASSERT_TRUE(module.ok()) << module.status();
    for (const cuda::CorrectionCase& one : cases_) {
      const absl::Status status = cuda::RunCase(one, **module);
      ASSERT_TRUE(status.ok()) << status;
    }
    kernels_ += texts_.size();
    cases_.clear();
    texts_.clear();
  }

  void Print() const {
    for (const auto& [key, count] : executed_)
      std::printf("  %-40s %5d emulated and equal\n", key.c_str(), count);
    for (const auto& [key, count] : refused_)
      std::printf("    %5d no kernel: %s\n", count, key.c_str());
    std::printf("  %zu kernels, %zu boxes\n", kernels_, boxes_);
  }

  static int32_t PatchOf(const Graph& graph) {
    for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
      if (graph.node(id).op->name == "Patch") return id;
    }
    return -1;
  }

 private:
  static constexpr size_t kTogether = 24;

  std::vector<cuda::CorrectionCase> cases_;
  std::vector<cuda::EmittedKernel> texts_;
  std::map<std::string, int> executed_, refused_;
  size_t kernels_ = 0, boxes_ = 0;
};

/// Scores of one way of correction.
struct Score {
  int corrected = 0;
  std::map<std::string, int> refused;
};

class Cases {
 public:
  explicit Cases(bool emulate) : emulate_(emulate) {}

  void Run(uint64_t first, uint64_t cases) {
    for (uint64_t seed = first; total_ < cases; ++seed) {
      last_ = seed;
      Rng rng(seed);
      for (const Rule* rule : AllRules()) {
        if (rule->claim != Claim::kPartial) continue;
        // The family's own sample every other time: it always matches.
        const auto graph = rng.Flip() ? RandomChain(rng) : rule->sample(rng);
        if (!graph.ok()) continue;  // the shapes do not fit
        SCOPED_TRACE(testing::Message() << "seed " << seed << " rule " << rule->name);
        TryRule(*rule, *graph, seed, rng);
        if (testing::Test::HasFailure()) return;
      }
    }
    emulation_.Run();
  }

  void Print(uint64_t first) const {
    std::printf("[ seeds %llu..%llu: %llu partial mutants ]\n",
                static_cast<unsigned long long>(first), static_cast<unsigned long long>(last_),
                static_cast<unsigned long long>(total_));
    for (const auto& [key, score] : scores_) {
      std::printf("  %-40s %5d corrected, executed and equal\n", key.c_str(), score.corrected);
      for (const auto& [reason, count] : score.refused)
        std::printf("    %5d not: %s\n", count, reason.c_str());
    }
    for (const auto& [kernel, count] : kernels_) std::printf("  %5d x %s\n", count, kernel.c_str());
    if (emulate_) emulation_.Print();
  }

 private:
  void TryRule(const Rule& rule, const Graph& graph, uint64_t seed, Rng& rng) {
    std::vector<Match> matches;
    for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
      for (Match& match : rule.match(graph, node, DefaultPredictor()))
        matches.push_back(std::move(match));
    }
    if (matches.empty()) return;
    const auto mutant =
        MakeMutant(graph, rule, matches[rng.Below(matches.size())], DefaultPredictor());
    if (absl::IsFailedPrecondition(mutant.status())) return;
    ASSERT_TRUE(mutant.ok()) << mutant.status() << "\n" << PrintGraph(graph);
    const auto report = Localize(mutant->original, mutant->mutant, {.seed = seed});
    ASSERT_TRUE(report.ok()) << report.status() << PrintGraph(mutant->original)
                             << PrintGraph(mutant->mutant);
    if (report->verdict != Verdict::kPartial) return;
    ++total_;
    const std::string family(rule.name);
    TryCorrection(family + " recompute", *mutant,
                  Recompute(mutant->original, mutant->mutant, *report, 1), seed, rng);
    TryCorrection(family + " difference", *mutant,
                  Difference(mutant->original, mutant->mutant, *report, 1), seed, rng);
    TryCorrection(family + " inside", *mutant, Inside(mutant->original, mutant->mutant, *report, 1),
                  seed, rng);
    TryCorrection(family + " end", *mutant, AtEnd(mutant->original, mutant->mutant, *report, 1),
                  seed, rng);
    TryCorrection(family + " elementwise", *mutant,
                  InElementwise(mutant->original, mutant->mutant, *report, 1), seed, rng);
    TryPrevent(family + " prevent", rule, *mutant, seed, rng);
  }

  void TryCorrection(const std::string& key, const Mutant& mutant,
                     const absl::StatusOr<CorrectedMutant>& corrected, uint64_t seed, Rng& rng) {
    if (!corrected.ok()) {
      // A difference has conditions; recomputation works for every wrong box.
      ASSERT_TRUE(absl::IsFailedPrecondition(corrected.status())) << corrected.status();
      ASSERT_EQ(key.find("recompute"), std::string::npos) << corrected.status();
      ++scores_[key].refused[std::string(corrected.status().message())];
      return;
    }
    ++scores_[key].corrected;
    Check(key, mutant.original, corrected->graph, seed, rng);
    const bool patched = Emulation::PatchOf(corrected->graph) >= 0;
    if (emulate_ && patched) emulation_.Add(corrected->graph, key, Cat(key, " seed ", seed), seed);
  }

  /// The exact rule on the same subprogram, where it applies.
  void TryPrevent(const std::string& key, const Rule& rule, const Mutant& mutant, uint64_t seed,
                  Rng& rng) {
    const Rule* exact = Preventing(rule.name);
    if (exact == nullptr) {
      ++scores_[key].refused["no exact variant of this family"];
      return;
    }
    const int32_t last = mutant.original.outputs()[0].value.node;
    std::vector<Match> matches = exact->match(mutant.original, last, DefaultPredictor());
    // The match that takes the whole subprogram.
    const Match* match = nullptr;
    for (const Match& candidate : matches) {
      const bool whole = match == nullptr || candidate.nodes.size() > match->nodes.size();
      if (whole) match = &candidate;
    }
    if (match == nullptr) {
      ++scores_[key].refused[Cat(exact->name, " does not match")];
      return;
    }
    const auto prevented = MakeMutant(mutant.original, *exact, *match, DefaultPredictor());
    ASSERT_TRUE(prevented.ok()) << prevented.status();
    ++scores_[key].corrected;
    const auto whole = Replace(mutant.original, prevented->place, prevented->mutant);
    ASSERT_TRUE(whole.ok()) << whole.status();
    Check(key, mutant.original, *whole, seed, rng);
  }

  void Check(const std::string& key, const Graph& original, const Graph& corrected, uint64_t seed,
             Rng& rng) {
    const std::string where =
        Cat(key, " seed ", seed, "\n", PrintGraph(original), PrintGraph(corrected));
    const auto verified = Localize(original, corrected, {.seed = seed + 1});
    ASSERT_TRUE(verified.ok()) << verified.status() << where;
    ASSERT_EQ(verified->verdict, Verdict::kEquivalent) << verified->reason << where;
    std::vector<HostValue> inputs = RandomInputs(rng, original);
    for (HostValue& input : inputs) input = HostValue::FromTensor(input.ToTensor());
    const auto reference = Evaluate(original, inputs);
    const auto exact = Evaluate(corrected, inputs);
    ASSERT_TRUE(reference.ok() && exact.ok()) << where;
    std::vector<Tensor> tensors;
    for (const HostValue& input : inputs) tensors.push_back(input.ToTensor());
    auto executable =
        FindBackend("cpu")->Compile(corrected, {.threads = static_cast<int>(1 + seed % 2)});
    ASSERT_TRUE(executable.ok()) << executable.status() << where;
    const auto computed = RunOnTensors(**executable, corrected, tensors);
    ASSERT_TRUE(computed.ok()) << computed.status() << where;
    double largest = 1;
    for (double value : (*reference)[0].scalars) largest = std::max(largest, std::fabs(value));
    for (int64_t i = 0; i < (*computed)[0].size(); ++i) {
      ASSERT_NEAR((*reference)[0].At(i), (*exact)[0].At(i), 1e-10 * largest)
          << "element " << i << " in double, " << where;
      ASSERT_NEAR((*reference)[0].At(i), (*computed)[0].DoubleAt(i), 1e-4 * largest)
          << "element " << i << " on the CPU, " << where;
    }
    for (const Step& step : (*executable)->steps()) {
      const bool patch =
          step.kernel.compare(0, 6, "strips") == 0 || step.kernel.compare(0, 5, "patch") == 0;
      if (!patch) continue;
      const size_t reason = step.kernel.find('(');
      ++kernels_[Cat(
          step.kernel.substr(0, step.kernel.find(' ')), " ",
          reason == std::string::npos ? "" : step.kernel.substr(step.kernel.find(':', reason)))];
    }
  }

  const bool emulate_;
  Emulation emulation_;
  std::map<std::string, Score> scores_;
  std::map<std::string, int> kernels_;
  uint64_t total_ = 0;
  uint64_t last_ = 0;
};

TEST(Correction, EveryWayOfEveryFamilyEqualsTheOriginalEverywhere) {
  if (FindBackend("cpu") == nullptr) GTEST_SKIP() << "no backend cpu";
  const uint64_t seed = Setting("MENDEL_CORRECTION_SEED", 1);
  Cases cases(Setting("MENDEL_CORRECTION_EMULATE", 0) != 0);
  cases.Run(seed, Setting("MENDEL_CORRECTION_CASES", 48));
  cases.Print(seed);
}

}  // namespace
}  // namespace mendel
