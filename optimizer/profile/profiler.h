// Measured costs: which algorithm runs a node best, which of several programs is faster. Everything
// measured is stored, and nothing is measured that computes other numbers than the program that it
// is compared with.
#ifndef MENDEL_OPTIMIZER_PROFILE_PROFILER_H_
#define MENDEL_OPTIMIZER_PROFILE_PROFILER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "graph/graph.h"
#include "optimizer/output_check.h"
#include "optimizer/profile/paired_ratio.h"
#include "optimizer/profile/predicted_algorithms.h"
#include "optimizer/profile/profile_cache.h"
#include "runtime/backend.h"
#include "runtime/measure.h"

namespace mendel {

/// A program as it would run: a graph and the algorithms chosen for its nodes.
struct Variant {
  Graph graph;
  Algorithms algorithms;
  /// The name in warnings, e.g. "rule merge_convs".
  std::string name = {};
};

/// One program of a comparison.
struct Measurement {
  /// Infinite and without runs when the program was dropped.
  Timing timing;
  /// To the first program of the comparison, round by round; infinite when the program was dropped.
  PairedRatio ratio;
  /// Its numbers differ from the first program's by more than rounding may (output_check.h); it was
  /// not timed.
  bool dropped = false;
};

/// Seconds of every node of a graph by the algorithms and the numerics class given; 0 for nodes
/// that nothing runs. An error: no program by these algorithms.
using CostFunction =
    std::function<absl::StatusOr<std::vector<double>>(const Graph&, const CompileOptions&)>;

class Trial;

struct ProfilerOptions {
  int threads = 1;
  /// CPUs of the runs (CompileOptions::cpus); stored times are those of the same CPUs.
  std::vector<int> cpus = {};
  Numerics numerics = Numerics::kDefault;
  /// A measurement that is not stored fails with NotFound.
  bool error_on_miss = false;
  /// Costs in place of a clock, so that results are the same on every machine. Programs still run
  /// once and are compared with each other; algorithms are chosen without running them
  /// (predicted_algorithms.h). One profile cache must not serve two cost functions. Null: times are
  /// measured.
  CostFunction costs = nullptr;
};

/// The number of threads, and the CPUs that they are pinned to, if any: for keys of what was
/// measured.
std::string ThreadsText(const ProfilerOptions& options);

/// Not thread-safe: measurements must not disturb each other. Compare compiles all of its variants
/// at once; callers pass at most two whole programs.
class Profiler {
 public:
  /// Both must outlive the profiler.
  Profiler(const Backend& backend, ProfileCache& cache, ProfilerOptions options);

  /// From now on measurements that are not stored yet end soon after `deadline`, each with one run
  /// at least. `budget` names what the deadline was made of: results that it cut short are stored
  /// under that name only.
  void LimitTime(Deadline deadline, std::string budget);

  /// Returns the best algorithm of every node that has a choice, timed in the chain. The whole
  /// graph is compiled with an algorithm for each of them until all were tried. Its steps'
  /// times are compared with those of the default over interleaved runs, equal nodes together.
  /// Where the backend reports regions (Backend::KindRegions), each is then given another kind
  /// of algorithms as a whole: a node alone would pay for conversions. The fastest whole
  /// program that ran is chosen. The best one is measured until it has three measurements,
  /// whose median counts, so that luck does not. An algorithm that makes the graph's numbers
  /// wrong is dropped with a warning. Nodes whose default is best are absent. Nodes equal to
  /// those of an earlier call (operator, attributes, types) have the choice of that call,
  /// whatever time is left. Where the time does not suffice for one program, and KeepAlgorithms was
  /// not called, nodes without a choice get what the backend ranks first: the caller compares it
  /// with the default.
  absl::StatusOr<Algorithms> ChooseAlgorithms(const Graph& graph, double max_seconds);
  /// From now on ChooseAlgorithms tries only these names: those that won somewhere in the whole
  /// program.
  void KeepAlgorithms(std::set<std::string> names) { kept_ = std::move(names); }
  /// Chooses by the cost function, which must be set. Nothing is stored, and later programs do not
  /// follow the choice.
  absl::StatusOr<Algorithms> PredictedAlgorithms(const Graph& graph) const;
  /// The algorithm that the backend ranks first for each node that has one, without measuring.
  Algorithms FirstRanked(const Graph& graph) const;
  /// `name` for every node that can run with it: one sound guess for a small program, without
  /// measuring.
  Algorithms Everywhere(const Graph& graph, const std::string& name) const;

