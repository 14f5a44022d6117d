// Algebraic constants: a + b sqrt(2) is exact, whichever root of 2 the field happens to use.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/status.h"
#include "graph/text.h"
#include "verifier/axioms/root_of_two.h"
#include "verifier/field_evaluator.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

/// A graph of two inputs x = %0 and z = %1, the literal 2 = %2 and its square root %3.
Graph Program(const std::string& body, const std::string& radicand = "2") {
  const std::string head = R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Input() {name = "z", shape = [4]}
  %2 = Constant() {value = f32[]{)" +
                           radicand + R"(}}
  %3 = Sqrt(%2)
)";
  auto graph = ParseGraph("graph \"g\" {" + head + body + "\n}");
  EXPECT_TRUE(graph.ok()) << graph.status() << body;
  return graph.ok() ? *std::move(graph) : Graph();
}

absl::StatusCode Verdict(const Graph& f, const Graph& g) {
  for (const WeightMode weights : {WeightMode::kSymbolic, WeightMode::kExact}) {
    const auto certificate = Certify(f, g, {.weights = weights});
    if (!certificate.ok()) return certificate.status().code();
    EXPECT_LE(certificate->bound_log2, -80);
    const absl::Status replay = Replay(f, g, *certificate);
    EXPECT_TRUE(replay.ok()) << replay;
  }
  return absl::StatusCode::kOk;
}

constexpr auto kDifferent = absl::StatusCode::kFailedPrecondition;

TEST(RootOfTwo, SquaresToTwo) {
  Rng rng(1);
  std::vector<uint64_t> primes = {7, 17, 23, 31, 41, 73, 97, 113, 257, 65537};
  for (int i = 0; i < 200; ++i) primes.push_back(SeededDraw(rng).prime);
  for (int i = 0; i < 200; ++i) primes.push_back(SelectionDraw({rng.Next(), rng.Next()}).prime);
  primes.push_back(FreshDraw().prime);
  for (const uint64_t prime : primes) {
    ASSERT_TRUE(HasRootOfTwo(prime)) << prime;
    const PrimeField field(prime);
    const uint64_t first = RootOfTwo(field, false), second = RootOfTwo(field, true);
    EXPECT_EQ(field.Mul(first, first), 2u) << prime;
    EXPECT_EQ(field.Add(first, second), 0u) << prime;
    EXPECT_NE(first, second) << prime;
  }
  for (const uint64_t prime : {3u, 5u, 11u, 13u, 19u, 29u, 37u}) EXPECT_FALSE(HasRootOfTwo(prime));
}

TEST(AlgebraicConstants, TheRootSquaredIsTwo) {
  const Graph doubled = Program("  %4 = Mul(%0, %2)\n  return \"y\" = %4");
  const Graph squared = Program("  %4 = Mul(%0, %3)\n  %5 = Mul(%4, %3)\n  return \"y\" = %5");
  const Graph divided = Program(
      "  %4 = Mul(%0, %2)\n  %5 = Mul(%4, %2)\n  %6 = Div(%5, %3)\n  %7 = Div(%6, %3)\n  return "
      "\"y\" = %7");
  EXPECT_EQ(Verdict(doubled, squared), absl::StatusCode::kOk);
  EXPECT_EQ(Verdict(squared, doubled), absl::StatusCode::kOk);
  EXPECT_EQ(Verdict(doubled, divided), absl::StatusCode::kOk);
  // A literal near the root is another number, and so are minus the root and the roots of others.
  const Graph once = Program("  %4 = Mul(%0, %3)\n  return \"y\" = %4");
  const Graph rounded = Program(
      "  %4 = Constant() {value = f32[]{1.4142135}}\n  %5 = Mul(%0, %4)\n  return \"y\" = %5");
  const Graph negative = Program("  %4 = Neg(%0)\n  %5 = Mul(%4, %3)\n  return \"y\" = %5");
  EXPECT_EQ(Verdict(once, rounded), kDifferent);
  EXPECT_EQ(Verdict(once, negative), kDifferent);
  EXPECT_EQ(Verdict(once, doubled), kDifferent);
  const char kSquare[] = "  %4 = Mul(%0, %3)\n  %5 = Mul(%4, %3)\n  return \"y\" = %5";
  const char kTimes[] = "  %4 = Mul(%0, %2)\n  return \"y\" = %4";
  EXPECT_EQ(Verdict(Program(kTimes, "3"), Program(kSquare, "3")),
            kDifferent);  // no other root is pinned
}

