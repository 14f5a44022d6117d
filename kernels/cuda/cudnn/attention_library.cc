#include "kernels/cuda/cudnn/attention_library.h"

#include <optional>

#include "base/status.h"
#include "kernels/cuda/backend/program.h"
#include "kernels/cuda/cudnn/planned_call.h"

namespace mendel::cuda {
namespace {

struct AttentionKind {
  std::string_view name;
  Numerics technique;
  std::optional<DType> rounded = std::nullopt;
};
constexpr AttentionKind kAttentionKinds[] = {{"attention", Numerics::kDefault},
                                             {"attention-f16", Numerics::kF16, DType::kF16},
                                             {"attention-bf16", Numerics::kBf16, DType::kBF16}};

const AttentionKind* AttentionKindOf(std::string_view algorithm) {
  for (const AttentionKind& kind : kAttentionKinds) {
    if (kind.name == algorithm) return &kind;
  }
  return nullptr;
}

std::string KeyOf(const HeadMatrices& matrices) {
  std::string key;
  for (const Shape* values : {&matrices.shape, &matrices.strides}) {
    for (const int64_t value : *values) key += Cat(" ", value);
    key += ";";
  }
  return key;
}

/// Everything but the scale, which is given to each call.
std::string KeyOf(const CudnnAttention& attention) {
  std::string key = Cat("attention ", DTypeName(attention.dtype));
  for (const HeadMatrices* it : {&attention.q, &attention.k, &attention.v, &attention.y}) {
    key += KeyOf(*it);
  }
  if (attention.mask.has_value())
    key += Cat(DTypeName(attention.mask_dtype), KeyOf(*attention.mask));
  return key;
}

}  // namespace

std::string CudnnAttentionLibrary::Identity() const {
  return Cat("attention of cuDNN ", cudnn_.VersionText(), ", workspace ", workspace_bytes_ >> 20,
             " MiB");
}

MemoryFormat CudnnAttentionLibrary::FormRead(std::string_view algorithm) const {
  const AttentionKind* kind = AttentionKindOf(algorithm);
  return kind == nullptr ? MemoryFormat() : MemoryFormat{.rounded = kind->rounded};
}

std::vector<std::string> CudnnAttentionLibrary::Algorithms(const GroupingScope& scope, int32_t node,
                                                           Numerics numerics) const {
  std::vector<std::string> names;
  for (const AttentionKind& kind : kAttentionKinds) {
    if (!Allows(numerics, kind.technique)) continue;
    if (Plan(MatchAttention(scope, node, kind.rounded), true).ok()) names.emplace_back(kind.name);
  }
  return names;
}

absl::StatusOr<LibraryGroup> CudnnAttentionLibrary::Group(const GroupingScope& scope, int32_t node,
                                                          const std::string& algorithm,
                                                          Numerics numerics) const {
  const Node& it = scope.graph.node(node);
  const std::string description = Cat("node '", it.name, "' (", it.op->name, " ", node, ")");
  const AttentionKind* kind = AttentionKindOf(algorithm);
  if (kind == nullptr || !Allows(numerics, kind->technique)) {
    return InvalidInput(description, " has no algorithm '", algorithm, "' under numerics ",
                        NumericsName(numerics), ": ", Identity());
  }
  auto planned = Plan(MatchAttention(scope, node, kind->rounded), false);
  if (absl::IsUnimplemented(planned.status()))
    return InvalidInput(description, " has no algorithm '", algorithm, "' here: ", Identity(), ": ",
                        std::string(planned.status().message()));
  if (!planned.ok())
    return Annotate(planned.status(), Cat(description, ", algorithm '", algorithm, "'"));
  LibraryGroup group = std::move(planned->match.group);
  const CudnnAttention& attention = planned->match.attention;
  std::vector<int64_t> tensors = {kAttentionQ, kAttentionK};
  if (attention.mask.has_value()) tensors.push_back(kAttentionMask);
  tensors.insert(tensors.end(), {kAttentionV, kAttentionY});
  group.call = MakePlannedCall(cudnn_, algorithm, std::move(planned->engine), std::move(tensors),
                               device_json_,
                               {.numbers = {{kAttentionScale, attention.scale}},
                                .written = {{kAttentionSums, attention.SumsBytes()}}});
  return group;
}

absl::StatusOr<CudnnAttentionLibrary::Planned> CudnnAttentionLibrary::Plan(
    std::vector<AttentionMatch> matches, bool offer) const {
  absl::Status missing = Unsupported("it is no attention that cuDNN computes");
  for (AttentionMatch& match : matches) {
    auto engine = EngineOf(match.attention, offer);
    // A shorter match is no reason to offer a name whose longest one would be compiled later.
    if (absl::IsResourceExhausted(engine.status()) || absl::IsUnavailable(engine.status()))
      return engine.status();
    if (engine.ok()) return Planned{std::move(match), *std::move(engine)};
    missing = engine.status();
  }
  return missing;
}

absl::StatusOr<CudnnEngine> CudnnAttentionLibrary::EngineOf(const CudnnAttention& attention,
                                                            bool offer) const {
  const int64_t room = workspace_bytes_ - DeviceAligned(attention.SumsBytes());
  if (room < 0)
    return Unsupported("the sums of its rows need ", attention.SumsBytes(),
                       " bytes of workspace, more than the limit of ", workspace_bytes_);
  const CudnnLimits limits = {.engines = 1,
                              .workspace_bytes = room / kDeviceAlignment * kDeviceAlignment,
                              .may_compile = true};
  const CompiledEngines::Source source = {Cat(KeyOf(attention), " ", workspace_bytes_),
                                          RulesOf(attention, true), device_json_,
                                          Cat("cuDNN ", cudnn_.VersionText())};
  return compiled_.Get(source, offer,
                       [&] { return PlanAttention(cudnn_, attention, device_json_, limits); });
}

}  // namespace mendel::cuda
