// Shared parts of the tests of convolutions by cuDNN and its fake.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_LIBRARY_CASE_H_
#define MENDEL_KERNELS_CUDA_CUDNN_LIBRARY_CASE_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "graph/evaluate.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/cudnn/table.h"

namespace mendel::cuda::cudnn_case {

inline constexpr char kDevice[] = "{\"deviceName\":\"fake\"}";

inline constexpr int64_t kWorkspace = int64_t{256} << 20;

/// cuDNN itself, or null where there is none, which is a failure where CUDA is installed.
inline const Cudnn* InstalledCudnn() {
  const auto cudnn = Cudnn::Get();
  if (cudnn.ok()) return *cudnn;
  EXPECT_FALSE(std::filesystem::exists("/usr/local/cuda")) << cudnn.status();
  return nullptr;
}

inline Graph Parsed(const std::string& body) {
  auto graph = ParseGraph("graph \"g\" {\n" + body + "\n}");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

inline constexpr char kConv[] = R"(%0 = Input() {name = "x", shape = [1, 2, 5, 5]}
    %1 = Constant() {symbol = "w", value = f32[2, 2, 1, 1]{1, -2, 3, 0.5}}
    %2 = Conv(%0, %1) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}
    %3 = Constant() {symbol = "b", value = f32[2, 1, 1]{1, 2}}
    %4 = Constant() {symbol = "r", value = f32[1, 1, 5, 1]{1, 2, 3, 4, 5}}
)";

inline HostValue FiftyNumbers() {
  std::vector<double> values;
  for (int k = 0; k < 50; ++k) values.push_back(k % 7 - 3);
  return HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, {1, 2, 5, 5}}, values));
}

}  // namespace mendel::cuda::cudnn_case

#endif  // MENDEL_KERNELS_CUDA_CUDNN_LIBRARY_CASE_H_
