#include "client/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/status.h"

namespace mendel {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Json = nlohmann::json;

bool IsOfType(const Json& value, const std::string& type) {
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  return type == value.type_name();
}

/// The part of JSON Schema that docs/verify.schema.json uses. Adds a line a violation.
class SchemaChecker {
 public:
  explicit SchemaChecker(const Json& root) : root_(root) {}

  std::vector<std::string> Check(const Json& value, const Json& schema,
                                 const std::string& path) const {
    std::vector<std::string> errors;
    if (schema.contains("$ref")) {
      const std::string reference = schema["$ref"].get<std::string>();
      return Check(value, root_.at(Json::json_pointer(reference.substr(1))), path);
    }
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
      errors.push_back(path + " is none of the allowed values");
    }
    if (schema.contains("type")) {
      const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
      const bool fits = std::any_of(types.begin(), types.end(),
                                    [&](const Json& type) { return IsOfType(value, type); });
      if (!fits) errors.push_back(Cat(path, " is of type ", value.type_name()));
    }
    if (schema.contains("anyOf")) {
      const bool fits =
          std::any_of(schema["anyOf"].begin(), schema["anyOf"].end(),
                      [&](const Json& option) { return Check(value, option, path).empty(); });
      if (!fits) errors.push_back(path + " fits no alternative");
    }
    if (value.is_object() && schema.contains("properties"))
      CheckMembers(value, schema, path, errors);
    if (value.is_array() && schema.contains("items")) {
      for (size_t i = 0; i < value.size(); ++i)
        Append(Check(value[i], schema["items"], Cat(path, "[", i, "]")), errors);
    }
    return errors;
  }

 private:
  static void Append(std::vector<std::string> more, std::vector<std::string>& errors) {
    errors.insert(errors.end(), more.begin(), more.end());
  }

  /// Members that the schema does not name are reported too: the document is to be complete.
  void CheckMembers(const Json& value, const Json& schema, const std::string& path,
                    std::vector<std::string>& errors) const {
    for (const Json& name : schema.value("required", Json::array())) {
      if (!value.contains(name.get<std::string>()))
        errors.push_back(Cat(path, " lacks ", name.get<std::string>()));
    }
    for (const auto& [name, member] : value.items()) {
      if (!schema["properties"].contains(name)) {
        errors.push_back(Cat(path, " has the undocumented member ", name));
      } else {
        Append(Check(member, schema["properties"][name], Cat(path, ".", name)), errors);
      }
    }
  }

  const Json& root_;
};

std::vector<std::string> SchemaErrors(const PairVerdict& verdict) {
  std::ifstream file(MENDEL_VERIFY_SCHEMA);
  EXPECT_TRUE(file) << MENDEL_VERIFY_SCHEMA;
  const Json schema = Json::parse(file);
  return SchemaChecker(schema).Check(Json::parse(VerdictJson(verdict).dump()), schema, "");
}

PairVerdict Partial() {
  PairVerdict verdict;
  verdict.file_a = "a.onnx";
  verdict.file_b = "b<&>.onnx";
  verdict.seed = 3;
  verdict.report.verdict = Verdict::kPartial;
  ComparedOutput wrong{"y", {2, 4}, 8, 4, true, {}};
  Witness witness;
  witness.element = {0, 1};
  witness.value_f = 1.5;
  witness.value_g = -2;
  witness.error_f = 1e-20;
  wrong.boxes.push_back({{{0, 1}, {2, 2}}, witness, ""});
  wrong.boxes.push_back({{{0, 3}, {2, 4}}, std::nullopt, "no gap found"});
  verdict.report.outputs = {wrong, {"z", {}, 1, 0, true, {}}};
  verdict.report.earliest = {{"conv1", "Conv", {1, 2}}};
  verdict.report.weights = {{"w", 12, 1, std::numeric_limits<double>::infinity()}};
  verdict.report.axioms = {{"relu-scale", 2}};
  verdict.notes = {"input 'x' of A is matched with 'u' of B by position"};
  verdict.witness_files[{0, 0}]["x"] = "w/witness_0/x.npy";
  return verdict;
}

