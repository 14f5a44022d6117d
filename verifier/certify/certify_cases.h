// For tests of Certify and Replay: programs from text, and what the verifier says about them.
#ifndef MENDEL_VERIFIER_CERTIFY_CERTIFY_CASES_H_
#define MENDEL_VERIFIER_CERTIFY_CERTIFY_CASES_H_

#include <gtest/gtest.h>

#include <string>

#include "graph/text.h"
#include "verifier/verifier.h"

namespace mendel {

/// A graph from the text of its nodes and its return line.
inline Graph Parse(const std::string& body) {
  auto graph = ParseGraph("graph \"g\" {\n" + body + "\n}");
  EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << body;
  return graph.ok() ? *graph : Graph();
}

inline absl::Status Verdict(const std::string& original, const std::string& plan,
                            VerifierOptions options = {}) {
  const Graph f = Parse(original);
  const Graph g = Parse(plan);
  const auto certificate = Certify(f, g, options);
  if (!certificate.ok()) return certificate.status();
  EXPECT_LE(certificate->bound_log2, options.target_log2);
  const absl::Status replay = Replay(f, g, *certificate);
  EXPECT_TRUE(replay.ok()) << replay;
  return absl::OkStatus();
}

inline constexpr auto kDifferent = absl::StatusCode::kFailedPrecondition;
inline constexpr auto kUnproven = absl::StatusCode::kUnimplemented;

inline const char kConvNet[] = R"(
  %0 = Input() {name = "x", shape = [1, 2, 6, 6]}
  %1 = Constant() {symbol = "w1", value = f32[3,2,3,3]{W54}}
  %2 = Constant() {symbol = "b1", value = f32[3]{1, 2, 3}}
  %3 = Conv(%0, %1, %2) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %4 = Relu(%3)
  %5 = Constant() {symbol = "w2", value = f32[4,3,1,1]{W12}}
  %6 = Conv(%4, %5) {strides = [1, 1], dilations = [1, 1], pads = [0, 0, 0, 0]}
  return "y" = %6)";

/// W54 and the like become that many numbers: symbolic weights need values, the verifier does not
/// look at them.
inline std::string Fill(std::string text) {
  size_t at = 0;
  while ((at = text.find("{W", at)) != std::string::npos) {
    const size_t end = text.find('}', at);
    const int count = std::stoi(text.substr(at + 2, end - at - 2));
    std::string values;
    for (int i = 0; i < count; ++i) values += (i > 0 ? ", " : "") + std::to_string(i % 7 - 3);
    text.replace(at + 1, end - at - 1, values);
  }
  return text;
}

inline std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// y = relu(x w), of square matrices.
inline const char kProduct[] = R"(
  %0 = Input() {name = "x", shape = [4, 4]}
  %1 = Constant() {symbol = "w", value = f32[4,4]{W16}}
  %2 = MatMul(%0, %1)
  %3 = Relu(%2)
  return "y" = %3)";

}  // namespace mendel

#endif  // MENDEL_VERIFIER_CERTIFY_CERTIFY_CASES_H_
