// The work list of a table of layers and their mutants: the subjects, their mutants and the ways of
// correcting these.
#ifndef MENDEL_BENCH_LAYER_CANDIDATES_H_
#define MENDEL_BENCH_LAYER_CANDIDATES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "bench/laboratory.h"
#include "graph/graph.h"
#include "mutator/rule.h"

namespace mendel {

/// The computation that all ways of one row share.
struct Subject {
  std::string models, text;  ///< of the row
  int64_t batch = 1;
  Graph graph;
  bool one_operator = true;  ///< which every match on its output covers
};

/// A mutant that can be compiled, with the layer's own algorithm where it is offered.
struct Candidate {
  Mutant mutant;
  Program program;
};

/// Candidates, the fastest first. If the time ends early, only the first rules are covered.
std::vector<Candidate> Candidates(const Subject& subject, const std::string& algorithm,
                                  const Laboratory& laboratory, const Deadline& deadline);

/// The mutant corrected in every way; empty for one that is equal everywhere, and
/// FailedPrecondition for one that cannot be corrected.
absl::StatusOr<std::vector<Program>> CorrectedPrograms(const Mutant& mutant,
                                                       const Laboratory& laboratory);

/// Subjects from the rules' samples, without single convolutions: the matrix products, chains,
/// merges and attentions of the registry.
std::vector<Subject> Samples(size_t seeds);

}  // namespace mendel

#endif  // MENDEL_BENCH_LAYER_CANDIDATES_H_
