#include "client/stages.h"

#include <array>

#include "base/status.h"
#include "graph/rewrite.h"

namespace mendel {
namespace {

absl::StatusOr<Graph> Check(const Graph& graph) {
  MENDEL_RETURN_IF_ERROR(CheckGraph(graph));
  return graph;
}

absl::StatusOr<Graph> Print(const Graph& graph) { return graph; }

constexpr std::array<StageCommand, 3> kStages = {{
    {"check", "derives every type again and checks limits", &Check},
    {"deduplicate", "computes equal nodes once", &Deduplicate},
    {"print", "parses and prints", &Print},
}};

}  // namespace

std::span<const StageCommand> AllStages() { return kStages; }

}  // namespace mendel
