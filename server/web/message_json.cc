#include "server/web/message_json.h"

#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>

#include "base/status.h"

namespace mendel::server {

absl::StatusOr<std::string> MessageJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!status.ok())
    return InternalError("a message that is no JSON: ",
                         std::string(status.message().data(), status.message().size()));
  return text;
}

std::string JsonText(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void Shorten(v1::Job& job) {
  job.clear_verdict();
  if (job.has_error()) job.mutable_error()->clear_details();
}

void AddFile(Environment& env, const std::string& model, nlohmann::json& files) {
  if (files.contains(model)) return;
  if (const auto found = env.jobs.GetModel(model); found.ok()) files[model] = found->main_file();
}

}  // namespace mendel::server