PairVerdict Equivalent() {
  PairVerdict verdict;
  verdict.report.verdict = Verdict::kEquivalent;
  verdict.report.bound_log2 = -116;
  verdict.report.draws = {{97, {}}, {89, {}}};
  verdict.report.outputs = {{"y", {2}, 2, 0, true, {}}};
  return verdict;
}

TEST(VerdictJson, FitsTheDocumentedSchema) {
  EXPECT_THAT(SchemaErrors(Partial()), IsEmpty());
  EXPECT_THAT(SchemaErrors(Equivalent()), IsEmpty());
  PairVerdict unproven = Equivalent();
  unproven.report.verdict = Verdict::kUnproven;
  unproven.report.reason = "because";
  unproven.report.lacking = {"Sin"};
  EXPECT_THAT(SchemaErrors(unproven), IsEmpty());
}

TEST(VerdictJson, TheSchemaIsNotEmpty) {
  std::ifstream file(MENDEL_VERIFY_SCHEMA);
  const Json schema = Json::parse(file);
  Json json = Json::parse(VerdictJson(Partial()).dump());
  const SchemaChecker checker(schema);
  json.erase("verdict");
  EXPECT_THAT(checker.Check(json, schema, ""), testing::ElementsAre(" lacks verdict"));
  json["verdict"] = "maybe";
  json["outputs"][0]["boxes"][1]["status"] = 4;
  EXPECT_EQ(checker.Check(json, schema, "").size(), 2u);
}

TEST(VerdictJson, ReportsTheWitness) {
  const auto json = VerdictJson(Partial());
  EXPECT_EQ(json["verdict"], "partial");
  EXPECT_EQ(json["witness"]["output"], "y");
  EXPECT_EQ(json["witness"]["value_b"], -2);
  EXPECT_EQ(json["witness"]["inputs"]["x"], "w/witness_0/x.npy");
  EXPECT_EQ(json["outputs"][0]["boxes"][0]["status"], "wrong");
  EXPECT_EQ(json["outputs"][0]["boxes"][1]["status"], "unproven");
  EXPECT_TRUE(json["weights"][0]["largest_ulps"].is_null());
  EXPECT_TRUE(VerdictJson(Equivalent())["primes"] == nlohmann::ordered_json::array({97, 89}));
}

TEST(VerdictJson, ExplainsRegionsWhenRequested) {
  PairVerdict verdict = Partial();
  EXPECT_FALSE(VerdictJson(verdict).contains("regions"));
  ExplainedOutput output;
  output.name = "y";
  output.shape = {9};
  output.by_regions = true;
  output.regions = std::numeric_limits<double>::infinity();
  output.probes = 4;
  output.reasons = {"TopK: no access pattern"};
  ExplainedDimension dim;
  dim.extent = 9;
  dim.breaks = {{3, "conv1", "Conv", "padding edge"}};
  dim.displacements = {"x +1 along 0"};
  output.dims = {dim, dim};
  output.dims[1].period = 2;
  output.dims[1].period_op = "Resize";
  verdict.regions = {output};
  EXPECT_THAT(SchemaErrors(verdict), IsEmpty());
  const auto json = VerdictJson(verdict)["regions"][0];
  EXPECT_TRUE(json["regions"].is_null());
  EXPECT_EQ(json["dimensions"][0]["breaks"][0]["what"], "padding edge");
  EXPECT_TRUE(json["dimensions"][0]["period_cause"].is_null());
  EXPECT_EQ(json["dimensions"][1]["period_cause"]["op"], "Resize");
}