  /// Times programs with the same inputs and outputs, interleaved: on the host with cold caches, on
  /// a measuring device with warm ones, as requests that follow each other. Before a time counts,
  /// outputs are compared with those of the first program; one that is wrong or fails is
  /// dropped with a warning. A program whose ratio to the first is below `win_ratio` (1: never) and
  /// whose rounds disagree is measured longer than `max_seconds`. It takes up to three times as
  /// long and five rounds at least, whichever is more. The deadline must leave twice its time for
  /// the last comparison (kLastOccasion, which may take all of it). The same programs are measured
  /// once on each `occasion`, which stands for `win_ratio`, too: the measurement that selected a
  /// program does not confirm it.
  absl::StatusOr<std::vector<Measurement>> Compare(const std::vector<Variant>& variants,
                                                   double max_seconds, double win_ratio = 1,
                                                   const std::string& occasion = "");

  static constexpr std::string_view kLastOccasion = "final";
  /// Deletes the compiled programs that are kept for the next measurement.
  void DropCompiled() { compiled_.clear(); }
  /// Seconds of the last comparison before its rounds were found to disagree; 0 when it was stored.
  double plain_seconds() const { return plain_seconds_; }

  /// Reports of the backend's device just before and just after a comparison that Compare has
  /// answered, a sentence each: clocks, power, temperature, or why they are not reported. Empty for
  /// the processor.
  std::vector<std::string> Conditions(const std::vector<Variant>& variants,
                                      const std::string& occasion = "") const;

  /// Median seconds of every node's step in the chain, conversions for it included
  /// (node_seconds.h), 0 for nodes without a step. The program runs for
  /// `max_seconds`, and three times at least, or once if one run takes a third of that.
  absl::StatusOr<std::vector<double>> NodeSeconds(const Variant& variant, double max_seconds = 1);

  /// A short name for what times depend on besides the program: backend, device, threads, numerics.
  std::string Device() const;
  int64_t measured() const { return measured_; }
  /// A sentence for every program or algorithm that was dropped for its numbers, stored ones
  /// included, each once.
  const std::vector<std::string>& warnings() const { return warnings_; }
  const Backend& backend() const { return backend_; }
  const ProfilerOptions& options() const { return options_; }

 private:
  std::string Key(const Variant& variant) const;
  std::string ComparisonKey(const std::vector<Variant>& variants,
                            const std::string& occasion) const;
  /// A sentence that begins with `when`; no lines within. Empty for the processor, and where
  /// nothing is measured.
  std::string ConditionsNow(const std::string& when) const;
  /// A new executable, or that of an equal variant where compiling takes a good part of the time
  /// left. Programs that nobody uses any longer are deleted before another is compiled, because
  /// packed weights are most of a search's memory.
  absl::StatusOr<std::shared_ptr<Executable>> Compile(const Variant& variant);
  CompileOptions OptionsFor(const Algorithms& algorithms) const;
  /// Milliseconds by the cost function.
  absl::StatusOr<double> PretendedMilliseconds(const Variant& variant) const;
  absl::Status PutNodeSeconds(const Variant& variant, const std::string& key,
                              const std::vector<double>& seconds, const std::vector<Step>& steps);
  /// The programs of one comparison.
  struct Compared {
    std::vector<std::shared_ptr<Executable>> right;  ///< of the variants without a difference
    std::vector<std::string> differences;            ///< of each variant from the first one
  };
  struct Limits {
    double max_seconds = 0;
    double win_ratio = 1;
    bool last = false;  ///< nothing is compared after it
  };
  absl::Status CompileAll(const std::vector<Variant>& variants, Trial& trial, Compared& compared);
  absl::StatusOr<MeasureOptions::Rounds> RoundsOf(const std::vector<Variant>& variants,
                                                  const Trial& trial, Compared& compared,
                                                  const Limits& limits, const Stopwatch& clock);
  absl::StatusOr<std::vector<Measurement>> MeasureAll(const std::vector<Variant>& variants,
                                                      const Limits& limits, const std::string& key);
  static constexpr std::string_view kFailed = "failed: ";
  /// `reason`: what the numbers differ by, or Failed.
  void Warn(const std::string& what, const std::string& reason);
  static std::string Failed(const absl::Status& status);
  /// Empty when `have` is right.
  std::string Difference(const Graph& graph, const OutputBytes& want,
                         const OutputBytes& have) const;

