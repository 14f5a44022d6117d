// Examples of rules_families.h: groups, sharing, linear order, phases, attention.
#include "tests/rules_families.h"

namespace mendel {

std::vector<FamilyExample> ProductExamples() {
  return {
      {"GroupsSplit", "split_groups", R"(
  %0 = Input() {name = "x", shape = [1, 12, 8, 8]}
  %1 = Constant() {symbol = "w", value = f32[12,4,3,3]{W432}}
  %2 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1], group = 3}
  return "y0" = %2
)"},
      {"ParallelConvsMerged", "merge_convs", R"(
  %0 = Input() {name = "x", shape = [1, 4, 8, 8]}
  %1 = Constant() {symbol = "v", value = f32[3,4,3,3]{W108}}
  %2 = Constant() {symbol = "w", value = f32[5,4,3,3]{W180}}
  %3 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %4 = Conv(%0, %2) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  return "y0" = %3, "y1" = %4
)"},
      {"QkvMerged", "merge_matmuls", R"(
  %0 = Input() {name = "x", shape = [2, 6, 8]}
  %1 = Constant() {symbol = "wq", value = f32[8,8]{W64}}
  %2 = Constant() {symbol = "wk", value = f32[8,8]{W64}}
  %3 = Constant() {symbol = "wv", value = f32[8,8]{W64}}
  %4 = Constant() {symbol = "bq", value = f32[8]{W8}}
  %5 = Constant() {symbol = "bk", value = f32[8]{W8}}
  %6 = Constant() {symbol = "bv", value = f32[8]{W8}}
  %7 = MatMul(%0, %1)
  %8 = MatMul(%0, %2)
  %9 = MatMul(%0, %3)
  %10 = Add(%7, %4)
  %11 = Add(%8, %5)
  %12 = Add(%9, %6)
  return "y0" = %10, "y1" = %11, "y2" = %12
)"},
      {"RecurrentInputsBatched", "batch_matmuls", R"(
  %0 = Input() {name = "a", shape = [1, 8]}
  %1 = Input() {name = "b", shape = [1, 8]}
  %2 = Constant() {symbol = "w", value = f32[8,6]{W48}}
  %3 = MatMul(%0, %2)
  %4 = MatMul(%1, %2)
  %5 = Mul(%3, %4)
  return "y0" = %5
)"},
      {"EqualMatMulsBatched", "stack_matmuls", R"(
  %0 = Input() {name = "a", shape = [4, 8]}
  %1 = Input() {name = "b", shape = [4, 8]}
  %2 = Constant() {symbol = "v", value = f32[8,6]{W48}}
  %3 = Constant() {symbol = "w", value = f32[8,6]{W48}}
  %4 = MatMul(%0, %2)
  %5 = MatMul(%1, %3)
  %6 = Mul(%4, %5)
  return "y0" = %6
)"},
      {"BranchesAsOneKernel", "add_kernels", R"(
  %0 = Input() {name = "x", shape = [1, 4, 8, 8]}
  %1 = Constant() {symbol = "v", value = f32[4,4,3,3]{W144}}
  %2 = Constant() {symbol = "p", value = f32[4]{W4}}
  %3 = Conv(%0, %1, %2) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %4 = Constant() {symbol = "w", value = f32[4,4,1,1]{W16}}
  %5 = Conv(%0, %4) {strides = [1, 1], dilations = [1, 1], pads = [0, 0, 0, 0]}
  %6 = Add(%3, %5)
  %7 = Constant() {symbol = "scale", value = f32[4]{P4}}
  %8 = Constant() {symbol = "shift", value = f32[4]{W4}}
  %9 = Constant() {symbol = "mean", value = f32[4]{W4}}
  %10 = Constant() {symbol = "variance", value = f32[4]{P4}}
  %11 = BatchNormalization(%0, %7, %8, %9, %10)
  %12 = Add(%6, %11)
  %13 = Relu(%12)
  return "y0" = %13
)"},
      {"ResidualInKernel", "add_kernels", R"(
  %0 = Input() {name = "x", shape = [1, 4, 8, 8]}
  %1 = Constant() {symbol = "w", value = f32[4,2,3,3]{W72}}
  %2 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1], group = 2}
  %3 = Add(%2, %0)
  return "y0" = %3
)"},
      {"ResidualInMatMul", "add_kernels", R"(
  %0 = Input() {name = "x", shape = [6, 8]}
  %1 = Constant() {symbol = "v", value = f32[8,8]{W64}}
  %2 = Constant() {symbol = "w", value = f32[8,8]{W64}}
  %3 = MatMul(%0, %1)
  %4 = MatMul(%0, %2)
  %5 = Add(%3, %4)
  %6 = Add(%0, %5)
  return "y0" = %6
)"},
      {"PoolBeforeOneByOne", "pool_before_conv1x1", R"(
  %0 = Input() {name = "x", shape = [1, 8, 8, 8]}
  %1 = Constant() {symbol = "w", value = f32[4,8,1,1]{W32}}
  %2 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [0, 0, 0, 0]}
  %3 = AveragePool(%2) {kernel_shape = [2, 2], strides = [2, 2], dilations = [1, 1], pads = [0, 0, 0, 0]}
  return "y0" = %3
)"},
      {"PoolOfAPool", "merge_pools", R"(
  %0 = Input() {name = "x", shape = [1, 4, 8, 8]}
  %1 = MaxPool(%0) {kernel_shape = [2, 2], strides = [2, 2], dilations = [1, 1], pads = [0, 0, 0, 0]}
  %2 = MaxPool(%1) {kernel_shape = [2, 2], strides = [2, 2], dilations = [1, 1], pads = [0, 0, 0, 0]}
  return "y0" = %2
)"},
      {"PaddedBottleneck", "merge_padded_convs", R"(
  %0 = Input() {name = "x", shape = [1, 1, 12, 12]}
  %1 = Constant() {symbol = "w", value = f32[16,1,3,3]{W144}}
  %2 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %3 = Constant() {symbol = "v", value = f32[1,16,3,3]{W144}}
  %4 = Conv(%2, %3) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  return "y0" = %4
)"},
      {"BlockDiagonalKernels", "skip_zero_channels", R"(
  %0 = Input() {name = "x", shape = [1, 4, 6, 6]}
  %1 = Constant() {value = f32[4,4,1,1]{1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 5, 6, 0, 0, 7, 9}}
  %2 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [0, 0, 0, 0]}
  return "y0" = %2
)"},
      {"MeanBeforeOneByOne", "pool_before_conv1x1", R"(
  %0 = Input() {name = "x", shape = [1, 8, 8, 8]}
  %1 = Constant() {symbol = "w", value = f32[4,8,1,1]{W32}}
  %2 = Constant() {symbol = "b", value = f32[4]{W4}}
  %3 = Conv(%0, %1, %2) {strides = [1, 1], dilations = [1, 1], pads = [0, 0, 0, 0]}
  %4 = ReduceMean(%3) {axes = [2, 3], keepdims = 1}
  return "y0" = %4
)"},
      {"UpsampleAfterOneByOne", "upsample_after_conv1x1", R"(
  %0 = Input() {name = "x", shape = [1, 4, 6, 6]}
  %1 = Resize(%0) {output_sizes = [1, 4, 12, 12], scales = [1.0, 1.0, 2.0, 2.0], mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"}
  %2 = Constant() {symbol = "w", value = f32[2,4,1,1]{W8}}
  %3 = Conv(%1, %2) {strides = [1, 1], dilations = [1, 1], pads = [0, 0, 0, 0]}
  return "y0" = %3
)"},
      {"LinearUpsampleAfterOneByOne", "upsample_after_conv1x1", R"(
  %0 = Input() {name = "x", shape = [1, 4, 6, 6]}
  %1 = Resize(%0) {output_sizes = [1, 4, 12, 12], scales = [1.0, 1.0, 2.0, 2.0], mode = "linear", coordinate_transformation_mode = "half_pixel"}
  %2 = Constant() {symbol = "w", value = f32[2,4,1,1]{W8}}
  %3 = Constant() {symbol = "b", value = f32[2]{W2}}
  %4 = Conv(%1, %2, %3) {strides = [1, 1], dilations = [1, 1], pads = [0, 0, 0, 0]}
  return "y0" = %4
)"},
      {"UpsamplePhases", "upsample_phases", R"(
  %0 = Input() {name = "x", shape = [1, 4, 6, 6]}
  %1 = Resize(%0) {output_sizes = [1, 4, 12, 12], scales = [1.0, 1.0, 2.0, 2.0], mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"}
  %2 = Constant() {symbol = "w", value = f32[4,4,3,3]{W144}}
  %3 = Constant() {symbol = "b", value = f32[4]{W4}}
  %4 = Conv(%1, %2, %3) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  return "y0" = %4
)"},
      {"WholeWindowConvAsMatMul", "whole_window_conv_to_matmul", R"(
  %0 = Input() {name = "x", shape = [2, 4, 3, 3]}
  %1 = Constant() {symbol = "w", value = f32[6,4,3,3]{W216}}
  %2 = Constant() {symbol = "b", value = f32[6]{W6}}
  %3 = Conv(%0, %1, %2) {strides = [1, 1], dilations = [1, 1], pads = [0, 0, 0, 0]}
  return "y0" = %3
)"},
      {"LastPosition", "compute_needed", R"(
  %0 = Input() {name = "x", shape = [1, 16, 12]}
  %1 = Constant() {symbol = "w", value = f32[12,16]{W192}}
  %2 = MatMul(%0, %1)
  %3 = Relu(%2)
  %4 = Constant() {symbol = "v", value = f32[16,12]{W192}}
  %5 = MatMul(%3, %4)
  %6 = Constant() {value = i64[]{15}}
  %7 = Gather(%5, %6) {axis = 1}
  return "y0" = %7
)"},
      {"ImagePooling", "compute_once", R"(
  %0 = Input() {name = "x", shape = [1, 2, 8, 8]}
  %1 = Input() {name = "v", shape = [1, 14, 1, 1]}
  %2 = Expand(%1) {shape = [1, 14, 8, 8]}
  %3 = Concat(%0, %2) {axis = 1}
  %4 = Constant() {symbol = "w", value = f32[8,16,1,1]{W128}}
  %5 = Conv(%3, %4) {strides = [1, 1], dilations = [1, 1], pads = [0, 0, 0, 0]}
  return "y0" = %5
)"},
      {"ConstantPicture", "compute_once", R"(
  %0 = Input() {name = "v", shape = [1, 8, 1, 1]}
  %1 = Expand(%0) {shape = [1, 8, 12, 12]}
  %2 = Constant() {symbol = "w", value = f32[8,8,3,3]{W576}}
  %3 = Conv(%1, %2) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  return "y0" = %3
)"},
      {"ZerosBetweenLayers", "skip_zeros", R"(
  %0 = Input() {name = "x", shape = [1, 6, 12]}
  %1 = Constant() {symbol = "w", value = f32[12,8]{W96}}
  %2 = MatMul(%0, %1)
  %3 = Pad(%2) {pads = [0, 0, 4, 0, 0, 4]}
  %4 = Relu(%3)
  %5 = Constant() {symbol = "v", value = f32[16,12]{W192}}
  %6 = MatMul(%4, %5)
  return "y0" = %6
)"},
      {"SumOfMatMuls", "sum_to_concat", R"(
  %0 = Input() {name = "x", shape = [2, 6]}
  %1 = Input() {name = "h", shape = [2, 8]}
  %2 = Constant() {symbol = "w", value = f32[6,8]{W48}}
  %3 = Constant() {symbol = "u", value = f32[8,8]{W64}}
  %4 = MatMul(%0, %2)
  %5 = MatMul(%1, %3)
  %6 = Add(%4, %5)
  %7 = Tanh(%6)
  return "y0" = %7
)"},
      {"ResidualProjection", "sum_to_concat", R"(
  %0 = Input() {name = "a", shape = [1, 4, 8, 8]}
  %1 = Input() {name = "b", shape = [1, 6, 8, 8]}
  %2 = Constant() {symbol = "v", value = f32[4,4,1,1]{W16}}
  %3 = Constant() {symbol = "w", value = f32[4,6,1,1]{W24}}
  %4 = Conv(%0, %2) {strides = [1, 1], dilations = [1, 1], pads = [0, 0, 0, 0]}
  %5 = Conv(%1, %3) {strides = [1, 1], dilations = [1, 1], pads = [0, 0, 0, 0]}
  %6 = Add(%4, %5)
  return "y0" = %6
)"},
      {"MatMulChainOfFive", "matmul_chain", R"(
  %0 = Input() {name = "x", shape = [6, 8]}
  %1 = Constant() {symbol = "w0", value = f32[8,10]{W80}}
  %2 = Constant() {symbol = "b0", value = f32[10]{W10}}
  %3 = Constant() {symbol = "w1", value = f32[10,12]{W120}}
  %4 = Constant() {symbol = "w2", value = f32[12,10]{W120}}
  %5 = Constant() {symbol = "w3", value = f32[10,2]{W20}}
  %6 = MatMul(%0, %1)
  %7 = Add(%6, %2)
  %8 = MatMul(%7, %3)
  %9 = MatMul(%8, %4)
  %10 = MatMul(%9, %5)
  return "y0" = %10
)"},
      {"ValueAndOutputProjection", "matmul_chain", R"(
  %0 = Input() {name = "p", shape = [2, 6, 6]}
  %1 = Input() {name = "x", shape = [2, 6, 8]}
  %2 = Constant() {symbol = "wv", value = f32[8,8]{W64}}
  %3 = Constant() {symbol = "wo", value = f32[8,8]{W64}}
  %4 = MatMul(%1, %2)
  %5 = MatMul(%0, %4)
  %6 = MatMul(%5, %3)
  return "y0" = %6
)"},
      {"MatMulsReassociated", "matmul_chain", R"(
  %0 = Input() {name = "x", shape = [6, 2]}
  %1 = Constant() {symbol = "w", value = f32[2,6]{W12}}
  %2 = Input() {name = "y", shape = [6, 2]}
  %3 = MatMul(%0, %1)
  %4 = MatMul(%3, %2)
  return "y0" = %4
)"},
      {"BiasedQueriesKeysAndValues", "matmul_chain", R"(
  %0 = Input() {name = "x", shape = [6, 8]}
  %1 = Constant() {symbol = "wq", value = f32[8,8]{W64}}
  %2 = Constant() {symbol = "bq", value = f32[8]{W8}}
  %3 = Input() {name = "k", shape = [8, 6]}
  %4 = Input() {name = "v", shape = [6, 2]}
  %5 = MatMul(%0, %1)
  %6 = Add(%5, %2)
  %7 = MatMul(%6, %3)
  %8 = MatMul(%7, %4)
  return "y0" = %8
)"},
      {"AttentionPooling", "attention_order", R"(
  %0 = Input() {name = "x", shape = [1, 9, 8]}
  %1 = Constant() {symbol = "wv", value = f32[8,8]{W64}}
  %2 = Constant() {symbol = "bv", value = f32[8]{W8}}
  %3 = MatMul(%0, %1)
  %4 = Add(%3, %2)
  %5 = Reshape(%4) {shape = [1, 9, 2, 4]}
  %6 = Transpose(%5) {perm = [0, 2, 1, 3]}
  %7 = Input() {name = "p", shape = [1, 2, 1, 9]}
  %8 = MatMul(%7, %6)
  %9 = Transpose(%8) {perm = [0, 2, 1, 3]}
  %10 = Reshape(%9) {shape = [1, 1, 8]}
  %11 = Constant() {symbol = "wo", value = f32[8,8]{W64}}
  %12 = MatMul(%10, %11)
  return "y0" = %12
)"},
      {"HeadsToNarrowOutput", "attention_order", R"(
  %0 = Input() {name = "x", shape = [2, 5, 8]}
  %1 = Constant() {symbol = "wv", value = f32[8,8]{W64}}
  %2 = MatMul(%0, %1)
  %3 = Reshape(%2) {shape = [2, 5, 2, 4]}
  %4 = Transpose(%3) {perm = [0, 2, 1, 3]}
  %5 = Input() {name = "p", shape = [2, 2, 5, 5]}
  %6 = MatMul(%5, %4)
  %7 = Transpose(%6) {perm = [0, 2, 1, 3]}
  %8 = Reshape(%7) {shape = [2, 5, 8]}
  %9 = Constant() {symbol = "wo", value = f32[8,1]{W8}}
  %10 = MatMul(%8, %9)
  return "y0" = %10
)"},
      {"RunningSumsByTriangle", "matmul_to_cum_sum", R"(
  %0 = Input() {name = "x", shape = [2, 4, 8]}
  %1 = Constant() {value = f32[4,4]{0.5, 0, 0, 0, 0.5, 0.5, 0, 0, 0.5, 0.5, 0.5, 0, 0.5, 0.5, 0.5, 0.5}}
  %2 = MatMul(%1, %0)
  return "y0" = %2
)"},
      {"ReversalByPermutation", "matmul_to_sums", R"(
  %0 = Input() {name = "x", shape = [2, 4, 8]}
  %1 = Constant() {value = f32[4,4]{0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0}}
  %2 = MatMul(%1, %0)
  return "y0" = %2
)"},
      {"GroupSumsByBlocks", "matmul_to_sums", R"(
  %0 = Input() {name = "x", shape = [2, 3, 4]}
  %1 = Constant() {value = f32[4,4]{0.5, 0.5, 0, 0, 0.5, 0.5, 0, 0, 0, 0, 0.5, 0.5, 0, 0, 0.5, 0.5}}
  %2 = MatMul(%0, %1)
  return "y0" = %2
)"},
      {"MovingSumsByBand", "matmul_to_sums", R"(
  %0 = Input() {name = "x", shape = [4, 8]}
  %1 = Constant() {value = f32[4,4]{1, 1, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 1, 1}}
  %2 = MatMul(%1, %0)
  return "y0" = %2
)"},
      {"CausalAttention", "masked_attention_blocks", R"(
  %0 = Input() {name = "q", shape = [2, 8, 4]}
  %1 = Input() {name = "k", shape = [2, 4, 4]}
  %2 = Input() {name = "v", shape = [2, 4, 4]}
  %3 = MatMul(%0, %1)
  %4 = Constant() {value = f32[8,4]{0, -inf, -inf, -inf, 0, -inf, -inf, -inf, 0, 0, -inf, -inf, 0, 0, -inf, -inf, 0, 0, 0, -inf, 0, 0, 0, -inf, 0, 0, 0, 0, 0, 0, 0, 0}}
  %5 = Add(%3, %4)
  %6 = Softmax(%5) {axis = 2}
  %7 = MatMul(%6, %2)
  return "y0" = %7
)"},
      {"BlockDiagonalWeights", "skip_zero_blocks", R"(
  %0 = Input() {name = "x", shape = [16, 4]}
  %1 = Constant() {value = f32[4,4]{1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 5, 6, 0, 0, 7, 9}}
  %2 = MatMul(%0, %1)
  return "y0" = %2
)"},
      {"AttentionScale", "scale_into_matmul", R"(
  %0 = Input() {name = "x", shape = [1, 5, 8]}
  %1 = Input() {name = "k", shape = [1, 2, 4, 5]}
  %2 = Constant() {symbol = "wq", value = f32[8,8]{W64}}
  %3 = Constant() {symbol = "bq", value = f32[8]{W8}}
  %4 = MatMul(%0, %2)
  %5 = Add(%4, %3)
  %6 = Reshape(%5) {shape = [1, 5, 2, 4]}
  %7 = Transpose(%6) {perm = [0, 2, 1, 3]}
  %8 = MatMul(%7, %1)
  %9 = Constant() {value = f32[]{0.5}}
  %10 = Mul(%8, %9)
  return "y0" = %10
)"},
      {"ScaleOfStoredQueries", "scale_into_matmul", R"(
  %0 = Input() {name = "k", shape = [1, 2, 4, 5]}
  %1 = Constant() {symbol = "q", value = f32[1,5,8]{W40}}
  %2 = Constant() {symbol = "wq", value = f32[8,8]{W64}}
  %3 = MatMul(%1, %2)
  %4 = Reshape(%3) {shape = [1, 5, 2, 4]}
  %5 = Transpose(%4) {perm = [0, 2, 1, 3]}
  %6 = MatMul(%5, %0)
  %7 = Constant() {value = f32[]{0.5}}
  %8 = Mul(%6, %7)
  return "y0" = %8
)"},
      {"LowRankUpdate", "sums_of_products", R"(
  %0 = Input() {name = "x", shape = [32, 24]}
  %1 = Constant() {symbol = "w", value = f32[24,20]{W480}}
  %2 = Constant() {symbol = "a", value = f32[24,16]{W384}}
  %3 = Constant() {symbol = "b", value = f32[16,20]{W320}}
  %4 = MatMul(%0, %1)
  %5 = MatMul(%0, %2)
  %6 = MatMul(%5, %3)
  %7 = Add(%4, %6)
  return "y0" = %7
)"},
      {"PairedEncoders", "stack_twins", R"(
  %0 = Input() {name = "a", shape = [1, 4, 8, 8]}
  %1 = Input() {name = "b", shape = [1, 4, 8, 8]}
  %2 = Constant() {symbol = "w", value = f32[4,4,3,3]{W144}}
  %3 = Conv(%0, %2) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %4 = Conv(%1, %2) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %5 = Relu(%3)
  %6 = Relu(%4)
  %7 = Sub(%5, %6)
  return "y0" = %7
)"},
      {"ChannelsLastBias", "transposes_across", R"(
  %0 = Input() {name = "x", shape = [1, 4, 8, 8]}
  %1 = Constant() {symbol = "b", value = f32[4]{W4}}
  %2 = Transpose(%0) {perm = [0, 2, 3, 1]}
  %3 = Add(%2, %1)
  %4 = Relu(%3)
  %5 = Transpose(%4) {perm = [0, 3, 1, 2]}
  return "y0" = %5
)"},
      {"BandedProducts", "index_derivations", R"(
  %0 = Input() {name = "a", shape = [2, 64, 16]}
  %1 = Input() {name = "c", shape = [2, 68, 16]}
  %2 = Slice(%1) {starts = [0, 0, 0], ends = [2, 64, 16], steps = [1, 1, 1]}
  %3 = Slice(%1) {starts = [0, 1, 0], ends = [2, 65, 16], steps = [1, 1, 1]}
  %4 = Slice(%1) {starts = [0, 2, 0], ends = [2, 66, 16], steps = [1, 1, 1]}
  %5 = Slice(%1) {starts = [0, 3, 0], ends = [2, 67, 16], steps = [1, 1, 1]}
  %6 = Slice(%1) {starts = [0, 4, 0], ends = [2, 68, 16], steps = [1, 1, 1]}
  %7 = Mul(%0, %2)
  %8 = Mul(%0, %3)
  %9 = Mul(%0, %4)
  %10 = Mul(%0, %5)
  %11 = Mul(%0, %6)
  %12 = ReduceSum(%7) {axes = [2], keepdims = 1}
  %13 = ReduceSum(%8) {axes = [2], keepdims = 1}
  %14 = ReduceSum(%9) {axes = [2], keepdims = 1}
  %15 = ReduceSum(%10) {axes = [2], keepdims = 1}
  %16 = ReduceSum(%11) {axes = [2], keepdims = 1}
  %17 = Concat(%12, %13, %14, %15, %16) {axis = 2}
  return "y0" = %17
)"},
  };
}

}  // namespace mendel
