// Refused certificates: the message names the fault, and nothing is evaluated.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "graph/text.h"
#include "verifier/field_evaluator.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

Graph Parse(const std::string& text) {
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : Graph();
}

const char kOriginal[] = R"(graph "f" {
  %0 = Input() {name = "x", shape = [2, 3]}
  %1 = Constant() {symbol = "w", value = f32[3,2]{1, 2, 3, 4, 5, 6}}
  %2 = MatMul(%0, %1)
  return "y" = %2
})";
const char kPlan[] = R"(graph "g" {
  %0 = Input() {name = "x", shape = [2, 3]}
  %1 = Constant() {symbol = "w", value = f32[3,2]{1, 2, 3, 4, 5, 6}}
  %2 = Transpose(%0) {perm = [1, 0]}
  %3 = Transpose(%1) {perm = [1, 0]}
  %4 = MatMul(%3, %2)
  %5 = Transpose(%4) {perm = [1, 0]}
  return "y" = %5
})";

/// The reason why the certificate is refused after `tamper`.
std::string Refusal(const std::function<void(Certificate&)>& tamper) {
  const Graph f = Parse(kOriginal), g = Parse(kPlan);
  auto certificate = Certify(f, g, {});
  EXPECT_TRUE(certificate.ok()) << certificate.status();
  if (!certificate.ok()) return "";
  EXPECT_TRUE(Replay(f, g, *certificate).ok());
  tamper(*certificate);
  const absl::Status status = Replay(f, g, *certificate);
  return std::string(status.message().data(), status.message().size());
}

TEST(ReplayRefusals, NameWhatIsWrong) {
  using testing::HasSubstr;
  EXPECT_THAT(Refusal([](Certificate& c) { c.verifier_version += 1; }),
              HasSubstr("of verifier version"));
  EXPECT_THAT(Refusal([](Certificate& c) { c.original_hash[0] ^= 1; }),
              HasSubstr("about another original graph"));
  EXPECT_THAT(Refusal([](Certificate& c) { c.plan_hash[0] ^= 1; }),
              HasSubstr("about another plan"));
  EXPECT_THAT(Refusal([](Certificate& c) { c.draws[1].prime = 15; }), HasSubstr("no prime"));
  EXPECT_THAT(Refusal([](Certificate& c) { c.draws[1].prime = 83; }),
              HasSubstr("does not follow from its key"));
  EXPECT_THAT(Refusal([](Certificate& c) { c.draws.resize(1000, c.draws[1]); }),
              HasSubstr("1000 draws"));
  EXPECT_THAT(Refusal([](Certificate& c) { c.elements += 1; }),
              HasSubstr("states what its draws do not show"));
}

/// A prime below the degree proves nothing, whatever bound is requested.
TEST(CertifyRefusals, DegreesAboveThePrime) {
  const Graph f = Parse(kOriginal), g = Parse(kPlan);
  VerifierOptions options;
  options.target_log2 = 100;
  options.fixed_draws = {{3, {1, 2}}, {3, {3, 4}}};
  const absl::Status status = Certify(f, g, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
}

/// Values after a division by zero are meaningless, even if they are equal.
TEST(CertifyRefusals, DrawsWithAZeroDenominator) {
  const std::string head = R"(graph "f" {
  %0 = Input() {name = "x", shape = [3]}
  %1 = Constant() {value = f32[]{1}}
)";
  const Graph f = Parse(head + "  %2 = Div(%1, %0)\n  return \"y\" = %2\n}");
  const Graph g =
      Parse(head + "  %2 = Neg(%1)\n  %3 = Div(%2, %0)\n  %4 = Neg(%3)\n  return \"y\" = %4\n}");
  int refused = 0;
  for (uint64_t key = 1; key <= 400; ++key) {
    VerifierOptions options;
    options.target_log2 = 0;
    options.fixed_draws = {{83, {key, 1}}, {83, {key, 2}}};
    const auto zero = [&](const Draw& draw) {
      return absl::IsAborted(
          EvaluateOutputs(f, draw, WeightMode::kSymbolic, InputNaming::kByName).status());
    };
    const absl::Status status = Certify(f, g, options).status();
    EXPECT_EQ(status.ok(), !zero(options.fixed_draws[0]) && !zero(options.fixed_draws[1]))
        << "key " << key << ": " << status;
    refused += status.ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 0);
}

/// Views share the number of the viewed value; readers that depend on the view's shape must stay
/// distinct.
TEST(CertifyRefusals, TransposesOfTwoViewsOfOneValue) {
  const std::string head = "graph \"f\" {\n  %0 = Input() {name = \"x\", shape = [2, 3]}\n";
  const std::string tail = "  %3 = Reshape(%2) {shape = [6]}\n  return \"y\" = %3\n}";
  const Graph f = Parse(head + "  %2 = Transpose(%0) {perm = [1, 0]}\n" + tail);
  const Graph g = Parse(
      head + "  %1 = Reshape(%0) {shape = [3, 2]}\n  %2 = Transpose(%1) {perm = [1, 0]}\n" + tail);
  EXPECT_EQ(Certify(f, g, {}).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace mendel
