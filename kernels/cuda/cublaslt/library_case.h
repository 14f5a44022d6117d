// Shared parts of the tests of products by the fake cuBLASLt.
#ifndef MENDEL_KERNELS_CUDA_CUBLASLT_LIBRARY_CASE_H_
#define MENDEL_KERNELS_CUDA_CUBLASLT_LIBRARY_CASE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/evaluate.h"
#include "graph/rewrite.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/cublaslt/library.h"
#include "kernels/cuda/cublaslt/product_match.h"
#include "kernels/cuda/testing/fake/fake_cublaslt.h"
#include "kernels/cuda/testing/fake/fake_driver.h"

namespace mendel::cuda::cublaslt_case {

inline constexpr int64_t kWorkspace = int64_t{32} << 20;

inline Graph Parsed(const std::string& body) {
  auto graph = ParseGraph("graph \"g\" {\n" + body + "\n}");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

/// The graph's first MatMul.
inline int32_t ProductOf(const Graph& graph) {
  int32_t id = 0;
  while (graph.node(id).op->name != "MatMul") ++id;
  return id;
}

/// All ways to compute the graph's first MatMul.
inline std::vector<ProductMatch> Matches(const Graph& graph,
                                         Numerics numerics = Numerics::kDefault) {
  const std::vector<bool> constant = ConstantExpressions(graph);
  const std::vector<bool> claimed(constant.size(), false);
  return MatchProduct({graph, constant, claimed}, ProductOf(graph), numerics);
}

/// The first product of an attention: heads lie beside positions in memory, and keys are read
/// transposed.
inline Graph Heads() {
  return Parsed(R"(%0 = Input() {name = "q", shape = [1, 5, 12]}
    %1 = Input() {name = "k", shape = [1, 7, 12]}
    %2 = Reshape(%0) {shape = [1, 5, 3, 4]}
    %3 = Transpose(%2) {perm = [0, 2, 1, 3]}
    %4 = Reshape(%1) {shape = [1, 7, 3, 4]}
    %5 = Transpose(%4) {perm = [0, 2, 3, 1]}
    %6 = MatMul(%3, %5)
    return "y" = %6)");
}

/// The fake driver, the fake cuBLASLt, and the library that uses them.
struct Rig {
  FakeDriver driver;
  FakeCublasLt lt;
  CublasLtLibrary library{lt.table(), driver.table(), kWorkspace};
  const CallLibrary* libraries[1] = {&library};
};

/// A graph with two products between native kernels. A view and a value have other readers, too. A
/// workspace is needed while other values are alive.
inline Graph Net() {
  return Parsed(R"(%0 = Input() {name = "x", shape = [2, 3, 8]}
    %1 = Constant() {symbol = "w", value = f32[8, 3]{1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3, -4, -5, -6, -7, -8, 1, 0, 1, 0, 1, 0, 1, 0}}
    %2 = Constant() {symbol = "b", value = f32[3]{1, -2, 3}}
    %3 = Sin(%0)
    %4 = MatMul(%3, %1)
    %5 = Add(%4, %2)
    %6 = Relu(%5)
    %7 = Transpose(%6) {perm = [0, 2, 1]}
    %8 = MatMul(%6, %7)
    %9 = Softmax(%8) {axis = 2}
    %10 = Add(%9, %7)
    return "y" = %10)");
}

inline HostValue NetInput() {
  std::vector<double> values;
  for (int k = 0; k < 48; ++k) values.push_back(k % 11 - 5);
  return HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, {2, 3, 8}}, values));
}

}  // namespace mendel::cuda::cublaslt_case

#endif  // MENDEL_KERNELS_CUDA_CUBLASLT_LIBRARY_CASE_H_
