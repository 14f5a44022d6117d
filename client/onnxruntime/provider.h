// The execution provider of one session.
#ifndef MENDEL_CLIENT_ONNXRUNTIME_PROVIDER_H_
#define MENDEL_CLIENT_ONNXRUNTIME_PROVIDER_H_

#include "client/onnxruntime/abi.h"
#include "client/onnxruntime/runtime_api.h"
#include "client/onnxruntime/settings.h"

namespace mendel::ort {

/// A provider; `api` must outlive it, `logger` the session. Freed by FreeProvider.
Ep* NewProvider(const RuntimeApi& api, Settings settings, const Logger* logger);
void FreeProvider(Ep* ep);

}  // namespace mendel::ort

#endif  // MENDEL_CLIENT_ONNXRUNTIME_PROVIDER_H_
