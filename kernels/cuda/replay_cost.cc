#include "kernels/cuda/replay_cost.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/status.h"

namespace mendel::cuda {
namespace {

using Clock = std::chrono::steady_clock;

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

/// A caller's stream and device buffers, as an application would have them.
class Caller {
 public:
  explicit Caller(const Driver& driver) : driver_(driver) {}
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  ~Caller() {
    for (const std::vector<uint64_t>* addresses : {&inputs_, &outputs_}) {
      for (const uint64_t address : *addresses) driver_.MemFree(address);
    }
    if (stream_ != nullptr) driver_.StreamDestroy(stream_);
  }

  absl::Status Open(const Graph& graph) {
    MENDEL_RETURN_IF_ERROR(driver_.Check(driver_.StreamCreate(&stream_, 1), "cuStreamCreate"));
    for (const int32_t id : graph.inputs())
      MENDEL_RETURN_IF_ERROR(Allocate(graph.type({id, 0}), inputs_));
    for (const GraphOutput& output : graph.outputs())
      MENDEL_RETURN_IF_ERROR(Allocate(graph.type(output.value), outputs_));
    return driver_.Check(driver_.CtxSynchronize(), "cuCtxSynchronize");
  }
  absl::Status Enqueue(Executable& executable) {
    return executable.RunOnDevice({inputs_, outputs_, stream_, nullptr});
  }
  absl::Status Wait() {
    return driver_.Check(driver_.StreamSynchronize(stream_), "cuStreamSynchronize");
  }

 private:
  absl::Status Allocate(const TensorType& type, std::vector<uint64_t>& addresses) {
    const std::vector<std::byte> zeros(static_cast<size_t>(ByteSize(type)));
    uint64_t address = 0;
    MENDEL_RETURN_IF_ERROR(driver_.Check(driver_.MemAlloc(&address, zeros.size()), "cuMemAlloc"));
    addresses.push_back(address);
    return driver_.Check(driver_.MemcpyHtoD(address, zeros.data(), zeros.size()), "cuMemcpyHtoD");
  }

  const Driver& driver_;
  DriverStream* stream_ = nullptr;
  std::vector<uint64_t> inputs_, outputs_;
};

/// Seconds of one run with zero inputs, measured by device events.
absl::StatusOr<double> TimedByEvents(Executable& executable, const Graph& graph) {
  std::vector<std::vector<std::byte>> values;
  std::vector<std::span<const std::byte>> inputs;
  std::vector<std::span<std::byte>> outputs;
  values.reserve(graph.inputs().size() + graph.outputs().size());
  for (const int32_t id : graph.inputs())
    inputs.emplace_back(values.emplace_back(static_cast<size_t>(ByteSize(graph.type({id, 0})))));
  for (const GraphOutput& output : graph.outputs())
    outputs.emplace_back(
        values.emplace_back(static_cast<size_t>(ByteSize(graph.type(output.value)))));
  return executable.TimeRun(inputs, outputs, nullptr);
}

}  // namespace

std::string ReplayText(const std::string& what, const ReplayCost& cost) {
  char text[240];
  std::snprintf(text, sizeof text,
                "replay of %s: enqueued in %.2f us of the host's, %.2f us a run back to back (%d "
                "of them), %.2f us between events: "
                "%.2f us besides",
                what.c_str(), cost.enqueue * 1e6, cost.wall * 1e6, cost.runs, cost.events * 1e6,
                (cost.wall - cost.events) * 1e6);
  return text;
}

absl::StatusOr<ReplayCost> MeasureReplay(const Driver& driver, Executable& executable,
                                         const Graph& graph, int runs, int rounds, double seconds) {
  Caller caller(driver);
  MENDEL_RETURN_IF_ERROR(caller.Open(graph));
  const auto start = Clock::now();
  const auto spent = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  MENDEL_RETURN_IF_ERROR(caller.Enqueue(executable));
  MENDEL_RETURN_IF_ERROR(caller.Wait());
  runs = std::clamp(static_cast<int>(std::min(seconds / (spent() * (rounds + 1)), 1e6)), 1, runs);
  std::vector<double> enqueue, wall, events;
  const auto a_run = [&](Clock::duration duration) {
    return std::chrono::duration<double>(duration).count() / runs;
  };
  for (int round = -1; round < rounds && (wall.empty() || spent() < seconds);
       ++round) {  // the first one is not counted
    const auto begin = Clock::now();
    for (int run = 0; run < runs; ++run) MENDEL_RETURN_IF_ERROR(caller.Enqueue(executable));
    const auto enqueued = Clock::now();
    MENDEL_RETURN_IF_ERROR(caller.Wait());
    const auto end = Clock::now();
    MENDEL_ASSIGN_OR_RETURN(const double between, TimedByEvents(executable, graph));
    if (round < 0) continue;
    enqueue.push_back(a_run(enqueued - begin));
    wall.push_back(a_run(end - begin));
    events.push_back(between);
  }
  return ReplayCost{runs, Median(std::move(enqueue)), Median(std::move(wall)),
                    Median(std::move(events))};
}

}  // namespace mendel::cuda
