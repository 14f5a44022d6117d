// The fields by which lists of jobs, models and plans are filtered (docs/service.md lists them).
#ifndef MENDEL_SERVER_RPC_FILTER_RECORDS_H_
#define MENDEL_SERVER_RPC_FILTER_RECORDS_H_

#include <map>
#include <span>
#include <string>

#include "server/rpc/environment.h"
#include "server/rpc/list_filter.h"

namespace mendel::server {

std::span<const FilterField> JobFields();
std::span<const FilterField> ModelFields();
std::span<const FilterField> PlanFields();

/// Makes records; looks up the main file of a model once.
class FilterRecords {
 public:
  explicit FilterRecords(Environment& env) : env_(env) {}
  FilterRecord Of(const StoredJob& job);
  FilterRecord Of(const v1::Model& model);
  FilterRecord Of(const v1::Plan& plan);

 private:
  void AddModel(const std::string& name, FilterRecord& record);

  Environment& env_;
  std::map<std::string, std::string> files_;
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_FILTER_RECORDS_H_
