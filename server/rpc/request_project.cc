#include "server/rpc/request_project.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/status.h"
#include "server/rpc/errors.h"
#include "server/rpc/names.h"
#include "server/store/project_name.h"

namespace mendel::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr std::string_view kParent = "parent";
constexpr std::string_view kProjects = "projects/";
constexpr std::array<std::string_view, 7> kNames = {kParent, "model", "model_a",      "model_b",
                                                    "name",  "plan",  "resource_name"};
constexpr std::array<std::string_view, 14> kFree = {
    "client",     "device", "disabled_rules", "filter", "isa",     "main_file", "numerics",
    "page_token", "path",   "request_id",     "sha256", "service", "shapes",    "weights"};

template <class Names>
bool Has(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Walk {
 public:
  absl::Status Visit(Message& message, const std::string& path) {
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      const std::string where = Cat(path, path.empty() ? "" : ".", field->name());
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated())
        MENDEL_RETURN_IF_ERROR(Visit(*reflection.MutableMessage(&message, field), where));
      if (field->type() != FieldDescriptor::TYPE_STRING || field->is_repeated() ||
          KindOfText(*field) != TextField::kName)
        continue;
      MENDEL_ASSIGN_OR_RETURN(std::string name, Take(where, field->name() == kParent,
                                                     reflection.GetString(message, field)));
      reflection.SetString(&message, field, std::move(name));
    }
    return absl::OkStatus();
  }
  std::string project() const { return project_.value_or(""); }

 private:
  /// The name in its only spelling; a parent becomes empty.
  absl::StatusOr<std::string> Take(const std::string& field, bool is_parent,
                                   const std::string& name) {
    const NameInProject split = SplitName(is_parent ? name + "/" : name);
    if (split.rest.starts_with(kProjects) || (is_parent && !split.rest.empty()))
      return FieldError(field, Cat("'", Quoted(name), "' is not of the form projects/{project}",
                                   is_parent ? "" : "/..."));
    if (project_.value_or(split.project) != split.project) {
      return FieldError(field, Cat("is of the project '", ProjectTitle(split.project),
                                   "', and a name before it of '", ProjectTitle(*project_), "'"));
    }
    project_ = split.project;
    return JoinName(split.project, split.rest);
  }

  std::optional<std::string> project_;
};

}  // namespace

TextField KindOfText(const FieldDescriptor& field) {
  if (Has(kNames, field.name())) return TextField::kName;
  return Has(kFree, field.name()) ? TextField::kFree : TextField::kUnknown;
}

absl::StatusOr<std::string> TakeProject(Message& request) {
  Walk walk;
  MENDEL_RETURN_IF_ERROR(walk.Visit(request, ""));
  return walk.project();
}

}  // namespace mendel::server
