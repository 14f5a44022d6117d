// Programs with branches, on a driver that replays captured launches in any order that their
// dependencies allow.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_BRANCHES_CASE_H_
#define MENDEL_KERNELS_CUDA_BACKEND_BRANCHES_CASE_H_

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/random_graph.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/backend/compile.h"
#include "kernels/cuda/backend/executable.h"
#include "kernels/cuda/backend/launch_order.h"
#include "kernels/cuda/testing/device_case.h"

namespace mendel::cuda {

inline constexpr double kAlways = std::numeric_limits<double>::infinity();  // of apart_up_to

/// Two branches of three launches each, which meet in the last one.
inline Graph Diamond() {
  auto graph = ParseGraph(R"(graph "diamond" {
    %0 = Input() {name = "x", shape = [4, 6]}
    %1 = Softmax(%0) {axis = 1}
    %2 = Softmax(%1) {axis = 0}
    %3 = Softmax(%2) {axis = 1}
    %4 = Softmax(%0) {axis = 0}
    %5 = Softmax(%4) {axis = 1}
    %6 = Softmax(%5) {axis = 0}
    %7 = Add(%3, %6)
    return "y" = %7
  })");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

inline std::vector<Tensor> RandomTensors(Rng& rng, const Graph& graph) {
  std::vector<Tensor> tensors;
  for (const HostValue& input : RandomInputs(rng, graph)) tensors.push_back(input.ToTensor());
  return tensors;
}

inline bool SameBytes(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t k = 0; k < a.size(); ++k) {
    if (!std::equal(a[k].bytes().begin(), a[k].bytes().end(), b[k].bytes().begin(),
                    b[k].bytes().end()))
      return false;
  }
  return a.size() == b.size();
}

/// Runs of `program` with other inputs each time, of which `chain` says what they yield: how many
/// are not that, bit by bit.
inline absl::StatusOr<int> WrongRuns(const Graph& graph, Executable& executable, Executable& chain,
                                     int runs) {
  int wrong = 0;
  Rng rng(7);
  for (int run = 0; run < runs; ++run) {
    const std::vector<Tensor> inputs = RandomTensors(rng, graph);
    MENDEL_ASSIGN_OR_RETURN(const std::vector<Tensor> want, RunOnTensors(chain, graph, inputs));
    MENDEL_ASSIGN_OR_RETURN(const std::vector<Tensor> have,
                            RunOnTensors(executable, graph, inputs));
    wrong += SameBytes(want, have) ? 0 : 1;
  }
  return wrong;
}

inline absl::StatusOr<int> WrongRuns(const Driver& driver, const Graph& graph,
                                     DeviceProgram program, Executable& chain, int runs) {
  MENDEL_ASSIGN_OR_RETURN(const auto executable,
                          MakeExecutable(driver, std::move(program), &TextImage));
  return WrongRuns(graph, *executable, chain, runs);
}

/// The programs to choose among.
inline std::vector<DeviceProgram> InOrders(const Graph& graph) {
  auto programs = LowerInOrders(graph, {.order = LaunchOrder::kFaster, .apart_up_to = kAlways});
  EXPECT_TRUE(programs.ok()) << programs.status();
  return *std::move(programs);
}

inline DeviceProgram Lowered(const Graph& graph, LaunchOrder order, double apart_up_to = 0) {
  auto program = LowerToDevice(graph, {.order = order, .apart_up_to = apart_up_to});
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

/// The table of a driver on which replays of the second graph take `factor_of_second` times as long
/// as those of the others.
struct Timed {
  Timed(const Driver& driver, float factor_of_second) : table(driver) {
    original = driver;
    factor = factor_of_second;
    made = 0;
    updates = 0;
    second = last = nullptr;
    table.GraphInstantiate = [](DriverGraphExec** exec, DriverGraph* graph,
                                unsigned long long flags) {
      const int result = original.GraphInstantiate(exec, graph, flags);
      if (++made == 2) {
        second = *exec;
        updates = 0;  // from here on: what the choice leads to
      }
      return result;
    };
    table.GraphLaunch = [](DriverGraphExec* exec, DriverStream* stream) {
      last = exec;
      return original.GraphLaunch(exec, stream);
    };
    table.EventElapsedTime = [](float* milliseconds, DriverEvent* from, DriverEvent* to) {
      if (const int failed = original.EventElapsedTime(milliseconds, from, to); failed != 0)
        return failed;
      *milliseconds = last == second ? factor : 1.0f;
      return 0;
    };
    table.StreamUpdateCaptureDependencies = [](DriverStream* stream, DriverGraphNode** nodes,
                                               size_t count, unsigned flags) {
      ++updates;
      return original.StreamUpdateCaptureDependencies(stream, nodes, count, flags);
    };
  }
  static inline Driver original;
  static inline float factor;
  static inline int made, updates;
  static inline DriverGraphExec *second, *last;
  Driver table;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_BRANCHES_CASE_H_
