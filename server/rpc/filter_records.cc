#include "server/rpc/filter_records.h"

#include <google/protobuf/util/time_util.h>

#include <array>
#include <utility>

#include "server/store/spec_names.h"

namespace mendel::server {
namespace {

using google::protobuf::util::TimeUtil;

constexpr std::array kJobFields = {
    FilterField{"name"},
    FilterField{"state"},
    FilterField{"client"},
    FilterField{"work"},
    FilterField{"model"},
    FilterField{"plan"},
    FilterField{"priority", FieldKind::kNumber},
    FilterField{"attempts", FieldKind::kNumber},
    FilterField{"create_time", FieldKind::kTime},
    FilterField{"end_time", FieldKind::kTime},
};

constexpr std::array kModelFields = {
    FilterField{"name"},
    FilterField{"file"},
    FilterField{"size_bytes", FieldKind::kNumber},
    FilterField{"create_time", FieldKind::kTime},
};

constexpr std::array kPlanFields = {
    FilterField{"name"},
    FilterField{"model"},
    FilterField{"job"},
    FilterField{"device"},
    FilterField{"isa"},
    FilterField{"weights"},
    FilterField{"rule"},
    FilterField{"speedup", FieldKind::kNumber},
    FilterField{"size_bytes", FieldKind::kNumber},
    FilterField{"create_time", FieldKind::kTime},
};

double Seconds(const google::protobuf::Timestamp& time) {
  return static_cast<double>(TimeUtil::TimestampToMicroseconds(time)) * 1e-6;
}

/// The name of the spec's work in the .proto file, e.g. "optimize".
std::string WorkOf(const v1::JobSpec& spec) {
  const auto* field =
      v1::JobSpec::descriptor()->FindFieldByNumber(static_cast<int>(spec.work_case()));
  return field == nullptr ? "" : field->name();
}

}  // namespace

std::span<const FilterField> JobFields() { return kJobFields; }
std::span<const FilterField> ModelFields() { return kModelFields; }
std::span<const FilterField> PlanFields() { return kPlanFields; }

void FilterRecords::AddModel(const std::string& name, FilterRecord& record) {
  const auto [found, added] = files_.emplace(name, "");
  if (added) {
    if (const auto model = env_.jobs.GetModel(name); model.ok()) found->second = model->main_file();
  }
  record.texts["model"].push_back(name);
  if (!found->second.empty()) record.texts["model"].push_back(found->second);
}

FilterRecord FilterRecords::Of(const StoredJob& stored) {
  const v1::Job& job = stored.job;
  const std::string state = v1::JobState_Name(job.state());
  const std::string prefix = "JOB_STATE_";
  FilterRecord record;
  record.texts = {{"name", {job.name()}},
                  {"state", {state, state.substr(prefix.size())}},
                  {"client", {job.client()}},
                  {"work", {WorkOf(job.spec())}}};
  if (!job.plan().empty()) record.texts["plan"] = {job.plan()};
  for (const std::string& model : ModelsOf(job.spec())) AddModel(model, record);
  record.numbers = {{"priority", job.priority()},
                    {"attempts", job.attempts()},
                    {"create_time", Seconds(job.create_time())}};
  if (job.has_end_time()) record.numbers["end_time"] = Seconds(job.end_time());
  return record;
}

FilterRecord FilterRecords::Of(const v1::Model& model) {
  FilterRecord record;
  record.texts = {{"name", {model.name()}}, {"file", {model.main_file()}}};
  record.numbers = {{"size_bytes", static_cast<double>(model.size_bytes())},
                    {"create_time", Seconds(model.create_time())}};
  return record;
}

FilterRecord FilterRecords::Of(const v1::Plan& plan) {
  FilterRecord record;
  record.texts = {{"name", {plan.name()}},       {"job", {plan.job()}},
                  {"device", {plan.device()}},   {"isa", {plan.isa()}},
                  {"weights", {plan.weights()}}, {"rule", {}}};
  for (const auto& [rule, count] : plan.mutants()) record.texts["rule"].push_back(rule);
  AddModel(plan.model(), record);
  record.numbers = {{"speedup", plan.speedup()},
                    {"size_bytes", static_cast<double>(plan.size_bytes())},
                    {"create_time", Seconds(plan.create_time())}};
  return record;
}

}  // namespace mendel::server
