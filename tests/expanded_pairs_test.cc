// ONNX's own test data contains many operators twice: as one node, and expanded into its function
// body of primitives. Each pair that imports must be proven equal.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "onnx/testdata.h"
#include "verifier/compare.h"

namespace mendel {
namespace {

/// The least number of pairs that must be proven equal.
constexpr int kLeastEquivalent = 104;

std::string Message(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

struct Tally {
  int equivalent = 0;
  std::map<std::string, std::vector<std::string>> refused, unproven;
};

void ComparePair(const std::string& name, const OnnxTestCase& plain, const OnnxTestCase& expanded,
                 Tally& tally) {
  const auto matched = MatchInterfaces(plain.graph, expanded.graph, {});
  if (!matched.ok()) {
    tally.refused[Message(matched.status())].push_back(name);
    return;
  }
  CompareOptions options;
  options.verifier.weights = WeightMode::kExact;
  const auto report = ComparePrograms(plain.graph, matched->graph, options);
  ASSERT_TRUE(report.ok()) << name << ": " << report.status();
  EXPECT_TRUE(report->verdict == Verdict::kEquivalent || report->verdict == Verdict::kUnproven)
      << name << " is found " << VerdictName(report->verdict);
  if (report->verdict == Verdict::kEquivalent) {
    ++tally.equivalent;
  } else {
    tally.unproven[report->reason].push_back(name);
    ADD_FAILURE() << name << " is unproven: " << report->reason;
  }
}

void Print(const char* what, const std::map<std::string, std::vector<std::string>>& reasons) {
  for (const auto& [reason, names] : reasons) {
    std::printf("%s %zu: %s [%s%s]\n", what, names.size(), reason.c_str(), names[0].c_str(),
                names.size() > 1 ? ", ..." : "");
  }
}

TEST(ExpandedPairs, AreEqual) {
  const std::vector<std::string> folders = ListOnnxTestCases(kOnnxTestData);
  if (folders.empty()) {
    std::printf("SKIP: %s does not exist\n", kOnnxTestData);
    std::exit(77);
  }
  const std::set<std::string> all(folders.begin(), folders.end());
  const std::string suffix = "_expanded";
  Tally tally;
  int pairs = 0;
  for (const std::string& folder : folders) {
    if (!folder.ends_with(suffix)) continue;
    const std::string twin = folder.substr(0, folder.size() - suffix.size());
    const std::string name = twin.substr(twin.rfind('/') + 1);
    if (!all.contains(twin)) continue;
    ++pairs;
    const auto plain = LoadOnnxTestCases(twin), expanded = LoadOnnxTestCases(folder);
    if (!plain.ok() || !expanded.ok()) {
      const absl::Status status = plain.ok() ? expanded.status() : plain.status();
      tally.refused[std::regex_replace(Message(status), std::regex("node '[^']*' "), "")].push_back(
          name);
      continue;
    }
    ComparePair(name, plain->front(), expanded->front(), tally);
  }
  Print("refused", tally.refused);
  Print("unproven", tally.unproven);
  std::printf("%d pairs: %d equivalent\n", pairs, tally.equivalent);
  EXPECT_GE(tally.equivalent, kLeastEquivalent);
}

}  // namespace
}  // namespace mendel
