#include "kernels/cuda/gpu_streams.h"

#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/text.h"
#include "kernels/cuda/driver_table/driver.h"
#include "kernels/cuda/replay_cost.h"
#include "kernels/cuda/testing/device_case.h"
#include "runtime/measuring_device.h"

namespace mendel::cuda {
namespace {

/// Three launches.
absl::StatusOr<DeviceCase> Chain() {
  MENDEL_ASSIGN_OR_RETURN(Graph graph, ParseGraph(R"(graph "chain" {
    %0 = Input() {name = "x", shape = [64, 1000]}
    %1 = Softmax(%0) {axis = 1}
    %2 = Softmax(%1) {axis = 1}
    %3 = Softmax(%2) {axis = 0}
    return "y" = %3
  })"));
  Rng rng(1);
  std::vector<double> values(64000);
  for (double& value : values) value = rng.Normal();
  return DeviceCase{"chain",
                    std::move(graph),
                    {HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, {64, 1000}}, values))},
                    {}};
}

/// Softmaxes and sums of what was there before, large enough that launches which may overlap do.
absl::StatusOr<Graph> RandomDag(Rng& rng) {
  GraphBuilder builder;
  std::vector<ValueId> values = {builder.Input("x", {DType::kF32, {256, 512}})};
  for (int k = 0; k < 24; ++k) {
    // Late values often, so that branches are long.
    const auto any = [&] {
      return values[values.size() - 1 -
                    static_cast<size_t>(rng.Below(std::min<uint64_t>(values.size(), 6)))];
    };
    const ValueId a = any(), b = any();
    auto made = k % 3 == 2 ? builder.Add("Add", {a, b})
                           : builder.Add("Softmax", {a}, {{"axis", rng.Between(0, 1)}});
    MENDEL_ASSIGN_OR_RETURN(const ValueId value, std::move(made));
    values.push_back(value);
  }
  for (size_t k = values.size() - 6; k < values.size(); ++k) builder.Output(Cat("y", k), values[k]);
  return builder.Build();
}

absl::StatusOr<std::unique_ptr<Executable>> CompiledWith(const Backend& backend, const Graph& graph,
                                                         const char* experiments) {
  constexpr const char* kVariable = "MENDEL_CUDA_EXPERIMENTS";
  const char* const found = ::getenv(kVariable);
  const std::optional<std::string> before =
      found == nullptr ? std::nullopt : std::optional<std::string>(found);
  ::setenv(kVariable, experiments, 1);
  auto executable = backend.Compile(graph, {});
  before.has_value() ? ::setenv(kVariable, before->c_str(), 1) : ::unsetenv(kVariable);
  return executable;
}

}  // namespace

absl::StatusOr<std::string> WrongTimes(const Backend& backend) {
  MENDEL_ASSIGN_OR_RETURN(const DeviceCase one, Chain());
  MENDEL_ASSIGN_OR_RETURN(const auto executable, backend.Compile(one.graph, {}));
  MENDEL_ASSIGN_OR_RETURN(const std::vector<HostValue> expected, Evaluate(one.graph, one.inputs));
  const Tensor x = one.inputs[0].ToTensor();
  Tensor y = expected[0].ToTensor();
  std::vector<std::byte> bytes(y.bytes().size());
  const std::vector<std::span<const std::byte>> inputs = {x.bytes()};
  const std::vector<std::span<std::byte>> outputs = {bytes};
  for (const bool cold : {false, true}) {
    std::function<void()> evict;
    if (cold) evict = [] {};
    MENDEL_ASSIGN_OR_RETURN(const double seconds, executable->TimeRun(inputs, outputs, evict));
    std::printf("%s run of %zu launches: %.1f us\n", cold ? "cold" : "warm",
                executable->steps().size(), seconds * 1e6);
    if (!(seconds > 0 && std::isfinite(seconds))) return Cat(seconds, " seconds");
    const std::string wrong = Difference(expected[0], Tensor(y.type(), bytes), 1e-5);
    if (!wrong.empty()) return Cat(cold ? "cold: " : "warm: ", wrong);
  }
  const auto conditions = backend.measuring_device()->Conditions();
  std::printf("conditions: %s\n", conditions.ok()
                                      ? ConditionsText(*conditions).c_str()
                                      : std::string(conditions.status().message()).c_str());
  return "";
}

