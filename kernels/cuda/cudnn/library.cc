#include "kernels/cuda/cudnn/library.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "kernels/cuda/cudnn/convolution_call.h"
#include "kernels/cuda/cudnn/finish_kernel.h"

namespace mendel::cuda {
namespace {

std::string KeyOf(const CudnnConvolution& conv, const CudnnNumerics& numerics, size_t count) {
  std::string key = Cat(count, " ", numerics.tf32, numerics.winograd, " ", DTypeName(conv.dtype), conv.channels_last,
                        conv.transposed, conv.bias, conv.residual, conv.relu);
  for (const Ints* values : {&conv.x, &conv.w, &conv.y, &conv.strides, &conv.dilations, &conv.pads_begin, &conv.pads_end}) {
    for (const int64_t value : *values) key += Cat(" ", value);
    key += ";";
  }
  return key;
}

}  // namespace

/// Algorithms of one name, but for the engine's rank.
struct CudnnLibrary::Kind {
  std::string_view name;
  Numerics technique;
  StoredForm form;

  bool is_strict() const { return technique == Numerics::kStrict; }
  bool is_tf32() const { return technique == Numerics::kTf32; }
};

std::span<const CudnnLibrary::Kind> CudnnLibrary::Kinds() {
  static constexpr Kind kKinds[] = {{"cudnn", Numerics::kStrict, {}},
                                    {"cudnn-nhwc", Numerics::kStrict, {true}},
                                    {"cudnn-tf32", Numerics::kTf32, {}},
                                    {"cudnn-tf32-nhwc", Numerics::kTf32, {true}},
                                    {"cudnn-f16", Numerics::kF16, {false, DType::kF16}},
                                    {"cudnn-f16-nhwc", Numerics::kF16, {true, DType::kF16}},
                                    {"cudnn-bf16", Numerics::kBf16, {false, DType::kBF16}},
                                    {"cudnn-bf16-nhwc", Numerics::kBf16, {true, DType::kBF16}}};
  return kKinds;
}

const CudnnLibrary::Kind* CudnnLibrary::KindOf(std::string_view algorithm, Numerics numerics) {
  const std::string_view name = algorithm.substr(0, algorithm.find(':'));
  for (const Kind& kind : Kinds()) {
    if (kind.name == name && Allows(numerics, kind.technique)) return &kind;
  }
  return nullptr;
}

std::string CudnnLibrary::Identity() const {
  return Cat("cuDNN ", cudnn_.VersionText(), ", workspace ", workspace_bytes_ >> 20, " MiB");
}

std::vector<std::string> CudnnLibrary::Algorithms(const GroupingScope& scope, int32_t node, Numerics numerics) const {
  std::vector<std::string> names;
  for (const Kind& kind : Kinds()) {
    if (!Allows(numerics, kind.technique)) continue;
    const auto planned = Plan(scope, node, kind, numerics, offered_);
    if (!planned.ok()) continue;
    for (size_t rank = 0; rank < planned->engines.size(); ++rank) names.push_back(RankedName(kind.name, rank));
  }
  return names;
}

absl::StatusOr<LibraryGroup> CudnnLibrary::Group(const GroupingScope& scope, int32_t node, const std::string& algorithm,
                                                 Numerics numerics) const {
  const Node& it = scope.graph.node(node);
  const std::string told = Cat("node '", it.name, "' (", it.op->name, " ", node, ")");
  const Kind* kind = KindOf(algorithm, numerics);
  const int rank = RankOf(algorithm);
  const size_t count = std::clamp(static_cast<size_t>(std::max(rank, 0)) + 1, offered_, kMostOffered);
  auto planned = kind == nullptr ? Planned{} : Plan(scope, node, *kind, numerics, count);
  if (!planned.ok()) return Annotate(planned.status(), Cat(told, ", algorithm '", algorithm, "'"));
  if (rank < 0 || static_cast<size_t>(rank) >= planned->engines.size()) {
    return InvalidInput(told, " has no algorithm '", algorithm, "' here: ", Identity(), ", numerics ", NumericsName(numerics),
                        ", has ", planned->engines.size(), " for it");
  }
  LibraryGroup group = std::move(planned->match.group);
  group.call = MakeConvolutionCall(cudnn_, kind->name, std::move(planned->engines[static_cast<size_t>(rank)]),
                                   std::move(planned->match.tensors), device_json_);
  return group;
}

std::vector<ConvolutionMatch> CudnnLibrary::MatchesOf(const GroupingScope& scope, int32_t node, const Kind& kind,
                                                      Numerics numerics) {
  std::vector<ConvolutionMatch> matches = MatchConvolution(scope, node, numerics);
  if (matches.empty() || (!kind.is_strict() && matches[0].convolution.dtype != DType::kF32)) return {};
  if (kind.form.IsOwn()) {
    // No compiled engine of a transposed one has an epilogue.
    const bool finished = matches[0].convolution.transposed && matches[0].convolution.bias;
    return finished ? std::vector{FinishedByKernel(std::move(matches[0]))} : matches;
  }
  const bool has_constant_weights = scope.constant[static_cast<size_t>(scope.graph.node(node).inputs[1].node)];
  if (matches[0].convolution.transposed || (kind.form.channels_last && !has_constant_weights)) return {};
  if (kind.form.rounded.has_value()) {
    std::erase_if(matches, [&](const ConvolutionMatch& match) { return AddsBeyond(scope.graph, match, *kind.form.rounded); });
  }
  for (ConvolutionMatch& match : matches) SetForm(match, kind.form);
  return matches;
}

std::vector<std::string> CudnnLibrary::FormNames(const GroupingScope& scope, int32_t node, Numerics numerics) {
  std::vector<std::string> names;
  for (const Kind& kind : Kinds()) {
    if (Allows(numerics, kind.technique) && !MatchesOf(scope, node, kind, numerics).empty()) names.emplace_back(kind.name);
  }
  return names;
}

absl::StatusOr<LibraryGroup> CudnnLibrary::FormOf(const GroupingScope& scope, int32_t node, const std::string& algorithm,
                                                  Numerics numerics) {
  const Kind* kind = KindOf(algorithm, numerics);
  std::vector<ConvolutionMatch> matches;
  if (kind != nullptr && RankOf(algorithm) >= 0) matches = MatchesOf(scope, node, *kind, numerics);
  if (matches.empty()) return InvalidInput("cuDNN has no form '", algorithm, "' for it, numerics ", NumericsName(numerics));
  return std::move(matches.front().group);
}

absl::StatusOr<CudnnLibrary::Planned> CudnnLibrary::Plan(const GroupingScope& scope, int32_t node, const Kind& kind,
                                                         Numerics numerics, size_t count) const {
  std::vector<ConvolutionMatch> matches = MatchesOf(scope, node, kind, numerics);
  const CudnnNumerics allowed{.tf32 = kind.is_tf32(), .winograd = numerics != Numerics::kStrict && kind.is_strict()};
  for (ConvolutionMatch& match : matches) {
    auto engines = EnginesOf(match.convolution, allowed, count);
    const bool shorter = &match != &matches.back() && !absl::IsResourceExhausted(engines.status());
    if (!engines.ok() && shorter) continue;
    MENDEL_RETURN_IF_ERROR(engines.status());
    if (!engines->empty()) return Planned{std::move(match), *std::move(engines)};
  }
  return Planned{};
}

absl::StatusOr<CudnnLibrary::Engines> CudnnLibrary::EnginesOf(const CudnnConvolution& convolution, const CudnnNumerics& numerics,
                                                              size_t count) const {
  const std::string key = KeyOf(convolution, numerics, count);
  const std::lock_guard lock(mutex_);
  if (const auto known = planned_.find(key); known != planned_.end()) return known->second;
  auto engines =
      PlanConvolution(cudnn_, convolution, numerics, device_json_, {.engines = count, .workspace_bytes = workspace_bytes_});
  if (absl::IsUnimplemented(engines.status())) engines = Engines();
  MENDEL_RETURN_IF_ERROR(engines.status());
  return planned_[key] = *std::move(engines);
}

}  // namespace mendel::cuda
