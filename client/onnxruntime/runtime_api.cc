#include "client/onnxruntime/runtime_api.h"

#include <charconv>
#include <system_error>

namespace mendel::ort {
namespace {

/// Makes a status and a list of pairs and reads them back: a table of another order fails here.
absl::Status ProbeMain(const Table* api) {
  Status* const status = kCreateStatus(api, kInvalidArgument, "probe");
  if (status == nullptr) return InvalidInput("CreateStatus (member 0) returns NULL");
  const bool right = kGetErrorCode(api, status) == kInvalidArgument &&
                     kGetErrorMessage(api, status) == std::string_view("probe");
  kReleaseStatus(api, status);
  if (!right)
    return InvalidInput(
        "GetErrorCode or GetErrorMessage (members 1, 2) disagrees with CreateStatus");
  KeyValuePairs* pairs = nullptr;
  kCreateKeyValuePairs(api, &pairs);
  if (pairs == nullptr) return InvalidInput("CreateKeyValuePairs (member 295) makes nothing");
  kAddKeyValuePair(api, pairs, "key", "value");
  const char* const value = kGetKeyValue(api, pairs, "key");
  const bool kept = value != nullptr && value == std::string_view("value");
  kReleaseKeyValuePairs(api, pairs);
  if (!kept) return InvalidInput("GetKeyValue (member 297) does not return what was added");
  return absl::OkStatus();
}

int AbslCodeToOrt(absl::StatusCode code) {
  if (code == absl::StatusCode::kInvalidArgument) return kInvalidArgument;
  if (code == absl::StatusCode::kUnimplemented) return kNotImplemented;
  return kEpFail;
}

}  // namespace

int MinorVersion(std::string_view version) {
  if (!version.starts_with("1.")) return -1;
  version.remove_prefix(2);
  int minor = -1;
  const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), minor);
  if (error != std::errc() || end == version.data()) return -1;
  return minor;
}

absl::StatusOr<RuntimeApi> RuntimeApi::Open(const ApiBase* base) {
  if (base == nullptr || base->get_api == nullptr || base->version_text == nullptr)
    return InvalidInput("ONNX Runtime handed over no table of functions");
  const std::string version = base->version_text();
  RuntimeApi api;
  api.minor_ = MinorVersion(version);
  if (api.minor_ < static_cast<int>(kVersion)) {
    return InvalidInput("Mendel's execution provider needs ONNX Runtime 1.", kVersion,
                        " or a newer version 1; this is ", version);
  }
  api.main_ = base->get_api(kVersion);
  if (api.main_ == nullptr)
    return InvalidInput("ONNX Runtime ", version, " does not offer the interface of 1.", kVersion);
  const absl::Status probed = ProbeMain(api.main_);
  if (!probed.ok())
    return Annotate(probed, Cat("ONNX Runtime ", version, " has another interface"));
  api.ep_ = kGetEpApi(api.main_);
  api.editor_ = kGetModelEditorApi(api.main_);
  if (api.ep_ == nullptr || api.editor_ == nullptr)
    return InvalidInput("ONNX Runtime ", version, " is a minimal build, which takes no provider");
  return api;
}

absl::Status RuntimeApi::Take(Status* status) const {
  if (status == nullptr) return absl::OkStatus();
  absl::Status taken = absl::InternalError(kGetErrorMessage(main_, status));
  kReleaseStatus(main_, status);
  return taken;
}

Status* RuntimeApi::Give(const absl::Status& status) const {
  if (status.ok()) return nullptr;
  return kCreateStatus(main_, AbslCodeToOrt(status.code()),
                       Cat("Mendel: ", std::string(status.message())).c_str());
}

void RuntimeApi::Log(const Logger* logger, int level, const std::string& message) const {
  if (logger == nullptr) return;
  // A log that fails has nowhere to say so.
  Take(kLogMessage(main_, logger, level, message.c_str(), "mendel", 0, "mendel")).IgnoreError();
}

}  // namespace mendel::ort
