#include "kernels/cpu/lowering/conv_layout.h"

#include <algorithm>

#include "base/status.h"
#include "kernels/cpu/kernels/winograd.h"

namespace mendel::cpu {
namespace {

constexpr std::string_view kPrefix = kLayoutAlgorithm;
constexpr std::string_view kChannelsLast = "channels-last", kPlain = "plain";
struct Blocks {
  std::string_view name;
  int64_t block;
};
constexpr Blocks kBlocks[] = {{"blocked16", 16}, {"blocked8", 8}};

std::string KindOfBlock(int64_t block) { return Cat("blocked", block); }

/// True for a matrix product that reads its source in place: pointwise, without stride or padding.
bool IsPointwise(const ConvProblem& p) {
  const auto all = [](const dnnl::memory::dims& dims, int64_t wanted) {
    return std::all_of(dims.begin(), dims.end(), [=](int64_t dim) { return dim == wanted; });
  };
  const bool taps = std::any_of(p.weights.begin() + 2, p.weights.end(),
                                [](int64_t extent) { return extent != 1; });
  return p.weights.size() == p.src.size() && !taps && all(p.strides, 1) && all(p.pads_begin, 0) &&
         all(p.pads_end, 0);
}

/// Returns the choice among generated kernels, or nullopt if there is none.
std::optional<Chosen> Generated(const ConvProblem& problem, Quality quality) {
  return ChooseFor(problem, dnnl::algorithm::convolution_direct, UserScratchpad(),
                   AcceptQuality(quality));
}

}  // namespace

bool IsLayoutAlgorithm(std::string_view name) { return name.starts_with(kPrefix); }

Quality QualityIn(std::string_view name) {
  return name.ends_with(kPlain) ? Quality::kGemm : Quality::kGenerated;
}

std::optional<ConvProblem> InLayout(const ConvProblem& problem, std::string_view name) {
  if (!IsLayoutAlgorithm(name) || problem.transposed) return std::nullopt;
  const std::string_view layout = name.substr(kPrefix.size());
  ConvProblem form = problem;
  if (layout == kPlain) {
    if (!IsPointwise(problem)) return std::nullopt;
    form.src_layout = PlainLayout(problem.src);
    form.dst_layout = PlainLayout(problem.dst);
    return form;
  }
  if (layout == kChannelsLast) {
    form.src_layout = ChannelsLastLayout(problem.src);
    form.dst_layout = ChannelsLastLayout(problem.dst);
    return form;
  }
  for (const Blocks& blocks : kBlocks) {
    if (layout != blocks.name || problem.dst[1] < blocks.block) continue;
    if (problem.src[1] >= blocks.block) form.src_layout = BlockedLayout(problem.src, blocks.block);
    form.dst_layout = BlockedLayout(problem.dst, blocks.block);
    return form;
  }
  return std::nullopt;
}

LayoutOffers OffersInLayouts(const ConvProblem& problem) {
  LayoutOffers offers;
  const std::optional<Chosen> standard = Generated(problem, Quality::kGenerated);
  std::vector<std::string> names = {Cat(kPrefix, kChannelsLast)};
  for (const Blocks& blocks : kBlocks) names.push_back(Cat(kPrefix, blocks.name));
  names.push_back(Cat(kPrefix, kPlain));
  for (const std::string& name : names) {
    const std::optional<ConvProblem> form = InLayout(problem, name);
    const std::optional<Chosen> chosen =
        form.has_value() ? Generated(*form, QualityIn(name)) : std::nullopt;
    if (!chosen.has_value()) continue;
    if (standard.has_value() && chosen->src == standard->src && chosen->dst == standard->dst)
      continue;
    offers.names.push_back(name);
    offers.implementations.insert(chosen->implementation);
  }
  return offers;
}

std::string LayoutKind(std::string_view algorithm) {
  if (IsLayoutAlgorithm(algorithm)) return std::string(algorithm.substr(kPrefix.size()));
  // Native kernels use blocks of a vector's lanes unless their source has its channels last.
  if (algorithm.find("-own") != std::string_view::npos) {
    const WinogradIsa* const isa = WinogradIsaHere();
    return isa == nullptr ? "" : KindOfBlock(isa->lanes);
  }
  return algorithm.starts_with("winograd:") ? KindOfBlock(16) : "";
}

}  // namespace mendel::cpu
