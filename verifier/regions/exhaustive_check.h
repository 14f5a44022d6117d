// Tests compare the answer of Localize with an evaluation of every element.
#ifndef MENDEL_VERIFIER_REGIONS_EXHAUSTIVE_CHECK_H_
#define MENDEL_VERIFIER_REGIONS_EXHAUSTIVE_CHECK_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "graph/evaluate.h"
#include "graph/random_graph.h"
#include "graph/text.h"
#include "verifier/field_evaluator.h"
#include "verifier/verifier.h"

namespace mendel {

/// The elements of every output that differ, by evaluating all of both programs under two draws;
/// empty when denominators stay zero.
inline std::vector<std::vector<bool>> Exhaustive(const Graph& f, const Graph& g, WeightMode weights,
                                                 uint64_t seed) {
  std::vector<std::vector<bool>> differs;
  Rng rng(seed);
  int tests = 0;
  for (int attempt = 0; attempt < 6 && tests < 2; ++attempt) {
    const Draw draw = SeededDraw(rng);
    const auto a = EvaluateOutputs(f, draw, weights, InputNaming::kByPosition);
    const auto b = EvaluateOutputs(g, draw, weights, InputNaming::kByPosition);
    if (!a.ok() || !b.ok()) continue;
    ++tests;
    differs.resize(a->size());
    for (size_t k = 0; k < a->size(); ++k) {
      differs[k].resize((*a)[k].size(), false);
      for (size_t i = 0; i < (*a)[k].size(); ++i)
        differs[k][i] = differs[k][i] || (*a)[k][i] != (*b)[k][i];
    }
  }
  return tests < 2 ? std::vector<std::vector<bool>>() : differs;
}

inline bool Differs(const std::vector<std::vector<bool>>& outputs) {
  return std::any_of(outputs.begin(), outputs.end(), [](const std::vector<bool>& output) {
    return std::find(output.begin(), output.end(), true) != output.end();
  });
}

/// Elements that the report calls wrong; fails when boxes overlap.
inline std::vector<bool> Claimed(const OutputReport& output) {
  std::vector<bool> wrong(static_cast<size_t>(NumElements(output.shape)), false);
  for (const Box& box : output.wrong) {
    const Shape extents = box.Extents();
    std::vector<int64_t> at(extents.size(), 0);
    do {
      std::vector<int64_t> position = box.begin;
      for (size_t d = 0; d < at.size(); ++d) position[d] += at[d];
      const size_t flat = static_cast<size_t>(FlatIndex(output.shape, position));
      EXPECT_FALSE(wrong[flat]) << "boxes overlap";
      wrong[flat] = true;
    } while (NextIndex(extents, at));
  }
  return wrong;
}

/// Counts of a run of many programs.
struct Tally {
  int64_t programs = 0, by_regions = 0, saved = 0, partial = 0, equivalent = 0, different = 0,
          by_axioms = 0, elements = 0, probes = 0;

  void Print(const char* what, uint64_t first, uint64_t count) const {
    const auto number = [](int64_t value) { return static_cast<long long>(value); };
    std::printf(
        "[ %s, seeds %llu..%llu: %lld compared, %lld by regions, %lld with fewer probes than "
        "elements; %lld equivalent, "
        "%lld partial, %lld different; %lld equal by axioms; %lld probes for %lld elements ]\n",
        what, static_cast<unsigned long long>(first),
        static_cast<unsigned long long>(first + count - 1), number(programs), number(by_regions),
        number(saved), number(equivalent), number(partial), number(different), number(by_axioms),
        number(probes), number(elements));
  }
};

/// True where both programs compute the same numbers. Axioms prove pairs equal whose formal
/// expressions differ.
inline bool AreEqualInNumbers(const Graph& f, const Graph& g, uint64_t seed) {
  Rng rng(seed);
  const std::vector<HostValue> inputs = RandomInputs(rng, f);
  const auto a = Evaluate(f, inputs), b = Evaluate(g, inputs);
  if (!a.ok() || !b.ok()) return false;
  for (size_t k = 0; k < a->size(); ++k) {
    for (int64_t i = 0; i < NumElements((*a)[k].type); ++i) {
      const double x = (*a)[k].At(i), y = (*b)[k].At(i);
      const bool same = x == y || (std::isnan(x) && std::isnan(y)) ||
                        std::abs(x - y) <= 1e-9 * (std::abs(x) + std::abs(y));
      if (!same) return false;
    }
  }
  return true;
}

/// Fails unless the boxes of Localize are the elements that differ.
inline void CompareWithExhaustive(uint64_t seed, const Graph& f, const Graph& g, WeightMode weights,
                                  Tally& tally) {
  VerifierOptions options;
  options.seed = seed;
  options.weights = weights;
  const auto report = Localize(f, g, options);
  ASSERT_TRUE(report.ok()) << "seed " << seed << ": " << report.status() << PrintGraph(f)
                           << PrintGraph(g);
  if (report->verdict == Verdict::kUnproven && report->tests == 0) return;  // zero denominators
  const std::vector<std::vector<bool>> expected = Exhaustive(f, g, weights, seed);
  if (expected.empty()) return;
  if (report->verdict == Verdict::kEquivalent && Differs(expected)) {
    ASSERT_TRUE(AreEqualInNumbers(f, g, seed)) << "seed " << seed << PrintGraph(f) << PrintGraph(g);
    ++tally.by_axioms;
    return;
  }
  ++tally.programs;
  tally.by_regions += report->fallbacks.empty() ? 1 : 0;
  tally.partial += report->verdict == Verdict::kPartial ? 1 : 0;
  tally.equivalent += report->verdict == Verdict::kEquivalent ? 1 : 0;
  tally.different += report->verdict == Verdict::kDifferent ? 1 : 0;
  tally.probes += report->probes;
  int64_t elements = 0;
  for (size_t k = 0; k < expected.size(); ++k) {
    elements += static_cast<int64_t>(expected[k].size());
    ASSERT_EQ(Claimed(report->outputs[k]), expected[k])
        << "seed " << seed << (weights == WeightMode::kExact ? " exact" : "") << " output " << k
        << "\n"
        << PrintGraph(f) << PrintGraph(g) << "reproduce: MENDEL_REGION_SEED=" << seed;
  }
  tally.elements += elements;
  tally.saved += report->probes < elements ? 1 : 0;
}

inline uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Seeds of a run: MENDEL_REGION_SEED is the first, MENDEL_REGION_PROGRAMS how many (the soak run
/// takes more).
inline uint64_t FirstSeed() { return FromEnvironment("MENDEL_REGION_SEED", 1); }
inline uint64_t SeedCount(uint64_t quick) {
  return FromEnvironment("MENDEL_REGION_PROGRAMS",
                         std::getenv("MENDEL_REGION_SEED") != nullptr ? 1 : quick);
}

}  // namespace mendel

#endif  // MENDEL_VERIFIER_REGIONS_EXHAUSTIVE_CHECK_H_
