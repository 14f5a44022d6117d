#include "client/members.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/status.h"
#include "onnx/import.h"

namespace mendel {
namespace {

/// Lines go on; facts stay apart.
class MemberContext : public Context {
 public:
  explicit MemberContext(Context& whole) : whole_(whole) {}

  bool json() const override { return whole_.json(); }
  nlohmann::ordered_json& facts() override { return facts_; }
  void Line(const std::string& text) override { whole_.Line(text); }
  void Note(const std::string& text) override { whole_.Note(text); }
  void Answer(ExitCode code) override { whole_.Answer(code); }
  void Input(const std::string& path) override { whole_.Input(path); }

 private:
  Context& whole_;
  nlohmann::ordered_json facts_ = nlohmann::ordered_json::object();
};

}  // namespace

void AddMemberOption(CLI::App& app, std::vector<std::string>& shapes) {
  app.add_option("--shapes", shapes,
                 "For a bundle: takes the plan for these input shapes, e.g. input:8x3x224x224")
      ->take_all();
}

absl::StatusOr<NamedShapes> ParseMemberShapes(const std::vector<std::string>& shapes) {
  NamedShapes wanted;
  std::set<std::string> names;
  for (const std::string& text : shapes) {
    MENDEL_ASSIGN_OR_RETURN(const NamedShapes parsed, ParseShapes(text));
    for (const auto& input : parsed) {
      if (!names.insert(input.first).second)
        return InvalidInput("--shapes names input '", input.first, "' twice");
      wanted.push_back(input);
    }
  }
  return wanted;
}

absl::StatusOr<std::vector<Plan>> ReadMembers(const std::string& path,
                                              const std::vector<std::string>& shapes) {
  if (shapes.empty()) return ReadPlans(path);
  std::vector<Plan> chosen;
  MENDEL_ASSIGN_OR_RETURN(Plan plan, ReadMember(path, shapes));
  chosen.push_back(std::move(plan));
  return chosen;
}

absl::StatusOr<Plan> ReadMember(const std::string& path, const std::vector<std::string>& shapes) {
  MENDEL_ASSIGN_OR_RETURN(const NamedShapes wanted, ParseMemberShapes(shapes));
  MENDEL_ASSIGN_OR_RETURN(std::vector<Plan> plans, ReadPlans(path));
  const auto number = ChooseMember(OfferedShapes(plans), wanted);
  if (!number.ok()) return Annotate(number.status(), path);
  return std::move(plans[*number]);
}

absl::Status ReportMembers(
    std::span<const NamedShapes> offered, Context& context,
    const std::function<absl::Status(size_t number, Context& context)>& report) {
  if (offered.size() == 1) return report(0, context);
  for (size_t k = 0; k < offered.size(); ++k) {
    const std::string inputs = ShapesText(offered[k]);
    context.Line(Cat("member ", k, "  ", inputs));
    MemberContext member(context);
    member.facts()["inputs"] = inputs;
    const absl::Status status = report(k, member);
    context.facts()["members"].push_back(std::move(member.facts()));
    if (!status.ok()) return Annotate(status, Cat("member ", k, " (", inputs, ")"));
  }
  return absl::OkStatus();
}

}  // namespace mendel
