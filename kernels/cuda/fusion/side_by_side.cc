#include "kernels/cuda/fusion/side_by_side.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "kernels/cuda/fusion/operator_text.h"

namespace mendel::cuda {
namespace {

/// Placeholder for the entry's name, a hash of the finished text.
constexpr std::string_view kUnnamed = "UNNAMED";

std::string Named(std::string text, const std::string& name) {
  for (size_t at = text.find(kUnnamed); at != std::string::npos;
       at = text.find(kUnnamed, at + name.size())) {
    text.replace(at, kUnnamed.size(), name);
  }
  return text;
}

/// The parts of the text that are written group by group.
struct Parts {
  std::string functions;          ///< one a group
  std::string operands, results;  ///< parameters of the entry
  std::string calls;              ///< which blocks belong to which group
  std::vector<KernelOperand> pointers;
  int64_t blocks = 0;
};

void AddPart(const Graph& graph, const FusionGroup& group, size_t number, int threads,
             Parts& parts) {
  ElementsCode elements = WriteElements(graph, group, threads, "block");
  const std::vector<KernelOperand>& operands = elements.code.operands();
  const std::string function = Cat(kUnnamed, "_", number), result = Cat("y", number);
  std::string parameters, arguments;
  for (size_t k = 0; k < operands.size(); ++k) {
    const std::string pointer = Cat("p", parts.pointers.size());
    parameters += PointerParameter(operands[k], Cat("p", k)) + ", ";
    arguments += pointer + ", ";
    parts.operands += PointerParameter(operands[k], pointer) + ", ";
    parts.pointers.push_back(operands[k]);
  }
  parts.functions += Cat("static __device__ __forceinline__ void ", function, "(unsigned block, ",
                         parameters, ResultParameter(graph, group.result, "y"),
                         ") {\n  using namespace mendel_text;\n", elements.code.Take(), "}\n");
  parts.results += Cat(number > 0 ? ", " : "", ResultParameter(graph, group.result, result));
  const int64_t end = parts.blocks + elements.blocks;
  parts.calls += Cat(number > 0 ? "  else " : "  ", "if (blockIdx.x < ", end, "u) ", function,
                     "(blockIdx.x - ", parts.blocks, "u, ", arguments, result, ");\n");
  parts.blocks = end;
}

}  // namespace

bool MayFuseHorizontally(const Graph& graph, const FusionGroup& group) {
  return group.row < 0 && NumElements(graph.type(group.result)) <= kMostFusedElements &&
         std::all_of(group.nodes.begin(), group.nodes.end(), [&](int32_t id) {
           return FindOperatorText(graph.node(id).op->name)->reads != Reads::kMany;
         });
}

absl::StatusOr<FusedKernel> WriteSideBySide(const Graph& graph,
                                            std::span<const FusionGroup> groups) {
  int threads = 0;  // threads of the group that needs most
  for (const FusionGroup& group : groups) {
    int own = 0;
    WriteElements(graph, group, own, "block");
    threads = std::max(threads, own);
  }
  Parts parts;
  for (size_t k = 0; k < groups.size(); ++k) AddPart(graph, groups[k], k, threads, parts);
  FusedKernel kernel;
  kernel.operands = std::move(parts.pointers);
  MENDEL_RETURN_IF_ERROR(
      CheckPointers(graph, groups.back().result.node, kernel.operands.size() + groups.size()));
  const std::string text =
      Cat(parts.functions, "extern \"C\" __global__ void __launch_bounds__(", threads, ") ",
          kUnnamed, "(", parts.operands, parts.results, ") {\n", parts.calls, "}\n");
  // An entry's old name, "horizontal_" in version 0.2: stored modules are found by their text.
  kernel.name = Cat("beside_", Sha256Hex(text).substr(0, 24));
  kernel.text = Named(text, kernel.name);
  kernel.launch = {static_cast<unsigned>(parts.blocks), static_cast<unsigned>(threads), 0};
  return kernel;
}

}  // namespace mendel::cuda
