// Graphs around products for which tiled kernels are made, for tests.
#ifndef MENDEL_KERNELS_CUDA_TILED_TILED_GRAPHS_H_
#define MENDEL_KERNELS_CUDA_TILED_TILED_GRAPHS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "base/status.h"
#include "graph/graph.h"
#include "graph/text.h"
#include "gtest/gtest.h"

namespace mendel::cuda {

inline Graph Parsed(const std::string& body) {
  auto graph = ParseGraph("graph \"g\" {\n" + body + "\n}");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

/// SiLU(x W1) * (x W3) of 40 rows.
inline Graph GatedMlp(const std::string& dtype = "f32", int64_t depth = 24) {
  const auto shape = [&](int64_t a, int64_t b) {
    return Cat("dtype = \"", dtype, "\", shape = [", a, ", ", b, "]");
  };
  return Parsed(Cat("%0 = Input() {name = \"x\", ", shape(40, depth),
                    "}\n%1 = Input() {name = \"gate\", ", shape(depth, 36),
                    "}\n%2 = Input() {name = \"up\", ", shape(depth, 36), R"(}
    %3 = MatMul(%0, %1)
    %4 = Sigmoid(%3)
    %5 = Mul(%3, %4)
    %6 = MatMul(%0, %2)
    %7 = Mul(%5, %6)
    return "y" = %7)"));
}

/// LayerNorm(x) W + b, then GELU.
inline Graph NormalizedProduct(const std::string& dtype = "f32", int64_t depth = 40) {
  const auto type = [&](const std::string& shape) {
    return Cat("dtype = \"", dtype, "\", shape = [", shape, "]");
  };
  return Parsed(Cat("%0 = Input() {name = \"x\", ", type(Cat("2, 10, ", depth)),
                    "}\n%1 = Input() {name = \"scale\", ", type(Cat(depth)),
                    "}\n%2 = Input() {name = \"shift\", ", type(Cat(depth)),
                    "}\n%3 = Input() {name = \"w\", ", type(Cat(depth, ", 30")),
                    "}\n%4 = Input() {name = \"b\", ", type("30"), R"(}
    %5 = LayerNormalization(%0, %1, %2) {axis = 2}
    %6 = MatMul(%5, %3)
    %7 = Add(%6, %4)
    %8 = Gelu(%7)
    return "y" = %8)"));
}

inline Graph GroupedConvolution() {
  return Parsed(R"(%0 = Input() {name = "x", shape = [2, 32, 9, 9]}
    %1 = Input() {name = "w", shape = [64, 8, 3, 3]}
    %2 = Input() {name = "b", shape = [64]}
    %3 = Input() {name = "residual", shape = [2, 64, 9, 9]}
    %4 = Conv(%0, %1, %2) {dilations = [1, 1], group = 4, pads = [1, 1, 1, 1], strides = [1, 1]}
    %5 = Add(%4, %3)
    %6 = Relu(%5)
    return "y" = %6)");
}

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_TILED_GRAPHS_H_
