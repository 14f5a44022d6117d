// The back end of a network of dilated convolutions, as CSRNet's: all from the first of them on.
#ifndef MENDEL_BENCH_MODEL_BACKEND_H_
#define MENDEL_BENCH_MODEL_BACKEND_H_

#include <string>

#include "absl/status/status.h"

namespace onnx {
class ModelProto;
}

namespace mendel {

/// Leaves of `model`, which the file `path` holds, what its outputs need from the input of the
/// first dilated convolution on; that tensor becomes the only input, in the shape that it has for
/// the model's own inputs (open extents are 1). NotFound where no convolution is dilated,
/// InvalidArgument where the outputs need another tensor from before it, the importer's status
/// where the shapes cannot be reported.
absl::Status CutBackEnd(const std::string& path, onnx::ModelProto& model);

}  // namespace mendel

#endif  // MENDEL_BENCH_MODEL_BACKEND_H_