TEST(VerdictLines, VerdictFirst) {
  const auto lines = VerdictLines(Partial());
  EXPECT_EQ(lines[0], "partial: 4 of 9 output elements differ formally");
  PairVerdict bounded = Partial();
  bounded.report.bound_log2 = -98;
  EXPECT_EQ(VerdictLines(bounded)[0],
            "partial: 4 of 9 output elements differ formally; the others are equal, bound 2^-98");
  EXPECT_THAT(lines, testing::Contains(HasSubstr("[0:2, 1:2] wrong: at [0, 1] A gives 1.5")));
  EXPECT_THAT(lines, testing::Contains(HasSubstr("unproven: no gap found")));
  EXPECT_THAT(lines, testing::Contains(HasSubstr("conv1")));
  EXPECT_THAT(VerdictLines(Equivalent())[0],
              HasSubstr("equivalent: every element of 1 output, bound 2^-116, 2 tests"));
}

TEST(VerdictRefit, IsGoodOnlyWhenRequested) {
  PairVerdict verdict;
  verdict.report.outputs = {{"y", {2}, 2, 0, true, {}}};
  verdict.refit.emplace();
  verdict.refit->reason = "no";
  EXPECT_EQ(VerdictWord(verdict), "unproven");
  EXPECT_THAT(SchemaErrors(verdict), IsEmpty());
  verdict.refit->applies = true;
  RefitTensor& tensor = verdict.refit->tensors.emplace_back();
  tensor.name = "w";
  tensor.replaced = 2;
  tensor.differing = 1;
  tensor.largest_ulps = 0.5;
  tensor.expression = "a * b";
  verdict.refit->errors.push_back({"y", 1e-7, 1e-8, 2e-7, 1e-8});
  verdict.refit->certificate.bound_log2 = -90;
  verdict.refit->certificate.draws = {{97, {}}, {89, {}}};
  EXPECT_EQ(VerdictWord(verdict), "equivalent-after-refit");
  EXPECT_THAT(SchemaErrors(verdict), IsEmpty());
  EXPECT_EQ(VerdictJson(verdict)["bound_log2"], -90);
  EXPECT_TRUE(VerdictJson(verdict)["primes"] == nlohmann::ordered_json::array({89}));
  EXPECT_EQ(ExitCodeOf(verdict), 1);
  EXPECT_THAT(VerdictJUnit(verdict), HasSubstr("failures=\"1\""));
  verdict.accept_refit = true;
  EXPECT_EQ(ExitCodeOf(verdict), 0);
  EXPECT_THAT(VerdictJUnit(verdict), HasSubstr("failures=\"0\""));
  EXPECT_THAT(VerdictLines(verdict),
              testing::Contains(HasSubstr("w = a * b: 1 of 2 elements differ, by up to 0.5 ulps")));
}

TEST(VerdictJUnit, CountsAndEscapes) {
  const std::string text = VerdictJUnit(Partial());
  EXPECT_THAT(text, HasSubstr("tests=\"2\" failures=\"1\" errors=\"0\""));
  EXPECT_THAT(text, HasSubstr("classname=\"b&lt;&amp;&gt;.onnx\" name=\"y\""));
  EXPECT_THAT(text, HasSubstr("<failure type=\"partial\""));
  EXPECT_THAT(VerdictJUnit(Equivalent()), Not(HasSubstr("<failure")));
  PairVerdict unproven = Partial();
  unproven.report.verdict = Verdict::kUnproven;
  unproven.report.outputs[0].boxes[0].witness.reset();
  EXPECT_THAT(VerdictJUnit(unproven), HasSubstr("<error type=\"unproven\""));
}

TEST(VerdictExitCode, IsTheDocumentedOne) {
  PairVerdict verdict;
  for (const auto& [word, code] : {std::pair(Verdict::kEquivalent, 0),
                                   {Verdict::kPartial, 1},
                                   {Verdict::kDifferent, 1},
                                   {Verdict::kUnproven, 3}}) {
    verdict.report.verdict = word;
    EXPECT_EQ(ExitCodeOf(verdict), code);
  }
}

}  // namespace
}  // namespace mendel
