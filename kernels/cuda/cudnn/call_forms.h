// The forms in which cuDNN's calls leave values that stay so between them, for tests.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_CALL_FORMS_H_
#define MENDEL_KERNELS_CUDA_CUDNN_CALL_FORMS_H_

#include <cstdint>

#include "runtime/numerics.h"

namespace mendel::cuda {

struct CallForm {
  const char* algorithm;
  Numerics numerics;
  int64_t bytes;  ///< bytes of an element between calls
};
inline constexpr CallForm kCallForms[] = {{"cudnn-nhwc", Numerics::kStrict, 4},
                                          {"cudnn-f16", Numerics::kF16, 2},
                                          {"cudnn-f16-nhwc", Numerics::kF16, 2},
                                          {"cudnn-bf16-nhwc", Numerics::kBf16, 2}};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_CALL_FORMS_H_
