// The two functions that ONNX Runtime looks for in a library of execution providers.
#ifndef MENDEL_CLIENT_ONNXRUNTIME_FACTORY_H_
#define MENDEL_CLIENT_ONNXRUNTIME_FACTORY_H_

#include "client/onnxruntime/abi.h"

extern "C" {

/// Makes the factory of MendelExecutionProvider. The error names the version of ONNX Runtime if it
/// does not fit.
__attribute__((visibility("default"))) mendel::ort::Status* CreateEpFactories(
    const char* registered_name, const mendel::ort::ApiBase* base,
    const mendel::ort::Logger* logger, mendel::ort::EpFactory** factories, size_t max,
    size_t* count);

__attribute__((visibility("default"))) mendel::ort::Status* ReleaseEpFactory(
    mendel::ort::EpFactory* factory);
}

#endif  // MENDEL_CLIENT_ONNXRUNTIME_FACTORY_H_
