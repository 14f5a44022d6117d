#include "kernels/cpu/lowering/code_function.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "base/status.h"
#include "kernels/cpu/kernels/code_table.h"
#include "kernels/cpu/kernels/typed.h"
#include "kernels/cpu/lowering/lower.h"
#include "kernels/cpu/lowering/tile_call.h"
#include "kernels/cpu/simd/tile_convert.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

constexpr size_t kCodes = 256;
using Values = std::array<float, kCodes>;

/// A value for each byte of its source, which `pool` may choose.
struct Decided {
  ValueId source;
  Values values;
  int32_t pool = -1;

  bool IsOf(const Decided& other) const { return source == other.source && pool == other.pool; }
};

class Finder {
 public:
  Finder(const Graph& graph, Folded& folded, const std::vector<int32_t>& owner)
      : graph_(graph), folded_(folded), owner_(owner) {}

  std::map<int32_t, CodeFunction> Find() {
    std::map<int32_t, CodeFunction> functions;
    for (int32_t id = 0; id < static_cast<int32_t>(graph_.nodes().size()); ++id) {
      std::optional<Decided> decided = Decide(id);
      if (!decided.has_value()) continue;
      const DType dtype = graph_.type({id, 0}).dtype;
      if (IsCode(dtype)) {
        CodeFunction& function = functions[id];
        function.source = decided->source;
        function.pool = decided->pool;
        FindTileConversion(dtype)->store(decided->values.data(), function.table.data(), kCodes);
      }
      decided_.emplace(id, *decided);
    }
    return functions;
  }

 private:
  std::optional<Decided> Decide(int32_t id) {
    const Node& node = graph_.node(id);
    if (owner_[static_cast<size_t>(id)] >= 0 || node.inputs.empty() || node.inputs.size() > 3 ||
        node.op->name == "BatchNormalization" || folded_.IsConstant({id, 0}))
      return std::nullopt;
    if (node.op->name == "MaxPool") return DecidePool(id);
    if (!IsElementwise(graph_, folded_, id)) return std::nullopt;
    Values operands[3];
    std::optional<Decided> source;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const ValueId input = node.inputs[k];
      if (folded_.IsConstant(input)) {
        if (NumElements(graph_.type(input)) != 1) return std::nullopt;
        operands[k].fill(static_cast<float>(folded_.Rounded(input).DoubleAt(0)));
        continue;
      }
      const std::optional<Decided> operand = OperandOf(input);
      if (!operand.has_value() || (source.has_value() && !operand->IsOf(*source)) ||
          graph_.type(input).shape != node.outputs[0].shape)
        return std::nullopt;
      source = operand;
      operands[k] = operand->values;
    }
    if (!source.has_value()) return std::nullopt;
    Decided decided{source->source, operands[0], source->pool};
    if (!KeepsNumbers(graph_, node)) {
      const TileCall call = TileCallOf(node);
      const float* in[3] = {operands[0].data(), operands[0].data(), operands[0].data()};
      for (size_t k = 0; k < node.inputs.size(); ++k) in[k] = operands[k].data();
      call.function(decided.values.data(), in, kCodes, call.parameters.data());
    }
    return decided;
  }

  std::optional<Decided> DecidePool(int32_t id) const {
    const ValueId input = graph_.node(id).inputs[0];
    std::optional<Decided> decided = OperandOf(input);
    if (!decided.has_value() || decided->pool >= 0 || !SuitsLibraryPool(graph_, id) ||
        !Increases(*decided))
      return std::nullopt;
    decided->pool = id;
    return decided;
  }

  /// Larger codes of the source never have smaller values.
  bool Increases(const Decided& decided) const {
    Values values = decided.values;
    if (graph_.type(decided.source).dtype == DType::kI8)
      std::rotate(values.begin(), values.begin() + kCodes / 2, values.end());
    return std::is_sorted(values.begin(), values.end()) &&
           std::none_of(values.begin(), values.end(), [](float x) { return std::isnan(x); });
  }

  /// Codes that no earlier ones decide are a source.
  std::optional<Decided> OperandOf(ValueId value) const {
    if (const auto known = decided_.find(value.node); known != decided_.end()) return known->second;
    const DType dtype = graph_.type(value).dtype;
    if (!IsCode(dtype)) return std::nullopt;
    uint8_t bytes[kCodes];
    for (size_t k = 0; k < kCodes; ++k) bytes[k] = static_cast<uint8_t>(k);
    Decided source{value, {}};
    FindTileConversion(dtype)->load(bytes, source.values.data(), kCodes);
    return source;
  }

  const Graph& graph_;
  Folded& folded_;
  const std::vector<int32_t>& owner_;
  std::map<int32_t, Decided> decided_;  ///< by node
};

bool IsIdentity(const std::array<uint8_t, kCodes>& table) {
  for (size_t k = 0; k < kCodes; ++k) {
    if (table[k] != k) return false;
  }
  return true;
}

class TableKernel final : public Kernel {
 public:
  TableKernel(Place from, Place to, int64_t count, const std::array<uint8_t, kCodes>& table)
      : from_(std::move(from)), to_(std::move(to)), count_(count), table_(table) {}

  absl::Status Run(const Bindings& bindings) override {
    const uint8_t* const from = bindings.At<uint8_t>(from_);
    uint8_t* const to = bindings.At<uint8_t>(to_);
    ParallelRange(count_, GrainOf(1), [&](int64_t begin, int64_t end) {
      Translate(from + begin, end - begin, table_, to + begin);
    });
    return absl::OkStatus();
  }

 private:
  Place from_, to_;
  int64_t count_;
  std::array<uint8_t, kCodes> table_;
};

}  // namespace

std::map<int32_t, CodeFunction> FindCodeFunctions(const Graph& graph, Folded& folded,
                                                  const std::vector<int32_t>& owner) {
  return Finder(graph, folded, owner).Find();
}

absl::Status LowerCodeFunction(Lowering& lowering, const Group& group) {
  const CodeFunction& function = *group.function;
  const ValueId result{group.nodes.back(), 0};
  const Shape& shape = lowering.shape(result);
  if (function.pool >= 0) {
    const std::optional<Place> pooled =
        EmitLibraryPool(lowering, {group.nodes, function.pool, function.source, result});
    if (!pooled.has_value()) return InternalError("oneDNN has no pool of codes");
    MENDEL_CHECK(Span(pooled->layout, shape) == NumElements(shape));
    if (!IsIdentity(function.table))
      lowering.Emit(
          group.nodes, "table of codes",
          std::make_unique<TableKernel>(*pooled, *pooled, NumElements(shape), function.table),
          {*pooled});
    return absl::OkStatus();
  }
  Place from = lowering.Any(function.source);
  if (!IsDense(from.layout, shape) || Span(from.layout, shape) != NumElements(shape))
    from = lowering.Plain(function.source);
  const Place to = lowering.Allocate(result, from.layout);
  lowering.Emit(group.nodes, "table of codes",
                std::make_unique<TableKernel>(from, to, NumElements(shape), function.table),
                {from, to}, 0, std::pair{to, from});
  return absl::OkStatus();
}

}  // namespace mendel::cpu
