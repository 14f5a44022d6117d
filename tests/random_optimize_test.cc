// Random programs over all operators through the whole optimizer with every rule on, by both search
// methods: the certificate is replayed, the plan is executed and compared with float64. Costs are
// those of random machines (pretended_machines.h), so that plans are full of mutants and the search
// repeats.
//
// MENDEL_RANDOM_GRAPHS and MENDEL_RANDOM_SEED choose the number and the seed (scripts/soak
// random-graphs). MENDEL_RANDOM_MEASURED is the number of programs that are optimized with a real
// clock and measured against their baselines.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/text.h"
#include "optimizer/certificate_proto.h"
#include "optimizer/pipeline.h"
#include "runtime/measure.h"
#include "tests/pretended_machines.h"
#include "tests/program_source.h"
#include "tests/random_network.h"

namespace mendel {
namespace {

constexpr double kRealError = 1e-9;      // in double, relative to an output's largest element
constexpr double kExecutedError = 1e-4;  // in the program's own precision
constexpr double kHalfError = 4e-2;
constexpr int kAttempts = 200;  // programs tried to shrink one

/// The current case, for the message of a crash.
volatile std::sig_atomic_t running = 0;

extern "C" void NameTheSeed(int signal) {
  char text[] = "crashed at seed ........................\n";
  std::snprintf(text + 16, 22, "%ld", static_cast<long>(running));
  std::fputs(text, stderr);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

double Scale(const HostValue& value) {
  double scale = 1e-30;
  for (int64_t i = 0; i < NumElements(value.type); ++i) {
    if (std::isfinite(value.At(i))) scale = std::max(scale, std::abs(value.At(i)));
  }
  return scale;
}

/// Largest difference relative to the largest element of `want`; infinite where only one of two
/// elements is finite.
double Difference(const HostValue& want, const HostValue& have) {
  double error = 0;
  for (int64_t i = 0; i < NumElements(want.type); ++i) {
    const double a = want.At(i), b = have.At(i);
    if (std::isfinite(a) && std::isfinite(b)) {
      error = std::max(error, std::abs(a - b));
    } else if (a != b && !(std::isnan(a) && std::isnan(b))) {
      return std::numeric_limits<double>::infinity();
    }
  }
  return error / Scale(want);
}

std::vector<HostValue> Host(const std::vector<Tensor>& tensors) {
  std::vector<HostValue> values;
  for (const Tensor& tensor : tensors) values.push_back(HostValue::FromTensor(tensor));
  return values;
}

/// The move of every output when the inputs move by rounding errors of size `epsilon`: no program
/// can do better.
std::vector<double> Sensitivity(const Graph& graph, const std::vector<HostValue>& inputs,
                                const std::vector<HostValue>& outputs, double epsilon) {
  std::vector<double> moved(outputs.size(), 0);
  for (uint64_t draw = 0; draw < 6; ++draw) {
    Rng rng(draw);
    std::vector<HostValue> near = inputs;
    for (HostValue& value : near) {
      for (double& x : value.scalars) x *= 1 + epsilon * rng.Uniform(-1, 1);
    }
    const auto there = Evaluate(graph, near);
    if (!there.ok()) continue;
    for (size_t k = 0; k < moved.size(); ++k)
      moved[k] = std::max(moved[k], Difference(outputs[k], (*there)[k]));
  }
  return moved;
}

double Precision(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 ? kHalfError : kExecutedError;
}

bool HoldsHalf(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    for (const TensorType& type : node.outputs) {
      if (Precision(type.dtype) > kExecutedError) return true;
    }
  }
  return false;
}

absl::StatusOr<std::vector<HostValue>> Executed(const Graph& graph, const Algorithms& algorithms,
                                                const std::vector<Tensor>& inputs) {
  MENDEL_ASSIGN_OR_RETURN(const auto program, FindBackend("cpu")->Compile(
                                                  graph, {.threads = 1, .algorithms = algorithms}));
  MENDEL_ASSIGN_OR_RETURN(const auto outputs, RunOnTensors(*program, graph, inputs));
  return Host(outputs);
}

struct Counts {
  std::map<std::string, int64_t> rules;  ///< in plans
  std::map<std::string, int64_t> notes;
  int64_t operators = 0, proposed = 0, corrected = 0, changed = 0;
};

/// One program through the optimizer.
class Case {
 public:
  Case(uint64_t seed, Counts* counts) : seed_(seed), counts_(counts) {}

