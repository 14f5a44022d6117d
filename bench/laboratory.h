// Programs timed by the fastest of a backend's algorithms.
#ifndef MENDEL_BENCH_LABORATORY_H_
#define MENDEL_BENCH_LABORATORY_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "graph/graph.h"
#include "runtime/backend.h"
#include "runtime/numerics.h"

namespace mendel {

/// One way to compute a layer.
struct Program {
  Graph graph;
  std::string description;  ///< the rule with its choices, or the way of correction
  double share = 0;         ///< flops of the correction, as a share of the layer's
  std::string algorithm;    ///< "": the backend's default
  std::unique_ptr<Executable> executable;
  double milliseconds = 0;
};

/// Orders of the dimensions of computed values. An algorithm with the channels last says so in its
/// name.
inline constexpr std::string_view kChannelsFirst = "NCHW", kChannelsLast = "NHWC";

class Laboratory {
 public:
  /// `backend` must outlive the laboratory. `layout` is kChannelsFirst or kChannelsLast.
  Laboratory(const Backend& backend, int threads, Numerics numerics, std::string_view layout)
      : backend_(backend), threads_(threads), numerics_(numerics), layout_(layout) {}

  /// Algorithms of any node in this layout; with the channels first the default ("") before them.
  /// Empty: the graph has none.
  std::vector<std::string> Algorithms(const Graph& graph) const;
  /// Compiles `program` with the fastest of `algorithms`, by few runs; the first error where none
  /// of them runs.
  absl::Status Tune(Program& program, const std::vector<std::string>& algorithms) const;
  /// Milliseconds of tuned programs of equal inputs and outputs: medians, interleaved.
  static absl::Status Compare(const std::vector<Program*>& programs);

 private:
  absl::StatusOr<std::unique_ptr<Executable>> Compile(const Graph& graph,
                                                      const std::string& name) const;

  const Backend& backend_;
  const int threads_;
  const Numerics numerics_;
  const std::string_view layout_;
};

}  // namespace mendel

#endif  // MENDEL_BENCH_LABORATORY_H_
