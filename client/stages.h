// Stages that `mendel step` can run alone.
#ifndef MENDEL_CLIENT_STAGES_H_
#define MENDEL_CLIENT_STAGES_H_

#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace mendel {

/// One stage: a function from graph to graph.
struct StageCommand {
  std::string_view name;
  std::string_view summary;
  absl::StatusOr<Graph> (*run)(const Graph& graph);
};

/// Sorted by name; the table stands in stages.cc.
std::span<const StageCommand> AllStages();

}  // namespace mendel

#endif  // MENDEL_CLIENT_STAGES_H_
