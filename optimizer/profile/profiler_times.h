// Profiler times: the knowledge while the algorithms of a graph are timed one after the other.
// Private to the profiler.
#ifndef MENDEL_OPTIMIZER_PROFILE_PROFILER_TIMES_H_
#define MENDEL_OPTIMIZER_PROFILE_PROFILER_TIMES_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "optimizer/profile/profiler.h"
#include "optimizer/profile/trial.h"

namespace mendel {

struct Profiler::AlgorithmTimes {
  Trial trial;
  std::shared_ptr<Executable> standard;
  OutputBytes want;
  Algorithms known;  ///< choices that are made already; the standard has them, and every program
                     ///< that is compared with it
  double first_seconds = 0;  ///< compiling and running once
  /// Ratios of measured times to the standard's for the same nodes; infinite for wrong numbers.
  class Ratios {
   public:
    /// The estimate that needs no further measurement: the median of three and more. It is the
    /// least of fewer, so that what may be the best is measured again; what disturbs a run mostly
    /// makes it longer.
    double Estimate() const;
    void Add(double ratio) { all_.push_back(ratio); }
    size_t size() const { return all_.size(); }

   private:
    std::vector<double> all_;
  };
  static constexpr size_t kConfirmed = 3;
  /// Ratios by signature (SignatureOf) and algorithm; equal nodes of a program count
  /// together.
  std::map<std::string, std::map<std::string, Ratios>> of_nodes;
  std::map<Algorithms, Ratios> of_programs = {};  ///< that ran; the standard's is 1
  int combinations = 0;  ///< programs of each node's best that were measured
  bool cut = false;      ///< there was no time for a combination
  std::string wrong;  ///< two lines for each algorithm that was dropped: its name, the difference

  /// The algorithms of the least estimate; the standard among equals.
  const std::pair<const Algorithms, Ratios>& Fastest() const;
  size_t MeasurementsOf(const Algorithms& all) const;
};

/// Everything that the time of a node depends on besides its neighbors: operator, attributes,
/// types.
std::string SignatureOf(const Graph& graph, int32_t id);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_PROFILE_PROFILER_TIMES_H_