/// (a0 + a1 s)(b0 + b1 s) from its values at sqrt(2), -sqrt(2) and infinity: x holds a0, a1, z
/// holds b0, b1, twice each.
TEST(AlgebraicConstants, InterpolatesAtRoots) {
  const auto slice = [](const char* from, int begin) {
    return Cat("Slice(", from, ") {starts = [", begin, "], ends = [", begin + 2,
               "], steps = [1]}\n");
  };
  const std::string parts = Cat("  %4 = ", slice("%0", 0), "  %5 = ", slice("%0", 2),
                                "  %6 = ", slice("%1", 0), "  %7 = ", slice("%1", 2));
  const Graph direct = Program(parts + R"(
  %8 = Mul(%4, %6)
  %9 = Mul(%4, %7)
  %10 = Mul(%5, %6)
  %11 = Add(%9, %10)
  %12 = Mul(%5, %7)
  return "c0" = %8, "c1" = %11, "c2" = %12)");
  const auto interpolated = [&](const std::string& quarter) {
    return Program(parts + R"(
  %8 = Mul(%5, %3)
  %9 = Mul(%7, %3)
  %10 = Add(%4, %8)
  %11 = Add(%6, %9)
  %12 = Mul(%10, %11)
  %13 = Sub(%4, %8)
  %14 = Sub(%6, %9)
  %15 = Mul(%13, %14)
  %16 = Mul(%5, %7)
  %17 = Constant() {value = f32[]{0.5}}
  %18 = Add(%12, %15)
  %19 = Mul(%18, %17)
  %20 = Mul(%16, %2)
  %21 = Sub(%19, %20)
  %22 = Constant() {value = f32[]{)" +
                   quarter + R"(}}
  %23 = Mul(%3, %22)
  %24 = Sub(%12, %15)
  %25 = Mul(%24, %23)
  return "c0" = %21, "c1" = %25, "c2" = %16)");
  };
  EXPECT_EQ(Verdict(direct, interpolated("0.25")), absl::StatusCode::kOk);
  EXPECT_EQ(Verdict(direct, interpolated("0.5")), kDifferent);
}

TEST(AlgebraicConstants, BothRootsAgree) {
  const Graph f = Program(
      "  %4 = Mul(%1, %3)\n  %5 = Add(%0, %4)\n  %6 = Sub(%0, %4)\n  %7 = Mul(%5, %6)\n  return "
      "\"y\" = %7");
  const Graph equal = Program(
      "  %4 = Mul(%0, %0)\n  %5 = Mul(%1, %1)\n  %6 = Mul(%5, %2)\n  %7 = Sub(%4, %6)\n  return "
      "\"y\" = %7");
  const Graph other =
      Program("  %4 = Mul(%1, %3)\n  %5 = Add(%0, %4)\n  %6 = Mul(%5, %5)\n  return \"y\" = %6");
  const Graph conjugate =
      Program("  %4 = Mul(%1, %3)\n  %5 = Sub(%0, %4)\n  %6 = Mul(%5, %5)\n  return \"y\" = %6");
  Rng rng(7);
  for (int i = 0; i < 20; ++i) {
    Draw draw = SeededDraw(rng);
    std::vector<Fp> roots;
    for (const uint64_t second : {0u, 1u}) {
      draw.key[0] = (draw.key[0] & ~uint64_t{1}) | second;
      const auto values = [&](const Graph& graph) {
        return *EvaluateOutputs(graph, draw, WeightMode::kSymbolic, InputNaming::kByName);
      };
      EXPECT_EQ(values(f), values(equal));
      EXPECT_NE(values(f), values(other));
      EXPECT_NE(values(other), values(conjugate));
      roots.push_back(values(Program("  return \"y\" = %3"))[0][0]);
    }
    EXPECT_EQ(PrimeField(draw.prime).Add(roots[0].value, roots[1].value), 0u);
  }
}

/// Modulo 7 the root is 3 or 4. The norm of 3 x - sqrt(2) x is below 7, that of the integer 3^2 - 2
/// is not.
TEST(AlgebraicConstants, TheBoundKnowsTheConjugate) {
  const Graph root = Program("  %4 = Mul(%0, %3)\n  return \"y\" = %4");
  VerifierOptions options;
  options.target_log2 = 0;
  int coincidences = 0;
  for (const char* residue : {"3", "4"}) {
    const Graph whole = Program(std::string("  %4 = Constant() {value = f32[]{") + residue +
                                "}}\n  %5 = Mul(%0, %4)\n  return \"y\" = %5");
    for (const uint64_t bit : {0u, 1u}) {
      options.fixed_draws.assign(3, {7, {bit, 5}});
      const auto certificate = Certify(root, whole, options);
      EXPECT_FALSE(certificate.ok());
      coincidences += certificate.status().code() == absl::StatusCode::kUnimplemented ? 1 : 0;
    }
  }
  EXPECT_EQ(coincidences, 2);
}

}  // namespace
}  // namespace mendel
