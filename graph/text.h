// The text form of graphs: what tests, `mendel step` and plans read and write.
//
//   graph "net" {
//     %0 = Input() {dtype = "f32", name = "x", shape = [1, 4]} : f32[1,4]
//     %1 = Constant() {symbol = "w", value = f32[4,2]{1, 2, 3, 4, 5, 6, 7, 8}} : f32[4,2]
//     %2 = MatMul(%0, %1) "fc" : f32[1,2]
//     return "y" = %2
//   }
//
// `%n.k` is output k of node %n (`.0` is left out). Attributes equal to their default are left out
// by the printer. The types are checked against inference; the parser also accepts nodes without
// them. Print and parse round-trip exactly.
#ifndef MENDEL_GRAPH_TEXT_H_
#define MENDEL_GRAPH_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace mendel {

struct PrintOptions {
  /// When set, tensors of more than `inline_limit` elements are appended here and printed as
  /// f32[4,2]@index.
  std::vector<Tensor>* tensors = nullptr;
  int64_t inline_limit = 16;
  /// Leave node names out (for keys that must not depend on them).
  bool node_names = true;
};

std::string PrintGraph(const Graph& graph, const PrintOptions& options = {});

/// " {name = value, ...}" or "" - all attributes, in name order; tensors by content hash. A
/// congruence key.
std::string PrintAttributes(const Attributes& attrs);

/// One value in the text form's notation.
std::string PrintValue(const AttrValue& value);

/// InvalidArgument names the line. `tensors` resolves `@index` references.
absl::StatusOr<Graph> ParseGraph(std::string_view text, const std::vector<Tensor>& tensors = {});

}  // namespace mendel

#endif  // MENDEL_GRAPH_TEXT_H_
