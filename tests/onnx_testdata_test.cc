// Every case of ONNX's own test data through the importer and every backend ("reference" runs the
// operators' definitions). Prints how many passed and the reason for every other one; a case that
// imports must pass. MENDEL_ONNX_TESTDATA names another folder of cases: the result of each is then
// printed on a line of its own (tests/onnx_node_tests.py), except those in
// MENDEL_ONNX_TESTDATA_SKIP (names with commas).

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "onnx/import.h"
#include "onnx/testdata.h"
#include "runtime/backend.h"

namespace mendel {
namespace {

/// Cases whose expected values are themselves coarse: ONNX computed them with another value of pi
/// than their models hold, or wrote four digits. They are held to ONNX's own tolerance.
bool IsCoarse(const std::string& name) {
  static const std::regex windows(
      "test_gridsample_bicubic|test_(blackman|hamming|hann)window(_symmetric)?(_expanded.*)?");
  return std::regex_match(name, windows);
}

/// Quantizes a quotient that is a tie in float32 and none in double, where the definitions are
/// evaluated.
bool IsTieInFloat(const std::string& name, const Backend& backend) {
  const bool ties =
      name == "test_dynamicquantizelinear" || name == "test_dynamicquantizelinear_expanded";
  return ties && backend.name() == "reference";
}

/// The message without the names of nodes and values, so that equal reasons count together.
std::string Reason(const absl::Status& status) {
  const std::string text(status.message().data(), status.message().size());
  return std::regex_replace(std::regex_replace(text, std::regex("node '[^']*' "), ""),
                            std::regex("^output '[^']*': "), "");
}

/// Empty when the case passes on `backend`.
std::string Failure(const OnnxTestCase& test, const Backend& backend, double slack) {
  auto executable = backend.Compile(test.graph, {.threads = 1});
  if (!executable.ok()) return executable.status().ToString();
  const auto outputs = RunOnTensors(**executable, test.graph, test.inputs);
  if (!outputs.ok()) return outputs.status().ToString();
  if (outputs->size() != test.outputs.size()) return "number of outputs";
  for (size_t k = 0; k < outputs->size(); ++k) {
    const std::string difference =
        CompareWithExpected((*outputs)[k], test.outputs[k], slack, test.tolerance);
    if (!difference.empty()) return "output " + std::to_string(k) + ": " + difference;
  }
  return "";
}

class OnnxTestData : public testing::TestWithParam<const Backend*> {};

/// The result of one folder, and the reason.
struct CaseResult {
  enum { kPassed, kRefused, kWrong } kind = kPassed;
  std::string reason;
};

CaseResult RunCase(const std::string& folder, const std::string& name, const Backend& backend) {
  const auto cases = LoadOnnxTestCases(folder);
  if (!cases.ok()) {
    EXPECT_NE(cases.status().code(), absl::StatusCode::kInternal) << name << ": " << cases.status();
    return {CaseResult::kRefused, Reason(cases.status())};
  }
  if (IsTieInFloat(name, backend)) return {CaseResult::kRefused, "a tie in float32 only"};
  for (const OnnxTestCase& test : *cases) {
    std::string failure = Failure(test, backend, IsCoarse(name) ? 10 : 1);
    if (!failure.empty()) return {CaseResult::kWrong, std::move(failure)};
  }
  return {};
}

/// Prints each result as it comes, for the script that reads them.
void RunFolder(const std::string& root, const Backend& backend) {
  const char* given = std::getenv("MENDEL_ONNX_TESTDATA_SKIP");
  const std::string skipped = "," + std::string(given == nullptr ? "" : given) + ",";
  constexpr std::array<const char*, 3> kKinds = {"passed", "refused", "wrong"};
  for (const std::string& folder : ListOnnxTestCases(root)) {
    const std::string name = folder.substr(folder.rfind('/') + 1);
    if (skipped.find("," + name + ",") != std::string::npos) continue;
    std::printf("case %s\n", name.c_str());
    std::fflush(stdout);
    const CaseResult result = RunCase(folder, name, backend);
    std::printf("%s %s: %s\n", kKinds[static_cast<size_t>(result.kind)], name.c_str(),
                result.reason.c_str());
    std::fflush(stdout);
  }
}

TEST_P(OnnxTestData, EveryImportedCasePasses) {
  if (const absl::Status probe = GetParam()->Probe(); !probe.ok()) {
    GTEST_SKIP() << "backend " << GetParam()->name() << ": " << probe.message();
  }
  if (const char* root = std::getenv("MENDEL_ONNX_TESTDATA"); root != nullptr) {
    RunFolder(root, *GetParam());
    return;
  }
  const std::vector<std::string> folders = ListOnnxTestCases(kOnnxTestData);
  if (folders.empty()) {
    std::printf("SKIP: %s does not exist\n", kOnnxTestData);
    std::exit(77);
  }
  std::array<int, 3> counts{};
  std::map<std::string, std::vector<std::string>> reasons;
  for (const std::string& folder : folders) {
    const std::string name = folder.substr(folder.rfind('/') + 1);
    const CaseResult result = RunCase(folder, name, *GetParam());
    ++counts[static_cast<size_t>(result.kind)];
    EXPECT_NE(result.kind, CaseResult::kWrong) << name << ": " << result.reason;
    if (result.kind == CaseResult::kRefused) reasons[result.reason].push_back(name);
  }
  for (const auto& [reason, names] : reasons) {
    std::printf("refused %3zu: %s [%s%s]\n", names.size(), reason.c_str(), names[0].c_str(),
                names.size() > 1 ? ", ..." : "");
  }
  std::printf("%s: %zu cases: %d passed, %d refused, %d failed\n",
              std::string(GetParam()->name()).c_str(), folders.size(), counts[0], counts[1],
              counts[2]);
  EXPECT_GE(counts[0], 680);
}

/// The import of each model ends with the error of whichever node fails first; what a lowering does
/// with values that do not exist shows under the sanitizers. (A loop whose body fails is imported
/// step by step, and may succeed.)
TEST(OnnxImport, EndsWithTheErrorOfAnyNode) {
  constexpr int64_t kMostNodes = 200;
  int64_t failures = 0;
  for (const std::string& folder : ListOnnxTestCases(kOnnxTestData)) {
    for (int64_t node = 0; node < kMostNodes; ++node) {
      const std::string path = folder + "/model.onnx";
      ImportOptions options;
      options.failing_node = node;
      const absl::Status status = ImportOnnxFile(path, options).status();
      const bool stopped = absl::StrContains(status.message(), "this node fails for a test");
      EXPECT_NE(status.code(), absl::StatusCode::kInternal)
          << path << ", " << node << ": " << status;
      if (!stopped) break;
      ++failures;
    }
  }
  EXPECT_TRUE(failures >= 2000 || ListOnnxTestCases(kOnnxTestData).empty()) << failures;
}

INSTANTIATE_TEST_SUITE_P(Backends, OnnxTestData,
                         testing::ValuesIn(AllBackends().begin(), AllBackends().end()),
                         [](const auto& info) { return std::string(info.param->name()); });

}  // namespace
}  // namespace mendel
