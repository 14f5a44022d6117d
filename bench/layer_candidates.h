// What a table of layers and their mutants measures: the subjects, their mutants and the ways of mending these.
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

/// What is computed in all of the ways that a row compares.
struct Subject {
  std::string models, text;  ///< of the row
  int64_t batch = 1;
  Graph graph;
  bool one_operator = true;  ///< which every match on its output covers
};

/// A mutant that can be compiled, by the algorithm that the layer itself takes where it is offered.
struct Candidate {
  Mutant mutant;
  Program program;
};

/// The fastest first; those of the first rules only when the time is over before all were tried.
std::vector<Candidate> Candidates(const Subject& subject, const std::string& algorithm, const Laboratory& laboratory,
                                  const Deadline& deadline);

/// The mutant mended in every way; empty for one that is equal everywhere, and FailedPrecondition for one that cannot be mended.
absl::StatusOr<std::vector<Program>> MendedPrograms(const Mutant& mutant, const Laboratory& laboratory);

/// What the rules' samples rewrite, single convolutions apart: the matrix products, chains, merges and attentions of the registry.
std::vector<Subject> Samples(size_t seeds);

}  // namespace mendel

#endif  // MENDEL_BENCH_LAYER_CANDIDATES_H_
