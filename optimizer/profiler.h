// Measured costs: which algorithm runs a node best, which of several programs is faster. Everything measured is stored.
#ifndef MENDEL_OPTIMIZER_PROFILER_H_
#define MENDEL_OPTIMIZER_PROFILER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "graph/graph.h"
#include "optimizer/profile_cache.h"
#include "runtime/backend.h"
#include "runtime/measure.h"

namespace mendel {

using Algorithms = std::map<int32_t, std::string>;

/// A program as it would run: a graph and the algorithms chosen for its nodes.
struct Variant {
  Graph graph;
  Algorithms algorithms;
};

struct ProfilerOptions {
  int threads = 1;
  Numerics numerics = Numerics::kDefault;
  /// NotFound instead of a measurement.
  bool error_on_miss = false;
};

/// Not thread-safe: measurements must not disturb each other.
class Profiler {
 public:
  /// Both must outlive the profiler.
  Profiler(const Backend& backend, ProfileCache& cache, ProfilerOptions options);

  /// The best algorithm of every node that has a choice, timed in the chain: the whole graph is compiled once an algorithm and
  /// the steps' times compared over interleaved runs. Nodes whose default is best are absent.
  absl::StatusOr<Algorithms> ChooseAlgorithms(const Graph& graph, double max_seconds);
  /// From now on ChooseAlgorithms tries only these names: those that won somewhere in the whole program.
  void KeepAlgorithms(std::set<std::string> names) { kept_ = std::move(names); }
  /// `name` for every node that can run with it: one sound guess for a small program, without measuring.
  Algorithms Everywhere(const Graph& graph, const std::string& name) const;

  /// Times of programs with the same inputs and outputs, interleaved, with cold caches.
  absl::StatusOr<std::vector<Timing>> Compare(const std::vector<Variant>& variants, double max_seconds);

  /// Median seconds of every node's step in the chain, 0 for nodes without a step. A step of several nodes counts for its first.
  absl::StatusOr<std::vector<double>> NodeSeconds(const Variant& variant);

  int64_t measured() const { return measured_; }
  const Backend& backend() const { return backend_; }
  const ProfilerOptions& options() const { return options_; }

 private:
  std::string Key(const Variant& variant) const;
  absl::StatusOr<std::unique_ptr<Executable>> Compile(const Variant& variant) const;

  const Backend& backend_;
  ProfileCache& cache_;
  ProfilerOptions options_;
  int64_t measured_ = 0;
  std::optional<std::set<std::string>> kept_;
};

/// Text forms for the cache.
std::string PrintTiming(const Timing& timing);
absl::StatusOr<Timing> ParseTiming(const std::string& text);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_PROFILER_H_
