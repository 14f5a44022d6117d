#include "graph/movement_cases.h"

namespace mendel {

std::vector<MovementOpCase> MovementOpCases() {
  return {
      {"transpose",
       "f32[2,3,2]",
       R"(%1 = Transpose(%0) {perm = [2, 0, 1]}
    return "y" = %1)",
       "[2, 2, 3]",
       {0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11}},
      {"split_0",
       "f32[2,5]",
       R"(%1 = Split(%0) {axis = 1, sizes = [2, 3]}
    return "y" = %1)",
       "[2, 2]",
       {0, 1, 5, 6}},
      {"split_1",
       "f32[2,5]",
       R"(%1 = Split(%0) {axis = 1, sizes = [2, 3]}
    return "y" = %1.1)",
       "[2, 3]",
       {2, 3, 4, 7, 8, 9}},
      {"slice_step",
       "f32[4,5]",
       R"(%1 = Slice(%0) {starts = [1, 0], ends = [4, 5], steps = [2, 3]}
    return "y" = %1)",
       "[2, 2]",
       {5, 8, 15, 18}},
      {"slice_reverse",
       "f32[4,5]",
       R"(%1 = Slice(%0) {starts = [3, 4], ends = [-1, 0], steps = [-1, -2]}
    return "y" = %1)",
       "[4, 2]",
       {19, 17, 14, 12, 9, 7, 4, 2}},
      {"pad_constant",
       "f32[2,3]",
       R"(%1 = Pad(%0) {pads = [0, 2, 1, 3], mode = "constant", value = 7.0}
    return "y" = %1)",
       "[3, 8]",
       {7, 7, 0, 1, 2, 7, 7, 7, 7, 7, 3, 4, 5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}},
      {"pad_edge",
       "f32[2,3]",
       R"(%1 = Pad(%0) {pads = [0, 2, 1, 3], mode = "edge", value = 0.0}
    return "y" = %1)",
       "[3, 8]",
       {0, 0, 0, 1, 2, 2, 2, 2, 3, 3, 3, 4, 5, 5, 5, 5, 3, 3, 3, 4, 5, 5, 5, 5}},
      {"pad_reflect",
       "f32[2,3]",
       R"(%1 = Pad(%0) {pads = [0, 2, 1, 2], mode = "reflect", value = 0.0}
    return "y" = %1)",
       "[3, 7]",
       {2, 1, 0, 1, 2, 1, 0, 5, 4, 3, 4, 5, 4, 3, 2, 1, 0, 1, 2, 1, 0}},
      {"pad_wrap",
       "f32[2,3]",
       R"(%1 = Pad(%0) {pads = [0, 2, 1, 3], mode = "wrap", value = 0.0}
    return "y" = %1)",
       "[3, 8]",
       {1, 2, 0, 1, 2, 0, 1, 2, 4, 5, 3, 4, 5, 3, 4, 5, 1, 2, 0, 1, 2, 0, 1, 2}},
      {"pad_reflect_twice",
       "f32[1,4]",
       R"(%1 = Pad(%0) {pads = [0, 5, 0, 7], mode = "reflect"}
    return "y" = %1)",
       "[1, 16]",
       {1, 2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0, 1, 2, 3, 2}},
      {"expand",
       "f32[3,1]",
       R"(%1 = Expand(%0) {shape = [2, 3, 2]}
    return "y" = %1)",
       "[2, 3, 2]",
       {0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2}},
      {"tile",
       "f32[2,2]",
       R"(%1 = Tile(%0) {repeats = [2, 3]}
    return "y" = %1)",
       "[4, 6]",
       {0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3}},
      {"gather",
       "f32[2,3,2]",
       R"(%1 = Constant() {value = i64[2,2]{2, -1, 0, -3}}
    %2 = Gather(%0, %1) {axis = 1}
    return "y" = %2)",
       "[2, 2, 2, 2]",
       {4, 5, 4, 5, 0, 1, 0, 1, 10, 11, 10, 11, 6, 7, 6, 7}},
      {"gather_scalar",
       "f32[3,2]",
       R"(%1 = Constant() {value = i64[]{-1}}
    %2 = Gather(%0, %1) {axis = 0}
    return "y" = %2)",
       "[2]",
       {4, 5}},
      {"gather_elements",
       "f32[3,3]",
       R"(%1 = Constant() {value = i64[2,2]{1, -1, 0, -3}}
    %2 = GatherElements(%0, %1) {axis = 0}
    return "y" = %2)",
       "[2, 2]",
       {3, 7, 0, 1}},
      {"gather_elements_1",
       "f32[3,3]",
       R"(%1 = Constant() {value = i64[3,2]{2, 0, -1, 1, 1, 0}}
    %2 = GatherElements(%0, %1) {axis = 1}
    return "y" = %2)",
       "[3, 2]",
       {2, 0, 5, 4, 7, 6}},
      {"gather_nd",
       "f32[2,2,2]",
       R"(%1 = Constant() {value = i64[2,2]{0, 1, 1, -2}}
    %2 = GatherND(%0, %1) {}
    return "y" = %2)",
       "[2, 2]",
       {2, 3, 4, 5}},
      {"gather_nd_batch",
       "f32[2,2,2]",
       R"(%1 = Constant() {value = i64[2,1]{1, 0}}
    %2 = GatherND(%0, %1) {batch_dims = 1}
    return "y" = %2)",
       "[2, 2]",
       {2, 3, 4, 5}},
      {"scatter_nd_none",
       "f32[4,2]",
       R"(%1 = Constant() {value = i64[3,1]{3, -3, 3}}
    %2 = Constant() {value = f32[3,2]{10, 20, 30, 40, -5, 6}}
    %3 = ScatterND(%0, %1, %2) {reduction = "none"}
    return "y" = %3)",
       "[4, 2]",
       {0, 1, 30, 40, 4, 5, -5, 6}},
      {"scatter_nd_add",
       "f32[4,2]",
       R"(%1 = Constant() {value = i64[3,1]{3, -3, 3}}
    %2 = Constant() {value = f32[3,2]{10, 20, 30, 40, -5, 6}}
    %3 = ScatterND(%0, %1, %2) {reduction = "add"}
    return "y" = %3)",
       "[4, 2]",
       {0, 1, 32, 43, 4, 5, 11, 33}},
      {"scatter_nd_mul",
       "f32[4,2]",
       R"(%1 = Constant() {value = i64[3,1]{3, -3, 3}}
    %2 = Constant() {value = f32[3,2]{10, 20, 30, 40, -5, 6}}
    %3 = ScatterND(%0, %1, %2) {reduction = "mul"}
    return "y" = %3)",
       "[4, 2]",
       {0, 1, 60, 120, 4, 5, -300, 840}},
      {"scatter_nd_max",
       "f32[4,2]",
       R"(%1 = Constant() {value = i64[3,1]{3, -3, 3}}
    %2 = Constant() {value = f32[3,2]{10, 20, 30, 40, -5, 6}}
    %3 = ScatterND(%0, %1, %2) {reduction = "max"}
    return "y" = %3)",
       "[4, 2]",
       {0, 1, 30, 40, 4, 5, 10, 20}},
      {"scatter_nd_min",
       "f32[4,2]",
       R"(%1 = Constant() {value = i64[3,1]{3, -3, 3}}
    %2 = Constant() {value = f32[3,2]{10, 20, 30, 40, -5, 6}}
    %3 = ScatterND(%0, %1, %2) {reduction = "min"}
    return "y" = %3)",
       "[4, 2]",
       {0, 1, 2, 3, 4, 5, -5, 6}},
      {"scatter_elements_none",
       "f32[3,3]",
       R"(%1 = Constant() {value = i64[2,3]{1, -1, 2, 1, 0, 2}}
    %2 = Constant() {value = f32[2,3]{10, 20, 30, 40, 50, 60}}
    %3 = ScatterElements(%0, %1, %2) {axis = 0, reduction = "none"}
    return "y" = %3)",
       "[3, 3]",
       {0, 50, 2, 40, 4, 5, 6, 20, 60}},
      {"scatter_elements_add",
       "f32[3,3]",
       R"(%1 = Constant() {value = i64[2,3]{1, -1, 2, 1, 0, 2}}
    %2 = Constant() {value = f32[2,3]{10, 20, 30, 40, 50, 60}}
    %3 = ScatterElements(%0, %1, %2) {axis = 0, reduction = "add"}
    return "y" = %3)",
       "[3, 3]",
       {0, 51, 2, 53, 4, 5, 6, 27, 98}},
      {"scatter_elements_mul",
       "f32[3,3]",
       R"(%1 = Constant() {value = i64[2,3]{1, -1, 2, 1, 0, 2}}
    %2 = Constant() {value = f32[2,3]{10, 20, 30, 40, 50, 60}}
    %3 = ScatterElements(%0, %1, %2) {axis = 0, reduction = "mul"}
    return "y" = %3)",
       "[3, 3]",
       {0, 50, 2, 1200, 4, 5, 6, 140, 14400}},
      {"scatter_elements_max",
       "f32[3,3]",
       R"(%1 = Constant() {value = i64[2,3]{1, -1, 2, 1, 0, 2}}
    %2 = Constant() {value = f32[2,3]{10, 20, 30, 40, 50, 60}}
    %3 = ScatterElements(%0, %1, %2) {axis = 0, reduction = "max"}
    return "y" = %3)",
       "[3, 3]",
       {0, 50, 2, 40, 4, 5, 6, 20, 60}},
      {"scatter_elements_min",
       "f32[3,3]",
       R"(%1 = Constant() {value = i64[2,3]{1, -1, 2, 1, 0, 2}}
    %2 = Constant() {value = f32[2,3]{10, 20, 30, 40, 50, 60}}
    %3 = ScatterElements(%0, %1, %2) {axis = 0, reduction = "min"}
    return "y" = %3)",
       "[3, 3]",
       {0, 1, 2, 3, 4, 5, 6, 7, 8}},
      {"depth_to_space_DCR",
       "f32[1,8,1,2]",
       R"(%1 = DepthToSpace(%0) {blocksize = 2, mode = "DCR"}
    return "y" = %1)",
       "[1, 2, 2, 4]",
       {0, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10, 14, 11, 15}},
      {"depth_to_space_CRD",
       "f32[1,8,1,2]",
       R"(%1 = DepthToSpace(%0) {blocksize = 2, mode = "CRD"}
    return "y" = %1)",
       "[1, 2, 2, 4]",
       {0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15}},
      {"space_to_depth",
       "f32[1,2,2,4]",
       R"(%1 = SpaceToDepth(%0) {blocksize = 2}
    return "y" = %1)",
       "[1, 8, 1, 2]",
       {0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15}},
      {"trilu_1_0",
       "f32[3,4]",
       R"(%1 = Trilu(%0) {upper = 1, k = 0}
    return "y" = %1)",
       "[3, 4]",
       {0, 1, 2, 3, 0, 5, 6, 7, 0, 0, 10, 11}},
      {"trilu_1_m1",
       "f32[3,4]",
       R"(%1 = Trilu(%0) {upper = 1, k = -1}
    return "y" = %1)",
       "[3, 4]",
       {0, 1, 2, 3, 4, 5, 6, 7, 0, 9, 10, 11}},
      {"trilu_1_2",
       "f32[3,4]",
       R"(%1 = Trilu(%0) {upper = 1, k = 2}
    return "y" = %1)",
       "[3, 4]",
       {0, 0, 2, 3, 0, 0, 0, 7, 0, 0, 0, 0}},
      {"trilu_0_0",
       "f32[3,4]",
       R"(%1 = Trilu(%0) {upper = 0, k = 0}
    return "y" = %1)",
       "[3, 4]",
       {0, 0, 0, 0, 4, 5, 0, 0, 8, 9, 10, 0}},
      {"trilu_0_m2",
       "f32[3,4]",
       R"(%1 = Trilu(%0) {upper = 0, k = -2}
    return "y" = %1)",
       "[3, 4]",
       {0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0}},
      {"trilu_0_1",
       "f32[3,4]",
       R"(%1 = Trilu(%0) {upper = 0, k = 1}
    return "y" = %1)",
       "[3, 4]",
       {0, 1, 0, 0, 4, 5, 6, 0, 8, 9, 10, 11}},
      {"reverse_sequence",
       "f32[4,2]",
       R"(%1 = Constant() {value = i64[2]{3, 1}}
    %2 = ReverseSequence(%0, %1) {batch_axis = 1, time_axis = 0}
    return "y" = %2)",
       "[4, 2]",
       {4, 1, 2, 3, 0, 5, 6, 7}},
      {"top_k_1_0",
       "f32[2,4]",
       R"(%1 = TopK(%0) {k = 3, axis = 1, largest = 1}
    return "y" = %1)",
       "[2, 3]",
       {3, 2, 1, 7, 6, 5}},
      {"top_k_1_1",
       "f32[2,4]",
       R"(%1 = TopK(%0) {k = 3, axis = 1, largest = 1}
    return "y" = %1.1)",
       "[2, 3]",
       {3, 2, 1, 3, 2, 1}},
      {"top_k_0_0",
       "f32[2,4]",
       R"(%1 = TopK(%0) {k = 3, axis = 1, largest = 0}
    return "y" = %1)",
       "[2, 3]",
       {0, 1, 2, 4, 5, 6}},
      {"top_k_0_1",
       "f32[2,4]",
       R"(%1 = TopK(%0) {k = 3, axis = 1, largest = 0}
    return "y" = %1.1)",
       "[2, 3]",
       {0, 1, 2, 0, 1, 2}},
  };
}

}  // namespace mendel
