#include "server/store/sql_catalog.h"

#include <algorithm>
#include <set>

#include "base/status.h"
#include "server/store/blob_store.h"
#include "server/store/job_row.h"
#include "server/store/page_token.h"
#include "server/store/project_name.h"
#include "server/store/spec_names.h"
#include "server/store/sql_store.h"

namespace mendel::server {
namespace {

absl::StatusOr<v1::Model> LoadModel(SqlConnection& sql, const std::string& name) {
  MENDEL_ASSIGN_OR_RETURN(const SqlRows rows,
                          sql.Run("SELECT body FROM model WHERE name = ?1", {name}));
  if (rows.empty()) return absl::NotFoundError(Cat("there is no model '", name, "'"));
  return ParseBody<v1::Model>(rows.front().Bytes(0), name);
}

/// A page of rows (id, body), requested with one row more than the page holds.
template <class Message>
absl::StatusOr<Page<Message>> MakePage(const SqlRows& rows, int64_t size,
                                       const std::string& listing) {
  Page<Message> page;
  const size_t count = std::min(rows.size(), static_cast<size_t>(size));
  for (size_t i = 0; i < count; ++i) {
    MENDEL_ASSIGN_OR_RETURN(Message message, ParseBody<Message>(rows[i].Bytes(1), listing));
    page.items.push_back(std::move(message));
  }
  if (rows.size() > count) page.next_token = PageToken(listing, rows[count - 1].Int(0));
  return page;
}

/// FailedPrecondition when a job that has not ended names the model or plan.
absl::Status CheckUnused(SqlConnection& sql, const std::string& name,
                         std::vector<std::string> (*names)(const v1::JobSpec&)) {
  const std::string query = Cat("SELECT ", JobColumns(), " FROM job WHERE state IN (?1, ?2, ?3)");
  MENDEL_ASSIGN_OR_RETURN(const SqlRows rows, sql.Run(query, {int64_t{v1::JOB_STATE_PENDING},
                                                              int64_t{v1::JOB_STATE_RUNNING},
                                                              int64_t{v1::JOB_STATE_CANCELLING}}));
  for (const SqlRow& row : rows) {
    MENDEL_ASSIGN_OR_RETURN(const JobRow job, ReadJob(row));
    const std::vector<std::string> used = names(job.stored.job.spec());
    if (std::find(used.begin(), used.end(), name) == used.end()) continue;
    return absl::FailedPreconditionError(
        Cat(name, " is used by ", job.stored.job.name(), ", which has not ended"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::Plan> LoadPlan(SqlConnection& sql, const std::string& name) {
  MENDEL_ASSIGN_OR_RETURN(const SqlRows rows,
                          sql.Run("SELECT body FROM plan WHERE name = ?1", {name}));
  if (rows.empty()) return absl::NotFoundError(Cat("there is no plan '", name, "'"));
  return ParseBody<v1::Plan>(rows.front().Bytes(0), name);
}

absl::Status RememberWork(SqlConnection& sql, const std::string& work_key,
                          const std::string& plan) {
  return sql
      .Run(
          "INSERT INTO work (work_key, plan) VALUES (?1, ?2) ON CONFLICT (work_key) DO UPDATE SET "
          "plan = excluded.plan",
          {work_key, plan})
      .status();
}

absl::StatusOr<v1::Plan> PutPlan(SqlConnection& sql, v1::Plan plan, int64_t now_micros) {
  if (!plan.has_create_time()) *plan.mutable_create_time() = ToTimestamp(now_micros);
  if (!v1::Plan().ParseFromString(plan.SerializeAsString()))
    return InvalidInput("a text of ", plan.name(), " is not UTF-8");
  MENDEL_ASSIGN_OR_RETURN(
      const SqlRows added,
      sql.Run("INSERT INTO plan (name, model, body, project) VALUES (?1, ?2, "
              "?3, ?4) ON CONFLICT (name) DO NOTHING RETURNING id",
              {plan.name(), plan.model(), plan.SerializeAsString(), ProjectOf(plan.name())}));
  if (!added.empty()) return plan;
  return LoadPlan(sql, plan.name());
}

absl::StatusOr<v1::Model> SqlStore::PutModel(const v1::Model& model) {
  v1::Model result;
  MENDEL_RETURN_IF_ERROR(database_->Write([&](SqlConnection& sql) -> absl::Status {
    result = model;
    if (!result.has_create_time()) *result.mutable_create_time() = ToTimestamp(clock_.WallMicros());
    if (!v1::Model().ParseFromString(result.SerializeAsString()))
      return InvalidInput("a text of ", result.name(), " is not UTF-8");
    MENDEL_ASSIGN_OR_RETURN(
        const SqlRows added,
        sql.Run("INSERT INTO model (name, body, project) VALUES (?1, ?2, ?3) ON "
                "CONFLICT (name) DO NOTHING RETURNING id",
                {result.name(), result.SerializeAsString(), ProjectOf(result.name())}));
    if (!added.empty()) return absl::OkStatus();
    MENDEL_ASSIGN_OR_RETURN(result, LoadModel(sql, model.name()));
    return absl::OkStatus();
  }));
  return result;
}

absl::StatusOr<v1::Model> SqlStore::GetModel(const std::string& name) {
  v1::Model result;
  MENDEL_RETURN_IF_ERROR(database_->Read([&](SqlConnection& sql) -> absl::Status {
    MENDEL_ASSIGN_OR_RETURN(result, LoadModel(sql, name));
    return absl::OkStatus();
  }));
  return result;
}

absl::StatusOr<Page<v1::Model>> SqlStore::ListModels(const ProjectFilter& project, int page_size,
                                                     const std::string& token) {
  const std::string listing = Cat("models/", project.value_or("*"));
  MENDEL_ASSIGN_OR_RETURN(const int64_t size, PageSize(page_size));
  MENDEL_ASSIGN_OR_RETURN(const int64_t before, ParsePageToken(listing, token));
  const std::string query =
      Cat("SELECT id, body FROM model WHERE ", project ? "project = ?3" : "?3 = ?3",
          " AND id < ?1 ORDER BY id DESC LIMIT ?2");
  Page<v1::Model> page;
  MENDEL_RETURN_IF_ERROR(database_->Read([&](SqlConnection& sql) -> absl::Status {
    MENDEL_ASSIGN_OR_RETURN(const SqlRows rows,
                            sql.Run(query, {before, size + 1, project.value_or("")}));
    MENDEL_ASSIGN_OR_RETURN(page, MakePage<v1::Model>(rows, size, listing));
    return absl::OkStatus();
  }));
  return page;
}

absl::Status SqlStore::DeleteModel(const std::string& name) {
  return database_->Write([&](SqlConnection& sql) -> absl::Status {
    MENDEL_RETURN_IF_ERROR(sql.Serialize());
    MENDEL_RETURN_IF_ERROR(LoadModel(sql, name).status());
    MENDEL_RETURN_IF_ERROR(CheckUnused(sql, name, &ModelsOf));
    return sql.Run("DELETE FROM model WHERE name = ?1", {name}).status();
  });
}

absl::StatusOr<v1::Plan> SqlStore::GetPlan(const std::string& name) {
  v1::Plan result;
  MENDEL_RETURN_IF_ERROR(database_->Read([&](SqlConnection& sql) -> absl::Status {
    MENDEL_ASSIGN_OR_RETURN(result, LoadPlan(sql, name));
    return absl::OkStatus();
  }));
  return result;
}

absl::StatusOr<Page<v1::Plan>> SqlStore::ListPlans(const ProjectFilter& project,
                                                   const std::string& model, int page_size,
                                                   const std::string& token) {
  const std::string listing = Cat("plans/", model, "/", project.value_or("*"));
  MENDEL_ASSIGN_OR_RETURN(const int64_t size, PageSize(page_size));
  MENDEL_ASSIGN_OR_RETURN(const int64_t before, ParsePageToken(listing, token));
  const std::string query =
      Cat("SELECT id, body FROM plan WHERE ", model.empty() ? "?1 = ?1" : "model = ?1",
          project ? " AND project = ?4" : " AND ?4 = ?4", " AND id < ?2 ORDER BY id DESC LIMIT ?3");
  Page<v1::Plan> page;
  MENDEL_RETURN_IF_ERROR(database_->Read([&](SqlConnection& sql) -> absl::Status {
    MENDEL_ASSIGN_OR_RETURN(const SqlRows rows,
                            sql.Run(query, {model, before, size + 1, project.value_or("")}));
    MENDEL_ASSIGN_OR_RETURN(page, MakePage<v1::Plan>(rows, size, listing));
    return absl::OkStatus();
  }));
  return page;
}

absl::Status SqlStore::DeletePlan(const std::string& name) {
  return database_->Write([&](SqlConnection& sql) -> absl::Status {
    MENDEL_RETURN_IF_ERROR(sql.Serialize());
    MENDEL_RETURN_IF_ERROR(LoadPlan(sql, name).status());
    MENDEL_RETURN_IF_ERROR(CheckUnused(sql, name, &PlansOf));
    return sql.Run("DELETE FROM plan WHERE name = ?1", {name}).status();
  });
}

absl::StatusOr<std::optional<v1::Plan>> SqlStore::FindPlan(const std::string& work_key) {
  std::optional<v1::Plan> result;
  MENDEL_RETURN_IF_ERROR(database_->Read([&](SqlConnection& sql) -> absl::Status {
    MENDEL_ASSIGN_OR_RETURN(const SqlRows rows,
                            sql.Run("SELECT plan.body FROM work JOIN plan ON plan.name = work.plan "
                                    "WHERE work.work_key = ?1",
                                    {work_key}));
    if (rows.empty()) return absl::OkStatus();
    MENDEL_ASSIGN_OR_RETURN(result, ParseBody<v1::Plan>(rows.front().Bytes(0), "a plan"));
    return absl::OkStatus();
  }));
  return result;
}

absl::Status SqlStore::RememberPlan(const std::string& work_key, const std::string& plan) {
  return database_->Write([&](SqlConnection& sql) -> absl::Status {
    MENDEL_RETURN_IF_ERROR(LoadPlan(sql, plan).status());
    return RememberWork(sql, work_key, plan);
  });
}

}  // namespace mendel::server