  // profiler_algorithms.cc
  struct AlgorithmTimes;
  using Offers = AlgorithmOffers;
  Offers AllOffers(const Graph& graph) const;
  /// False when the deadline left some algorithm untimed.
  absl::StatusOr<bool> TimeOffers(const Graph& graph, const Offers& offers, double max_seconds,
                                  AlgorithmTimes& times);
  /// A program's steps and their times, and those of the standard's steps beside them.
  struct Steps {
    std::vector<Step> steps;
    std::vector<double> standard, seconds;
  };
  /// Wrong numbers give nothing, and `difference`.
  absl::StatusOr<std::optional<Steps>> TimeSteps(const Graph& graph, const Algorithms& algorithms,
                                                 double max_seconds, AlgorithmTimes& times,
                                                 std::string& difference);
  /// Times one program; with wrong numbers one for each name in it.
  absl::Status TimeTogether(const Graph& graph, const Algorithms& algorithms, double max_seconds,
                            AlgorithmTimes& times);
  /// Adds a program's times to what is known of the algorithms of its nodes.
  static void Credit(const Graph& graph, const Algorithms& algorithms, const Steps& steps,
                     AlgorithmTimes& times);
  struct BestOfNodes {
    Algorithms each;
    std::map<std::string, Algorithms> of_kind,
        tied;  ///< by kind: the best of that kind; where that loses little alone
  };
  BestOfNodes BestSoFar(const Graph& graph, const Offers& offers,
                        const AlgorithmTimes& times) const;
  /// Implemented in profiler_combine.cc. Candidates give a node its best algorithm, its best of one
  /// kind throughout (Backend::AlgorithmKind), or one timed together with others, then region by
  /// region. The fastest as a whole is chosen, by several measurements.
  absl::StatusOr<Algorithms> CombineAlgorithms(const Graph& graph, const Offers& offers,
                                               double max_seconds, AlgorithmTimes& times);
  /// A whole program's time over the standard's, measured once more, the mean of all its
  /// measurements; infinite where it is wrong or fails, nullopt if the deadline leaves no time.
  /// `choice` has the known ones.
  absl::StatusOr<std::optional<double>> RatioOf(const Graph& graph, const Algorithms& choice,
                                                double max_seconds, AlgorithmTimes& times);
  std::vector<std::vector<int32_t>> RegionsOf(const Graph& graph, const Offers& offers) const;
  /// Gives each region of the backend another kind of algorithms at a time, by its nodes' best,
  /// where the whole gains by it.
  absl::Status ChooseByRegion(const Graph& graph, const Offers& offers,
                              const std::map<std::string, Algorithms>& of_kind, double max_seconds,
                              AlgorithmTimes& times);
  /// Chooses by the cost function; `cut` becomes true when the deadline left something untried.
  absl::StatusOr<Algorithms> PredictAlgorithms(const Graph& graph, const Offers& offers,
                                               const Algorithms& known, bool& cut) const;
  /// Chooses by the clock, likewise.
  absl::StatusOr<Algorithms> MeasureAlgorithms(const Graph& graph, const Offers& offers,
                                               const Algorithms& known, const std::string& key,
                                               const std::string& cut_key, double max_seconds,
                                               bool& cut);
  /// Choices of nodes whose like was met before; those nodes leave `offers`.
  Algorithms TakeKnown(const Graph& graph, Offers& offers) const;
  void NoteSignatures(const Graph& graph, const Offers& offers, const Algorithms& chosen);

  const Backend& backend_;
  ProfileCache& cache_;
  ProfilerOptions options_;
  std::shared_ptr<void> weights_;  ///< computed by one compilation for all (Backend::KeepWeights)
  Deadline deadline_ = Deadline::Never();
  std::string budget_;
  int64_t measured_ = 0;
  double plain_seconds_ = 0;
  std::optional<std::set<std::string>> kept_;
  struct Compiled {
    std::shared_ptr<Executable> executable;
    double seconds = 0;  ///< of the compilation
  };
  std::map<std::string, Compiled> compiled_;     ///< by Key
  std::map<std::string, double> first_seconds_;  ///< of a compilation and the first run, by Key
  std::map<std::string, std::string> by_signature_;
  std::vector<std::string> warnings_;
};

/// Text forms for the cache.
std::string PrintTiming(const Timing& timing);
absl::StatusOr<Timing> ParseTiming(const std::string& text);
std::string PrintAlgorithms(const Algorithms& algorithms);
absl::StatusOr<Algorithms> ParseAlgorithms(const std::string& text);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_PROFILE_PROFILER_H_
