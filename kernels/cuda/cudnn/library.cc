#include "kernels/cuda/cudnn/library.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/status.h"
#include "kernels/cuda/cudnn/engine_json.h"
#include "kernels/cuda/cudnn/finish_kernel.h"
#include "kernels/cuda/cudnn/planned_call.h"

namespace mendel::cuda {
namespace {

constexpr std::string_view kOf = " nodes by ";

std::string KeyOf(const CudnnConvolution& conv, const CudnnNumerics& numerics) {
  std::string key =
      Cat(numerics.tf32, numerics.winograd, " ", DTypeName(conv.dtype), conv.channels_last,
          conv.transposed, conv.bias, conv.residual, static_cast<int>(conv.activation));
  for (const Ints* values : {&conv.x, &conv.w, &conv.y, &conv.strides, &conv.dilations,
                             &conv.pads_begin, &conv.pads_end}) {
    for (const int64_t value : *values) key += Cat(" ", value);
    key += ";";
  }
  return key;
}

/// True where no precompiled engine of cuDNN's has this epilogue.
bool NeedsFusion(const CudnnConvolution& convolution) {
  if (convolution.transposed) return convolution.bias;
  return convolution.HasActivation() && convolution.activation != CudnnActivation::kRelu;
}

/// A native kernel computes the epilogue of a transposed convolution, which no precompiled engine
/// has: all of the longest one. In another form than their own, residuals are left to the kernels
/// that read each operand as it lies.
std::vector<ConvolutionMatch> FinishedMatches(std::vector<ConvolutionMatch> matches,
                                              const MemoryFormat& form) {
  if (!form.IsOwn())
    std::erase_if(matches,
                  [](const ConvolutionMatch& match) { return match.convolution.residual; });
  if (matches.empty()) return {};
  if (matches[0].convolution.bias) return {FinishedByKernel(std::move(matches[0]), form)};
  if (!form.IsOwn()) SetForm(matches[0], form);
  return {std::move(matches[0])};
}

}  // namespace

/// Algorithms of one name, but for the engine's rank.
struct CudnnLibrary::Kind {
  std::string_view name;
  Numerics technique;
  MemoryFormat form;
  bool fused = false;  ///< with epilogues that no precompiled engine has