  /// The error, or "".
  std::string Check(const Graph& graph) const {
    const auto cache = ProfileCache::Open(":memory:");
    if (!cache.ok()) return std::string(cache.status().message());
    const auto result = Optimize(graph, Options(), **cache);
    if (!result.ok()) {
      // The verifier may be unable to decide a program; everything else is a defect.
      if (!absl::IsUnimplemented(result.status()))
        return Cat("optimize: ", result.status().ToString());
      Note(Cat("not decided: ", std::string(result.status().message()).substr(0, 60)));
      return "";
    }
    if (counts_ != nullptr) {
      counts_->proposed += result->search.counters.proposed();
      counts_->corrected += result->search.counters.mended();
      counts_->changed += result->search.mutants.empty() ? 0 : 1;
      for (const plan::AppliedMutant& mutant : result->search.mutants)
        ++counts_->rules[mutant.rule()];
    }
    for (const std::string& notice : result->notices) {
      if (notice.find("Please report") != std::string::npos) return notice;
      Note(notice.substr(0, notice.find(':')));
    }
    const auto certificate = ParseCertificate(result->plan.certificate_bytes);
    if (!certificate.ok()) return Cat("certificate: ", certificate.status().ToString());
    const absl::Status replayed = Replay(graph, result->plan.graph, *certificate);
    if (!replayed.ok()) return Cat("replay: ", replayed.ToString());
    if (result->search.best_time.median_ms > result->search.baseline_time.median_ms)
      return "the plan costs more than the baseline";
    return CheckNumbers(graph, *result);
  }

 private:
  OptimizeOptions Options() const {
    OptimizeOptions options;
    options.costs = RandomMachine(seed_);
    options.search.method = seed_ % 2 == 0 ? SearchMethod::kBeam : SearchMethod::kEGraph;
    options.search.budget_seconds = 60;
    options.search.max_candidates = static_cast<int64_t>(4 + seed_ % 13);
    options.search.max_rounds = 2;
    options.search.seed = seed_;
    return options;
  }

  void Note(const std::string& what) const {
    if (counts_ != nullptr) ++counts_->notes[what];
  }

  std::string CheckNumbers(const Graph& graph, const OptimizeResult& result) const {
    const std::vector<Tensor> inputs = RandomInputs(graph, seed_ + 1);
    const std::vector<HostValue> host = Host(inputs);
    const auto want = Evaluate(graph, host);
    const auto real = Evaluate(result.plan.graph, host);
    const auto baseline = Executed(result.plan.baseline, {}, inputs);
    const auto have = Executed(result.plan.graph, result.search.best.algorithms, inputs);
    for (const absl::Status& status :
         {want.status(), real.status(), baseline.status(), have.status()}) {
      if (!status.ok()) return Cat("execution: ", status.ToString());
    }
    const std::vector<double> fine = Sensitivity(graph, host, *want, 1e-14),
                              coarse = Sensitivity(graph, host, *want, 1e-6);
    const bool half = HoldsHalf(graph);
    for (size_t k = 0; k < want->size(); ++k) {
      const double in_double = Difference((*want)[k], (*real)[k]);
      if (!(in_double <= std::max(kRealError, 100 * fine[k])))
        return Cat("output ", k, " differs by ", in_double, " in double");
      const double executed = Difference((*want)[k], (*have)[k]),
                   before = Difference((*want)[k], (*baseline)[k]);
      const double limit =
          std::max({half ? kHalfError : kExecutedError, 10 * before, 10 * coarse[k]});
      if (!(executed <= limit))
        return Cat("output ", k, " differs by ", executed, " when executed, the baseline by ",
                   before);
    }
    return "";
  }

