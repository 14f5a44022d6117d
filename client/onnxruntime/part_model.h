// A part of a graph as an ONNX model.
#ifndef MENDEL_CLIENT_ONNXRUNTIME_PART_MODEL_H_
#define MENDEL_CLIENT_ONNXRUNTIME_PART_MODEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/onnxruntime/graph_view.h"
#include "client/onnxruntime/partition.h"

namespace mendel::ort {

enum class Constants {
  kAll,   ///< with all weights
  kSmall  ///< constants of more than 4096 bytes become inputs, for a look at what imports
};

/// The model of `part`. Its inputs and outputs are those of BoundaryOf, in order (with kSmall,
/// large constants follow), named "in0", "in1"... and "out0"... With kSmall a node's name is its
/// number. ResourceExhausted if it would exceed what one ONNX file can have (2 GB).
absl::StatusOr<std::string> PartModel(const GraphView& view, const Part& part,
                                      const Boundary& boundary, Constants constants);

}  // namespace mendel::ort

#endif  // MENDEL_CLIENT_ONNXRUNTIME_PART_MODEL_H_