  /// True where it multiplies values of this dtype.
  bool Takes(DType dtype) const {
    if (fused && !is_tf32() && !form.rounded.has_value()) return dtype != DType::kF32;
    return is_strict() || dtype == DType::kF32;
  }
  bool is_strict() const { return technique == Numerics::kStrict; }
  bool is_tf32() const { return technique == Numerics::kTf32; }
};

std::span<const CudnnLibrary::Kind> CudnnLibrary::Kinds() {
  static constexpr Kind kKinds[] = {
      {"cudnn", Numerics::kStrict, {}},
      {"cudnn-nhwc", Numerics::kStrict, {true}},
      {"cudnn-tf32", Numerics::kTf32, {}},
      {"cudnn-tf32-nhwc", Numerics::kTf32, {true}},
      {"cudnn-f16", Numerics::kF16, {false, DType::kF16}},
      {"cudnn-f16-nhwc", Numerics::kF16, {true, DType::kF16}},
      {"cudnn-bf16", Numerics::kBf16, {false, DType::kBF16}},
      {"cudnn-bf16-nhwc", Numerics::kBf16, {true, DType::kBF16}},
      {"cudnn-fused", Numerics::kDefault, {true}, true},
      {"cudnn-tf32-fused", Numerics::kTf32, {true}, true},
      {"cudnn-f16-fused", Numerics::kF16, {true, DType::kF16}, true},
      {"cudnn-bf16-fused", Numerics::kBf16, {true, DType::kBF16}, true}};
  return kKinds;
}

const CudnnLibrary::Kind* CudnnLibrary::KindOf(std::string_view algorithm, Numerics numerics) {
  const std::string_view name = algorithm.substr(0, algorithm.find(':'));
  for (const Kind& kind : Kinds()) {
    if (kind.name == name && Allows(numerics, kind.technique)) return &kind;
  }
  return nullptr;
}

MemoryFormat CudnnLibrary::FormRead(std::string_view algorithm) const {
  const std::string_view name = algorithm.substr(0, algorithm.find(':'));
  for (const Kind& kind : Kinds()) {
    if (kind.name == name) return kind.form;
  }
  return {};
}

CudnnNumerics CudnnLibrary::NumbersOf(const Kind& kind, Numerics numerics) {
  return {.tf32 = kind.is_tf32(), .winograd = numerics != Numerics::kStrict && kind.is_strict()};
}

std::string CudnnLibrary::Version() const { return Cat("cuDNN ", cudnn_.VersionText()); }

std::string CudnnLibrary::Identity() const {
  return Cat(Version(), ", workspace ", workspace_bytes_ >> 20, " MiB");
}

std::vector<std::string> CudnnLibrary::Algorithms(const GroupingScope& scope, int32_t node,
                                                  Numerics numerics) const {
  std::vector<std::string> names;
  for (const Kind& kind : Kinds()) {
    if (!Allows(numerics, kind.technique)) continue;
    const auto planned = Plan(scope, node, kind, numerics, offered_, true);
    if (!planned.ok()) continue;
    for (size_t rank = 0; rank < planned->engines.size(); ++rank)
      names.push_back(RankedName(kind.name, rank));
  }
  return names;
}

absl::StatusOr<LibraryGroup> CudnnLibrary::Group(const GroupingScope& scope, int32_t node,
                                                 const std::string& algorithm,
                                                 Numerics numerics) const {
  const Node& it = scope.graph.node(node);
  const std::string description = Cat("node '", it.name, "' (", it.op->name, " ", node, ")");
  const Kind* kind = KindOf(algorithm, numerics);
  const int rank = RankOf(algorithm);
  const auto wanted = static_cast<size_t>(std::max(rank, 0)) + 1;
  const bool fused = kind != nullptr && kind->fused;
  auto planned = kind == nullptr || (fused && rank != 0)
                     ? Planned{}
                     : Plan(scope, node, *kind, numerics,
                            std::clamp(wanted, std::min(offered_, kMostOffered), kMostOffered));
  // Engines beyond the heuristics' list come from a search of every engine.
  if (planned.ok() && !fused && wanted > planned->engines.size() && !planned->engines.empty()) {
    planned = Plan(scope, node, *kind, numerics, kEveryEngine);
  }
  if (!planned.ok())
    return Annotate(planned.status(), Cat(description, ", algorithm '", algorithm, "'"));
  if (rank < 0 || static_cast<size_t>(rank) >= planned->engines.size()) {
    return InvalidInput(description, " has no algorithm '", algorithm, "' here: ", Identity(),
                        ", numerics ", NumericsName(numerics), ", has ", planned->engines.size(),
                        " for it");
  }
  return Called(*kind, std::move(planned->match),
                std::move(planned->engines[static_cast<size_t>(rank)]));
}

LibraryGroup CudnnLibrary::Called(const Kind& kind, ConvolutionMatch match,
                                  CudnnEngine engine) const {
  LibraryGroup group = std::move(match.group);
  if (const auto json =
          engine.compiled_at_run_time ? std::nullopt : EngineJsonOf(engine.plan_json)) {
    group.engine = StoredEngine{
        .library = Version(), .device = "", .text = Cat(group.nodes.size(), kOf, *json)};
  }
  group.call =
      MakePlannedCall(cudnn_, kind.name, std::move(engine), std::move(match.tensors), device_json_);
  return group;
}

absl::StatusOr<LibraryGroup> CudnnLibrary::GroupAgain(const GroupingScope& scope, int32_t node,
                                                      const std::string& algorithm,
                                                      Numerics numerics,
                                                      const StoredEngine& engine) const {
  const Node& it = scope.graph.node(node);
  const std::string description =
      Cat("node '", it.name, "' (", it.op->name, " ", node, "), algorithm '", algorithm, "'");
  if (engine.library != Version()) {
    return InvalidInput(description, ": the plan's engine is of '", engine.library,
                        "', and this is '", Version(),
                        "'; optimize the model here, or run with --retune");
  }
  const Kind* kind = KindOf(algorithm, numerics);
  const size_t at = engine.text.find(kOf);
  size_t count = 0;
  const bool is_text =
      at != std::string::npos && absl::SimpleAtoi(engine.text.substr(0, at), &count);
  std::vector<ConvolutionMatch> matches;
  if (kind != nullptr && is_text) matches = MatchesOf(scope, node, *kind, numerics);
  const auto match = std::find_if(matches.begin(), matches.end(), [&](const ConvolutionMatch& one) {
    return one.group.nodes.size() == count;
  });
  if (match == matches.end())
    return InvalidInput(description,
                        ": the plan's engine is damaged, or of another graph or numerics class");
  auto planned = PlanConvolutionAgain(
      cudnn_, match->convolution, NumbersOf(*kind, numerics), device_json_,
      {.engines = 1, .workspace_bytes = workspace_bytes_}, engine.text.substr(at + kOf.size()));
  if (absl::IsResourceExhausted(planned.status())) return Annotate(planned.status(), description);
  if (!planned.ok())
    return InvalidInput(description, ": the plan's engine is not to be had of ", Identity(), ": ",
                        std::string(planned.status().message()));
  return Called(*kind, std::move(*match), *std::move(planned));
}

std::vector<ConvolutionMatch> CudnnLibrary::MatchesOf(const GroupingScope& scope, int32_t node,
                                                      const Kind& kind, Numerics numerics) {
  std::vector<ConvolutionMatch> matches = MatchConvolution(scope, node, numerics, kind.fused);
  if (kind.fused) {
    std::erase_if(matches,
                  [](const ConvolutionMatch& match) { return !NeedsFusion(match.convolution); });
  }
  if (matches.empty() || !kind.Takes(matches[0].convolution.dtype)) return {};
  const bool transposed = matches[0].convolution.transposed;
  if (kind.form.IsOwn() && !transposed) return matches;
  const bool has_constant_weights =
      scope.constant[static_cast<size_t>(scope.graph.node(node).inputs[1].node)];
  if (kind.form.channels_last && !has_constant_weights) return {};
  if (kind.form.rounded.has_value()) {
    std::erase_if(matches, [&](const ConvolutionMatch& match) {
      return AddsBeyond(scope.graph, match, *kind.form.rounded);
    });
  }
  if (transposed && !kind.fused) return FinishedMatches(std::move(matches), kind.form);
  for (ConvolutionMatch& match : matches) SetForm(match, kind.form);
  return matches;
}

std::vector<std::string> CudnnLibrary::FormNames(const GroupingScope& scope, int32_t node,
                                                 Numerics numerics) {
  std::vector<std::string> names;
  for (const Kind& kind : Kinds()) {
    if (kind.fused || !Allows(numerics, kind.technique)) continue;
    if (!MatchesOf(scope, node, kind, numerics).empty()) names.emplace_back(kind.name);
  }
  return names;
}

absl::StatusOr<LibraryGroup> CudnnLibrary::FormOf(const GroupingScope& scope, int32_t node,
                                                  const std::string& algorithm, Numerics numerics) {
  const Kind* kind = KindOf(algorithm, numerics);
  std::vector<ConvolutionMatch> matches;
  if (kind != nullptr && !kind->fused && RankOf(algorithm) >= 0)
    matches = MatchesOf(scope, node, *kind, numerics);
  if (matches.empty())
    return InvalidInput("cuDNN has no form '", algorithm, "' for it, numerics ",
                        NumericsName(numerics));
  return std::move(matches.front().group);
}

absl::StatusOr<CudnnLibrary::Planned> CudnnLibrary::Plan(const GroupingScope& scope, int32_t node,
                                                         const Kind& kind, Numerics numerics,
                                                         size_t count, bool offer) const {
  std::vector<ConvolutionMatch> matches = MatchesOf(scope, node, kind, numerics);
  for (ConvolutionMatch& match : matches) {
    // The epilogue's length does not depend on the number of engines that are requested.
    auto engines =
        EnginesOf(match.convolution, kind, numerics, std::min(count, kMostOffered), offer);
    const bool shorter = &match != &matches.back() && !absl::IsResourceExhausted(engines.status());
    // A shorter match is no reason to offer a name whose longest one would be compiled later.
    if (absl::IsUnavailable(engines.status())) return engines.status();
    if (!engines.ok() && shorter) continue;
    MENDEL_RETURN_IF_ERROR(engines.status());
    if (engines->empty()) continue;
    if (count > kMostOffered) {
      MENDEL_ASSIGN_OR_RETURN(engines, EnginesOf(match.convolution, kind, numerics, count, offer));
    }
    return Planned{std::move(match), *std::move(engines)};
  }
  return Planned{};
}

absl::StatusOr<CudnnLibrary::Engines> CudnnLibrary::EnginesOf(const CudnnConvolution& convolution,
                                                              const Kind& kind, Numerics numerics,
                                                              size_t count, bool offer) const {
  const CudnnNumerics allowed = NumbersOf(kind, numerics);
  if (kind.fused) return CompiledEngineOf(convolution, allowed, offer);
  const std::string key = Cat(count, " ", KeyOf(convolution, allowed));
  const std::lock_guard lock(mutex_);
  if (const auto known = planned_.find(key); known != planned_.end()) return known->second;
  auto engines = PlanConvolution(
      cudnn_, convolution, allowed, device_json_,
      {.engines = count, .workspace_bytes = workspace_bytes_, .exhaustive = count > kMostOffered});
  if (absl::IsUnimplemented(engines.status())) engines = Engines();
  MENDEL_RETURN_IF_ERROR(engines.status());
  return planned_[key] = *std::move(engines);
}

absl::StatusOr<CudnnLibrary::Engines> CudnnLibrary::CompiledEngineOf(
    const CudnnConvolution& convolution, const CudnnNumerics& numerics, bool offer) const {
  if (compiled_ == nullptr) return Engines();
  const CudnnLimits limits = {
      .engines = 1, .workspace_bytes = workspace_bytes_, .may_compile = true};
  const CompiledEngines::Source source = {Cat(KeyOf(convolution, numerics), " ", workspace_bytes_),
                                          RulesOf(convolution, numerics, true), device_json_,
                                          Version()};
  auto engine = compiled_->Get(source, offer, [&] {
    return PlanConvolution(cudnn_, convolution, numerics, device_json_, limits);
  });
  if (absl::IsUnimplemented(engine.status())) return Engines();
  MENDEL_RETURN_IF_ERROR(engine.status());
  return Engines{*std::move(engine)};
}

}  // namespace mendel::cuda
