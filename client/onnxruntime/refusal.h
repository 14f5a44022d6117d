// An error for ONNX Runtime before its tables are known to be right.
#ifndef MENDEL_CLIENT_ONNXRUNTIME_REFUSAL_H_
#define MENDEL_CLIENT_ONNXRUNTIME_REFUSAL_H_

#include <string>

#include "client/onnxruntime/abi.h"

namespace mendel::ort {

/// A status with `message`, by the first member of the newest table that `base` offers; NULL if it
/// offers none.
inline Status* Refuse(const ApiBase* base, const std::string& message) {
  for (uint32_t version = kVersion; base != nullptr && version > 0; --version) {
    const Table* const api = base->get_api(version);
    if (api != nullptr) return kCreateStatus(api, kInvalidArgument, message.c_str());
  }
  return nullptr;
}

}  // namespace mendel::ort

#endif  // MENDEL_CLIENT_ONNXRUNTIME_REFUSAL_H_
