// The body of a loop: a graph that computes one step.
//
// The operator Loop stores its body as text, so that attributes, hashes and plans need no new kind.
// The body's inputs are the carried values, one slice of each scanned input and the invariants, in
// this order. Its outputs are the new carried values and one slice of each scanned output.
#ifndef MENDEL_GRAPH_LOOP_H_
#define MENDEL_GRAPH_LOOP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace mendel {

/// The most steps of one loop.
inline constexpr int64_t kMaxLoopSteps = 100'000;

/// The text of a body that Loop stores. Equal bodies with equal input names have equal texts.
std::string PrintLoopBody(const Graph& body);

/// `body` with inputs x0, x1, ... and outputs y0, y1, ..., without the inputs from number `first`
/// on that nothing reads. `kept` receives the numbers of the others.
absl::StatusOr<Graph> TidyLoopBody(const Graph& body, size_t first, std::vector<size_t>& kept);

/// The checked body of this text; recent ones are kept. InvalidArgument when it is no body:
///
///  - all values have one float dtype and at least one element;
///  - all constants are finite literals;
///  - every operator is total on finite operands, follows from field arithmetic and states a bound.
absl::StatusOr<std::shared_ptr<const Graph>> ParseLoopBody(const std::string& text);

/// OK when `body` may be the body of a loop.
absl::Status CheckLoopBody(const Graph& body);

/// Counts of a Loop node's operands and results.
struct LoopArity {
  size_t carried = 0;
  size_t scanned = 0;     ///< scanned inputs
  size_t invariants = 0;  ///< inputs that all steps read whole
};
LoopArity LoopArityOf(const NodeView& node);

/// The body of a checked Loop node.
std::shared_ptr<const Graph> LoopBodyOf(const Attributes& attrs);

/// The slice of step `k`.
inline int64_t LoopTime(int64_t steps, bool reverse, int64_t k) {
  return reverse ? steps - 1 - k : k;
}

/// True when `graph` has a Loop.
bool HasLoop(const Graph& graph);

/// `graph` with the steps of every Loop written one after the other. `origins`, if it is not null,
/// receives the node of `graph` that each new node comes from. Unimplemented for a loop of more
/// than `most_steps` steps.
absl::StatusOr<Graph> UnrollLoops(const Graph& graph, std::vector<int32_t>* origins = nullptr,
                                  int64_t most_steps = kMaxLoopSteps);

}  // namespace mendel

#endif  // MENDEL_GRAPH_LOOP_H_
