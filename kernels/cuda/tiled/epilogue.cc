#include "kernels/cuda/tiled/epilogue.h"

#include <vector>

#include "base/status.h"
#include "kernels/cuda/fusion/position.h"
#include "kernels/cuda/fusion/preamble.h"
#include "kernels/cuda/tiled/operand_text.h"

namespace mendel::cuda {
namespace {

/// The result's stored element at `position`, in the text's `row`.
std::string Result(KernelCode& code, const TiledChain& chain, const ProductPlaces& places,
                   const Position& position, const SumAtLane& sum, const std::string& lane) {
  const Graph& graph = code.graph();
  for (size_t k = 0; k < chain.products.size(); ++k) {
    const Node& product = graph.node(chain.products[k]);
    std::string value = sum(k, lane);
    if (product.inputs.size() > 2)
      value = Cat("Plus(", value, ", ", code.Element(product.inputs[2], places.bias("row")), ")");
    code.Bind({chain.products[k], 0}, code.Let(RealName(product.outputs[0].dtype), value));
  }
  return Cat(StorageName(graph.type(chain.result).dtype), "::Store(",
             code.Element(chain.result, position), ")");
}

}  // namespace

void WriteResults(KernelCode& code, const TiledChain& chain, const ProductPlaces& places, int lanes,
                  const SumAtLane& sum) {
  const TensorType& type = code.graph().type(chain.result);
  const Position first = places.result("row", "column");
  const std::string at = code.LetIndex(FlatOf(type.shape, first));
  if (lanes == 1) {
    code.Line(Cat("y[", at, "] = ", Result(code, chain, places, first, sum, "0"), ";"));
    return;
  }
  const std::string pack = Cat("Pack<", StoredName(type.dtype), ", ", lanes, ">");
  code.Line(Cat(pack, " result;"));
  code.BeginLanes(lanes, at, type.shape);
  code.Line(Cat("const ", code.index_type(), " f = ", at, " + lane;"));
  const Position position = AsRoot(places.result("row", code.LetIndex("column + lane")));
  code.Line(Cat("result.v[lane] = ", Result(code, chain, places, position, sum, "lane"), ";"));
  code.EndLanes(Cat("for (int lane = 0; lane < ", lanes, "; ++lane)"));
  code.Line(Cat("*reinterpret_cast<", pack, "*>(y + ", at, ") = result;"));
}

}  // namespace mendel::cuda
