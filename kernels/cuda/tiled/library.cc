#include "kernels/cuda/tiled/library.h"

#include <optional>
#include <set>
#include <utility>

#include "base/status.h"
#include "kernels/cuda/fusion/operator_text.h"
#include "kernels/cuda/tiled/async_copies.h"
#include "kernels/cuda/tiled/candidate.h"
#include "kernels/cuda/tiled/chain.h"
#include "kernels/cuda/tiled/chain_kernel.h"
#include "kernels/cuda/tiled/chain_shape.h"
#include "kernels/cuda/tiled/operand_order.h"
#include "kernels/cuda/tiled/product_chain.h"
#include "kernels/cuda/tiled/tiled_kernel.h"
#include "kernels/cuda/tiled/total_kernel.h"

namespace mendel::cuda {
namespace {

ProductExtents ExtentsOfProduct(const Graph& graph, int32_t node) {
  return WithView(graph, node, [&](const NodeView& view) {
    return FindOperatorText(graph.node(node).op->name)->product.extents(view);
  });
}

int64_t RealBytes(const Graph& graph, int32_t node) {
  return RealName(graph.type({node, 0}).dtype) == "float" ? 4 : 8;
}

LibraryGroup GroupOf(FusedKernel kernel, ValueId result, const std::set<int32_t>& nodes) {
  LibraryGroup group{result, nodes, kernel.operands, nullptr};
  group.kernel = std::move(kernel);
  return group;
}

absl::StatusOr<LibraryGroup> ChainGroup(const GroupingScope& scope, int32_t node,
                                        const TiledCandidate& candidate) {
  const std::optional<ProductChain> chain = MatchProductChain(scope, node);
  if (!chain.has_value()) return InvalidInput("there is no such chain of products here");
  MENDEL_ASSIGN_OR_RETURN(FusedKernel kernel, WriteChainKernel(scope.graph, *chain, candidate));
  return GroupOf(std::move(kernel), chain->second.result, chain->nodes);
}

absl::Status CheckAllowed(const TiledCandidate& candidate, Numerics numerics, int architecture) {
  if (candidate.asynchronous && architecture < kAsyncArchitecture) {
    return InvalidInput("GPUs of sm_", architecture, " have no asynchronous copies, those of sm_",
                        kAsyncArchitecture, " and newer do");
  }
  if (!candidate.tensor_cores.has_value()) return absl::OkStatus();
  const TensorCores& cores = *FindTensorCores(*candidate.tensor_cores);
  if (!Allows(numerics, cores.numerics)) {
    return InvalidInput("the numerics class '", NumericsName(numerics), "' does not allow '",
                        NumericsName(cores.numerics), "'");
  }
  if (architecture >= cores.architecture) return absl::OkStatus();
  return InvalidInput("GPUs of sm_", architecture, " have no tensor cores of ",
                      NumericsName(cores.numerics), ", those of sm_", cores.architecture,
                      " and newer do");
}

absl::StatusOr<LibraryGroup> TiledGroup(const GroupingScope& scope, int32_t node,
                                        const std::string& algorithm, Numerics numerics,
                                        int architecture) {
  MENDEL_ASSIGN_OR_RETURN(const TiledCandidate candidate,
                          ParseCandidate(algorithm, RealBytes(scope.graph, node)));
  MENDEL_RETURN_IF_ERROR(CheckAllowed(candidate, numerics, architecture));
  if (candidate.fusion == TiledFusion::kChain) return ChainGroup(scope, node, candidate);
  const std::optional<TiledChain> chain = MatchTiledChain(scope, node, candidate.fusion);
  if (!chain.has_value()) return InvalidInput("there is no such product here");
  const ProductExtents extents = ExtentsOfProduct(scope.graph, node);
  if (candidate.asynchronous && !CopiesAny(scope.graph, *chain, candidate, extents)) {
    return InvalidInput(
        "no operand lies in memory as its tile does in shared memory, to be copied asynchronously");
  }
  MENDEL_ASSIGN_OR_RETURN(const DividedDepth divided, DividedDepthOf(candidate, extents));
  MENDEL_ASSIGN_OR_RETURN(FusedKernel kernel,
                          WriteTiledKernel(scope.graph, *chain, candidate, divided));
  LibraryGroup group = GroupOf(std::move(kernel), chain->result, chain->nodes);
  if (divided.parts > 1) {
    MENDEL_ASSIGN_OR_RETURN(group.finish, WriteTotalKernel(scope.graph, *chain, divided));
    group.scratch_bytes = PartialElements(*chain, extents, divided) * RealBytes(scope.graph, node);
  }
  return group;
}

/// The first of `offered` that copy anything asynchronously, so.
std::vector<TiledCandidate> Asynchronous(const GroupingScope& scope, int32_t node,
                                         const ProductExtents& extents,
                                         const std::vector<TiledCandidate>& offered) {
  constexpr size_t kMost = 2;
  std::vector<TiledCandidate> copying;
  for (TiledCandidate candidate : offered) {
    candidate.asynchronous = true;
    const std::optional<TiledChain> chain = MatchTiledChain(scope, node, candidate.fusion);
    if (copying.size() < kMost && CopiesAny(scope.graph, *chain, candidate, extents))
      copying.push_back(candidate);
  }
  return copying;
}

}  // namespace

std::string TiledLibrary::Identity() const { return Cat("tile ", kVersion); }

std::vector<std::string> TiledLibrary::Algorithms(const GroupingScope& scope, int32_t node,
                                                  Numerics numerics) const {
  std::vector<std::string> names;
  if (!MatchTiledChain(scope, node, TiledFusion::kNone).has_value()) return names;
  const int64_t real_bytes = RealBytes(scope.graph, node);
  const auto products = experiments_ ? MatchProductChain(scope, node) : std::nullopt;
  if (products.has_value()) {
    for (const TiledCandidate& candidate :
         RankedChains(scope.graph, *products, real_bytes, multiprocessors_)) {
      names.push_back(CandidateName(candidate));
    }
  }
  std::vector<TiledFusion> fusions;
  for (const TiledFusion fusion : {TiledFusion::kPair, TiledFusion::kRows}) {
    if (MatchTiledChain(scope, node, fusion).has_value()) fusions.push_back(fusion);
  }
  const ProductExtents extents = ExtentsOfProduct(scope.graph, node);
  const auto offer = [&](std::optional<Numerics> cores) {
    std::vector<TiledCandidate> ranked =
        RankedCandidates(extents, real_bytes, fusions, multiprocessors_, cores);
    if (experiments_ && architecture_ >= kAsyncArchitecture) {
      for (const TiledCandidate& candidate : Asynchronous(scope, node, extents, ranked))
        ranked.push_back(candidate);
    }
    for (const TiledCandidate& candidate : ranked) names.push_back(CandidateName(candidate));
  };
  offer(std::nullopt);
  for (const TensorCores& cores : AllTensorCores()) {
    if (Allows(numerics, cores.numerics) && architecture_ >= cores.architecture)
      offer(cores.numerics);
  }
  return names;
}

absl::StatusOr<LibraryGroup> TiledLibrary::Group(const GroupingScope& scope, int32_t node,
                                                 const std::string& algorithm,
                                                 Numerics numerics) const {
  auto group = TiledGroup(scope, node, algorithm, numerics, architecture_);
  if (group.ok()) return group;
  const Node& it = scope.graph.node(node);
  return InvalidInput("node '", it.name, "' (", it.op->name, " ", node, ") cannot be computed by '",
                      algorithm, "': ", std::string(group.status().message()));
}

}  // namespace mendel::cuda