  uint64_t seed_;
  Counts* counts_;
};

/// Optimizes `count` random programs from seed `first` on, certifies and runs the plans.
void CheckPrograms(uint64_t first, uint64_t count, const OpDefinition* favored) {
  const uint64_t largest = NumberFromEnvironment("MENDEL_RANDOM_OPERATORS", 40);
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE}) std::signal(signal, NameTheSeed);
  Counts counts;
  int64_t done = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    running = static_cast<std::sig_atomic_t>(seed);
    Rng rng(seed);
    const Graph graph = RandomNetwork(
        rng, static_cast<int>(rng.Between(1, static_cast<int64_t>(largest))), favored);
    counts.operators += OperatorCount(graph);
    if (count == 1) std::printf("%s\n", PrintGraph(graph).c_str());
    const std::string wrong = Case(seed, &counts).Check(graph);
    ++done;
    if (wrong.empty()) continue;
    const std::string kind = wrong.substr(0, 12);
    const Graph small = Shrunk(
        graph,
        [&](const Graph& smaller) {
          return Case(seed, nullptr).Check(smaller).substr(0, 12) == kind;
        },
        kAttempts);
    ADD_FAILURE() << "seed " << seed << ": " << wrong
                  << "\nshrunk: " << Case(seed, nullptr).Check(small) << "\n"
                  << PrintGraph(small);
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE}) std::signal(signal, SIG_DFL);
  std::printf(
      "seeds %llu..%llu: %lld programs, %lld operators, %lld mutants proposed, %lld corrected, "
      "%lld "
      "plans hold mutants\n",
      static_cast<unsigned long long>(first), static_cast<unsigned long long>(first + count - 1),
      static_cast<long long>(done), static_cast<long long>(counts.operators),
      static_cast<long long>(counts.proposed), static_cast<long long>(counts.corrected),
      static_cast<long long>(counts.changed));
  for (const auto& [rule, times] : counts.rules)
    std::printf("  %6lld x %s\n", static_cast<long long>(times), rule.c_str());
  for (const auto& [note, times] : counts.notes)
    std::printf("  %6lld: %s\n", static_cast<long long>(times), note.c_str());
}

TEST(RandomGraphs, PlansAreCertifiedAndRight) {
  CheckPrograms(NumberFromEnvironment("MENDEL_RANDOM_SEED", 1),
                NumberFromEnvironment("MENDEL_RANDOM_GRAPHS", 40), nullptr);
}

TEST(RandomGraphs, PlansOfLoopsAreCertifiedAndRight) {
  CheckPrograms(NumberFromEnvironment("MENDEL_RANDOM_SEED", 1),
                NumberFromEnvironment("MENDEL_RANDOM_LOOPS", 20), &GetOp("Loop"));
}

/// Plans found with a clock, each measured against its baseline once more. Prints; times are never
/// asserted.
TEST(RandomGraphs, MeasuredPlansAgainstTheirBaselines) {
  const uint64_t first = NumberFromEnvironment("MENDEL_RANDOM_SEED", 1),
                 count = NumberFromEnvironment("MENDEL_RANDOM_MEASURED", 1);
  int64_t slower = 0, faster = 0, copies = 0, slower_copies = 0;
  double worst = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Rng rng(seed);
    const Graph graph = RandomNetwork(rng, static_cast<int>(rng.Between(1, 40)));
    OptimizeOptions options;
    options.search.method = seed % 2 == 0 ? SearchMethod::kBeam : SearchMethod::kEGraph;
    options.search.budget_seconds = 3;
    const auto cache = ProfileCache::Open(":memory:"), fresh = ProfileCache::Open(":memory:");
    ASSERT_TRUE(cache.ok() && fresh.ok());
    const auto result = Optimize(graph, options, **cache);
    ASSERT_TRUE(result.ok()) << "seed " << seed << ": " << result.status() << PrintGraph(graph);
    Profiler profiler(*FindBackend("cpu"), **fresh, {});
    const auto times = profiler.Compare({{result->plan.baseline, {}, ""}, result->search.best}, 1);
    ASSERT_TRUE(times.ok()) << "seed " << seed << ": " << times.status();
    const double ratio = (*times)[1].timing.median_ms / (*times)[0].timing.median_ms;
    slower += ratio > 1.05 ? 1 : 0;
    faster += ratio < 0.95 ? 1 : 0;
    worst = std::max(worst, ratio);
    // The difference of two copies of one program by where they lie in memory: it is noise here.
    const bool same = result->search.mutants.empty() && result->search.best.algorithms.empty();
    copies += same ? 1 : 0;
    if (ratio <= 1.05) continue;
    slower_copies += same ? 1 : 0;
    std::printf("seed %llu: %.2f of its baseline%s\n", static_cast<unsigned long long>(seed), ratio,
                same ? ", which it is" : "");
  }
  std::printf(
      "%llu measured plans: %lld more than 5 %% faster than their baselines, %lld slower, the "
      "slowest takes %.2f of it; "
      "%lld are their baselines, %lld of the slower ones among them\n",
      static_cast<unsigned long long>(count), static_cast<long long>(faster),
      static_cast<long long>(slower), worst, static_cast<long long>(copies),
      static_cast<long long>(slower_copies));
}

}  // namespace
}  // namespace mendel
