// The different convolutions of models, each as a graph of its own.
#ifndef MENDEL_BENCH_CONV_LAYERS_H_
#define MENDEL_BENCH_CONV_LAYERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/attributes.h"
#include "graph/emitter.h"
#include "graph/graph.h"
#include "graph/types.h"

namespace mendel {

struct ConvLayer {
  Shape x, w;  ///< of one image: x[0] is 1
  Attributes attrs;
  std::string models;  ///< that have it, each once
  int places = 0;
  double flops = 0;  ///< flops of one image
};

/// Convolutions of f32 with stored weights of the ONNX files, unlike in shapes or attributes; those
/// that most arithmetic of the models goes to first. The importer's status, with the path, for a
/// file that it refuses.
absl::StatusOr<std::vector<ConvLayer>> ConvLayersOf(const std::vector<std::string>& paths);

/// A constant of small random f32 numbers, the same ones for equal shapes.
ValueId RandomWeights(Emitter& e, const Shape& shape, const std::string& symbol);

/// The convolution with a bias for a batch: input "in0", output "out0", weights of small random
/// numbers.
absl::StatusOr<Graph> LayerGraph(const ConvLayer& layer, int64_t batch);

/// "512->512 3x3 28x28 dilation 2", what is usual left out.
std::string LayerText(const ConvLayer& layer);

}  // namespace mendel

#endif  // MENDEL_BENCH_CONV_LAYERS_H_
