#include "kernels/cpu/lower.h"

#include <utility>

namespace mendel::cpu {
namespace {

constexpr std::pair<std::string_view, LowerNode> kLowerings[] = {
    {"AveragePool", &LowerPool},
    {"Concat", &LowerConcat},
    {"DepthToSpace", &LowerDepthToSpace},
    {"Expand", &LowerExpand},
    {"Gather", &LowerGather},
    {"LayerNormalization", &LowerLayerNorm},
    {"LogSoftmax", &LowerSoftmax},
    {"MaxPool", &LowerPool},
    {"Pad", &LowerPad},
    {"ReduceL1", &LowerReduce},
    {"ReduceMax", &LowerReduce},
    {"ReduceMean", &LowerReduce},
    {"ReduceMin", &LowerReduce},
    {"ReduceSum", &LowerReduce},
    {"ReduceSumSquare", &LowerReduce},
    {"Reshape", &LowerReshape},
    {"Resize", &LowerResize},
    {"Slice", &LowerSlice},
    {"Softmax", &LowerSoftmax},
    {"SpaceToDepth", &LowerSpaceToDepth},
    {"Split", &LowerSplit},
    {"Tile", &LowerTile},
    {"Transpose", &LowerTranspose},
};

}  // namespace

LowerNode FindLowering(std::string_view op) {
  for (const auto& [name, lower] : kLowerings) {
    if (name == op) return lower;
  }
  return nullptr;
}

}  // namespace mendel::cpu
