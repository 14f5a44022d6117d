#include "mutator/matches_by_last_node.h"

#include <algorithm>
#include <cstddef>
#include <deque>

namespace mendel {
namespace {

constexpr size_t kKeptGraphs = 16;

struct Kept {
  Graph graph;  // keeps its nodes alive, so that their address is its identity
  MatchesByLastNode (*find)(const Graph& graph);
  MatchesByLastNode matches;
};

}  // namespace

std::vector<Match> MatchesEndingAt(const Graph& graph, int32_t node,
                                   MatchesByLastNode (*find)(const Graph& graph)) {
  thread_local std::deque<Kept> kept;
  auto found = std::find_if(kept.begin(), kept.end(), [&](const Kept& entry) {
    return &entry.graph.nodes() == &graph.nodes() && entry.find == find;
  });
  if (found == kept.end()) {
    if (kept.size() == kKeptGraphs) kept.pop_front();
    kept.push_back({graph, find, find(graph)});
    found = kept.end() - 1;
  }
  const auto matches = found->matches.find(node);
  return matches == found->matches.end() ? std::vector<Match>() : matches->second;
}

}  // namespace mendel
