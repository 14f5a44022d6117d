// Access of operators that take rows, planes or images as a whole (Softmax, the normalizations).
#ifndef MENDEL_GRAPH_WHOLE_ACCESS_H_
#define MENDEL_GRAPH_WHOLE_ACCESS_H_

#include "graph/op_helpers.h"

namespace mendel {

/// One oracle of input 0, of the output's shape: all of its positions along dimensions [first,
/// last), where every output position stands on its own, and the output's own along the others.
inline AccessPattern WholeAlong(const NodeView& node, size_t first, size_t last) {
  const Shape& shape = node.outputs[0].shape;
  AccessPattern pattern;
  pattern.combine = AccessPattern::Combine::kOracle;
  pattern.breaks.resize(shape.size());
  InputAccess access = BroadcastAccess(shape, shape.size());
  for (size_t d = first; d < last; ++d) {
    access.dims[d].whole = true;
    for (int64_t at = 1; at < shape[d]; ++at) pattern.breaks[d].push_back(at);
  }
  pattern.inputs = {access};
  return pattern;
}

}  // namespace mendel

#endif  // MENDEL_GRAPH_WHOLE_ACCESS_H_
