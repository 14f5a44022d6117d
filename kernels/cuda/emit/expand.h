// Text with $names in it.
#ifndef MENDEL_KERNELS_CUDA_EMIT_EXPAND_H_
#define MENDEL_KERNELS_CUDA_EMIT_EXPAND_H_

#include <map>
#include <string>
#include <string_view>

namespace mendel::cuda {

/// `text` with every $name replaced. A line that is only "$name" is replaced by all lines of the
/// value with the same indentation, or left out when the value is empty. CHECK-fails on a name that
/// `values` does not have.
std::string Expand(std::string_view text, const std::map<std::string, std::string>& values);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_EMIT_EXPAND_H_