absl::StatusOr<std::string> WrongOnStreams(const Backend& backend) {
  MENDEL_ASSIGN_OR_RETURN(const DeviceCase one, Chain());
  MENDEL_ASSIGN_OR_RETURN(const Driver* const found, Driver::Get());
  const Driver& driver = *found;
  MENDEL_ASSIGN_OR_RETURN(const auto executable, backend.Compile(one.graph, {}));
  MENDEL_ASSIGN_OR_RETURN(const std::vector<HostValue> expected, Evaluate(one.graph, one.inputs));
  const Tensor x = one.inputs[0].ToTensor();
  const TensorType type = expected[0].ToTensor().type();
  std::vector<std::byte> bytes(static_cast<size_t>(ByteSize(type)));
  for (const unsigned flags : {0u, 1u}) {
    DriverStream* stream = nullptr;
    uint64_t from = 0, to = 0;
    MENDEL_RETURN_IF_ERROR(driver.Check(driver.StreamCreate(&stream, flags), "cuStreamCreate"));
    MENDEL_RETURN_IF_ERROR(driver.Check(driver.MemAlloc(&from, x.bytes().size()), "cuMemAlloc"));
    MENDEL_RETURN_IF_ERROR(driver.Check(driver.MemAlloc(&to, bytes.size()), "cuMemAlloc"));
    MENDEL_RETURN_IF_ERROR(
        driver.Check(driver.MemcpyHtoD(from, x.bytes().data(), x.bytes().size()), "cuMemcpyHtoD"));
    MENDEL_RETURN_IF_ERROR(driver.Check(driver.CtxSynchronize(), "cuCtxSynchronize"));
    for (int run = 0; run < 3; ++run)
      MENDEL_RETURN_IF_ERROR(executable->RunOnDevice({{&from, 1}, {&to, 1}, stream, nullptr}));
    MENDEL_RETURN_IF_ERROR(driver.Check(driver.StreamSynchronize(stream), "cuStreamSynchronize"));
    MENDEL_RETURN_IF_ERROR(
        driver.Check(driver.MemcpyDtoH(bytes.data(), to, bytes.size()), "cuMemcpyDtoH"));
    driver.MemFree(from);
    driver.MemFree(to);
    driver.StreamDestroy(stream);
    const std::string wrong = Difference(expected[0], Tensor(type, bytes), 1e-5);
    if (!wrong.empty()) return Cat("stream of flags ", flags, ": ", wrong);
  }
  return WrongNumber(*executable, one);
}

absl::StatusOr<std::string> WrongReplays(const Backend& backend) {
  constexpr double kSeconds = 0.5;  // a plan
  MENDEL_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  for (const int launches : {1, 3, 100}) {
    GraphBuilder builder;
    ValueId value = builder.Input("x", {DType::kF32, {8, 256}});
    for (int k = 0; k < launches; ++k) {
      MENDEL_ASSIGN_OR_RETURN(value, builder.Add("Softmax", {value}, {{"axis", int64_t{1}}}));
    }
    builder.Output("y", value);
    MENDEL_ASSIGN_OR_RETURN(const Graph graph, builder.Build());
    MENDEL_ASSIGN_OR_RETURN(const auto executable, backend.Compile(graph, {}));
    MENDEL_ASSIGN_OR_RETURN(const ReplayCost cost,
                            MeasureReplay(*driver, *executable, graph, 200, 11, kSeconds));
    std::printf(
        "%s\n",
        ReplayText(Cat("a plan of ", executable->steps().size(), " launches"), cost).c_str());
  }
  return "";
}

absl::StatusOr<std::string> WrongBranches(const Backend& backend, uint64_t seed) {
  Rng rng(seed);
  MENDEL_ASSIGN_OR_RETURN(const Graph graph, RandomDag(rng));
  MENDEL_ASSIGN_OR_RETURN(const auto chain, CompiledWith(backend, graph, "off"));
  MENDEL_ASSIGN_OR_RETURN(const auto branches, CompiledWith(backend, graph, "on"));
  // A GPU makes all runs in a moment. An emulated one makes at least one.
  constexpr auto kMost = std::chrono::seconds(2);
  const auto begin = std::chrono::steady_clock::now();
  for (int run = 0; run < 20; ++run) {
    if (run > 0 && std::chrono::steady_clock::now() - begin > kMost) break;
    std::vector<double> values(256 * 512);
    for (double& value : values) value = rng.Normal();
    const std::vector<Tensor> inputs = {Tensor::FromDoubles({DType::kF32, {256, 512}}, values)};
    MENDEL_ASSIGN_OR_RETURN(const std::vector<Tensor> want, RunOnTensors(*chain, graph, inputs));
    MENDEL_ASSIGN_OR_RETURN(const std::vector<Tensor> have, RunOnTensors(*branches, graph, inputs));
    for (size_t k = 0; k < want.size(); ++k) {
      if (!std::ranges::equal(want[k].bytes(), have[k].bytes()))
        return Cat("run ", run, ": output ", k, " differs");
    }
  }
  return "";
}

}  // namespace mendel::cuda
