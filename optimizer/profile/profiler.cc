#include "optimizer/profile/profiler.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <numeric>
#include <set>
#include <sstream>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "optimizer/profile/subprogram_key.h"
#include "optimizer/profile/trial.h"
#include "runtime/measuring_device.h"

namespace mendel {
namespace {

constexpr std::string_view kDropped = "dropped ";
// A compiled program serves the next measurement, too, if compiling it again takes this share of
// the time left. Otherwise it is compiled anew: its place in memory differs then, and measurements
// do not repeat the luck of one place.
constexpr double kReuseShare = 0.1;
constexpr int kMinRounds = 7;           // of a comparison
constexpr size_t kFewStoredRounds = 5;  // fewer are kept for searches of the same budget only
/// A comparison whose rounds disagree about a gain may take this many times as long.
constexpr double kLonger = 3;
/// Time reserved for the last comparison, in times of a comparison.
constexpr double kLastShare = 2;
/// A comparison is extended only by at least this share of its time.
constexpr double kLeastMore = 0.5;

Measurement Dropped() {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  return {{.median_ms = kNever, .min_ms = kNever, .p90_ms = kNever, .spread = 0, .runs = 0},
          {kNever, kNever},
          true};
}

std::string PrintMeasurement(const Measurement& measurement) {
  char ratios[64];
  std::snprintf(ratios, sizeof(ratios), " %.17g %.17g", measurement.ratio.median,
                measurement.ratio.high);
  return PrintTiming(measurement.timing) + ratios;
}

absl::StatusOr<Measurement> ParseMeasurement(const std::string& text) {
  Measurement measurement;
  MENDEL_ASSIGN_OR_RETURN(measurement.timing, ParseTiming(text));
  if (std::sscanf(text.c_str(), "%*f %*f %*f %*f %*d %lf %lf", &measurement.ratio.median,
                  &measurement.ratio.high) != 2) {
    return absl::DataLossError("bad timing entry in the profile cache");
  }
  return measurement;
}

/// True when some program seems to gain enough but may owe it to chance.
bool Undecided(const MeasureOptions::Rounds& rounds, double win_ratio) {
  for (size_t k = 1; k < rounds.size(); ++k) {
    const PairedRatio ratio = CompareRounds(rounds[0], rounds[k]);
    if (ratio.median < win_ratio && ratio.high >= 1) return true;
  }
  return false;
}

/// Seconds by which undecided rounds are prolonged: until they take kLonger times `max_seconds` and
/// number kFewStoredRounds at least. They are never more than `spare`.
double MoreSeconds(const MeasureOptions::Rounds& rounds, double max_seconds, double spare) {
  double elapsed = 0;
  for (const std::vector<double>& times : rounds)
    elapsed += 1e-3 * std::reduce(times.begin(), times.end());
  // One round more counts, because evicting the caches between runs takes time as well.
  const double few_rounds =
      elapsed * static_cast<double>(kFewStoredRounds + 1) / static_cast<double>(rounds[0].size());
  const double wanted = std::max(kLonger * max_seconds, few_rounds) - elapsed;
  const double more = std::min(wanted, spare);
  return more < std::min(wanted, kLeastMore * elapsed) ? 0 : std::max(0.0, more);
}

}  // namespace

std::string PrintTiming(const Timing& timing) {
  char buffer[160];
  std::snprintf(buffer, sizeof(buffer), "%.17g %.17g %.17g %.17g %d", timing.median_ms,
                timing.min_ms, timing.p90_ms, timing.spread, timing.runs);
  return buffer;
}

absl::StatusOr<Timing> ParseTiming(const std::string& text) {
  Timing timing;
  if (std::sscanf(text.c_str(), "%lf %lf %lf %lf %d", &timing.median_ms, &timing.min_ms,
                  &timing.p90_ms, &timing.spread, &timing.runs) != 5) {
    return absl::DataLossError("bad timing entry in the profile cache");
  }
  return timing;
}

std::string PrintAlgorithms(const Algorithms& algorithms) {
  std::string text;
  for (const auto& [node, name] : algorithms) text += Cat(node, " ", name, "\n");
  return text;
}

absl::StatusOr<Algorithms> ParseAlgorithms(const std::string& text) {
  Algorithms algorithms;
  std::istringstream lines(text);
  int32_t node = 0;
  std::string name;
  while (lines >> node >> name) algorithms[node] = name;
  return lines.eof() ? absl::StatusOr<Algorithms>(algorithms)
                     : absl::DataLossError("bad algorithms entry in the profile cache");
}

Profiler::Profiler(const Backend& backend, ProfileCache& cache, ProfilerOptions options)
    : backend_(backend), cache_(cache), options_(options), weights_(backend.KeepWeights()) {}

std::string ThreadsText(const ProfilerOptions& options) {
  std::string text = Cat(options.threads);
  for (const int cpu : options.cpus) text += Cat(" @", cpu);
  return text;
}

void Profiler::LimitTime(Deadline deadline, std::string budget) {
  deadline_ = deadline;
  if (budget != budget_) by_signature_.clear();
  budget_ = std::move(budget);
}

std::string Profiler::Device() const {
  return Sha256Hex(Cat(backend_.name(), "\n", backend_.Identity(), "\nthreads ",
                       ThreadsText(options_), "\nnumerics ", NumericsName(options_.numerics),
                       options_.costs ? "\npretended" : ""))
      .substr(0, 16);
}

std::string Profiler::Key(const Variant& variant) const {
  return Sha256Hex(Cat(options_.costs ? "pretended pairs " : "paired ", backend_.name(), "\n",
                       backend_.Identity(), "\nthreads ", ThreadsText(options_), "\nnumerics ",
                       NumericsName(options_.numerics), "\n", SubprogramKey(variant.graph), "\n",
                       PrintAlgorithms(variant.algorithms)));
}

CompileOptions Profiler::OptionsFor(const Algorithms& algorithms) const {
  return {.threads = options_.threads,
          .cpus = options_.cpus,
          .numerics = options_.numerics,
          .algorithms = algorithms};
}

absl::StatusOr<std::shared_ptr<Executable>> Profiler::Compile(const Variant& variant) {
  const std::string key = Key(variant);
  const auto known = compiled_.find(key);
  if (known != compiled_.end() &&
      known->second.seconds > kReuseShare * std::max(0.0, deadline_.SecondsLeft()))
    return known->second.executable;
  std::erase_if(compiled_,
                [](const auto& compiled) { return compiled.second.executable.use_count() == 1; });
  const Stopwatch clock;
  MENDEL_ASSIGN_OR_RETURN(std::shared_ptr<Executable> executable,
                          backend_.Compile(variant.graph, OptionsFor(variant.algorithms)));
  compiled_[key] = {executable, clock.Seconds()};
  return executable;
}

std::string Profiler::Failed(const absl::Status& status) {
  return Cat(kFailed, std::string(status.message()));
}

void Profiler::Warn(const std::string& what, const std::string& reason) {
  const std::string who =
      Cat(what.empty() ? std::string("a candidate") : what, " on backend ", backend_.name());
  const std::string warning =
      reason.starts_with(kFailed)
          ? Cat(who, " ", reason, "; it was dropped")
          : Cat("wrong numbers: ", who, " differs by ", reason, "; it was dropped");
  if (std::find(warnings_.begin(), warnings_.end(), warning) == warnings_.end())
    warnings_.push_back(warning);
}

std::string Profiler::ComparisonKey(const std::vector<Variant>& variants,
                                    const std::string& occasion) const {
  std::string key = occasion;
  for (const Variant& variant : variants) key += Key(variant);
  return Sha256Hex(key);
}

std::vector<std::string> Profiler::Conditions(const std::vector<Variant>& variants,
                                              const std::string& occasion) const {
  std::vector<std::string> conditions;
  const std::string key = ComparisonKey(variants, occasion);
  for (const std::string& stored_key : {key, Cat(key, " ", budget_)}) {  // as Compare looks
    if (!cache_.Get("timing", stored_key).has_value()) continue;
    std::istringstream lines(cache_.Get("conditions", stored_key).value_or(""));
    for (std::string line; std::getline(lines, line);) conditions.push_back(line);
    break;
  }
  return conditions;
}

std::string Profiler::ConditionsNow(const std::string& when) const {
  const MeasuringDevice* device = options_.costs ? nullptr : backend_.measuring_device();
  if (device == nullptr) return "";
  const auto now = device->Conditions();
  std::string text = Cat(
      when, ": ",
      now.ok() ? ConditionsText(*now) : Cat("not reported: ", std::string(now.status().message())));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

absl::StatusOr<std::vector<Measurement>> Profiler::Compare(const std::vector<Variant>& variants,
                                                           double max_seconds, double win_ratio,
                                                           const std::string& occasion) {
  plain_seconds_ = 0;
  const std::string key = ComparisonKey(variants, occasion);
  for (const std::string& stored_key : {key, Cat(key, " ", budget_)}) {
    const auto stored = cache_.Get("timing", stored_key);
    if (!stored.has_value()) continue;
    std::vector<Measurement> measurements;
    std::istringstream lines(*stored);
    for (std::string line; std::getline(lines, line);) {
      if (line.compare(0, kDropped.size(), kDropped) == 0) {
        const size_t k = measurements.size();
        if (k < variants.size()) Warn(variants[k].name, line.substr(kDropped.size()));
        measurements.push_back(Dropped());
        continue;
      }
      MENDEL_ASSIGN_OR_RETURN(const Measurement measurement, ParseMeasurement(line));
      measurements.push_back(measurement);
    }
    if (measurements.size() == variants.size()) return measurements;
  }
  if (options_.error_on_miss)
    return absl::NotFoundError("no stored measurement of this pair of programs");
  return MeasureAll(variants, {max_seconds, win_ratio, occasion == kLastOccasion}, key);
}

absl::Status Profiler::CompileAll(const std::vector<Variant>& variants, Trial& trial,
                                  Compared& compared) {
  OutputBytes want;
  for (size_t k = 0; k < variants.size(); ++k) {
    auto executable = Compile(variants[k]);
    absl::StatusOr<const OutputBytes*> have =
        executable.ok() ? trial.Run(**executable) : executable.status();
    if (!have.ok() && k == 0) return have.status();
    if (k == 0) want = **have;
    compared.differences.push_back(have.ok() ? Difference(variants[0].graph, want, **have)
                                             : Failed(have.status()));
    if (compared.differences[k].empty())
      compared.right.push_back(*std::move(executable));
    else
      Warn(variants[k].name, compared.differences[k]);
  }
  return absl::OkStatus();
}

absl::StatusOr<MeasureOptions::Rounds> Profiler::RoundsOf(const std::vector<Variant>& variants,
                                                          const Trial& trial, Compared& compared,
                                                          const Limits& limits,
                                                          const Stopwatch& clock) {
  if (options_.costs) {
    MeasureOptions::Rounds rounds;
    for (size_t k = 0; k < variants.size(); ++k) {
      if (!compared.differences[k].empty()) continue;
      MENDEL_ASSIGN_OR_RETURN(const double milliseconds, PretendedMilliseconds(variants[k]));
      rounds.push_back({milliseconds});
    }
    return rounds;
  }
  MeasureOptions options;
  options.min_seconds = 0.3 * limits.max_seconds;
  options.max_seconds = limits.max_seconds;
  options.min_runs = kMinRounds;
  options.warmup = 0;  // they have run
  options.cold = backend_.measuring_device() == nullptr;
  options.deadline = deadline_;
  if (limits.win_ratio < 1) {
    options.more_seconds = [&](const MeasureOptions::Rounds& so_far) {
      plain_seconds_ = clock.Seconds();
      // An added measurement must leave time for the last comparison, which takes about as long and
      // may be undecided, too.
      const double spare =
          deadline_.SecondsLeft() - (limits.last ? 0 : kLastShare * plain_seconds_);
      return Undecided(so_far, limits.win_ratio) ? MoreSeconds(so_far, limits.max_seconds, spare)
                                                 : 0;
    };
  }
  std::vector<Executable*> right;
  for (const auto& executable : compared.right) right.push_back(executable.get());
  auto rounds = MeasureRounds(right, variants[0].graph, trial.inputs(), options);
  if (plain_seconds_ == 0) plain_seconds_ = clock.Seconds();
  return rounds;
}

absl::StatusOr<std::vector<Measurement>> Profiler::MeasureAll(const std::vector<Variant>& variants,
                                                              const Limits& limits,
                                                              const std::string& key) {
  const Stopwatch clock;
  Trial trial(variants[0].graph);
  Compared compared;
  MENDEL_RETURN_IF_ERROR(CompileAll(variants, trial, compared));
  const std::string before = ConditionsNow("before");
  MENDEL_ASSIGN_OR_RETURN(const MeasureOptions::Rounds rounds,
                          RoundsOf(variants, trial, compared, limits, clock));
  const std::string after = ConditionsNow("after");
  measured_ += static_cast<int64_t>(variants.size());
  std::vector<Measurement> measurements;
  std::string text;
  size_t timed = 0;
  for (const std::string& difference : compared.differences) {
    if (difference.empty()) {
      measurements.push_back(
          {Summarize(rounds[timed]), CompareRounds(rounds[0], rounds[timed]), false});
      ++timed;
      text += Cat(PrintMeasurement(measurements.back()), "\n");
    } else {
      measurements.push_back(Dropped());
      text += Cat(kDropped, difference, "\n");
    }
  }
  const bool cut = !options_.costs && rounds[0].size() < kFewStoredRounds;
  const std::string stored_key = cut ? Cat(key, " ", budget_) : key;
  if (!before.empty())
    MENDEL_RETURN_IF_ERROR(cache_.Put("conditions", stored_key, Cat(before, "\n", after, "\n")));
  MENDEL_RETURN_IF_ERROR(cache_.Put("timing", stored_key, text));
  return measurements;
}

std::string Profiler::Difference(const Graph& graph, const OutputBytes& want,
                                 const OutputBytes& have) const {
  const OutputDifference difference = CompareOutputs(graph, want, have, options_.numerics);
  return difference.wrong ? Cat(difference.error, " of output '", difference.output, "'") : "";
}

absl::StatusOr<double> Profiler::PretendedMilliseconds(const Variant& variant) const {
  MENDEL_ASSIGN_OR_RETURN(const std::vector<double> nodes,
                          options_.costs(variant.graph, OptionsFor(variant.algorithms)));
  double milliseconds = 0;
  for (const double seconds : nodes) milliseconds += seconds * 1e3;
  return milliseconds;
}

}  // namespace mendel
