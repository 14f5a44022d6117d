// Draws, their bound, and certificates replayed.

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <vector>

#include "verifier/certify/certify_cases.h"
#include "verifier/field_evaluator.h"

namespace mendel {
namespace {

TEST(Certify, FalseAcceptsOfTinyPrimesStayUnderTheBound) {
  // The difference of x (x + 1) (x + 2) and the same without the last term vanishes for three
  // values of x in p.
  const Graph f = Parse(R"(
  %0 = Input() {name = "x", shape = [1]}
  %1 = Constant() {value = f32[]{1}}
  %2 = Constant() {value = f32[]{2}}
  %3 = Add(%0, %1)
  %4 = Add(%0, %2)
  %5 = Mul(%0, %3)
  %6 = Mul(%5, %4)
  return "y" = %6)");
  const Graph g = Parse(R"(
  %0 = Input() {name = "x", shape = [1]}
  %1 = Constant() {value = f32[]{0}}
  %2 = Mul(%0, %1)
  return "y" = %2)");
  constexpr int kTrials = 20000;
  for (const uint64_t prime : {83u, 251u, 65537u}) {
    // A selection that is fooled, so that what the tests find is seen.
    Draw fooled{prime, {}};
    VerifierOptions options;
    options.target_log2 = 0;
    Rng rng(prime);
    while (true) {
      fooled.key = {rng.Next(), rng.Next()};
      options.fixed_draws = {fooled, {prime, {rng.Next(), rng.Next()}}};
      const Draw& draw = options.fixed_draws[0];
      if (*EvaluateOutputs(f, draw, WeightMode::kSymbolic, InputNaming::kByName) ==
          *EvaluateOutputs(g, draw, WeightMode::kSymbolic, InputNaming::kByName)) {
        break;
      }
    }
    int accepted = 0;
    double bound = 0;
    for (int i = 0; i < kTrials; ++i) {
      options.fixed_draws[1].key = {rng.Next(), rng.Next()};
      const auto certificate = Certify(f, g, options);
      if (!certificate.ok()) continue;
      ++accepted;
      bound = std::exp2(certificate->bound_log2);
    }
    const double rate = static_cast<double>(accepted) / kTrials;
    const double sigma = std::sqrt(rate / kTrials);
    std::cout << "prime " << prime << ": accepted " << rate << ", bound " << bound << "\n";
    EXPECT_LE(rate - 3 * sigma, bound);
    if (prime < 1000) {
      EXPECT_GT(accepted, 0);
    }
  }
}

TEST(Certify, FixedDrawsRepeat) {
  Rng rng(5);
  VerifierOptions options;
  for (int i = 0; i < 4; ++i) options.fixed_draws.push_back(SeededDraw(rng));
  const Graph f = Parse(Fill(kProduct));
  const Graph g = Parse(Fill(R"(
  %0 = Input() {name = "x", shape = [4, 4]}
  %1 = Constant() {symbol = "w", value = f32[4,4]{W16}}
  %2 = MatMul(%0, %1)
  %3 = Add(%2, %2)
  %4 = Sub(%3, %2)
  %5 = Relu(%4)
  return "y" = %5)"));
  const auto a = Certify(f, g, options);
  const auto b = Certify(f, g, options);
  ASSERT_TRUE(a.ok() && b.ok()) << a.status();
  EXPECT_EQ(a->draws, b->draws);
  EXPECT_TRUE(std::equal(a->draws.begin(), a->draws.end(), options.fixed_draws.begin()));
}

TEST(Replay, RefusesEveryTamperedField) {
  const Graph f = Parse(Fill(kConvNet));
  const Graph g = Parse(Replaced(Fill(kConvNet), "return \"y\" = %6",
                                 "  %7 = Add(%6, %6)\n  %8 = Sub(%7, %6)\n  return \"y\" = %8"));
  const auto certificate = Certify(f, g, {});
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  EXPECT_TRUE(Replay(f, g, *certificate).ok()) << Replay(f, g, *certificate);
  using Tamper = void (*)(Certificate&);
  const std::vector<Tamper> tampers = {
      [](Certificate& c) { ++c.verifier_version; },
      [](Certificate& c) { c.original_hash[0] ^= 1; },
      [](Certificate& c) { c.plan_hash[5] ^= 1; },
      [](Certificate& c) { c.weights = WeightMode::kExact; },
      [](Certificate& c) { c.draws.pop_back(); },
      [](Certificate& c) { c.draws.clear(); },
      [](Certificate& c) { c.draws.push_back(c.draws[0]); },
      [](Certificate& c) { c.draws[0].key[0] ^= 1; },
      [](Certificate& c) { c.draws[1].key[1] ^= 1; },
      [](Certificate& c) { c.draws[1].prime += 2; },
      [](Certificate& c) { c.draws[1].prime = 83; },
      [](Certificate& c) { c.degree -= 1; },
      [](Certificate& c) { c.log2_norm += 1; },
      [](Certificate& c) { c.oracle_operands += 1; },
      [](Certificate& c) { c.elements += 1; },
      [](Certificate& c) { c.segments += 1; },
      [](Certificate& c) { c.shared_nodes += 1; },
      [](Certificate& c) { c.rounds += 1; },
      [](Certificate& c) { c.bound_log2 -= 1; },
      [](Certificate& c) { c.axioms = {"masked softmax"}; },
      [](Certificate& c) { c.axioms = {"every sum is zero"}; },
      [](Certificate& c) { c.axioms = {"canonical form"}; },
      [](Certificate& c) { c.axioms = {"parts of values"}; },
      [](Certificate& c) { c.axioms = {"pool of a pool"}; },
  };
  for (size_t k = 0; k < tampers.size(); ++k) {
    Certificate tampered = *certificate;
    tampers[k](tampered);
    EXPECT_FALSE(Replay(f, g, tampered).ok()) << "tamper " << k;
  }
  EXPECT_FALSE(Replay(f, f, *certificate).ok());
}

TEST(GraphHash, IsWhatTheVerifierSees) {
  const Graph net = Parse(Fill(kConvNet));
  const Graph other_values = Parse(Replaced(Fill(kConvNet), "{1, 2, 3}", "{1, 2, 4}"));
  EXPECT_EQ(GraphHash(net, WeightMode::kSymbolic), GraphHash(other_values, WeightMode::kSymbolic));
  EXPECT_NE(GraphHash(net, WeightMode::kExact), GraphHash(other_values, WeightMode::kExact));
  const Graph other_pads =
      Parse(Replaced(Fill(kConvNet), "pads = [1, 1, 1, 1]", "pads = [2, 1, 0, 1]"));
  EXPECT_NE(GraphHash(net, WeightMode::kSymbolic), GraphHash(other_pads, WeightMode::kSymbolic));
}

}  // namespace
}  // namespace mendel
