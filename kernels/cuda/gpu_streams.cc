#include "kernels/cuda/gpu_streams.h"

#include <cstdio>
#include <functional>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/text.h"
#include "kernels/cuda/device_case.h"
#include "kernels/cuda/driver_table/driver.h"
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
  return DeviceCase{"chain", std::move(graph), {HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, {64, 1000}}, values))}, {}};
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
    std::printf("%s run of %zu launches: %.1f us\n", cold ? "cold" : "warm", executable->steps().size(), seconds * 1e6);
    if (!(seconds > 0 && seconds < 1)) return Cat(seconds, " seconds");
    const std::string wrong = Difference(expected[0], Tensor(y.type(), bytes), 1e-5);
    if (!wrong.empty()) return Cat(cold ? "cold: " : "warm: ", wrong);
  }
  const auto conditions = backend.measuring_device()->Conditions();
  std::printf("conditions: %s\n",
              conditions.ok() ? ConditionsText(*conditions).c_str() : std::string(conditions.status().message()).c_str());
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
    MENDEL_RETURN_IF_ERROR(driver.Check(driver.MemcpyHtoD(from, x.bytes().data(), x.bytes().size()), "cuMemcpyHtoD"));
    MENDEL_RETURN_IF_ERROR(driver.Check(driver.CtxSynchronize(), "cuCtxSynchronize"));
    for (int run = 0; run < 3; ++run) MENDEL_RETURN_IF_ERROR(executable->RunOnDevice({{&from, 1}, {&to, 1}, stream, nullptr}));
    MENDEL_RETURN_IF_ERROR(driver.Check(driver.StreamSynchronize(stream), "cuStreamSynchronize"));
    MENDEL_RETURN_IF_ERROR(driver.Check(driver.MemcpyDtoH(bytes.data(), to, bytes.size()), "cuMemcpyDtoH"));
    driver.MemFree(from);
    driver.MemFree(to);
    driver.StreamDestroy(stream);
    const std::string wrong = Difference(expected[0], Tensor(type, bytes), 1e-5);
    if (!wrong.empty()) return Cat("stream of flags ", flags, ": ", wrong);
  }
  return WrongNumber(*executable, one);
}

}  // namespace mendel::cuda
