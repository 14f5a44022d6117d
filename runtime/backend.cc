#include "runtime/backend.h"

#include <algorithm>

#include "base/check.h"
#include "base/deadline.h"
#include "base/status.h"
#include "runtime/cpu_topology.h"

namespace mendel {
namespace {

std::vector<const Backend* (*)()>& BackendMakers() {
  static auto* makers = new std::vector<const Backend* (*)()>();
  return *makers;
}

}  // namespace

double SecondsOfNodes(std::span<const Step> steps, std::span<const double> seconds,
                      const std::set<int32_t>& nodes) {
  const auto among = [&](int32_t node) { return nodes.count(node) > 0; };
  double sum = 0;
  for (size_t k = 0; k < steps.size(); ++k) {
    const std::vector<int32_t>&own = steps[k].nodes, &asking = steps[k].requested_by;
    if (own.empty() && !asking.empty()) {
      sum += seconds[k] * static_cast<double>(std::count_if(asking.begin(), asking.end(), among)) /
             static_cast<double>(asking.size());
    }
    if (std::none_of(own.begin(), own.end(), among)) continue;
    sum += seconds[k];
    for (size_t before = k; before-- > 0 && steps[before].nodes.empty();) {
      if (steps[before].requested_by.empty()) sum += seconds[before];
    }
  }
  return sum;
}

absl::StatusOr<double> Executable::TimeRun(std::span<const std::span<const std::byte>> inputs,
                                           std::span<const std::span<std::byte>> outputs,
                                           const std::function<void()>& evict) {
  if (evict != nullptr) evict();
  const Stopwatch clock;
  MENDEL_RETURN_IF_ERROR(Run(inputs, outputs));
  return clock.Seconds();
}

absl::Status Executable::RunOnDevice(const DeviceRun&) {
  return Unsupported("the plan runs on ", device(),
                     ", which has no device memory: run it with buffers of the host");
}

absl::Status Backend::Supports(Numerics numerics) const {
  if (OperandRounding(numerics) == 0 && numerics != Numerics::kInt8) return absl::OkStatus();
  return Unsupported("backend ", name(), " has no kernels that multiply in ",
                     NumericsName(numerics));
}

std::string Backend::AlgorithmKind(std::string_view) const { return ""; }

std::vector<std::vector<int32_t>> Backend::KindRegions(const Graph&,
                                                       const std::set<int32_t>&) const {
  return {};
}

absl::StatusOr<std::map<int32_t, StoredEngine>> Backend::Engines(const Graph&,
                                                                 const CompileOptions&) const {
  return std::map<int32_t, StoredEngine>();
}

std::span<const Backend* const> AllBackends() {
  static const auto* backends = [] {
    auto* sorted = new std::vector<const Backend*>();
    for (const Backend* (*make)() : BackendMakers()) sorted->push_back(make());
    std::sort(sorted->begin(), sorted->end(),
              [](const auto* a, const auto* b) { return a->name() < b->name(); });
    for (size_t i = 0; i + 1 < sorted->size(); ++i)
      MENDEL_CHECK((*sorted)[i]->name() != (*sorted)[i + 1]->name());
    return sorted;
  }();
  return *backends;
}

const Backend* FindBackend(std::string_view name) {
  for (const Backend* backend : AllBackends()) {
    if (backend->name() == name) return backend;
  }
  return nullptr;
}

absl::StatusOr<std::vector<int>> CpusFor(const Backend& backend, std::string_view affinity,
                                         int threads) {
  MENDEL_ASSIGN_OR_RETURN(std::vector<int> cpus, ChooseCpus(affinity, threads));
  if (!cpus.empty() && !backend.ThreadsCanBePinned()) {
    return InvalidInput("affinity ", affinity, ": the threads of backend ", backend.name(),
                        " cannot be pinned");
  }
  return cpus;
}

BackendRegistrar::BackendRegistrar(const Backend* (*make)()) { BackendMakers().push_back(make); }

absl::StatusOr<std::vector<Tensor>> RunOnTensors(Executable& executable,
                                                 std::span<const TensorType> outputs,
                                                 std::span<const Tensor> inputs) {
  std::vector<std::span<const std::byte>> sources;
  for (const Tensor& input : inputs) sources.push_back(input.bytes());
  std::vector<std::vector<std::byte>> storage;
  std::vector<std::span<std::byte>> sinks;
  for (const TensorType& type : outputs) storage.emplace_back(static_cast<size_t>(ByteSize(type)));
  for (auto& bytes : storage) sinks.emplace_back(bytes);
  MENDEL_RETURN_IF_ERROR(executable.Run(sources, sinks));
  std::vector<Tensor> results;
  for (size_t k = 0; k < storage.size(); ++k)
    results.emplace_back(outputs[k], std::move(storage[k]));
  return results;
}

absl::StatusOr<std::vector<Tensor>> RunOnTensors(Executable& executable, const Graph& graph,
                                                 std::span<const Tensor> inputs) {
  std::vector<TensorType> types;
  for (const GraphOutput& output : graph.outputs()) types.push_back(graph.type(output.value));
  return RunOnTensors(executable, types, inputs);
}

}  // namespace mendel
