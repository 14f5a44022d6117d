#include "kernels/cuda/fusion/transposition.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/cuda/fusion/operator_text.h"

namespace mendel::cuda {
namespace {

constexpr int64_t kSquare = 32;
constexpr int64_t kRows = 8;  ///< of a square that the threads move at once
constexpr int64_t kLeast = 8;

/// True if `other` is a Transpose that `transpose` undoes: the result has its elements in the order
/// in which `other` reads them.
bool Undoes(const Node& transpose, const Node& other) {
  if (other.op->name != "Transpose") return false;
  const Ints &back = transpose.attrs.IntList("perm"), &there = other.attrs.IntList("perm");
  if (back.size() != there.size()) return false;
  for (size_t d = 0; d < back.size(); ++d) {
    if (there[static_cast<size_t>(back[d])] != static_cast<int64_t>(d)) return false;
  }
  return true;
}

/// The Transpose of which the group's result is an elementwise function. -1 if there is none or
/// several, or if it undoes another one in the group. -1 also if a node of the group reads it, or
/// values computed from it, elsewhere than at the result's position.
int32_t TransposeOf(const Graph& graph, const FusionGroup& group) {
  const Shape& shape = graph.type(group.result).shape;
  const auto is_here = [&](int32_t id) {
    return FindOperatorText(graph.node(id).op->name)->reads == Reads::kAtPosition;
  };
  int32_t found = -1;
  std::set<int32_t> here;  // nodes that are computed at the result's position, with the Transpose
  std::vector<int32_t> open = {group.result.node};
  while (!open.empty()) {
    const int32_t id = open.back();
    open.pop_back();
    if (group.nodes.count(id) == 0 || here.count(id) != 0) continue;
    const bool transposes = graph.node(id).op->name == "Transpose";
    if (!transposes && !is_here(id)) continue;
    if (transposes && found >= 0) return -1;
    here.insert(id);
    if (transposes) {
      found = id;
      continue;
    }
    for (const ValueId& input : graph.node(id).inputs) {
      if (graph.type(input).shape == shape) open.push_back(input.node);
    }
  }
  for (const int32_t id : group.nodes) {
    if (found >= 0 && id != found && Undoes(graph.node(found), graph.node(id))) return -1;
    const bool reads_here = here.count(id) != 0 && id != found;
    for (const ValueId& input : graph.node(id).inputs) {
      if (here.count(input.node) != 0 && !reads_here) return -1;
    }
  }
  return found;
}

/// Neighboring dimensions [begin, end) of the result that are neighbors of the source, too, in
/// the same order.
struct Run {
  size_t begin, end;
  int64_t extent;
};

Run RunUpTo(const Ints& perm, const Shape& shape, size_t last) {
  Run run{last, last + 1, shape[last]};
  while (run.begin > 0 && perm[run.begin - 1] + 1 == perm[run.begin])
    run.extent *= shape[--run.begin];
  return run;
}

class Transposition {
 public:
  Transposition(const Graph& graph, const FusionGroup& group, int32_t transpose)
      : graph_(graph),
        group_(group),
        transpose_(transpose),
        shape_(graph.type(group.result).shape),
        perm_(graph.node(transpose).attrs.IntList("perm")),
        code_(graph, group.nodes, IndexTypeOf(graph, group.nodes)) {}

  std::optional<FusedKernel> Write() {
    if (shape_.size() < 2 || NumElements(graph_.type(group_.result)) == 0) return std::nullopt;
    size_t source_last = 0;
    while (perm_[source_last] + 1 != static_cast<int64_t>(perm_.size())) ++source_last;
    source_ = RunUpTo(perm_, shape_, source_last);
    result_ = RunUpTo(perm_, shape_, shape_.size() - 1);
    if (source_.begin == result_.begin || source_.extent < kLeast || result_.extent < kLeast)
      return std::nullopt;
    const int64_t squares = Squares(source_) * Squares(result_);
    const int64_t blocks =
        NumElements(graph_.type(group_.result)) / source_.extent / result_.extent * squares;
    WriteCorner(squares);
    WriteLoads();
    code_.Line("__syncthreads();");
    WriteResults();
    const int64_t shared = (kSquare + 1) * kSquare * (real() == "float" ? 4 : 8);
    return FinishedKernel(graph_, group_.result, code_, blocks, kSquare * kRows,
                          static_cast<unsigned>(shared));
  }

