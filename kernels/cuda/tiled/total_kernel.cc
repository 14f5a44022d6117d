#include "kernels/cuda/tiled/total_kernel.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/status.h"
#include "kernels/cuda/fusion/kernel_code.h"
#include "kernels/cuda/fusion/position.h"
#include "kernels/cuda/fusion/preamble.h"
#include "kernels/cuda/tiled/epilogue.h"
#include "kernels/cuda/tiled/operand_order.h"

namespace mendel::cuda {
namespace {

constexpr int kThreads = 128;

/// Declares `total<product>`: `lanes` sums side by side, from element `e` on.
void WriteTotal(KernelCode& code, size_t product, const std::string& real, int lanes, int64_t parts,
                int64_t elements) {
  const std::string total = Cat("total", product), pack = Cat("Pack<", real, ", ", lanes, ">");
  const auto load = [&](const std::string& part) {
    return Cat("*reinterpret_cast<const ", pack, "*>(parts + ",
               Scaled(Cat("static_cast<long long>(",
                          Added(part, static_cast<int64_t>(product) * parts), ")"),
                      elements),
               " + e)");
  };
  code.Line(Cat(pack, " ", total, " = ", load("0"), ";"));
  code.Line("#pragma unroll 8");
  code.Open(Cat("for (int part = 1; part < ", parts, "; ++part)"));
  code.Line(Cat("const ", pack, " more = ", load("part"), ";"));
  code.Line("#pragma unroll");
  code.Open(Cat("for (int lane = 0; lane < ", lanes, "; ++lane)"));
  code.Line(Cat(total, ".v[lane] = Plus(", total, ".v[lane], more.v[lane]);"));
  code.Close();
  code.Close();
}

absl::StatusOr<FusedKernel> Write(const Graph& graph, const TiledChain& chain,
                                  const DividedDepth& divided, const NodeView& view) {
  const ProductText& text = FindOperatorText(graph.node(chain.products[0]).op->name)->product;
  const ProductExtents extents = text.extents(view);
  const std::string real(RealName(view.outputs[0].dtype));
  const int64_t widest =
      std::max<int64_t>(WidestElement(graph, chain.fused), real == "float" ? 4 : 8);
  const int lanes = ResultLanes(static_cast<int>(16 / widest), extents.result_run);
  const int64_t matrix = extents.rows * extents.columns, elements = extents.batch * matrix;
  const int64_t of_block = int64_t{kThreads} * lanes, blocks = (elements + of_block - 1) / of_block;
  if (blocks > std::numeric_limits<int32_t>::max())
    return Unsupported("a launch of ", blocks, " blocks");
  KernelCode code(graph, chain.fused, IndexTypeOf(graph, chain.fused));
  const std::string index = code.index_type();
  code.Line(Cat("const ", index, " e = ",
                Scaled(Cat("(static_cast<", index, ">(blockIdx.x) * ", kThreads,
                           " + static_cast<int>(threadIdx.x))"),
                       lanes),
                ";"));
  code.Open(Cat("if (e < ", elements, ")"));
  code.Line(
      Cat("const ", index, " row = ", Modulo(Divided("e", extents.columns), extents.rows), ";"));
  code.Line(Cat("const ", index, " column = ", Modulo("e", extents.columns), ";"));
  const ProductPlaces places =
      text.places(code, view, code.LetIndex(extents.batch == 1 ? "0" : Divided("e", matrix)));
  for (size_t k = 0; k < chain.products.size(); ++k)
    WriteTotal(code, k, real, lanes, divided.parts, elements);
  WriteResults(code, chain, places, lanes, [](size_t product, const std::string& lane) {
    return Cat("total", product, ".v[", lane, "]");
  });
  code.Close();
  FusedKernel kernel = FinishedKernel(
      code,
      Cat("const ", real, "* __restrict__ parts, ", ResultParameter(graph, chain.result, "y")),
      blocks, kThreads, 0);
  kernel.lanes = lanes;
  return kernel;
}

}  // namespace

absl::StatusOr<DividedDepth> DividedDepthOf(const TiledCandidate& candidate,
                                            const ProductExtents& extents) {
  const int64_t depth = candidate.tile.depth, steps = (extents.depth + depth - 1) / depth;
  if (candidate.parts == 1) return DividedDepth{1, extents.depth};
  if (steps < candidate.parts) {
    return InvalidInput("sums of ", extents.depth, " products are ", steps, " steps of ", depth,
                        ", which are not divided into ", candidate.parts, " parts");
  }
  const int64_t of_part = (steps + candidate.parts - 1) / candidate.parts;
  return DividedDepth{(steps + of_part - 1) / of_part, of_part * depth};
}

int64_t PartialElements(const TiledChain& chain, const ProductExtents& extents,
                        const DividedDepth& divided) {
  return static_cast<int64_t>(chain.products.size()) * divided.parts * extents.batch *
         extents.rows * extents.columns;
}

absl::StatusOr<FusedKernel> WriteTotalKernel(const Graph& graph, const TiledChain& chain,
                                             const DividedDepth& divided) {
  return WithView(graph, chain.products[0],
                  [&](const NodeView& view) { return Write(graph, chain, divided, view); });
}

}  // namespace mendel::cuda
