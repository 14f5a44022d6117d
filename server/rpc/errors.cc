#include "server/rpc/errors.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "absl/strings/cord.h"
#include "base/status.h"
#include "google/rpc/error_details.pb.h"
#include "server/store/sql.h"

namespace mendel::server {
namespace {

constexpr size_t kMaxSubjects = 20;

template <class Message>
std::string UrlOf() {
  return Cat("type.googleapis.com/", Message::descriptor()->full_name());
}

template <class Message>
void SetDetail(absl::Status& status, const Message& message) {
  status.SetPayload(UrlOf<Message>(), absl::Cord(message.SerializeAsString()));
}

template <class Message>
bool HasDetail(const absl::Status& status) {
  return status.GetPayload(UrlOf<Message>()).has_value();
}

/// NOT_FOUND, ...
std::string CodeName(absl::StatusCode code) {
  const std::string name = absl::StatusCodeToString(code);
  return name.empty() ? "UNKNOWN" : name;
}

bool IsHidden(absl::StatusCode code) {
  return code == absl::StatusCode::kInternal || code == absl::StatusCode::kUnknown;
}

bool IsFieldPath(std::string_view text) {
  return text.find('.') != std::string_view::npos &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return std::islower(static_cast<unsigned char>(c)) ||
                  std::isdigit(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '[' ||
                  c == ']';
         });
}

bool EndsWord(char c) {
  return std::isspace(static_cast<unsigned char>(c)) || c == '\'' || c == '"' || c == ')' ||
         c == ',' || c == ';';
}

bool StartsWord(std::string_view message, size_t i) {
  return i == 0 || EndsWord(message[i - 1]) || message[i - 1] == '(' || message[i - 1] == '=' ||
         message[i - 1] == ':';
}

}  // namespace

bool IsOfJobStore(const absl::Status& status) {
  return std::string(status.message()).starts_with(kJobStorePrefix);
}

absl::Status FieldError(std::string_view field, std::string_view description) {
  absl::Status status = InvalidInput(field, ": ", description);
  google::rpc::BadRequest detail;
  auto* violation = detail.add_field_violations();
  violation->set_field(std::string(field));
  violation->set_description(std::string(description));
  SetDetail(status, detail);
  return WithReason(status, "BAD_FIELD");
}

absl::Status FieldErrorOf(const absl::Status& status) {
  if (status.code() != absl::StatusCode::kInvalidArgument ||
      HasDetail<google::rpc::BadRequest>(status))
    return status;
  const std::string message(status.message());
  const size_t colon = message.find(": ");
  if (colon == std::string::npos || !IsFieldPath(std::string_view(message).substr(0, colon)))
    return status;
  return FieldError(message.substr(0, colon), message.substr(colon + 2));
}

absl::Status WithReason(absl::Status status, std::string_view reason,
                        const std::map<std::string, std::string>& metadata) {
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(reason));
  info.set_domain("mendel");
  for (const auto& [key, value] : metadata) (*info.mutable_metadata())[key] = value;
  SetDetail(status, info);
  return status;
}

absl::Status WithRetry(absl::Status status, double seconds) {
  google::rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(static_cast<int64_t>(seconds));
  info.mutable_retry_delay()->set_nanos(static_cast<int32_t>(std::fmod(seconds, 1.0) * 1e9));
  SetDetail(status, info);
  return status;
}

absl::Status PreconditionError(std::string_view message, std::string_view type,
                               const std::vector<std::string>& subjects) {
  absl::Status status = absl::FailedPreconditionError(Cat(message));
  google::rpc::PreconditionFailure detail;
  for (size_t i = 0; i < std::min(subjects.size(), kMaxSubjects); ++i) {
    auto* violation = detail.add_violations();
    violation->set_type(std::string(type));
    violation->set_subject(subjects[i]);
  }
  SetDetail(status, detail);
  return WithReason(status, type);
}

std::string WithoutPaths(std::string_view message) {
  std::string result;
  for (size_t i = 0; i < message.size();) {
    const bool path = message[i] == '/' && i + 1 < message.size() && !EndsWord(message[i + 1]) &&
                      StartsWord(message, i);
    if (!path) {
      result += message[i++];
      continue;
    }
    result += "(path)";
    while (i < message.size() && !EndsWord(message[i])) ++i;
  }
  return result;
}

google::rpc::Status ToRpcStatus(const absl::Status& status, std::string_view reference) {
  google::rpc::Status result;
  if (status.ok()) return result;
  result.set_code(static_cast<int32_t>(status.code()));
  if (IsHidden(status.code())) {
    result.set_message(Cat("internal error; the server's log reports more under ", reference));
  } else if (IsOfJobStore(status)) {
    result.set_message(
        Cat("the job store did not answer; the server's log reports more under ", reference));
  } else {
    result.set_message(WithoutPaths(std::string(status.message())));
  }
  absl::Status complete = status;
  if (!HasDetail<google::rpc::ErrorInfo>(complete))
    complete = WithReason(complete, CodeName(status.code()));
  const bool again = status.code() == absl::StatusCode::kResourceExhausted ||
                     status.code() == absl::StatusCode::kUnavailable;
  if (again && !HasDetail<google::rpc::RetryInfo>(complete)) complete = WithRetry(complete, 1);
  complete.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    auto* detail = result.add_details();
    detail->set_type_url(std::string(url));
    detail->set_value(std::string(payload));
  });
  return result;
}

}  // namespace mendel::server
