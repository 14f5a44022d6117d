#include "client/onnxruntime/tensor_facts.h"

#include <string>

namespace mendel::ort {
namespace {

absl::StatusOr<TensorFacts> ReadFacts(const RuntimeApi& api, const TensorInfo* info) {
  TensorFacts facts;
  MENDEL_ASSIGN_OR_RETURN(facts.type, api.Get<int>(kGetTensorElementType, info));
  MENDEL_ASSIGN_OR_RETURN(const size_t rank, api.Get<size_t>(kGetDimensionsCount, info));
  facts.shape.resize(rank);
  MENDEL_RETURN_IF_ERROR(api.Take(kGetDimensions(api.main(), info, facts.shape.data(), rank)));
  return facts;
}

}  // namespace

bool KnownType(int type) {
  switch (type) {
    case onnx::TensorProto::FLOAT:
    case onnx::TensorProto::FLOAT16:
    case onnx::TensorProto::BFLOAT16:
    case onnx::TensorProto::DOUBLE:
    case onnx::TensorProto::INT8:
    case onnx::TensorProto::UINT8:
    case onnx::TensorProto::INT32:
    case onnx::TensorProto::INT64:
    case onnx::TensorProto::BOOL:
    case onnx::TensorProto::INT16:
    case onnx::TensorProto::UINT16:
    case onnx::TensorProto::UINT32:
    case onnx::TensorProto::UINT64:
      return true;
    default:
      return false;
  }
}

size_t ElementBytes(int type) {
  switch (type) {
    case onnx::TensorProto::DOUBLE:
    case onnx::TensorProto::INT64:
    case onnx::TensorProto::UINT64:
      return 8;
    case onnx::TensorProto::FLOAT:
    case onnx::TensorProto::INT32:
    case onnx::TensorProto::UINT32:
      return 4;
    case onnx::TensorProto::FLOAT16:
    case onnx::TensorProto::BFLOAT16:
    case onnx::TensorProto::INT16:
    case onnx::TensorProto::UINT16:
      return 2;
    default:
      return 1;
  }
}

absl::StatusOr<TensorFacts> FactsOf(const RuntimeApi& api, const Value* value) {
  MENDEL_ASSIGN_OR_RETURN(TensorInfo* const info,
                          api.Get<TensorInfo*>(kGetTensorTypeAndShape, value));
  auto facts = ReadFacts(api, info);
  kReleaseTensorInfo(api.main(), info);
  return facts;
}

absl::StatusOr<std::string_view> BytesOf(const RuntimeApi& api, const Value* value) {
  MENDEL_ASSIGN_OR_RETURN(const size_t size, api.Get<size_t>(kGetTensorSizeInBytes, value));
  MENDEL_ASSIGN_OR_RETURN(const void* const data, api.Get<const void*>(kGetTensorData, value));
  return std::string_view(static_cast<const char*>(data), size);
}

absl::Status WriteTensor(const RuntimeApi& api, const Value* value, onnx::TensorProto& tensor) {
  MENDEL_ASSIGN_OR_RETURN(const TensorFacts facts, FactsOf(api, value));
  if (facts.type == onnx::TensorProto::STRING)
    return Unsupported("a tensor of texts cannot be passed on");
  MENDEL_ASSIGN_OR_RETURN(const std::string_view bytes, BytesOf(api, value));
  tensor.set_data_type(facts.type);
  for (const int64_t size : facts.shape) tensor.add_dims(size);
  tensor.set_raw_data(std::string(bytes));
  return absl::OkStatus();
}

}  // namespace mendel::ort
