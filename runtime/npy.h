// NumPy's .npy files (format 1.0 to 3.0), the exchange format of inputs and outputs.
#ifndef MENDEL_RUNTIME_NPY_H_
#define MENDEL_RUNTIME_NPY_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/tensor.h"

namespace mendel {

/// A little-endian array of any dtype that NumPy has: not bf16, nor 8-bit floats. Fortran order is
/// transposed into row-major. Boolean bytes other than 0 count as 1. InvalidArgument says what is
/// malformed, Unimplemented names another dtype.
absl::StatusOr<Tensor> ParseNpy(std::span<const std::byte> bytes);
/// Also NotFound and the like.
absl::StatusOr<Tensor> ReadNpy(const std::string& path);

/// The file's bytes, format 1.0, row-major. Unimplemented for bf16 and 8-bit floats, which NumPy
/// lacks.
absl::StatusOr<std::vector<std::byte>> FormatNpy(const Tensor& tensor);
absl::Status WriteNpy(const Tensor& tensor, const std::string& path);

}  // namespace mendel

#endif  // MENDEL_RUNTIME_NPY_H_
