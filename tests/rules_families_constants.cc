// Examples of rules_families.h: weights of low rank, batch norms and other constants, what cancels.
#include "tests/rules_families.h"

namespace mendel {

std::vector<FamilyExample> ConstantExamples() {
  return {
      {"LowRankMatMul", "low_rank_weights", R"(
  %0 = Input() {name = "x", shape = [6, 12]}
  %1 = Constant() {value = f32[12,12]{L12x12}}
  %2 = MatMul(%0, %1)
  return "y0" = %2
)"},
      {"RepeatedChannels", "low_rank_weights", R"(
  %0 = Input() {name = "x", shape = [1, 4, 8, 8]}
  %1 = Constant() {value = f32[8,4,3,3]{L8x36}}
  %2 = Constant() {symbol = "b", value = f32[8]{W8}}
  %3 = Conv(%0, %1, %2) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  return "y0" = %3
)"},
      {"LowRankGroups", "low_rank_weights", R"(
  %0 = Input() {name = "x", shape = [1, 8, 8, 8]}
  %1 = Constant() {value = f32[16,4,3,3]{L16x36}}
  %2 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1], group = 2}
  return "y0" = %2
)"},
      {"BatchNormFolded", "fold_batch_norm", R"(
  %0 = Input() {name = "x", shape = [1, 4, 8, 8]}
  %1 = Constant() {symbol = "w", value = f32[4,4,3,3]{W144}}
  %2 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %3 = Constant() {symbol = "scale", value = f32[4]{P4}}
  %4 = Constant() {symbol = "shift", value = f32[4]{W4}}
  %5 = Constant() {symbol = "mean", value = f32[4]{W4}}
  %6 = Constant() {symbol = "variance", value = f32[4]{P4}}
  %7 = BatchNormalization(%2, %3, %4, %5, %6)
  return "y0" = %7
)"},
      {"BatchNormOfTransposedConv", "fold_batch_norm", R"(
  %0 = Input() {name = "x", shape = [1, 4, 6, 6]}
  %1 = Constant() {symbol = "w", value = f32[4,2,3,3]{W72}}
  %2 = ConvTranspose(%0, %1) {strides = [2, 2], dilations = [1, 1], pads = [1, 1, 1, 1], output_padding = [0, 0], group = 2}
  %3 = Constant() {symbol = "scale", value = f32[4]{P4}}
  %4 = Constant() {symbol = "shift", value = f32[4]{W4}}
  %5 = Constant() {symbol = "mean", value = f32[4]{W4}}
  %6 = Constant() {symbol = "variance", value = f32[4]{P4}}
  %7 = BatchNormalization(%2, %3, %4, %5, %6)
  return "y0" = %7
)"},
      {"ScaleIntoConv", "constants_into_conv", R"(
  %0 = Input() {name = "x", shape = [1, 4, 8, 8]}
  %1 = Constant() {symbol = "w", value = f32[4,4,3,3]{W144}}
  %2 = Constant() {symbol = "b", value = f32[4]{W4}}
  %3 = Conv(%0, %1, %2) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %4 = Constant() {symbol = "s", value = f32[1,4,1,1]{W4}}
  %5 = Mul(%3, %4)
  return "y0" = %5
)"},
      {"ShiftAcrossResidual", "constants_into_conv", R"(
  %0 = Input() {name = "x", shape = [1, 4, 8, 8]}
  %1 = Constant() {symbol = "w", value = f32[4,4,3,3]{W144}}
  %2 = Constant() {symbol = "b", value = f32[4]{W4}}
  %3 = Conv(%0, %1, %2) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %4 = Add(%3, %0)
  %5 = Constant() {symbol = "t", value = f32[1,4,1,1]{W4}}
  %6 = Add(%4, %5)
  return "y0" = %6
)"},
      {"BatchNormThroughConv", "shift_through_conv", R"(
  %0 = Input() {name = "x", shape = [1, 4, 10, 10]}
  %1 = Constant() {symbol = "scale", value = f32[4]{P4}}
  %2 = Constant() {symbol = "shift", value = f32[4]{W4}}
  %3 = Constant() {symbol = "mean", value = f32[4]{W4}}
  %4 = Constant() {symbol = "variance", value = f32[4]{P4}}
  %5 = BatchNormalization(%0, %1, %2, %3, %4)
  %6 = Constant() {symbol = "w", value = f32[4,4,3,3]{W144}}
  %7 = Conv(%5, %6) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  return "y0" = %7
)"},
      {"BatchNormThroughOpenConv", "shift_through_conv", R"(
  %0 = Input() {name = "x", shape = [1, 4, 10, 10]}
  %1 = Constant() {symbol = "scale", value = f32[4]{P4}}
  %2 = Constant() {symbol = "shift", value = f32[4]{W4}}
  %3 = Constant() {symbol = "mean", value = f32[4]{W4}}
  %4 = Constant() {symbol = "variance", value = f32[4]{P4}}
  %5 = BatchNormalization(%0, %1, %2, %3, %4)
  %6 = Constant() {symbol = "w", value = f32[4,4,3,3]{W144}}
  %7 = Conv(%5, %6) {strides = [1, 1], dilations = [1, 1], pads = [0, 0, 0, 0]}
  return "y0" = %7
)"},
      {"OddChannels", "pad_sizes", R"(
  %0 = Input() {name = "x", shape = [1, 7, 13, 13]}
  %1 = Constant() {symbol = "w", value = f32[15,7,3,3]{W945}}
  %2 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  return "y0" = %2
)"},
      {"ConcatEliminated", "cancel_parts", R"(
  %0 = Input() {name = "a", shape = [1, 3, 6]}
  %1 = Input() {name = "b", shape = [1, 5, 6]}
  %2 = Concat(%0, %1) {axis = 1}
  %3 = Slice(%2) {starts = [0, 4, 0], ends = [1, 8, 6], steps = [1, 1, 1]}
  %4 = Relu(%3)
  return "y0" = %4
)"},
      {"ConcatsJoined", "cancel_parts", R"(
  %0 = Input() {name = "a", shape = [1, 3, 6]}
  %1 = Input() {name = "b", shape = [1, 5, 6]}
  %2 = Input() {name = "c", shape = [1, 4, 6]}
  %3 = Concat(%0, %1) {axis = 1}
  %4 = Concat(%3, %2) {axis = 1}
  %5 = Slice(%4) {starts = [0, 4, 0], ends = [1, 10, 6], steps = [1, 1, 1]}
  %6 = Relu(%5)
  return "y0" = %6
)"},
      {"ViewsCancelled", "cancel_views", R"(
  %0 = Input() {name = "x", shape = [2, 3, 4]}
  %1 = Transpose(%0) {perm = [2, 0, 1]}
  %2 = Transpose(%1) {perm = [1, 2, 0]}
  %3 = Relu(%2)
  return "y0" = %3
)"},
  };
}

}  // namespace mendel
