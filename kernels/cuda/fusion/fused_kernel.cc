#include "kernels/cuda/fusion/fused_kernel.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "kernels/cuda/fusion/operator_text.h"
#include "kernels/cuda/fusion/transposition.h"

namespace mendel::cuda {
namespace {

constexpr int kBlock = 256;
constexpr int kWarp = 32;
constexpr int64_t kIntElements = (int64_t{1} << 31) - (1 << 16);

int ThreadsFor(int64_t count) {
  int threads = kWarp;
  while (threads < kBlock && threads < count) threads *= 2;
  return threads;
}

/// Elements that one access of 16 bytes moves, of the widest type involved; 1 where an element is a
/// sum.
int Lanes(const Graph& graph, const FusionGroup& group) {
  int64_t widest = DTypeSize(graph.type(group.result).dtype);
  for (int32_t id : group.nodes) {
    if (id != group.row && FindOperatorText(graph.node(id).op->name)->reads == Reads::kMany)
      return 1;
    for (const TensorType& type : graph.InputTypes(id))
      widest = std::max(widest, DTypeSize(type.dtype));
  }
  return static_cast<int>(16 / widest);
}

/// True where the group only moves 16-bit floats of one dtype.
bool OnlyMoves(const Graph& graph, const FusionGroup& group) {
  const DType dtype = graph.type(group.result).dtype;
  if (!IsFloat(dtype) || DTypeSize(dtype) != 2) return false;
  return std::all_of(group.nodes.begin(), group.nodes.end(), [&](int32_t id) {
    const std::vector<TensorType> types = graph.InputTypes(id);
    return FindOperatorText(graph.node(id).op->name)->reads == Reads::kMoved &&
           std::all_of(types.begin(), types.end(),
                       [&](const TensorType& type) { return type.dtype == dtype; });
  });
}

KernelCode CodeOf(const Graph& graph, const FusionGroup& group) {
  KernelCode code(graph, group.nodes, IndexTypeOf(graph, group.nodes));
  if (OnlyMoves(graph, group)) code.KeepBits();
  return code;
}
/// The result's element at `position` as it is stored.
std::string StoredAt(KernelCode& code, const FusionGroup& group, const Position& position) {
  const std::string element = code.Element(group.result, position);
  return code.keeps_bits() ? element : Stored(code.graph(), group.result, element);
}

/// The condition that `position` of a tensor of `shape` lies in one of `boxes`.
std::string Inside(const Shape& shape, const Position& position, const std::vector<Box>& boxes) {
  std::string any;
  for (const Box& box : boxes) {
    std::string all;
    for (size_t d = 0; d < shape.size(); ++d) {
      const std::string& at = position.at[d];
      if (box.begin[d] > 0) all += Cat(all.empty() ? "" : " && ", at, " >= ", box.begin[d]);
      if (box.end[d] < shape[d]) all += Cat(all.empty() ? "" : " && ", at, " < ", box.end[d]);
    }
    any += Cat(any.empty() ? "" : " || ", "(", all.empty() ? "true" : all, ")");
  }
  return any;
}

/// `block` is the expression of the block's number.
ElementsCode ScalarCode(const Graph& graph, const FusionGroup& group, int threads,
                        std::string_view block, const std::vector<Box>& spared) {
  ElementsCode result{CodeOf(graph, group)};
  KernelCode& code = result.code;
  const TensorType& type = graph.type(group.result);
  const int64_t count = NumElements(type);
  const std::string index = code.index_type();
  code.Line(Cat("const ", index, " f = static_cast<", index, ">(", block, ") * ", threads,
                " + static_cast<", index, ">(threadIdx.x);"));
  code.Line(Cat("if (f >= ", count, ") return;"));
  const Position position = code.Decode("f", type.shape, true);
  if (!spared.empty()) code.Line(Cat("if (", Inside(type.shape, position, spared), ") return;"));
  code.Line(Cat("y[f] = ", StoredAt(code, group, position), ";"));
  result.blocks = (count + threads - 1) / threads;
  return result;
}

/// Code by vectors; nullopt if no load is a vector's.
std::optional<ElementsCode> VectorCode(const Graph& graph, const FusionGroup& group, int lanes,
                                       int threads, std::string_view block,
                                       const std::vector<Box>& spared) {
  ElementsCode result{CodeOf(graph, group)};
  KernelCode& code = result.code;
  const TensorType& type = graph.type(group.result);
  const int64_t count = NumElements(type);
  const std::string index = code.index_type();
  const std::string pack = Cat("Pack<", StoredName(type.dtype), ", ", lanes, ">");
  code.Line(Cat("const ", index, " first = (static_cast<", index, ">(", block, ") * ", threads,
                " + static_cast<", index, ">(threadIdx.x)) * ", lanes, ";"));
  code.Line(Cat("if (first >= ", count, ") return;"));
  const bool tail = count % lanes != 0;
  code.Open(tail ? Cat("if (first + ", lanes, " <= ", count, ")") : "");
  code.Line(Cat(pack, " result;"));
  if (!spared.empty()) code.Line("unsigned spared = 0;  // a bit a lane");
  code.BeginLanes(lanes, "first", type.shape);
  code.Line(Cat("const ", index, " f = first + lane;"));
  const Position position = code.Decode("f", type.shape, true);
  code.Line(Cat("result.v[lane] = ", StoredAt(code, group, position), ";"));
  if (!spared.empty())
    code.Line(Cat("if (", Inside(type.shape, position, spared), ") spared |= 1u << lane;"));
  if (code.EndLanes(Cat("for (int lane = 0; lane < ", lanes, "; ++lane)")) == 0)
    return std::nullopt;
  if (!spared.empty()) {
    code.Open("if (spared != 0)");
    code.Open(Cat("for (int lane = 0; lane < ", lanes, "; ++lane)"));
    code.Line("if ((spared >> lane & 1) == 0) y[first + lane] = result.v[lane];");
    code.Close();
    code.Line("return;");
    code.Close();
  }
  code.Line(Cat("*reinterpret_cast<", pack, "*>(y + first) = result;"));
  code.Line("return;");
  code.Close();
  if (tail) {
    code.Open(Cat("for (", index, " f = first; f < ", count, "; ++f)"));
    const Position at = code.Decode("f", type.shape, true);
    if (!spared.empty()) code.Line(Cat("if (", Inside(type.shape, at, spared), ") continue;"));
    code.Line(Cat("y[f] = ", StoredAt(code, group, at), ";"));
    code.Close();
  }
  const int64_t packs = (count + lanes - 1) / lanes;
  result.blocks = (packs + threads - 1) / threads;
  result.lanes = lanes;
  return result;
}

/// The results of a row: one, or one for each of its elements.
void WriteRowResults(const Graph& graph, const FusionGroup& group, const RowText& text,
                     const RowAt& row) {
  KernelCode& code = row.code;
  const ValueId value{group.row, 0};
  const TensorType& type = graph.type(value);
  const std::vector<std::string> statistics = text.statistics(row);
  const auto result = [&](const Position& at) {
    return Stored(graph, group.result, code.Element(group.result, at));
  };
  if (text.element == nullptr) {
    code.Bind(value, statistics.back());
    code.Open("if (threadIdx.x == 0)");
    code.Line(Cat("y[", row.number, "] = ",
                  result(code.Decode(row.number, graph.type(group.result).shape, true)), ";"));
    code.Close();
    return;
  }
  const std::string pack =
      Cat("Pack<", StoredName(graph.type(group.result).dtype), ", ", row.lanes, ">");
  row.ForElements(
      [&](const std::string& x, const Position& at) {
        code.Bind(value, code.Let(RealName(type.dtype), text.element(row, statistics, x, at)));
        const std::string stored = result(at);
        code.Line(Cat(row.lanes > 1 ? "result.v[lane]" : Cat("y[", FlatOf(type.shape, at), "]"),
                      " = ", stored, ";"));
      },
      Cat(pack, " result;"), Cat("*reinterpret_cast<", pack, "*>(y + first) = result;"));
}

/// A kernel of one block a row. Returns nullopt if no load of `lanes` elements is a vector's.
std::optional<FusedKernel> RowKernel(const Graph& graph, const FusionGroup& group, int lanes) {
  return WithView(graph, group.row, [&](const NodeView& view) -> std::optional<FusedKernel> {
    const RowText& text = FindOperatorText(graph.node(group.row).op->name)->row;
    KernelCode code(graph, group.nodes, IndexTypeOf(graph, group.nodes));
    const auto [shape, axes] = text.geometry(view);
    Shape kept = shape;
    for (int64_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
    RowAt row{code, group.row, view, 0, shape, axes, {}, lanes, "r"};
    if (lanes > 1 && (!row.IsContiguous() || row.Count() % lanes != 0)) return std::nullopt;
    row.threads = ThreadsFor(row.Count() / lanes);
    const std::string index = code.index_type();
    code.Line(Cat("const ", index, " r = static_cast<", index, ">(blockIdx.x);"));
    row.position = code.Decode("r", kept).at;
    if (text.element != nullptr) row.Keep();
    WriteRowResults(graph, group, text, row);
    if (code.has_scalar_lanes()) return std::nullopt;
    FusedKernel kernel =
        FinishedKernel(graph, group.result, code, NumElements(kept), row.threads,
                       row.threads > kWarp ? static_cast<unsigned>(row.threads / kWarp) * 8u : 0u);
    kernel.lanes = lanes;
    kernel.kind = "rows";
    return kernel;
  });
}

FusedKernel WriteRows(const Graph& graph, const FusionGroup& group) {
  const int lanes = Lanes(graph, group);
  std::optional<FusedKernel> kernel = lanes > 1 ? RowKernel(graph, group, lanes) : std::nullopt;
  return kernel.has_value() ? *std::move(kernel) : *RowKernel(graph, group, 1);
}

}  // namespace

std::string Stored(const Graph& graph, ValueId value, const std::string& element) {
  return Cat(StorageName(graph.type(value).dtype), "::Store(", element, ")");
}

ElementsCode WriteElements(const Graph& graph, const FusionGroup& group, int& threads,
                           std::string_view block, const std::vector<Box>& spared) {
  const int64_t count = NumElements(graph.type(group.result));
  const bool given = threads > 0;
  // Fewer lanes where more would lie in different rows.
  for (int lanes = Lanes(graph, group); lanes > 1; lanes /= 2) {
    if (!given) threads = ThreadsFor((count + lanes - 1) / lanes);
    if (auto code = VectorCode(graph, group, lanes, threads, block, spared))
      return *std::move(code);
  }
  if (!given) threads = ThreadsFor(count);
  return ScalarCode(graph, group, threads, block, spared);
}

std::string PointerParameter(const KernelOperand& operand, const std::string& name) {
  return Cat("const ", StoredName(operand.dtype), "* __restrict__ ", name);
}
std::string ResultParameter(const Graph& graph, ValueId result, const std::string& name) {
  return Cat(StoredName(graph.type(result).dtype), "* __restrict__ ", name);
}

absl::Status CheckPointers(const Graph& graph, int32_t id, size_t count) {
  if (count <= kMaxPointers) return absl::OkStatus();
  const Node& node = graph.node(id);
  return Unsupported(node.op->name, node.name.empty() ? "" : Cat(" '", node.name, "'"),
                     ": a kernel of more than ", kMaxPointers, " tensors");
}

std::string IndexTypeOf(const Graph& graph, const std::set<int32_t>& nodes) {
  bool large = false;
  for (int32_t id : nodes) {
    for (const TensorType& type : graph.node(id).outputs)
      large = large || NumElements(type) >= kIntElements;
    for (const TensorType& type : graph.InputTypes(id))
      large = large || NumElements(type) >= kIntElements;
  }
  return large ? "long long" : "int";
}

FusedKernel FinishedKernel(KernelCode& code, const std::string& written, int64_t blocks,
                           int threads, unsigned shared, int fewest) {
  FusedKernel kernel;
  kernel.operands = code.operands();
  kernel.launch = {static_cast<unsigned>(blocks), static_cast<unsigned>(threads), shared};
  std::string parameters;
  for (size_t k = 0; k < kernel.operands.size(); ++k)
    parameters += PointerParameter(kernel.operands[k], Cat("p", k)) + ", ";
  parameters += written;
  const std::string rest =
      Cat("(", parameters, ") {\n  using namespace mendel_text;\n", code.Take(), "}\n");
  const std::string bounds = fewest > 0 ? Cat(threads, ", ", fewest) : Cat(threads);
  kernel.name = Cat("fused_", Sha256Hex(bounds + rest).substr(0, 24));
  kernel.text =
      Cat("extern \"C\" __global__ void __launch_bounds__(", bounds, ") ", kernel.name, rest);
  return kernel;
}

FusedKernel FinishedKernel(const Graph& graph, ValueId result, KernelCode& code, int64_t blocks,
                           int threads, unsigned shared) {
  return FinishedKernel(code, ResultParameter(graph, result, "y"), blocks, threads, shared);
}

absl::StatusOr<FusedKernel> WriteKernel(const Graph& graph, const FusionGroup& group) {
  FusedKernel kernel;
  if (group.row >= 0) {
    kernel = WriteRows(graph, group);
  } else if (std::optional<FusedKernel> transposition = WriteTransposition(graph, group)) {
    kernel = *std::move(transposition);
  } else {
    int threads = 0;
    ElementsCode elements = WriteElements(graph, group, threads, "blockIdx.x");
    kernel = FinishedKernel(graph, group.result, elements.code, elements.blocks, threads, 0);
    kernel.lanes = elements.lanes;
  }
  MENDEL_RETURN_IF_ERROR(CheckPointers(graph, group.result.node, kernel.operands.size() + 1));
  return kernel;
}

}  // namespace mendel::cuda
