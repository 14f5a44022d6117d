// Tiled kernels with elements of GF(p) in place of floats, compared with the judge's values of the operators that they replace, at
// every element: what a candidate computes is the same expression, whatever the order of its sums. For tests.
#ifndef MENDEL_TESTS_TILED_FIELD_CASES_H_
#define MENDEL_TESTS_TILED_FIELD_CASES_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "kernels/cuda/backend/library_groups.h"
#include "kernels/cuda/fusion/fused_kernel.h"
#include "runtime/numerics.h"

namespace mendel::cuda {

struct JudgedKernel {
  std::string told;  ///< its algorithm, node and graph
  size_t graph = 0;  ///< of FieldCases::graphs
  LibraryGroup group;
};

struct FieldCases {
  std::vector<Graph> graphs;
  std::vector<JudgedKernel> kernels;

  /// The kernel of `node` of graphs[graph] by `algorithm`. A kernel with operators that IsJudgedInField does not know is left out:
  /// false. An algorithm that is refused fails the test.
  bool Add(size_t graph, int32_t node, const std::string& algorithm, Numerics numerics, const std::string& told);
  /// Every product of the graph by every fusion that it has, by a small tile and by tensor cores, whole and, for odd seeds, with
  /// its sums divided where they are long enough, and by the first algorithm that is offered; what is not judged is left out.
  void AddAll(const Graph& graph, uint64_t seed, const std::string& told);
  /// Kernels whose algorithm has `part` in its name.
  int Count(std::string_view part) const;
  /// Those alone, or all others.
  FieldCases With(std::string_view part) const;
  FieldCases Without(std::string_view part) const;
};

/// What judging found: the kernels that differ somewhere, by number, and how many elements were compared.
struct Judgement {
  std::set<size_t> wrong;
  int64_t elements = 0;
};
/// Of all kernels under one draw. Errors are those of the compiler, of launches, and of the judge.
absl::StatusOr<Judgement> Judge(const FieldCases& cases);
/// Fails the test where one differs; the elements compared.
int64_t ExpectRight(const FieldCases& cases);

/// In a kernel's text `from` is replaced where it first occurs, or where it last does.
struct Fault {
  std::string from, to;
  FusedKernel LibraryGroup::*kernel = &LibraryGroup::kernel;
  bool last = false;
};
/// Each kernel of `right` with each fault, one at a time. Fails the test where one does not fit.
FieldCases Planted(const FieldCases& right, const std::vector<Fault>& faults);
/// Fails the test where one of those does not differ from the judge.
void ExpectSeen(const FieldCases& right, const std::vector<Fault>& faults);

}  // namespace mendel::cuda

#endif  // MENDEL_TESTS_TILED_FIELD_CASES_H_
