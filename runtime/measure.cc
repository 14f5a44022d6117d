#include "runtime/measure.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "base/status.h"
#include "graph/index_limit.h"

namespace mendel {
namespace {

constexpr size_t kEvictBytes = size_t{64} << 20;
constexpr size_t kCacheLine = 64;

double Quantile(const std::vector<double>& sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - std::floor(position));
}

/// Input and output buffers shared by all executables.
struct Buffers {
  Buffers(const Graph& graph, std::span<const Tensor> inputs) {
    for (const Tensor& input : inputs) sources.push_back(input.bytes());
    for (const GraphOutput& output : graph.outputs())
      storage.emplace_back(static_cast<size_t>(ByteSize(graph.type(output.value))));
    for (auto& bytes : storage) sinks.emplace_back(bytes);
  }
  std::vector<std::span<const std::byte>> sources;
  std::vector<std::vector<std::byte>> storage;
  std::vector<std::span<std::byte>> sinks;
};

void Evict(std::vector<unsigned char>& buffer) {
  buffer.resize(kEvictBytes);
  for (size_t i = 0; i < buffer.size(); i += kCacheLine) ++buffer[i];
}

}  // namespace

Timing Summarize(std::vector<double> times_ms) {
  MENDEL_CHECK(!times_ms.empty());
  std::sort(times_ms.begin(), times_ms.end());
  Timing timing;
  timing.median_ms = Quantile(times_ms, 0.5);
  timing.min_ms = times_ms.front();
  timing.p90_ms = Quantile(times_ms, 0.9);
  timing.spread = timing.median_ms > 0
                      ? (Quantile(times_ms, 0.75) - Quantile(times_ms, 0.25)) / timing.median_ms
                      : 0;
  timing.runs = static_cast<int>(times_ms.size());
  return timing;
}

absl::StatusOr<std::vector<std::vector<double>>> MeasureRounds(
    std::span<Executable* const> executables, const Graph& graph, std::span<const Tensor> inputs,
    const MeasureOptions& options) {
  Buffers buffers(graph, inputs);
  std::vector<unsigned char> evicted;  // its pages are touched by the first eviction
  std::function<void()> evict;
  if (options.cold) {
    evict = [&evicted] { Evict(evicted); };
  }
  std::vector<std::vector<double>> times(executables.size());
  const auto round = [&](bool measured) -> absl::Status {
    for (size_t k = 0; k < executables.size(); ++k) {
      MENDEL_ASSIGN_OR_RETURN(const double seconds,
                              executables[k]->TimeRun(buffers.sources, buffers.sinks, evict));
      if (measured) times[k].push_back(seconds * 1e3);
    }
    return absl::OkStatus();
  };
  for (int i = 0; i < options.warmup; ++i) {
    MENDEL_RETURN_IF_ERROR(round(false));
    if (options.deadline.Passed()) break;
  }
  const Stopwatch watch;
  std::optional<double> end;
  for (int runs = 0;; ++runs) {
    const bool enough = runs >= options.min_runs && watch.Seconds() >= options.min_seconds;
    const bool over = runs >= options.max_runs || watch.Seconds() >= options.max_seconds ||
                      options.deadline.Passed();
    if (runs > 0 && (enough || over)) {
      if (!end.has_value())
        end = watch.Seconds() + (options.more_seconds != nullptr ? options.more_seconds(times) : 0);
      if (watch.Seconds() >= *end || options.deadline.Passed()) break;
    }
    MENDEL_RETURN_IF_ERROR(round(true));
  }
  return times;
}

absl::StatusOr<std::vector<Timing>> MeasureInterleaved(std::span<Executable* const> executables,
                                                       const Graph& graph,
                                                       std::span<const Tensor> inputs,
                                                       const MeasureOptions& options) {
  MENDEL_ASSIGN_OR_RETURN(std::vector<std::vector<double>> times,
                          MeasureRounds(executables, graph, inputs, options));
  std::vector<Timing> timings;
  for (auto& list : times) timings.push_back(Summarize(std::move(list)));
  return timings;
}

int64_t IndexLimit(const Graph& graph, size_t input) {
  return std::max<int64_t>(1, SmallestIndexedTable(graph, input).value_or(2));
}

std::vector<Tensor> RandomInputs(const Graph& graph, uint64_t seed) {
  Rng rng(seed);
  std::vector<Tensor> tensors;
  for (size_t k = 0; k < graph.inputs().size(); ++k) {
    const TensorType& type = graph.type({graph.inputs()[k], 0});
    const size_t count = static_cast<size_t>(NumElements(type));
    Rng stream = rng.Fork();
    if (IsFloat(type.dtype)) {
      std::vector<double> values(count);
      for (double& value : values) value = stream.Normal();
      tensors.push_back(Tensor::FromDoubles(type, values));
    } else {
      int64_t limit = type.dtype == DType::kBool ? 2 : IndexLimit(graph, k);
      if (type.dtype == DType::kI8 || type.dtype == DType::kU8)
        limit = std::min<int64_t>(limit, 128);
      std::vector<int64_t> values(count);
      for (int64_t& value : values)
        value = static_cast<int64_t>(stream.Below(static_cast<uint64_t>(limit)));
      tensors.push_back(Tensor::FromInts(type, values));
    }
  }
  return tensors;
}

}  // namespace mendel
