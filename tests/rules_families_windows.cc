// Examples of rules_families.h: layouts, dilation, strides and kernel shapes of convolutions.
#include "tests/rules_families.h"

namespace mendel {

std::vector<FamilyExample> WindowExamples() {
  return {
      {"BatchToSpaceByThree", "batch_to_space", R"(
  %0 = Input() {name = "x", shape = [3, 4, 12, 12]}
  %1 = Constant() {symbol = "w", value = f32[4,4,3,3]{W144}}
  %2 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  return "y0" = %2
)"},
      {"BatchToSpaceWithATileToSpare", "batch_to_space", R"(
  %0 = Input() {name = "x", shape = [5, 4, 12, 12]}
  %1 = Constant() {symbol = "w", value = f32[4,4,3,3]{W144}}
  %2 = Constant() {symbol = "b", value = f32[4]{W4}}
  %3 = Conv(%0, %1, %2) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %4 = Relu(%3)
  return "y0" = %4
)"},
      {"BatchToSpaceStrided", "batch_to_space", R"(
  %0 = Input() {name = "x", shape = [4, 4, 13, 12]}
  %1 = Constant() {symbol = "w", value = f32[4,4,3,3]{W144}}
  %2 = Conv(%0, %1) {strides = [2, 2], dilations = [1, 1], pads = [1, 1, 1, 1]}
  return "y0" = %2
)"},
      {"BatchToSpace3D", "batch_to_space", R"(
  %0 = Input() {name = "x", shape = [2, 2, 6, 8, 8]}
  %1 = Constant() {symbol = "w", value = f32[2,2,3,3,3]{W108}}
  %2 = Conv(%0, %1) {strides = [1, 1, 1], dilations = [1, 1, 1], pads = [1, 1, 1, 1, 1, 1]}
  return "y0" = %2
)"},
      {"BatchToSpaceResidualChain", "batch_to_space", R"(
  %0 = Input() {name = "x", shape = [4, 4, 16, 16]}
  %1 = Constant() {symbol = "w0", value = f32[4,4,3,3]{W144}}
  %2 = Constant() {symbol = "b0", value = f32[4]{W4}}
  %3 = Conv(%0, %1, %2) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %4 = Relu(%3)
  %5 = MaxPool(%4) {kernel_shape = [3, 3], strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %6 = Constant() {symbol = "w1", value = f32[4,4,3,3]{W144}}
  %7 = Conv(%5, %6) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %8 = Relu(%7)
  %9 = Constant() {symbol = "w2", value = f32[4,4,3,3]{W144}}
  %10 = Constant() {symbol = "b2", value = f32[4]{W4}}
  %11 = Conv(%8, %9, %10) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %12 = Add(%11, %5)
  %13 = Relu(%12)
  return "y0" = %13
)"},
      {"BatchToSpaceInnerRead", "batch_to_space", R"(
  %0 = Input() {name = "x", shape = [4, 4, 16, 16]}
  %1 = Constant() {symbol = "w0", value = f32[4,4,3,3]{W144}}
  %2 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %3 = Relu(%2)
  %4 = Constant() {symbol = "w1", value = f32[4,4,3,3]{W144}}
  %5 = Conv(%3, %4) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %6 = Add(%5, %3)
  %7 = ReduceMean(%3) {axes = [2, 3], keepdims = 1}
  return "y0" = %6, "y1" = %7
)"},
      {"BatchToSpaceTwoHeads", "batch_to_space", R"(
  %0 = Input() {name = "x", shape = [4, 4, 16, 16]}
  %1 = Constant() {symbol = "w0", value = f32[4,4,3,3]{W144}}
  %2 = Conv(%0, %1) {strides = [2, 2], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %3 = Relu(%2)
  %4 = Constant() {symbol = "wa", value = f32[3,4,1,1]{W12}}
  %5 = Conv(%3, %4) {strides = [1, 1], dilations = [1, 1], pads = [0, 0, 0, 0]}
  %6 = Constant() {symbol = "wb", value = f32[4,4,3,3]{W144}}
  %7 = Conv(%3, %6) {strides = [2, 2], dilations = [1, 1], pads = [1, 1, 1, 1]}
  return "y0" = %5, "y1" = %7
)"},
      {"BatchToSpaceGapChain", "batch_to_space_gap", R"(
  %0 = Input() {name = "x", shape = [6, 4, 9, 9]}
  %1 = Constant() {symbol = "w0", value = f32[4,4,3,3]{W144}}
  %2 = Constant() {symbol = "b0", value = f32[4]{W4}}
  %3 = Conv(%0, %1, %2) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %4 = Relu(%3)
  %5 = Constant() {symbol = "w1", value = f32[4,4,5,5]{W400}}
  %6 = Conv(%4, %5) {strides = [1, 1], dilations = [1, 1], pads = [2, 2, 2, 2]}
  return "y0" = %6
)"},
      {"SpaceToBatchTiles", "space_to_batch", R"(
  %0 = Input() {name = "x", shape = [1, 4, 30, 31]}
  %1 = Constant() {symbol = "w", value = f32[4,4,3,3]{W144}}
  %2 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %3 = Relu(%2)
  return "y0" = %3
)"},
      {"SpaceToBatchColumns", "space_to_batch", R"(
  %0 = Input() {name = "x", shape = [1, 4, 6, 48]}
  %1 = Constant() {symbol = "w", value = f32[4,4,3,3]{W144}}
  %2 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  return "y0" = %2
)"},
      {"SpaceToBatchHaloStrided", "space_to_batch_halo", R"(
  %0 = Input() {name = "x", shape = [1, 4, 40, 20]}
  %1 = Constant() {symbol = "w", value = f32[4,4,3,3]{W144}}
  %2 = Conv(%0, %1) {strides = [2, 2], dilations = [1, 1], pads = [1, 1, 1, 1]}
  return "y0" = %2
)"},
      {"DilationByThree", "dilation_to_batch", R"(
  %0 = Input() {name = "x", shape = [1, 4, 14, 14]}
  %1 = Constant() {symbol = "w", value = f32[4,4,3,3]{W144}}
  %2 = Conv(%0, %1) {strides = [1, 1], dilations = [3, 3], pads = [3, 3, 3, 3]}
  return "y0" = %2
)"},
      {"DilationResidual", "dilation_to_batch", R"(
  %0 = Input() {name = "x", shape = [1, 4, 16, 16]}
  %1 = Constant() {symbol = "w0", value = f32[4,4,3,3]{W144}}
  %2 = Conv(%0, %1) {strides = [1, 1], dilations = [4, 4], pads = [4, 4, 4, 4]}
  %3 = Relu(%2)
  %4 = Constant() {symbol = "w1", value = f32[4,4,3,3]{W144}}
  %5 = Conv(%3, %4) {strides = [1, 1], dilations = [4, 4], pads = [4, 4, 4, 4]}
  %6 = Add(%5, %0)
  return "y0" = %6
)"},
      {"DilationInnerRead", "dilation_to_batch", R"(
  %0 = Input() {name = "x", shape = [1, 4, 16, 16]}
  %1 = Constant() {symbol = "w0", value = f32[4,4,3,3]{W144}}
  %2 = Conv(%0, %1) {strides = [1, 1], dilations = [4, 4], pads = [4, 4, 4, 4]}
  %3 = Relu(%2)
  %4 = Constant() {symbol = "w1", value = f32[4,4,3,3]{W144}}
  %5 = Conv(%3, %4) {strides = [1, 1], dilations = [4, 4], pads = [4, 4, 4, 4]}
  return "y0" = %3, "y1" = %5
)"},
      {"DilationStacked", "dilation_stack", R"(
  %0 = Input() {name = "x", shape = [1, 4, 27, 27]}
  %1 = Constant() {symbol = "w", value = f32[4,4,3,3]{W144}}
  %2 = Conv(%0, %1) {strides = [1, 1], dilations = [3, 3], pads = [3, 3, 3, 3]}
  return "y0" = %2
)"},
      {"StrideOfThreeAndTwo", "stride_to_depth", R"(
  %0 = Input() {name = "x", shape = [1, 3, 21, 20]}
  %1 = Constant() {symbol = "w", value = f32[4,3,7,5]{W420}}
  %2 = Conv(%0, %1) {strides = [3, 2], dilations = [1, 1], pads = [2, 2, 2, 2]}
  return "y0" = %2
)"},
      {"FiveByFiveAsThrees", "split_kernel", R"(
  %0 = Input() {name = "x", shape = [1, 4, 12, 12]}
  %1 = Constant() {symbol = "w", value = f32[4,4,5,5]{W400}}
  %2 = Constant() {symbol = "b", value = f32[4]{W4}}
  %3 = Conv(%0, %1, %2) {strides = [1, 1], dilations = [1, 1], pads = [2, 2, 2, 2]}
  %4 = Relu(%3)
  return "y0" = %4
)"},
      {"SevenBySevenAsThrees", "split_kernel", R"(
  %0 = Input() {name = "x", shape = [1, 3, 16, 16]}
  %1 = Constant() {symbol = "w", value = f32[4,3,7,7]{W588}}
  %2 = Conv(%0, %1) {strides = [2, 2], dilations = [1, 1], pads = [3, 3, 3, 3]}
  return "y0" = %2
)"},
      {"OneBySeven", "split_kernel", R"(
  %0 = Input() {name = "x", shape = [1, 3, 16, 16]}
  %1 = Constant() {symbol = "w", value = f32[4,3,1,7]{W84}}
  %2 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [0, 3, 0, 3]}
  return "y0" = %2
)"},
      {"OneByOneInsideThreeByThree", "merge_unequal_convs", R"(
  %0 = Input() {name = "x", shape = [1, 4, 12, 12]}
  %1 = Constant() {symbol = "w3", value = f32[6,4,3,3]{W216}}
  %2 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %3 = Constant() {symbol = "w1", value = f32[2,4,1,1]{W8}}
  %4 = Conv(%0, %3) {strides = [1, 1], dilations = [1, 1], pads = [0, 0, 0, 0]}
  return "y0" = %2, "y1" = %4
)"},
      {"OneByOneAsMatMul", "conv1x1_to_matmul", R"(
  %0 = Input() {name = "x", shape = [2, 4, 6, 6]}
  %1 = Constant() {symbol = "w", value = f32[8,4,1,1]{W32}}
  %2 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [0, 0, 0, 0]}
  return "y0" = %2
)"},
      {"MatMulAsOneByOne", "matmul_to_conv1x1", R"(
  %0 = Input() {name = "x", shape = [32, 8]}
  %1 = Constant() {symbol = "w", value = f32[8,6]{W48}}
  %2 = MatMul(%0, %1)
  return "y0" = %2
)"},
      {"SeparableBlur", "separable_kernel", R"(
  %0 = Input() {name = "x", shape = [1, 2, 9, 9]}
  %1 = Constant() {value = f32[2,1,3,3]{0.0625, 0.125, 0.0625, 0.125, 0.25, 0.125, 0.0625, 0.125, 0.0625, 1, 2, 1, 0, 0, 0, -1, -2, -1}}
  %2 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1], group = 2}
  return "y0" = %2
)"},
      {"SumOfSeparables", "separable_kernel", R"(
  %0 = Input() {name = "x", shape = [1, 2, 12, 12]}
  %1 = Constant() {value = f32[2,1,7,7]{L14x7}}
  %2 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [3, 3, 3, 3], group = 2}
  return "y0" = %2
)"},
      {"SpatialRankTwo", "separable_kernel", R"(
  %0 = Input() {name = "x", shape = [1, 4, 12, 12]}
  %1 = Constant() {value = f32[6,4,5,5]{L120x5}}
  %2 = Constant() {symbol = "b", value = f32[6]{W6}}
  %3 = Conv(%0, %1, %2) {strides = [2, 1], dilations = [1, 1], pads = [2, 2, 2, 2]}
  return "y0" = %3
)"},
  };
}

}  // namespace mendel
