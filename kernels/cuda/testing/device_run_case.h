// A small plan on the fake driver, and a caller with device memory of its own: for tests of runs on
// the device's own terms.
#ifndef MENDEL_KERNELS_CUDA_TESTING_DEVICE_RUN_CASE_H_
#define MENDEL_KERNELS_CUDA_TESTING_DEVICE_RUN_CASE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/backend/executable.h"
#include "kernels/cuda/backend/program.h"
#include "kernels/cuda/testing/device_case.h"
#include "kernels/cuda/testing/fake/fake_driver.h"

namespace mendel::cuda::device_run_case {

inline constexpr size_t kElements = 3 * 40;
inline constexpr size_t kBytes = 4 * kElements;

/// The input's memory is used again before the end.
inline Graph Chain() {
  auto graph = ParseGraph(R"(graph "chain" {
    %0 = Input() {name = "x", shape = [3, 40]}
    %1 = Softmax(%0) {axis = 1}
    %2 = Softmax(%1) {axis = 1}
    %3 = Softmax(%2) {axis = 0}
    return "y" = %3
  })");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

inline Tensor Input(int number) {
  std::vector<double> values;
  for (size_t k = 0; k < kElements; ++k)
    values.push_back(static_cast<double>((k * 7 + static_cast<size_t>(number)) % 11) / 4);
  return Tensor::FromDoubles({DType::kF32, {3, 40}}, values);
}

inline std::vector<float> Expected(int number) {
  const auto results =
      Evaluate(Chain(), std::vector<HostValue>{HostValue::FromTensor(Input(number))});
  const Tensor y = (*results)[0].ToTensor();
  return {y.As<float>().begin(), y.As<float>().end()};
}

inline void ExpectNear(const std::vector<float>& got, const std::vector<float>& wanted,
                       const std::string& what = "") {
  for (size_t k = 0; k < wanted.size(); ++k)
    ASSERT_NEAR(got[k], wanted[k], 1e-6) << what << " element " << k;
}

inline void Prepare(FakeDriver& driver) {
  const absl::Status prepared = driver.Prepare(LowerToDevice(Chain())->ModuleText());
  ASSERT_TRUE(prepared.ok()) << prepared;
}

inline absl::StatusOr<std::unique_ptr<Executable>> Compile(const Driver& table) {
  MENDEL_ASSIGN_OR_RETURN(DeviceProgram program, LowerToDevice(Chain()));
  return MakeExecutable(table, std::move(program), &TextImage);
}

/// A caller with a stream and device memory of its own, as a program around Mendel has it.
struct Caller {
  explicit Caller(const Driver& driver, unsigned flags = 1) : table(driver) {
    EXPECT_EQ(table.StreamCreate(&stream, flags), 0);
    EXPECT_EQ(table.EventCreate(&ready, 0), 0);
    EXPECT_EQ(table.MemAlloc(&x, kBytes), 0);
    EXPECT_EQ(table.MemAlloc(&y, kBytes), 0);
    EXPECT_EQ(table.MemHostAlloc(&pinned, kBytes, 0), 0);
  }
  ~Caller() {
    table.StreamDestroy(stream);
    table.EventDestroy(ready);
    table.MemFree(x);
    table.MemFree(y);
    table.MemFreeHost(pinned);
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  void Fill(int number) {
    const Tensor input = Input(number);
    std::copy(input.As<float>().begin(), input.As<float>().end(), static_cast<float*>(pinned));
    EXPECT_EQ(table.MemcpyHtoDAsync(x, pinned, kBytes, stream), 0);
  }
  absl::Status Run(Executable& executable) const {
    return executable.RunOnDevice({{&x, 1}, {&y, 1}, stream, ready});
  }
  std::vector<float> Result() {
    EXPECT_EQ(table.MemcpyDtoHAsync(pinned, y, kBytes, stream), 0);
    EXPECT_EQ(table.StreamSynchronize(stream), 0);
    const auto* begin = static_cast<const float*>(pinned);
    return {begin, begin + kElements};
  }

  const Driver& table;
  DriverStream* stream = nullptr;
  DriverEvent* ready = nullptr;
  uint64_t x = 0, y = 0;
  void* pinned = nullptr;
};

inline absl::StatusOr<std::vector<float>> Time(Executable& executable, int number, bool cold) {
  const Tensor x = Input(number);
  std::vector<float> y(kElements);
  const std::vector<std::span<const std::byte>> inputs = {x.bytes()};
  const std::vector<std::span<std::byte>> outputs = {std::as_writable_bytes(std::span(y))};
  std::function<void()> evict;
  if (cold) evict = [] { ADD_FAILURE() << "the host's caches do not matter"; };
  MENDEL_ASSIGN_OR_RETURN(const double seconds, executable.TimeRun(inputs, outputs, evict));
  if (!(seconds >= 0)) return InternalError(seconds, " seconds");
  return y;
}

}  // namespace mendel::cuda::device_run_case

#endif  // MENDEL_KERNELS_CUDA_TESTING_DEVICE_RUN_CASE_H_
