#include "kernels/cpu/lowering/lower.h"

#include <utility>

namespace mendel::cpu {
namespace {

constexpr std::pair<std::string_view, LowerNode> kLowerings[] = {
    {"Add", &LowerTypedElementwise},
    {"And", &LowerTypedElementwise},
    {"ArgMax", &LowerArgExtreme},
    {"ArgMin", &LowerArgExtreme},
    {"AveragePool", &LowerPool},
    {"BatchNormalization", &LowerChannelNorm},
    {"BitShift", &LowerTypedElementwise},
    {"BitwiseAnd", &LowerTypedElementwise},
    {"BitwiseOr", &LowerTypedElementwise},
    {"BitwiseXor", &LowerTypedElementwise},
    {"Cast", &LowerCast},
    {"Concat", &LowerConcat},
    {"ConvTranspose", &LowerTransposedConv},
    {"CumSum", &LowerCumSum},
    {"DepthToSpace", &LowerDepthToSpace},
    {"Einsum", &LowerEinsum},
    {"Equal", &LowerTypedElementwise},
    {"Expand", &LowerExpand},
    {"Gather", &LowerGather},
    {"GatherElements", &LowerGatherElements},
    {"GatherND", &LowerGatherNd},
    {"Greater", &LowerTypedElementwise},
    {"GreaterOrEqual", &LowerTypedElementwise},
    {"GroupNormalization", &LowerChannelNorm},
    {"Hardmax", &LowerHardmax},
    {"InstanceNormalization", &LowerChannelNorm},
    {"LRN", &LowerLrn},
    {"LayerNormalization", &LowerLayerNorm},
    {"Less", &LowerTypedElementwise},
    {"LessOrEqual", &LowerTypedElementwise},
    {"LogSoftmax", &LowerSoftmax},
    {"Loop", &LowerLoop},
    {"LpPool", &LowerLpPool},
    {"MatMul", &LowerTypedMatMul},
    {"Max", &LowerTypedElementwise},
    {"MaxPool", &LowerPool},
    {"Min", &LowerTypedElementwise},
    {"Mul", &LowerTypedElementwise},
    {"Not", &LowerTypedElementwise},
    {"OneHot", &LowerOneHot},
    {"Or", &LowerTypedElementwise},
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
    {"Sub", &LowerTypedElementwise},
    {"Tile", &LowerTile},
    {"TopK", &LowerTopK},
    {"Transpose", &LowerTranspose},
    {"Trilu", &LowerTrilu},
    {"Where", &LowerTypedElementwise},
    {"Xor", &LowerTypedElementwise},
};

}  // namespace

LowerNode FindLowering(std::string_view op) {
  for (const auto& [name, lower] : kLowerings) {
    if (name == op) return lower;
  }
  return nullptr;
}

}  // namespace mendel::cpu
