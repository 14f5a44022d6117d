// DepthToSpace, SpaceToDepth and Tile: copies between boxes of more dimensions than the tensors
// have. Any dtype.

#include <utility>

#include "kernels/cpu/kernels/copy.h"
#include "kernels/cpu/lowering/lower.h"

namespace mendel::cpu {
namespace {

/// Dimension by dimension of the copied box: its extent, and the steps in the input and in the
/// output.
class StridedBox {
 public:
  void Add(int64_t extent, int64_t from, int64_t to) {
    extents_.push_back(extent);
    from_.push_back(from);
    to_.push_back(to);
  }

  /// Emits the copy as the step of node `id`.
  absl::StatusOr<bool> Emit(Lowering& lowering, int32_t id, const Place& from, const Place& to) {
    const int64_t bytes = DTypeSize(lowering.type({id, 0}).dtype);
    lowering.Emit({id}, "copy", MakeCopyKernel({{from, to, extents_, from_, to_}}, bytes),
                  {from, to});
    return true;
  }

 private:
  Shape extents_, from_, to_;
};

}  // namespace

absl::StatusOr<bool> LowerDepthToSpace(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const Shape& shape = lowering.shape(node.inputs[0]);
  const int64_t b = node.attrs.Int("blocksize");
  const int64_t channels = node.outputs[0].shape[1];
  const bool dcr = node.attrs.Str("mode") == "DCR";
  const Place from = lowering.Unblocked(node.inputs[0]);
  const Place to = lowering.Allocate({id, 0}, PlainLayout(node.outputs[0].shape));
  const Shape& in = from.layout.strides;
  const Shape& out = to.layout.strides;
  StridedBox box;
  box.Add(shape[0], in[0], out[0]);
  box.Add(channels, (dcr ? 1 : b * b) * in[1], out[1]);
  box.Add(shape[2], in[2], b * out[2]);
  box.Add(b, (dcr ? b * channels : b) * in[1], out[2]);
  box.Add(shape[3], in[3], b * out[3]);
  box.Add(b, (dcr ? channels : 1) * in[1], out[3]);
  return box.Emit(lowering, id, from, to);
}

absl::StatusOr<bool> LowerSpaceToDepth(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const Shape& shape = lowering.shape(node.inputs[0]);
  const int64_t b = node.attrs.Int("blocksize");
  const Place from = lowering.Unblocked(node.inputs[0]);
  const Place to = lowering.Allocate({id, 0}, PlainLayout(node.outputs[0].shape));
  const Shape& in = from.layout.strides;
  const Shape& out = to.layout.strides;
  StridedBox box;
  box.Add(shape[0], in[0], out[0]);
  box.Add(b, in[2], b * shape[1] * out[1]);
  box.Add(b, in[3], shape[1] * out[1]);
  box.Add(shape[1], in[1], out[1]);
  box.Add(shape[2] / b, b * in[2], out[2]);
  box.Add(shape[3] / b, b * in[3], out[3]);
  return box.Emit(lowering, id, from, to);
}

absl::StatusOr<bool> LowerTile(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const Shape& shape = lowering.shape(node.inputs[0]);
  const Ints& repeats = node.attrs.IntList("repeats");
  const Place from = lowering.Unblocked(node.inputs[0]);
  const Place to = lowering.Allocate({id, 0}, PlainLayout(node.outputs[0].shape));
  StridedBox box;
  for (size_t d = 0; d < shape.size(); ++d) {
    box.Add(repeats[d], 0, shape[d] * to.layout.strides[d]);
    box.Add(shape[d], from.layout.strides[d], to.layout.strides[d]);
  }
  return box.Emit(lowering, id, from, to);
}

}  // namespace mendel::cpu
