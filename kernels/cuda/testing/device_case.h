// Nodes and graphs as device programs, for tests: lowered, run on a driver, compared with their
// meaning.
#ifndef MENDEL_KERNELS_CUDA_TESTING_DEVICE_CASE_H_
#define MENDEL_KERNELS_CUDA_TESTING_DEVICE_CASE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/evaluate.h"
#include "graph/graph.h"
#include "kernels/cuda/backend/executable.h"
#include "kernels/cuda/backend/program.h"

namespace mendel::cuda {

/// Text is its own image (fake/fake_driver.h).
absl::StatusOr<std::vector<char>> TextImage(const std::string& text);

/// "" when `got` is `expected` up to `tolerance` of the largest element, or the first element that
/// is not.
std::string Difference(const HostValue& expected, const Tensor& got, double tolerance);

struct DeviceCase {
  std::string description;  ///< operator, types, attributes, seed
  Graph graph;
  std::vector<HostValue> inputs;
  DeviceProgram program;
  Numerics numerics = Numerics::kDefault;  ///< how far from their meaning its outputs may be
  bool exact = false;                      ///< its outputs are their meaning bit for bit, but NaN
};

/// A sampled node of `op`; some of its inputs may be stored tensors. Unimplemented where no kernel
/// computes it.
absl::StatusOr<DeviceCase> SampledCase(const OpDefinition& op, uint64_t seed);

/// Seeds 1 to `seeds` of every operator that has a sampler.
struct OperatorCases {
  std::vector<DeviceCase> cases;
  int operators = 0;
  std::vector<std::string> refused;  ///< what no kernel computes, with the reason
};
absl::StatusOr<OperatorCases> SampleOperators(uint64_t seeds);

/// Casts of all 65,536 patterns of f16 and bf16 to f32, and back to them of the f32 numbers at, in
/// the middle of, and beside the middle of two neighbors.
absl::StatusOr<std::vector<DeviceCase>> HalfPrecisionCases();

/// One module of all kernels of all cases.
std::string ModuleOf(const std::vector<DeviceCase>& cases);

/// "" when `executable`, of the case's graph, yields what the graph means: to the rounding of the
/// outputs' dtypes, or to the bound of the case's numerics class where that is more; else the first
/// number that is wrong. Other errors are the status.
absl::StatusOr<std::string> WrongNumber(Executable& executable, const DeviceCase& one);
/// The same with what the graph means, for who runs a case several times.
absl::StatusOr<std::string> WrongNumber(Executable& executable, const DeviceCase& one,
                                        const std::vector<HostValue>& expected);
/// The same with errors as text.
std::string FailureOf(Executable& executable, const DeviceCase& one);
/// The same of the program, compiled and run on `driver`.
std::string FailureOn(const Driver& driver, const ImageOf& image, const DeviceCase& one);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_DEVICE_CASE_H_