 private:
  static int64_t Squares(const Run& run) { return (run.extent + kSquare - 1) / kSquare; }
  std::string_view real() const { return RealName(graph_.type(ValueId{transpose_, 0}).dtype); }

  /// The block's square: its first elements along both runs, and the coordinates of the other
  /// dimensions.
  void WriteCorner(int64_t squares) {
    const std::string& index = code_.index_type();
    const std::string block = code_.LetIndex(Cat("static_cast<", index, ">(blockIdx.x)"));
    first_source_ =
        code_.LetIndex(Scaled(Modulo(Divided(block, Squares(result_)), Squares(source_)), kSquare));
    first_result_ = code_.LetIndex(Scaled(Modulo(block, Squares(result_)), kSquare));
    Shape others = shape_;
    for (const Run& run : {source_, result_}) {
      for (size_t d = run.begin; d < run.end; ++d) others[d] = 1;
    }
    corner_ = code_.Decode(code_.LetIndex(Divided(block, squares)), others).at;
    column_ = code_.LetIndex(Cat("static_cast<", index, ">(threadIdx.x) % ", kSquare));
    row_ = code_.LetIndex(Cat("static_cast<", index, ">(threadIdx.x) / ", kSquare));
    code_.Line(Cat(real(), "* const square = reinterpret_cast<", real(), "*>(mendel_shared);"));
  }

  /// A loop over the rows of a square, with the element's numbers along both runs.
  void OpenRows(const std::string& in_source, const std::string& in_result) {
    const std::string& index = code_.index_type();
    code_.Open(Cat("for (", index, " j = ", row_, "; j < ", kSquare, "; j += ", kRows, ")"));
    code_.Line(Cat("const ", index, " a = ", first_source_, " + ", in_source, ";"));
    code_.Line(Cat("const ", index, " b = ", first_result_, " + ", in_result, ";"));
    code_.Open(Cat("if (a < ", source_.extent, " && b < ", result_.extent, ")"));
  }

  /// The position in the result at numbers a and b.
  Position At() {
    Position at{corner_};
    for (const auto& [run, number] : {std::pair(source_, "a"), std::pair(result_, "b")}) {
      const auto first = shape_.begin() + static_cast<std::ptrdiff_t>(run.begin);
      const Position inner = code_.Decode(
          number, Shape(first, first + static_cast<std::ptrdiff_t>(run.end - run.begin)));
      for (size_t d = run.begin; d < run.end; ++d) at.at[d] = inner.at[d - run.begin];
    }
    return at;
  }

  void WriteLoads() {
    OpenRows(column_, "j");
    const Position to = At();
    Position from{std::vector<std::string>(perm_.size())};
    for (size_t d = 0; d < perm_.size(); ++d) from.at[static_cast<size_t>(perm_[d])] = to.at[d];
    const std::string element = code_.Element(graph_.node(transpose_).inputs[0], from);
    code_.Line(Cat("square[j * ", kSquare + 1, " + ", column_, "] = ", element, ";"));
    code_.Close();
    code_.Close();
  }

  void WriteResults() {
    OpenRows("j", column_);
    code_.Bind({transpose_, 0},
               code_.Let(real(), Cat("square[", column_, " * ", kSquare + 1, " + j]")));
    const Position at = At();
    const std::string element = Stored(graph_, group_.result, code_.Element(group_.result, at));
    code_.Line(Cat("y[", FlatOf(shape_, at), "] = ", element, ";"));
    code_.Close();
    code_.Close();
  }

  const Graph& graph_;
  const FusionGroup& group_;
  const int32_t transpose_;
  const Shape shape_;
  const Ints perm_;
  KernelCode code_;
  Run source_{}, result_{};  ///< along which the source and the result lie side by side
  std::string first_source_, first_result_, column_, row_;
  std::vector<std::string> corner_;
};

}  // namespace

std::optional<FusedKernel> WriteTransposition(const Graph& graph, const FusionGroup& group) {
  const int32_t transpose = group.row < 0 ? TransposeOf(graph, group) : -1;
  if (transpose < 0) return std::nullopt;
  std::optional<FusedKernel> kernel = Transposition(graph, group, transpose).Write();
  if (kernel.has_value()) kernel->kind = "transposition";
  return kernel;
}

}  // namespace mendel::cuda
