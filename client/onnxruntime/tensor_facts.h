// Types, shapes and bytes of tensors of ONNX Runtime.
#ifndef MENDEL_CLIENT_ONNXRUNTIME_TENSOR_FACTS_H_
#define MENDEL_CLIENT_ONNXRUNTIME_TENSOR_FACTS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/onnxruntime/runtime_api.h"
#include "onnx/model.pb.h"

namespace mendel::ort {

/// True for element types of Mendel's language, by ONNX's numbers.
bool KnownType(int type);

/// Bytes of one element of a known type.
size_t ElementBytes(int type);

struct TensorFacts {
  int type = 0;
  std::vector<int64_t> shape;
};

/// The type and shape of a tensor.
absl::StatusOr<TensorFacts> FactsOf(const RuntimeApi& api, const Value* value);

/// The bytes of a tensor of numbers.
absl::StatusOr<std::string_view> BytesOf(const RuntimeApi& api, const Value* value);

/// Writes a tensor of numbers; texts are refused.
absl::Status WriteTensor(const RuntimeApi& api, const Value* value, onnx::TensorProto& tensor);

}  // namespace mendel::ort

#endif  // MENDEL_CLIENT_ONNXRUNTIME_TENSOR_FACTS_H_
