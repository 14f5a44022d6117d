// Tiled kernels with elements of GF(p) in place of floats, compared with the judge's values of the operators that they replace, at
// every element: what a candidate computes is the same expression, whatever the order of its sums. For tests.
#ifndef MENDEL_KERNELS_CUDA_TILED_FIELD_CASES_H_
#define MENDEL_KERNELS_CUDA_TILED_FIELD_CASES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "kernels/cuda/backend/library_groups.h"
#include "kernels/cuda/emulator/device.h"
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
  /// Every product of the graph by every fusion that it has, by a small tile, whole and with its sums divided where they are long
  /// enough, by tensor cores and by the first algorithm that is offered; what is not judged is left out.
  void AddAll(const Graph& graph, uint64_t seed, const std::string& told);
  /// Kernels whose algorithm has `part` in its name.
  int Count(std::string_view part) const;
  /// Those alone, or all others.
  FieldCases With(std::string_view part) const;
  FieldCases Without(std::string_view part) const;
};

/// What judging found: kernels that differ somewhere, one of them, and the elements compared.
struct Judgement {
  int wrong = 0;
  std::string last_wrong;
  int64_t elements = 0;
};
/// Of all kernels under one draw. An error of a launch or of the judge fails the test.
absl::StatusOr<Judgement> Judge(const FieldCases& cases);

/// A text of a kernel with `from` replaced where it first occurs, or where it last does.
struct Fault {
  std::string from, to;
  FusedKernel LibraryGroup::*kernel = &LibraryGroup::kernel;
  bool last = false;
};
/// Fails the test where a fault fits a kernel of `right` not at all, or is not seen in each of them.
void ExpectSeen(const FieldCases& right, const std::vector<Fault>& faults);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_FIELD_CASES_H_
