// Every case of ONNX's own test data through the importer and every backend ("reference" runs the operators' definitions). Prints
// how many passed and the reason for every other one; a case that imports must pass.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "onnx/testdata.h"
#include "runtime/backend.h"

namespace mendel {
namespace {

/// Cases whose expected values are themselves coarse: ONNX computed them with another value of pi than their models hold. They
/// are held to ONNX's own tolerance.
bool IsCoarse(const std::string& name) {
  static const std::regex windows("test_(blackman|hamming|hann)window(_symmetric)?_expanded");
  return std::regex_match(name, windows);
}

/// Quantises a quotient that is a tie in float32 and none in double, where the definitions are evaluated.
bool IsTieInFloat(const std::string& name, const Backend& backend) {
  return name == "test_dynamicquantizelinear_expanded" && backend.name() == "reference";
}

/// The message without the names of nodes and values, so that equal reasons count together.
std::string Reason(const absl::Status& status) {
  const std::string text(status.message().data(), status.message().size());
  return std::regex_replace(std::regex_replace(text, std::regex("node '[^']*' "), ""), std::regex("^output '[^']*': "), "");
}

/// Empty when the case passes on `backend`.
std::string Failure(const OnnxTestCase& test, const Backend& backend, double slack) {
  auto executable = backend.Compile(test.graph, {.threads = 1});
  if (!executable.ok()) return executable.status().ToString();
  const auto outputs = RunOnTensors(**executable, test.graph, test.inputs);
  if (!outputs.ok()) return outputs.status().ToString();
  if (outputs->size() != test.outputs.size()) return "number of outputs";
  for (size_t k = 0; k < outputs->size(); ++k) {
    const std::string difference = CompareWithExpected((*outputs)[k], test.outputs[k], slack);
    if (!difference.empty()) return "output " + std::to_string(k) + ": " + difference;
  }
  return "";
}

class OnnxTestData : public testing::TestWithParam<const Backend*> {};

TEST_P(OnnxTestData, EveryImportedCasePasses) {
  if (const absl::Status probe = GetParam()->Probe(); !probe.ok()) {
    GTEST_SKIP() << "backend " << GetParam()->name() << ": " << probe.message();
  }
  const std::vector<std::string> folders = ListOnnxTestCases(kOnnxTestData);
  if (folders.empty()) {
    std::printf("SKIP: %s does not exist\n", kOnnxTestData);
    std::exit(77);
  }
  int passed = 0, failed = 0, refused = 0;
  std::map<std::string, std::vector<std::string>> reasons;
  for (const std::string& folder : folders) {
    const std::string name = folder.substr(folder.rfind('/') + 1);
    const auto cases = LoadOnnxTestCases(folder);
    if (!cases.ok()) {
      EXPECT_NE(cases.status().code(), absl::StatusCode::kInternal) << name << ": " << cases.status();
      ++refused;
      reasons[Reason(cases.status())].push_back(name);
      continue;
    }
    if (IsTieInFloat(name, *GetParam())) {
      ++refused;
      reasons["a tie in float32 only"].push_back(name);
      continue;
    }
    std::string failure;
    for (const OnnxTestCase& test : *cases) {
      if (failure.empty()) failure = Failure(test, *GetParam(), IsCoarse(name) ? 10 : 1);
    }
    EXPECT_EQ(failure, "") << name;
    ++(failure.empty() ? passed : failed);
  }
  for (const auto& [reason, names] : reasons) {
    std::printf("refused %3zu: %s [%s%s]\n", names.size(), reason.c_str(), names[0].c_str(), names.size() > 1 ? ", ..." : "");
  }
  std::printf("%s: %zu cases: %d passed, %d refused, %d failed\n", std::string(GetParam()->name()).c_str(), folders.size(), passed,
              refused, failed);
  EXPECT_GE(passed, 680);
}

INSTANTIATE_TEST_SUITE_P(Backends, OnnxTestData, testing::ValuesIn(AllBackends().begin(), AllBackends().end()),
                         [](const auto& info) { return std::string(info.param->name()); });

}  // namespace
}  // namespace mendel
