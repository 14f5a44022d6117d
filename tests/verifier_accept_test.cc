// The verifier against equal programs: every legal rewrite must be certified.
//
// MENDEL_REWRITTEN is the number of small programs, MENDEL_REWRITTEN_SEED the first seed,
// MENDEL_MODELS a folder of models that are rewritten whole.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <vector>

#include "base/check.h"
#include "base/deadline.h"
#include "base/status.h"
#include "graph/rewrite.h"
#include "graph/text.h"
#include "tests/graph_edit.h"
#include "tests/legal_rewrites.h"
#include "tests/program_source.h"
#include "tests/verifier_score.h"

namespace mendel {
namespace {

std::string Text(const Graph& graph) {
  std::vector<Tensor> tensors;
  return PrintGraph(graph, {.tensors = &tensors, .inline_limit = 64});
}

std::string Counts(const std::map<std::string, int>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) text += Cat(text.empty() ? "" : ", ", name, " ", count);
  return text;
}

/// True where Certify may leave legal rewrites of a generated program open; anything else fails.
bool IsHonestlyUnproven(const absl::Status& status) {
  if (status.code() != absl::StatusCode::kUnimplemented) return false;
  const std::string message(status.message().data(), status.message().size());
  return message.find("is not known to be defined") != std::string::npos ||
         message.find("bound") != std::string::npos;
}

/// Some values of `graph` passed through a nonlinear operator: changes by rewrites are then in the
/// arguments of oracles.
Graph WithActivations(Rng& rng, const Graph& graph) {
  static const std::vector<std::string> kActivations = {
      "Elu",  "Exp",     "Gelu",    "HardSwish", "LeakyRelu", "Mish", "Relu",
      "Selu", "Sigmoid", "Softmax", "Softplus",  "Softsign",  "Tanh"};
  const auto edit = [&](GraphBuilder& builder, const NodeSite& site) -> std::vector<ValueId> {
    if (IsInput(site.node) || IsConstant(site.node) || site.outputs.size() != 1 || !rng.Flip(0.4))
      return {};
    const auto value =
        TryAdd(builder, kActivations[PickIndex(rng, kActivations.size())], site.outputs);
    return value.has_value() ? std::vector<ValueId>{*value} : std::vector<ValueId>();
  };
  auto result = EditGraph(graph, edit);
  MENDEL_CHECK(result.ok());
  return *std::move(result);
}

TEST(VerifierAccepts, RewrittenPrograms) {
  const uint64_t first = NumberFromEnvironment("MENDEL_REWRITTEN_SEED", 1);
  const uint64_t count = NumberFromEnvironment("MENDEL_REWRITTEN", 1000);
  std::map<std::string, int> used, unproven;
  int programs = 0, equivalent = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Rng rng(seed);
    const WeightMode weights = rng.Flip() ? WeightMode::kSymbolic : WeightMode::kExact;
    const Graph program = RandomProgram(rng);
    const Graph f = rng.Flip() ? WithActivations(rng, program) : program;
    ++programs;
    const Graph g = RandomLegalRewrite(rng, f, static_cast<int>(rng.Between(1, 6)), weights, &used);
    const auto certificate = Certify(f, g, {.weights = weights});
    if (certificate.ok()) {
      ++equivalent;
      EXPECT_LE(certificate->bound_log2, -80);
      continue;
    }
    ++unproven[std::string(certificate.status().message().data(),
                           std::min<size_t>(60, certificate.status().message().size()))];
    const NumberGap gap = GapInNumbers(f, g, weights, seed, 10, kSurelyDifferent);
    EXPECT_LE(gap.relative, kSurelyDifferent) << "the rewrite itself is wrong: " << gap.where;
    EXPECT_TRUE(IsHonestlyUnproven(certificate.status()))
        << "seed " << seed << ": " << certificate.status() << "\n"
        << Text(f) << Text(g) << "reproduce: MENDEL_REWRITTEN_SEED=" << seed
        << " MENDEL_REWRITTEN=1 verifier_accept_test";
  }
  std::printf("%d of %d equivalent; rewrites: %s\n", equivalent, programs, Counts(used).c_str());
  for (const auto& [reason, times] : unproven)
    std::printf("unproven %d: %s\n", times, reason.c_str());
  EXPECT_GE(equivalent, programs * 9 / 10);
}

TEST(VerifierAccepts, RewrittenModels) {
  const std::vector<std::string> paths = ModelPaths();
  if (paths.empty()) GTEST_SKIP() << "MENDEL_MODELS names no folder of models";
  for (const std::string& path : paths) {
    const Graph model = LoadModel(path);
    for (const WeightMode weights : {WeightMode::kSymbolic, WeightMode::kExact}) {
      Rng rng(NumberFromEnvironment("MENDEL_REWRITTEN_SEED", 1));
      std::map<std::string, int> used;
      const int rewrites = static_cast<int>(NumberFromEnvironment("MENDEL_MODEL_REWRITES", 12));
      const Graph rewritten = RandomLegalRewrite(rng, model, rewrites, weights, &used);
      Stopwatch watch;
      const auto certificate = Certify(model, rewritten, {.weights = weights});
      ASSERT_TRUE(certificate.ok())
          << path << ": " << certificate.status() << "\nrewrites: " << Counts(used);
      std::printf("%s, %s weights: equivalent, 2^%.0f, %lld segments, %.1f s; %s\n", path.c_str(),
                  weights == WeightMode::kExact ? "exact" : "symbolic", certificate->bound_log2,
                  static_cast<long long>(certificate->segments), watch.Seconds(),
                  Counts(used).c_str());
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace mendel
