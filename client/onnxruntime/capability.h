// The parts of a graph that Mendel runs.
#ifndef MENDEL_CLIENT_ONNXRUNTIME_CAPABILITY_H_
#define MENDEL_CLIENT_ONNXRUNTIME_CAPABILITY_H_

#include <map>
#include <string>
#include <vector>

#include "client/onnxruntime/graph_view.h"
#include "client/onnxruntime/partition.h"

namespace mendel::ort {

struct Capability {
  std::vector<Part> parts;
  /// Nodes that are left to ONNX Runtime because Mendel refuses them: number and sentence.
  std::map<int, std::string> refused;
};

/// Every connected part of `view` that imports and is worth a call. A part is imported as a whole:
/// a node may depend on constants that other nodes make. The node that an error names is left out,
/// with all that are like it, and the rest is divided again.
Capability FindParts(const GraphView& view);

}  // namespace mendel::ort

#endif  // MENDEL_CLIENT_ONNXRUNTIME_CAPABILITY_H_
