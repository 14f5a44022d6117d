// Programs by tiled kernels, as they are and with a fault planted into them, for tests.
#ifndef MENDEL_KERNELS_CUDA_TILED_TILED_PROGRAMS_H_
#define MENDEL_KERNELS_CUDA_TILED_TILED_PROGRAMS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "graph/random_graph.h"
#include "gtest/gtest.h"
#include "kernels/cuda/testing/device_case.h"
#include "kernels/cuda/testing/fake/fake_driver.h"
#include "kernels/cuda/tiled/library.h"

namespace mendel::cuda {

inline const TiledLibrary kTiled(100, 90, true);
inline const CallLibrary* const kTiledAlone[] = {&kTiled};

inline DeviceProgram LoweredByTiles(const Graph& graph, std::map<int32_t, std::string> algorithms) {
  auto program = LowerToDevice(
      graph,
      {.reuse_memory = false, .algorithms = std::move(algorithms), .libraries = kTiledAlone});
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *std::move(program) : DeviceProgram();
}

inline std::string TilesRefusal(const Graph& graph, int32_t node, const std::string& algorithm) {
  const auto program =
      LowerToDevice(graph, {.algorithms = {{node, algorithm}}, .libraries = kTiledAlone});
  EXPECT_TRUE(absl::IsInvalidArgument(program.status())) << program.status();
  return std::string(program.status().message());
}

/// An image of the text with `from` replaced by `to` in its kernel, where there is something to
/// replace. Texts may be compiled by several threads.
inline ImageOf WithReplaced(const std::string& from, const std::string& to,
                            std::atomic<int>& changes) {
  return [&changes, from, to](const std::string& text) -> absl::StatusOr<std::vector<char>> {
    std::string changed = text;
    const size_t at =
        from.empty() ? std::string::npos : changed.find(from, changed.find("__launch_bounds__("));
    if (at != std::string::npos) changed.replace(at, from.size(), to), ++changes;
    return TextImage(changed);
  };
}

/// Runs the case's program on random inputs and returns its failure. `from` is replaced by `to` in
/// the texts that contain it, at least one; an empty `from` changes nothing.
inline std::string FailureWithFault(DeviceCase one, const std::string& from,
                                    const std::string& to) {
  Rng rng(1);
  for (const HostValue& input : RandomInputs(rng, one.graph))
    one.inputs.push_back(HostValue::FromTensor(input.ToTensor()));
  FakeDriver driver;
  std::atomic<int> changes = 0;
  std::string failure = FailureOn(driver.table(), WithReplaced(from, to, changes), one);
  EXPECT_EQ(changes > 0, !from.empty()) << from;
  return failure;
}

inline std::string WithFault(const Graph& graph, const std::map<int32_t, std::string>& algorithms,
                             const std::string& from = "", const std::string& to = "") {
  return FailureWithFault({"planted", graph, {}, LoweredByTiles(graph, algorithms)}, from, to);
}

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_TILED_PROGRAMS_H_
