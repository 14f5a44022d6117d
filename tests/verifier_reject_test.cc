// The verifier against single faults: every mutated program is proven different or is harmless. One
// wrong "equivalent" fails.
//
// MENDEL_MUTANTS: how many; MENDEL_MUTANT_SEED: the first seed; MENDEL_MODELS: a folder of models
// whose parts are mutated, too; MENDEL_MUTANT_TABLE: a file that the table of the score is written
// to.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "base/status.h"
#include "graph/rewrite.h"
#include "graph/text.h"
#include "tests/graph_edit.h"
#include "tests/graph_mutations.h"
#include "tests/program_source.h"
#include "tests/verifier_score.h"

namespace mendel {
namespace {

constexpr double kMaxFlops = 4e6;

struct Mutant {
  Graph original;
  Graph mutated;
  Mutation mutation;
  WeightMode weights = WeightMode::kSymbolic;
};

/// The mutant of one seed: a program from one of the sources and a fault that fits it.
std::optional<Mutant> MutantOf(uint64_t seed, const std::vector<Graph>& models) {
  Rng rng(seed);
  const auto kinds = MutationKinds();
  std::string_view kind = kinds[seed % kinds.size()];
  for (int attempt = 0; attempt < 200; ++attempt) {
    // Few programs have the nodes that some faults need.
    if (attempt >= 40) kind = kinds[PickIndex(rng, kinds.size())];
    const bool part = !models.empty() && rng.Flip(0.4);
    const std::optional<Graph> graph =
        part ? RandomPart(rng, models[PickIndex(rng, models.size())], kMaxFlops)
             : RandomProgram(rng);
    if (!graph.has_value()) continue;
    // Other numbers under another name are mostly a matter of exact weights.
    const double symbolic = kind == "coefficient" || kind == "weight" ? 0.1 : 0.5;
    Mutant mutant{*graph, {}, {}, rng.Flip(symbolic) ? WeightMode::kSymbolic : WeightMode::kExact};
    auto mutated = RandomMutation(rng, *graph, kind, mutant.mutation);
    if (!mutated.has_value()) continue;
    mutant.mutated = *std::move(mutated);
    return mutant;
  }
  return std::nullopt;
}

/// The smallest neighborhood of the fault that is verified wrongly on its own, as text.
std::string Shrunk(const Mutant& mutant, uint64_t seed) {
  std::vector<int32_t> nodes = {mutant.mutation.node};
  for (int step = 0; step < 3; ++step) {
    const auto subprogram = MakeSubprogram(mutant.original, nodes);
    const auto part = subprogram.ok() ? Extract(mutant.original, *subprogram)
                                      : absl::StatusOr<Graph>(subprogram.status());
    for (int32_t id = 0; part.ok() && id < static_cast<int32_t>(part->nodes().size()); ++id) {
      const auto mutated = Mutate(*part, {mutant.mutation.kind, id, mutant.mutation.seed});
      if (mutated &&
          ScorePair(*part, *mutated, mutant.weights, seed).outcome == Outcome::kFalseEquivalent) {
        return Cat("shrunk:\n", PrintGraph(*part), PrintGraph(*mutated));
      }
    }
    const std::vector<int32_t> users = mutant.original.users(nodes.back());
    if (users.empty()) break;
    nodes.push_back(users[0]);
  }
  return "";
}

std::string Describe(const Mutant& mutant, uint64_t seed) {
  std::vector<Tensor> tensors;
  const PrintOptions options{.tensors = &tensors, .inline_limit = 64};
  return Cat("seed ", seed, ", ", mutant.mutation.kind, " at node ", mutant.mutation.node,
             mutant.weights == WeightMode::kExact ? ", exact weights\n" : ", symbolic weights\n",
             PrintGraph(mutant.original, options), PrintGraph(mutant.mutated, options),
             "reproduce: MENDEL_MUTANT_SEED=", seed, " MENDEL_MUTANTS=1 verifier_reject_test\n");
}

std::vector<Graph> LoadModels() {
  std::vector<Graph> models;
  for (const std::string& path : ModelPaths()) models.push_back(LoadModel(path));
  return models;
}

TEST(VerifierRejects, EverySingleFault) {
  const uint64_t first = NumberFromEnvironment("MENDEL_MUTANT_SEED", 1);
  const uint64_t count = NumberFromEnvironment("MENDEL_MUTANTS", 750);
  const bool verbose = std::getenv("MENDEL_MUTANT_VERBOSE") != nullptr;
  const std::vector<Graph> models = LoadModels();
  ScoreTable table;
  int64_t unfit = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const std::optional<Mutant> mutant = MutantOf(seed, models);
    if (!mutant.has_value()) {
      ++unfit;
      continue;
    }
    const Verification verification =
        ScorePair(mutant->original, mutant->mutated, mutant->weights, seed);
    table.Add(mutant->mutation.kind, verification.outcome);
    const bool bad = verification.outcome == Outcome::kFalseEquivalent ||
                     verification.outcome == Outcome::kFalseWitness ||
                     verification.outcome == Outcome::kError;
    EXPECT_FALSE(bad) << OutcomeName(verification.outcome) << ": " << verification.detail << "\n"
                      << Describe(*mutant, seed)
                      << (verification.outcome == Outcome::kError ? "" : Shrunk(*mutant, seed));
    if (verbose && !bad) {
      std::printf("%s: %s\n%s", std::string(OutcomeName(verification.outcome)).c_str(),
                  verification.detail.c_str(), Describe(*mutant, seed).c_str());
    }
  }
  std::printf("seeds %llu..%llu, %lld without a fitting program, parts of %zu models\n%s",
              static_cast<unsigned long long>(first),
              static_cast<unsigned long long>(first + count - 1), static_cast<long long>(unfit),
              models.size(), table.Print().c_str());
  if (const char* path = std::getenv("MENDEL_MUTANT_TABLE")) std::ofstream(path) << table.Print();
  EXPECT_GT(table.Total(), static_cast<int64_t>(count / 2));
}

}  // namespace
}  // namespace mendel
