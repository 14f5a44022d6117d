#include "kernels/cpu/lowering/lower.h"

#include <utility>

namespace mendel::cpu {
namespace {

constexpr std::pair<std::string_view, LowerNode> kLowerings[] = {
    {"ArgMax", &LowerArgExtreme},
    {"ArgMin", &LowerArgExtreme},
    {"AveragePool", &LowerPool},
    {"BatchNormalization", &LowerChannelNorm},
    {"Cast", &LowerCast},
    {"Concat", &LowerConcat},
    {"ConvTranspose", &LowerTransposedConv},
    {"CumSum", &LowerCumSum},
    {"DepthToSpace", &LowerDepthToSpace},
    {"Einsum", &LowerEinsum},
    {"Expand", &LowerExpand},
    {"Gather", &LowerGather},
    {"GatherElements", &LowerGatherElements},
    {"GatherND", &LowerGatherNd},
    {"GroupNormalization", &LowerChannelNorm},
    {"Hardmax", &LowerHardmax},
    {"InstanceNormalization", &LowerChannelNorm},
    {"LRN", &LowerLrn},
    {"LayerNormalization", &LowerLayerNorm},
    {"LogSoftmax", &LowerSoftmax},
    {"Loop", &LowerLoop},
    {"LpPool", &LowerLpPool},
    {"MaxPool", &LowerPool},
    {"OneHot", &LowerOneHot},
    {"Pad", &LowerPad},
    {"Pow", &LowerPow},
    {"ReduceL1", &LowerReduce},
    {"ReduceL2", &LowerReduce},
    {"ReduceLogSum", &LowerReduce},
    {"ReduceLogSumExp", &LowerReduce},
    {"ReduceMax", &LowerReduce},
    {"ReduceMean", &LowerReduce},
    {"ReduceMin", &LowerReduce},
    {"ReduceProd", &LowerReduce},
    {"ReduceSum", &LowerReduce},
    {"ReduceSumSquare", &LowerReduce},
    {"Reshape", &LowerReshape},
    {"Resize", &LowerResize},
    {"ReverseSequence", &LowerReverseSequence},
    {"ScatterElements", &LowerScatterElements},
    {"ScatterND", &LowerScatterNd},
    {"Slice", &LowerSlice},
    {"Softmax", &LowerSoftmax},
    {"SpaceToDepth", &LowerSpaceToDepth},
    {"Split", &LowerSplit},
    {"Tile", &LowerTile},
    {"TopK", &LowerTopK},
    {"Transpose", &LowerTranspose},
    {"Trilu", &LowerTrilu},
};

}  // namespace

LowerNode FindLowering(std::string_view op) {
  for (const auto& [name, lower] : kLowerings) {
    if (name == op) return lower;
  }
  return nullptr;
}

}  // namespace mendel::cpu
