// Tiled kernels with elements of GF(p) in place of floats, compared at every element with the
// verifier's values of the replaced operators. A candidate computes the same expression for any
// order of its sums. For tests.
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

struct VerifiedKernel {
  std::string description;  ///< its algorithm, node and graph
  size_t graph = 0;         ///< of FieldCases::graphs
  LibraryGroup group;
};

struct FieldCases {
  std::vector<Graph> graphs;
  std::vector<VerifiedKernel> kernels;

  /// Adds the kernel of `node` of graphs[graph] by `algorithm`. False, and nothing is added,
  /// if IsVerifiedInField is false for one of its operators. A refused algorithm fails the
  /// test.
  bool Add(size_t graph, int32_t node, const std::string& algorithm, Numerics numerics,
           const std::string& description);
  /// Adds every product of the graph with every fusion of it, by a small tile, by tensor cores, and
  /// by the first algorithm offered. For odd seeds, long enough sums are divided. Kernels that are
  /// not verified are left out.
  void AddAll(const Graph& graph, uint64_t seed, const std::string& description);
  /// Kernels whose algorithm has `part` in its name.
  int Count(std::string_view part) const;
  /// Cases of that part alone, or all others.
  FieldCases With(std::string_view part) const;
  FieldCases Without(std::string_view part) const;
};

/// Findings: the kernels that differ somewhere, by number, and how many elements were
/// compared.
struct Verification {
  std::set<size_t> wrong;
  int64_t elements = 0;
};
/// Verifies all kernels under one draw. Errors are those of the compiler, of launches, and of the
/// verifier.
absl::StatusOr<Verification> Verify(const FieldCases& cases);
/// Fails the test where a kernel differs; returns the number of compared elements.
int64_t ExpectRight(const FieldCases& cases);

/// A replacement of the first, or the last, `from` in a kernel's text.
struct Fault {
  std::string from, to;
  FusedKernel LibraryGroup::*kernel = &LibraryGroup::kernel;
  bool last = false;
};
/// Each kernel of `right` with each fault, one at a time. A fault that does not fit fails the test.
FieldCases Planted(const FieldCases& right, const std::vector<Fault>& faults);
/// Fails the test where a faulty kernel equals the verifier's values.
void ExpectSeen(const FieldCases& right, const std::vector<Fault>& faults);

}  // namespace mendel::cuda

#endif  // MENDEL_TESTS_TILED_FIELD_CASES_H_
