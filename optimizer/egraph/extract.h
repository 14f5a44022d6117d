// Extraction: one program out of an e-graph, as cheap as can be proven in the time given.
//
// The cost of a program is the sum over its e-nodes, each counted once however many read it.
// Finding the cheapest one is NP-hard; it is an integer program (solve.cc) that CBC solves, in
// parts where the e-graph has waists (parts.h). Cycles are kept out by loop formulas, added where a
// solution has one: some e-node must lead into every loop that is used (Lin and Zhao, "ASSAT", AIJ
// 2004). What is returned is derived from its leaves upwards, so it cannot be cyclic whatever the
// solver did.
#ifndef MENDEL_OPTIMIZER_EGRAPH_EXTRACT_H_
#define MENDEL_OPTIMIZER_EGRAPH_EXTRACT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "optimizer/egraph/egraph.h"

namespace mendel {

/// A program of the e-graph: e-nodes in an order in which they can be computed, none twice, every
/// one needed.
struct Selection {
  std::vector<ENodeId> order;
  std::map<ClassId, EValue> choice;  ///< what computes the class, an entry a class that is read
};

struct ExtractOptions {
  /// Time for the exact method; what is not proven by then is reported as a gap. 0: greedy only.
  double seconds = 5;
  /// Largest sum of the bytes of values (without constant ones) that are alive at a time when the
  /// program runs in `order`, without reuse in place; 0: no limit.
  int64_t max_peak_bytes = 0;
};

struct Extraction {
  Selection selection;
  double cost = 0;
  /// No program of the e-graph costs less.
  double lower_bound = 0;
  /// (cost - lower_bound) / cost; 0 when the selection is optimal.
  double gap = 0;
  /// "ilp" or "greedy": what found or proved the selection.
  std::string method;
  int64_t peak_bytes = 0;
  // Size of the integer programs that were left to solve (simplify.h), what was added to them, and
  // the parts that had any (parts.h).
  int64_t columns = 0;
  int64_t rows = 0;
  int64_t loop_cuts = 0;
  int64_t parts = 0;
  double seconds = 0;
};

/// The cheapest program that computes `roots`. `cost` contains a cost an e-node number (seconds, at
/// least 0; infinite: not to be used). FailedPrecondition when there is no such program,
/// ResourceExhausted when none within max_peak_bytes was found.
absl::StatusOr<Extraction> ExtractProgram(const EGraph& egraph, const std::vector<ClassId>& roots,
                                          const std::vector<double>& cost,
                                          const ExtractOptions& options = {});

/// Sum of the costs of the selection's e-nodes.
double CostOfSelection(const Selection& selection, const std::vector<double>& cost);
/// Bytes as in ExtractOptions::max_peak_bytes.
int64_t PeakBytes(const EGraph& egraph, const Selection& selection,
                  const std::vector<ClassId>& roots);

/// The selection as a graph with the inputs (in order, all of them) and output names of `like`,
/// whose outputs are `roots`; and the e-node of every node of the graph.
struct SelectedGraph {
  Graph graph;
  std::vector<ENodeId> nodes;
};
absl::StatusOr<SelectedGraph> ToGraph(const EGraph& egraph, const Selection& selection,
                                      const std::vector<ClassId>& roots, const Graph& like);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_EGRAPH_EXTRACT_H_
