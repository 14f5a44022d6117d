#include "kernels/cuda/cudnn/library.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "kernels/cuda/cudnn/convolution_call.h"
#include "kernels/cuda/cudnn/finish_kernel.h"

namespace mendel::cuda {
namespace {

constexpr std::string_view kName = "cudnn";

std::string AlgorithmName(size_t rank) { return rank == 0 ? std::string(kName) : Cat(kName, ":", rank); }

std::string KeyOf(const CudnnConvolution& conv, Numerics numerics) {
  std::string key = Cat(NumericsName(numerics), " ", DTypeName(conv.dtype), conv.channels_last, conv.transposed, conv.bias,
                        conv.residual, conv.relu);
  for (const Ints* values : {&conv.x, &conv.w, &conv.y, &conv.strides, &conv.dilations, &conv.pads_begin, &conv.pads_end}) {
    for (const int64_t value : *values) key += Cat(" ", value);
    key += ";";
  }
  return key;
}

}  // namespace

std::string CudnnLibrary::Identity() const {
  return Cat("cuDNN ", cudnn_.VersionText(), ", workspace ", limits_.workspace_bytes >> 20, " MiB");
}

std::vector<std::string> CudnnLibrary::Algorithms(const GroupingScope& scope, int32_t node, Numerics numerics) const {
  const auto planned = Plan(scope, node, numerics);
  std::vector<std::string> names;
  if (!planned.ok()) return names;
  for (size_t rank = 0; rank < planned->engines.size(); ++rank) names.push_back(AlgorithmName(rank));
  return names;
}

absl::StatusOr<LibraryGroup> CudnnLibrary::Group(const GroupingScope& scope, int32_t node, const std::string& algorithm,
                                                 Numerics numerics) const {
  const Node& it = scope.graph.node(node);
  const std::string told = Cat("node '", it.name, "' (", it.op->name, " ", node, ")");
  auto planned = Plan(scope, node, numerics);
  if (!planned.ok()) return Annotate(planned.status(), Cat(told, ", algorithm '", algorithm, "'"));
  size_t rank = 0;
  while (rank < planned->engines.size() && AlgorithmName(rank) != algorithm) ++rank;
  if (rank == planned->engines.size()) {
    return InvalidInput(told, " has no algorithm '", algorithm, "' here: ", Identity(), ", numerics ", NumericsName(numerics),
                        ", has ", planned->engines.size(), " for it");
  }
  LibraryGroup group = std::move(planned->match.group);
  group.call = MakeConvolutionCall(cudnn_, std::move(planned->engines[rank]), std::move(planned->match.tensors), device_json_);
  return group;
}

absl::StatusOr<CudnnLibrary::Planned> CudnnLibrary::Plan(const GroupingScope& scope, int32_t node, Numerics numerics) const {
  std::vector<ConvolutionMatch> matches = MatchConvolution(scope, node, numerics);
  if (!matches.empty() && matches[0].convolution.transposed && matches[0].convolution.bias) {
    matches = {FinishedByKernel(std::move(matches[0]))};  // no compiled engine has an epilogue
  }
  for (ConvolutionMatch& match : matches) {
    auto engines = EnginesOf(match.convolution, numerics);
    const bool shorter = &match != &matches.back() && !absl::IsResourceExhausted(engines.status());
    if (!engines.ok() && shorter) continue;
    MENDEL_RETURN_IF_ERROR(engines.status());
    if (!engines->empty()) return Planned{std::move(match), *std::move(engines)};
  }
  return Planned{};
}

absl::StatusOr<CudnnLibrary::Engines> CudnnLibrary::EnginesOf(const CudnnConvolution& convolution, Numerics numerics) const {
  const std::string key = KeyOf(convolution, numerics);
  const std::lock_guard lock(mutex_);
  if (const auto known = planned_.find(key); known != planned_.end()) return known->second;
  auto engines = PlanConvolution(cudnn_, convolution, {.tensor_cores = false, .winograd = numerics != Numerics::kStrict},
                                 device_json_, limits_);
  if (absl::IsUnimplemented(engines.status())) engines = Engines();
  MENDEL_RETURN_IF_ERROR(engines.status());
  return planned_[key] = *std::move(engines);
}

}  // namespace mendel::cuda
