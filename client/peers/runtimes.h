// Other runtimes measured beside a plan: ONNX Runtime and OpenVINO on the processor.
#ifndef MENDEL_CLIENT_PEERS_RUNTIMES_H_
#define MENDEL_CLIENT_PEERS_RUNTIMES_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/plan.h"

namespace mendel {

struct PeerOptions {
  std::string python;  ///< FindPython's path; empty: any
  /// The model that the others run; empty: the plan's baseline, written as ONNX.
  std::string model;
  int threads = 1;
  uint64_t seed = 1;   ///< of the inputs
  double seconds = 3;  ///< a runtime's, over all rounds
  int rounds = 5;
};

struct PeerTimes {
  std::string name;  ///< "ONNX Runtime"
  std::string version;
  std::string missing;            ///< the reason why there are no times; empty: there are
  std::vector<double> rounds_ms;  ///< each round's median
  double median_ms = 0;           ///< of the rounds
  double spread = 0;              ///< largest less smallest round, over the median
};

struct PeerReport {
  std::string model;  ///< what the others ran, in words
  std::string python;
  std::vector<PeerTimes> runtimes;  ///< the plan's first
};

/// Measures `run_plan`, which runs for so many seconds and returns its median in milliseconds, and
/// the others in turn, round by round. NotFound: no Python has any of them.
absl::StatusOr<PeerReport> MeasurePeers(
    const Plan& plan, const PeerOptions& options,
    const std::function<absl::StatusOr<double>(double seconds)>& run_plan);

}  // namespace mendel

#endif  // MENDEL_CLIENT_PEERS_RUNTIMES_H_
