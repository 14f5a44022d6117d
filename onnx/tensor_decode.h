// TensorProto in all its encodings to Tensor.
#ifndef MENDEL_ONNX_TENSOR_DECODE_H_
#define MENDEL_ONNX_TENSOR_DECODE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "graph/tensor.h"
#include "onnx/mapped_file.h"
#include "onnx/model.pb.h"
#include "onnx/model_reader.h"

namespace mendel {

/// Dtype of an ONNX element type; Unimplemented names those that the language does not have.
absl::StatusOr<DType> DTypeFromOnnx(int32_t data_type);
int32_t DTypeToOnnx(DType dtype);

/// Refuses negative extents, ranks above kMaxRank and more than kMaxElements elements.
absl::Status CheckShape(const Shape& shape);

/// The tensor's value. Raw and external data are shared with the mapping where they are aligned to
/// the element size and copied elsewhere; number of bytes, offset and length are checked against
/// the shape. Messages do not name the tensor.
absl::StatusOr<Tensor> DecodeTensor(const onnx::TensorProto& proto, const ModelFile& file,
                                    ExternalFiles& external);

/// Elements of 2 or 4 bits lie in bytes, the first one in the lowest bits. The language has no such
/// types: they are read as i8 or u8. To DequantizeLinear, which only takes numbers, that is the
/// same.
bool IsPacked(int32_t data_type);
absl::StatusOr<Tensor> DecodePacked(const onnx::TensorProto& proto, const ModelFile& file,
                                    ExternalFiles& external);

/// A tensor outside a model, as in ONNX's own test data: no external data.
absl::StatusOr<Tensor> DecodeTensor(onnx::TensorProto proto);

}  // namespace mendel

#endif  // MENDEL_ONNX_TENSOR_DECODE_H_
