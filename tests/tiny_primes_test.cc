// The stated bound against the measured rate: with tiny primes false accepts are frequent enough to
// count. Programs are built to be hard: their difference is a product of distinct linear factors,
// which attains degree / p exactly.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/text.h"
#include "tests/program_source.h"
#include "verifier/field_evaluator.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

struct HardPair {
  std::string name;
  Graph f;
  Graph g;
};

Graph Parse(const std::string& body) {
  auto graph =
      ParseGraph("graph \"g\" {\n  %0 = Input() {name = \"x\", shape = [3]}\n" + body + "}");
  EXPECT_TRUE(graph.ok()) << graph.status() << body;
  return graph.ok() ? *std::move(graph) : Graph();
}

/// Lines that compute prod (x + constants[k]) for k = first .. last into %<next - 1>; each constant
/// has three elements.
std::string Product(const std::vector<std::string>& constants, int& next) {
  std::string text, product = "%0";
  for (const std::string& constant : constants) {
    text += Cat("  %", next, " = Constant() {value = f32[3]{", constant, "}}\n");
    text += Cat("  %", next + 1, " = Add(%0, %", next, ")\n");
    text += Cat("  %", next + 2, " = Mul(", product, ", %", next + 1, ")\n");
    product = Cat("%", next + 2);
    next += 3;
  }
  return text;
}

std::vector<std::string> Factors(int degree) {
  std::vector<std::string> constants;
  for (int k = 1; k < degree; ++k) constants.push_back(Cat(k, ", ", k, ", ", k));
  return constants;
}

/// Products of `degree` factors that differ in one factor of one element.
HardPair ProductPair(int degree) {
  std::vector<std::string> constants = Factors(degree);
  int next = 1;
  const std::string f = Product(constants, next);
  const std::string last = Cat("  return \"y\" = %", next - 1, "\n");
  constants.back() = Cat(degree - 1, ", ", degree, ", ", degree - 1);
  next = 1;
  return {Cat("product of ", degree), Parse(f + last), Parse(Product(constants, next) + last)};
}

/// The same as operands of an oracle.
HardPair OraclePair(int degree) {
  std::vector<std::string> constants = Factors(degree);
  int next = 1;
  const std::string f = Product(constants, next);
  const std::string last =
      Cat("  %", next, " = Cos(%", next - 1, ")\n  return \"y\" = %", next, "\n");
  constants.back() = Cat(degree - 1, ", ", degree, ", ", degree - 1);
  next = 1;
  return {Cat("cosine of a product of ", degree), Parse(f + last),
          Parse(Product(constants, next) + last)};
}

/// Sums of `count` fractions 1 / (x + k), of which one element of one has another numerator.
HardPair FractionPair(int count) {
  const auto sum = [&](bool changed) {
    std::string text, total;
    int next = 1;
    for (int k = 1; k <= count; ++k) {
      text += Cat("  %", next, " = Constant() {value = f32[3]{", k, ", ", k, ", ", k, "}}\n");
      text += Cat("  %", next + 1, " = Add(%0, %", next, ")\n");
      text += Cat("  %", next + 2, " = Constant() {value = f32[3]{1, ",
                  changed && k == count ? 2 : 1, ", 1}}\n");
      text += Cat("  %", next + 3, " = Div(%", next + 2, ", %", next + 1, ")\n");
      if (k > 1) text += Cat("  %", next + 4, " = Add(", total, ", %", next + 3, ")\n");
      total = Cat("%", next + (k > 1 ? 4 : 3));
      next += 5;
    }
    // The difference 1 / (x + count) has no zero: multiplied by x (x - 1), it has two.
    text += Cat("  %", next, " = Constant() {value = f32[3]{1, 1, 1}}\n  %", next + 1,
                " = Sub(%0, %", next, ")\n");
    text += Cat("  %", next + 2, " = Mul(%0, %", next + 1, ")\n  %", next + 3, " = Mul(", total,
                ", %", next + 2, ")\n");
    return Parse(text + Cat("  return \"y\" = %", next + 3, "\n"));
  };
  return {Cat("sum of ", count, " fractions"), sum(false), sum(true)};
}

bool AgreeUnder(const HardPair& pair, const Draw& draw) {
  const auto a = EvaluateOutputs(pair.f, draw, WeightMode::kSymbolic, InputNaming::kByName);
  const auto b = EvaluateOutputs(pair.g, draw, WeightMode::kSymbolic, InputNaming::kByName);
  return a.ok() && b.ok() && *a == *b;
}

/// Bounds stated by the certificates that accepted, ascending. One test each; the selection is one
/// that is fooled, so that what the test finds is seen.
std::vector<double> AcceptedBounds(const HardPair& pair, uint64_t prime, int trials) {
  Rng rng(prime * 31 + 7);
  Draw fooled{prime, {rng.Next(), rng.Next()}};
  while (!AgreeUnder(pair, fooled)) fooled.key = {rng.Next(), rng.Next()};
  VerifierOptions options;
  options.target_log2 = 0;
  options.fixed_draws = {fooled, {prime, {}}};
  std::vector<double> bounds;
  for (int i = 0; i < trials; ++i) {
    options.fixed_draws[1].key = {rng.Next(), rng.Next()};
    const auto certificate = Certify(pair.f, pair.g, options);
    if (!certificate.ok()) continue;
    EXPECT_EQ(certificate->draws.size(), 2u);
    bounds.push_back(std::exp2(certificate->bound_log2));
  }
  std::sort(bounds.begin(), bounds.end());
  return bounds;
}

/// Certificates about one pair state several bounds, as their partitions differ. Whatever bound one
/// requests: the rate of wrong certificates that state it or a better one does not lie above it,
/// its lower limit of three standard deviations being below.
void ExpectUnderTheBound(const HardPair& pair, const std::vector<uint64_t>& primes, int trials) {
  for (const uint64_t prime : primes) {
    const std::vector<double> bounds = AcceptedBounds(pair, prime, trials);
    std::printf("%s, p = %llu: %zu of %d accepted", pair.name.c_str(),
                static_cast<unsigned long long>(prime), bounds.size(), trials);
    for (size_t k = 0; k < bounds.size(); ++k) {
      if (k + 1 < bounds.size() && bounds[k + 1] == bounds[k]) continue;
      const double rate = static_cast<double>(k + 1) / trials;
      const double sigma = std::sqrt(rate * (1 - rate) / trials);
      std::printf("; rate %.5f, bound %.5f", rate, bounds[k]);
      EXPECT_LE(rate - 3 * sigma, bounds[k]) << pair.name << " p = " << prime;
    }
    std::printf("\n");
    if (prime <= 251) {
      EXPECT_FALSE(bounds.empty())
          << "the programs are not hard: " << pair.name << " p = " << prime;
    }
  }
}

int Trials() { return static_cast<int>(NumberFromEnvironment("MENDEL_TINY_PRIME_TRIALS", 1000)); }

TEST(TinyPrimes, ProductsOfLinearFactors) {
  for (const int degree : {2, 4, 8})
    ExpectUnderTheBound(ProductPair(degree), {83, 251, 1021, 65537}, Trials());
}

TEST(TinyPrimes, OperandsOfOracles) {
  for (const int degree : {2, 4}) ExpectUnderTheBound(OraclePair(degree), {251, 4093}, Trials());
}

TEST(TinyPrimes, SumsOfFractions) {
  for (const int count : {2, 4}) ExpectUnderTheBound(FractionPair(count), {251, 1021}, Trials());
}

}  // namespace
}  // namespace mendel
