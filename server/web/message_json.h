// Messages of the API as JSON, as the page's script receives them.
#ifndef MENDEL_SERVER_WEB_MESSAGE_JSON_H_
#define MENDEL_SERVER_WEB_MESSAGE_JSON_H_

#include <google/protobuf/message.h>

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "mendel/v1/jobs.pb.h"
#include "server/rpc/environment.h"

namespace mendel::server {

/// By protobuf's own mapping, with the names of the .proto files; 64-bit numbers are strings.
absl::StatusOr<std::string> MessageJson(const google::protobuf::Message& message);

/// Bytes that are no UTF-8 become U+FFFD.
std::string JsonText(const nlohmann::json& value);

/// Takes out what is long: who polls a job need not get its verdict again and again.
void Shorten(v1::Job& job);

/// Adds the main file of the model to an object, unless the model has been deleted since.
void AddFile(Environment& env, const std::string& model, nlohmann::json& files);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_WEB_MESSAGE_JSON_H_
