#include "bench/kernel_contenders.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"
#include "bench/library_kernels.h"
#include "runtime/allowed_error.h"
#include "runtime/measure.h"

namespace mendel {
namespace {

/// A kernel's bound is of the worst output; a class offers what is wrong by up to twice what it
/// allows a plan.
constexpr double kLayerError = 2;

/// Names of oneDNN's implementations and layouts; the others are kernels of ours, or of a class
/// that rounds.
bool IsOneDnns(const std::string& algorithm) {
  return algorithm.starts_with("direct:") || algorithm.starts_with("winograd:") ||
         algorithm.starts_with("layout:");
}

/// Infinite where a result is no number.
double ErrorOf(const Tensor& result, const HostValue& wanted) {
  const HostValue got = HostValue::FromTensor(result);
  double largest = 0, error = 0;
  for (size_t k = 0; k < wanted.scalars.size(); ++k) {
    const double gap = std::fabs(got.scalars[k] - wanted.scalars[k]);
    if (!std::isfinite(gap)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::fabs(wanted.scalars[k]));
    error = std::max(error, gap);
  }
  return largest > 0 ? error / largest : error;
}

/// Algorithms of any node, each with the strictest class that offers it.
std::map<std::string, Numerics> AlgorithmsOf(const Backend& backend, const Graph& graph) {
  std::map<std::string, Numerics> names;
  for (const Numerics numerics : kAllNumerics) {
    if (!backend.Supports(numerics).ok()) continue;
    for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
      for (const std::string& name : backend.Algorithms(graph, node, numerics))
        names.emplace(name, numerics);
    }
  }
  return names;
}

CompileOptions OptionsFor(const Backend& backend, const Graph& graph, const Contender& contender,
                          int threads) {
  CompileOptions options{.threads = threads, .numerics = contender.numerics};
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
    const std::vector<std::string> offered = backend.Algorithms(graph, node, contender.numerics);
    if (std::find(offered.begin(), offered.end(), contender.name) != offered.end())
      options.algorithms[node] = contender.name;
  }
  return options;
}

/// An executable with its buffers.
struct Compiled {
  std::unique_ptr<Executable> executable;
  std::vector<std::span<const std::byte>> sources;
  std::vector<std::byte> output;
  std::vector<double> seconds;

  absl::StatusOr<RunSeconds> Run() {
    const std::span<std::byte> sink(output);
    MENDEL_RETURN_IF_ERROR(executable->RunTimed(sources, {&sink, 1}, seconds));
    RunSeconds sums;
    for (size_t k = 0; k < seconds.size(); ++k) {
      sums.whole += seconds[k];
      if (!executable->steps()[k].nodes.empty()) sums.kernels += seconds[k];
    }
    return sums;
  }
};

absl::Status Compile(const Backend& backend, const CheckedLayer& layer, int threads,
                     Contender& contender) {
  const auto compiled = std::make_shared<Compiled>();
  MENDEL_ASSIGN_OR_RETURN(
      compiled->executable,
      backend.Compile(layer.graph, OptionsFor(backend, layer.graph, contender, threads)));
  for (const Tensor& input : layer.inputs) compiled->sources.push_back(input.bytes());
  compiled->output.resize(static_cast<size_t>(ByteSize(layer.output.type)));
  for (const Step& step : compiled->executable->steps()) {
    if (!step.nodes.empty())
      contender.kernels += Cat(contender.kernels.empty() ? "" : " + ", step.kernel);
  }
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                          RunOnTensors(*compiled->executable, layer.graph, layer.inputs));
  contender.error = ErrorOf(outputs[0], layer.output);
  contender.run = [compiled] { return compiled->Run(); };
  return absl::OkStatus();
}

}  // namespace

bool Contender::Right() const { return error <= kLayerError * AllowedError(numerics); }

absl::StatusOr<CheckedLayer> CheckLayer(Graph graph) {
  CheckedLayer layer{std::move(graph), {}, {}};
  layer.inputs = RandomInputs(layer.graph, 1);
  std::vector<HostValue> values;
  for (const Tensor& input : layer.inputs) values.push_back(HostValue::FromTensor(input));
  MENDEL_ASSIGN_OR_RETURN(std::vector<HostValue> outputs, Evaluate(layer.graph, values));
  layer.output = std::move(outputs[0]);
  return layer;
}

absl::StatusOr<std::vector<Contender>> MakeContenders(
    const Backend& backend, const CheckedLayer& layer, int threads,
    const std::function<bool(const std::string&)>& wanted) {
  std::vector<Contender> contenders(1);
  Contender& standard = contenders[0];
  MENDEL_RETURN_IF_ERROR(Compile(backend, layer, threads, standard));
  for (LibraryKernel& kernel : LibraryKernelsFor(layer.graph, layer.inputs, threads)) {
    contenders[0].own = true;
    contenders[0].name = contenders[0].kernels;
    Contender& other = contenders.emplace_back();
    other.name = other.kernels = kernel.name;
    MENDEL_ASSIGN_OR_RETURN(const double seconds, kernel.run());
    static_cast<void>(seconds);
    other.error = ErrorOf(kernel.output(), layer.output);
    other.run = [run = std::move(kernel.run)]() -> absl::StatusOr<RunSeconds> {
      MENDEL_ASSIGN_OR_RETURN(const double taken, run());
      return RunSeconds{taken, taken};
    };
  }
  for (const auto& [name, numerics] : AlgorithmsOf(backend, layer.graph)) {
    Contender contender;
    contender.name = name;
    contender.numerics = numerics;
    contender.own = !IsOneDnns(name) || !Allows(Numerics::kDefault, numerics);
    if (contender.own && !wanted(name)) continue;
    MENDEL_RETURN_IF_ERROR(Compile(backend, layer, threads, contender));
    if (contender.kernels != contenders[0].kernels) contenders.push_back(std::move(contender));
  }
  return contenders;
}

}  // namespace mendel
