// Cases of the tests of fused kernels: a graph, lowered, with random inputs.
#ifndef MENDEL_KERNELS_CUDA_FUSION_LOWERED_CASE_H_
#define MENDEL_KERNELS_CUDA_FUSION_LOWERED_CASE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "base/random.h"
#include "base/status.h"
#include "graph/random_graph.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/backend/program.h"
#include "kernels/cuda/testing/device_case.h"

namespace mendel::cuda {

/// The case of `graph` with random inputs.
inline DeviceCase LoweredCase(Graph graph, std::string description, uint64_t seed,
                              const ProgramOptions& options = {}) {
  DeviceCase one{std::move(description), std::move(graph), {}, {}};
  Rng rng(seed);
  one.inputs = RandomInputs(rng, one.graph);
  auto program = LowerToDevice(one.graph, options);
  EXPECT_TRUE(program.ok()) << program.status();
  one.program = *std::move(program);
  return one;
}

/// The case of a graph given as text; `lines` stand between its braces.
inline DeviceCase ParsedCase(const std::string& lines, uint64_t seed,
                             const ProgramOptions& options = {}) {
  const auto graph = ParseGraph(Cat("graph \"g\" {\n", lines, "\n}"));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return LoweredCase(*graph, lines, seed, options);
}

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_FUSION_LOWERED_CASE_H_
