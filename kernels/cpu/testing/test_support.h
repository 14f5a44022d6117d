// Comparison of compiled graphs with their evaluation in double, and the instruction sets to test,
// for this folder's tests.
#ifndef MENDEL_KERNELS_CPU_TESTING_TEST_SUPPORT_H_
#define MENDEL_KERNELS_CPU_TESTING_TEST_SUPPORT_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/evaluate.h"
#include "gtest/gtest.h"
#include "kernels/cpu/kernels/low_precision.h"
#include "kernels/cpu/simd/native_isa.h"
#include "runtime/backend.h"

/// A test that needs bf16 products begins with this macro.
#define MENDEL_SKIP_WITHOUT_BF16()    \
  if (!mendel::cpu::MultipliesBf16()) \
  GTEST_SKIP() << "this machine does not multiply in bf16, or oneDNN is limited to less"

namespace mendel::cpu {

/// Compiles the graph and runs it once for each kind of guard (guarded.h). Buffers are new and
/// filled with garbage. Expects the runs to agree bit by bit and to match Evaluate: floats to
/// `tolerance`
/// of the largest output, input or `scale`, integers exactly. Returns the steps' kernels.
std::vector<std::string> ExpectMatches(const Graph& graph, const std::vector<HostValue>& inputs,
                                       const CompileOptions& options, double tolerance = 1e-5,
                                       double scale = 0);

/// f32 numbers of both signs, below 1.
inline Tensor MixedWeights(const Shape& shape) {
  std::vector<double> values(static_cast<size_t>(NumElements({DType::kF32, shape})));
  for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<double>(k % 13) / 13 - 0.5;
  return Tensor::FromDoubles({DType::kF32, shape}, values);
}

/// Counts the steps' kernels whose name begins with `name`.
inline int64_t CountOf(const std::vector<std::string>& kernels, std::string_view name) {
  return std::count_if(kernels.begin(), kernels.end(),
                       [&](const std::string& kernel) { return kernel.starts_with(name); });
}

using SampleRanges = std::vector<std::pair<int, std::pair<double, double>>>;
using ChangeInputs = std::function<void(std::vector<HostValue>&)>;
/// Tests one node, by one thread and by three. All operands are inputs. Two Neg operators copy f32
/// operands into the arena, so the kernel may work in place. Inputs are drawn (`ranges`
/// as in SampledNode), then changed. Calls ExpectMatches, and expects that no step runs an
/// operator's definition.
void CheckOperator(const std::string& name, const std::vector<TensorType>& inputs,
                   const Attributes& attrs, const SampleRanges& ranges = {},
                   const ChangeInputs& change = nullptr, double tolerance = 1e-5);

inline std::string IsaName(NativeIsa isa) {
  if (isa == NativeIsa::kNone) return "baseline";
  return isa == NativeIsa::kAvx2 ? "avx2" : "avx512";
}

/// A test for each instruction set. A machine without the instruction set skips the test by name.
/// The limit of oneDNN (DNNL_MAX_CPU_ISA) does not matter.
class IsaTest : public testing::TestWithParam<NativeIsa> {
 protected:
  void SetUp() override {
    if (!MachineHas(GetParam())) GTEST_SKIP() << "this machine has no " << IsaName(GetParam());
  }
  /// Returns the kernel's variant for the test's parameter.
  template <class Isa>
  static const Isa& Kernels(const Isa& (*avx2)(), const Isa& (*avx512)()) {
    return GetParam() == NativeIsa::kAvx512 ? avx512() : avx2();
  }
};

/// Instantiates a suite for the given instruction sets. Place it after the suite's tests.
#define MENDEL_FOR_ISAS(suite, ...)                                  \
  INSTANTIATE_TEST_SUITE_P(Isa, suite, testing::Values(__VA_ARGS__), \
                           [](const auto& isa) { return mendel::cpu::IsaName(isa.param); })

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_TESTING_TEST_SUPPORT_H_
