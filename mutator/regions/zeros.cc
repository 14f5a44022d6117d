#include "mutator/regions/zeros.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "graph/element_structure.h"
#include "graph/evaluate.h"
#include "graph/grid.h"
#include "mutator/regions/classes.h"

namespace mendel {
namespace {

constexpr int64_t kMaxExtent = 8192;             // longer axes count as not zero
constexpr int64_t kMaxSlice = int64_t{1} << 18;  // elements that are evaluated to see a zero
constexpr int64_t kMaxParameter = 64;            // elements of an operand beside them

bool HasAbsent(const Positions& positions) {
  if (positions.IsRange()) return false;
  const std::vector<int64_t> list = positions.ToList();
  return std::find(list.begin(), list.end(), kAbsent) != list.end();
}

bool HasZeros(const ValueZeros& zeros) {
  return std::any_of(zeros.begin(), zeros.end(), [](const auto& axis) { return !axis.empty(); });
}

bool IsAllZero(const ValueZeros& zeros) {
  return std::any_of(zeros.begin(), zeros.end(), [](const AxisZeros& axis) {
    return !axis.empty() && std::find(axis.begin(), axis.end(), false) == axis.end();
  });
}

AxisZeros OrNone(AxisZeros zeros) {
  if (std::find(zeros.begin(), zeros.end(), true) == zeros.end()) zeros.clear();
  return zeros;
}

/// Positions of a literal whose slices are zero. A slice is read up to its first other number: of
/// most weights that is one number a position.
ValueZeros ZerosOfLiteral(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  ValueZeros result(shape.size());
  if (tensor.size() == 0) return result;
  const Shape strides = RowMajorStrides(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] > kMaxExtent) continue;
    const int64_t inner = strides[d], step = shape[d] * inner;
    const auto is_zero = [&](int64_t p) {
      for (int64_t begin = p * inner; begin < tensor.size(); begin += step) {
        for (int64_t i = begin; i < begin + inner; ++i) {
          if (tensor.DoubleAt(i) != 0) return false;
        }
      }
      return true;
    };
    AxisZeros axis(static_cast<size_t>(shape[d]));
    for (int64_t p = 0; p < shape[d]; ++p) axis[static_cast<size_t>(p)] = is_zero(p);
    result[d] = OrNone(std::move(axis));
  }
  return result;
}

/// One output of one node.
class OutputZeros {
 public:
  OutputZeros(const Graph& graph, int32_t id, int output,
              const std::vector<std::vector<ValueZeros>>& known)
      : graph_(graph),
        node_(graph.node(id)),
        types_(graph.InputTypes(id)),
        stored_(StoredInputs(graph, id)),
        output_(output) {
    for (ValueId input : node_.inputs)
      inputs_.push_back(&known[static_cast<size_t>(input.node)][static_cast<size_t>(input.output)]);
  }

  ValueZeros All() {
    const Shape& shape = node_.outputs[static_cast<size_t>(output_)].shape;
    ValueZeros result(shape.size());
    const bool any = std::any_of(inputs_.begin(), inputs_.end(),
                                 [](const ValueZeros* zeros) { return HasZeros(*zeros); });
    if (!any && node_.op->name != "Pad") return result;
    if (const auto whole = Restrict(WholeGrid(shape)); whole.has_value()) {
      for (size_t k = 0; k < inputs_.size(); ++k) reads_zero_.push_back(ReadsZero(k, *whole));
    }
    const auto moved = Moved();
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] > kMaxExtent) continue;
      result[d] = OrNone(moved.has_value() ? MovedAlong(d, *moved) : Along(d, shape[d]));
    }
    return result;
  }

 private:
  NodeView View() const { return {types_, node_.attrs, node_.outputs}; }

  std::optional<GridRestriction> Restrict(const Grid& wanted) const {
    return RestrictToGrid(*node_.op, {View(), stored_, output_, wanted});
  }
  std::optional<GridRestriction> PartAt(size_t d, int64_t p) const {
    Grid wanted = WholeGrid(node_.outputs[static_cast<size_t>(output_)].shape);
    wanted[d] = Positions::Range(p, 1);
    return Restrict(wanted);
  }

  /// The positions that the elements come from, where each axis moves by itself (Pad).
  std::optional<GridRestriction> Moved() const {
    const GridStructure* own = FindGridStructure(node_.op->name);
    const ElementStructure* elements = FindElementStructure(node_.op->name);
    if (own != nullptr || elements == nullptr || elements->taps == nullptr) return std::nullopt;
    auto all = Restrict(WholeGrid(node_.outputs[static_cast<size_t>(output_)].shape));
    return all.has_value() && all->moved >= 0 ? std::move(all) : std::nullopt;
  }

  AxisZeros MovedAlong(size_t d, const GridRestriction& all) const {
    const size_t k = static_cast<size_t>(all.moved);
    const Positions& read = all.inputs[k][d];
    AxisZeros zeros(static_cast<size_t>(read.size()), false);
    GridRestriction at = all;
    for (int64_t p = 0; p < read.size(); ++p) {
      at.inputs[k][d] = Positions::List({read[p]});
      zeros[static_cast<size_t>(p)] = ReadsZero(k, at);
    }
    return zeros;
  }

  AxisZeros Along(size_t d, int64_t extent) {
    const GridStructure* own = FindGridStructure(node_.op->name);
    const bool by_grids = output_ != 0 || (own != nullptr && own->restrict != nullptr);
    const auto links = by_grids ? std::nullopt : FreeAxis(*node_.op, View(), d);
    AxisZeros zeros(static_cast<size_t>(extent), false);
    for (int64_t p = 0; p < extent; ++p) {
      std::vector<bool> zero(inputs_.size());
      std::optional<GridRestriction> part;
      if (links.has_value()) {
        for (size_t k = 0; k < zero.size(); ++k) zero[k] = IsZeroAt(k, (*links)[k], p);
      } else {
        part = PartAt(d, p);
        if (!part.has_value()) return {};
        for (size_t k = 0; k < zero.size(); ++k) zero[k] = ReadsZero(k, *part);
        if (part->moved >= 0) {
          zeros[static_cast<size_t>(p)] = zero[static_cast<size_t>(part->moved)];
          continue;
        }
      }
      if (std::find(zero.begin(), zero.end(), true) == zero.end()) continue;
      zeros[static_cast<size_t>(p)] =
          IsLinearZero(zero) || IsEvaluatedZero(zero, d, p, links.has_value());
    }
    return zeros;
  }

  bool IsZeroAt(size_t k, int axis, int64_t p) const {
    if (!reads_zero_.empty() && reads_zero_[k]) return true;
    if (axis < 0) return IsAllZero(*inputs_[k]);
    const AxisZeros& zeros = (*inputs_[k])[static_cast<size_t>(axis)];
    return !zeros.empty() && zeros[static_cast<size_t>(p)];
  }

  /// True where all that the part reads of input k is zero.
  bool ReadsZero(size_t k, const GridRestriction& part) const {
    const Grid& read = part.inputs[k];
    if (part.moved >= 0 && part.fill != 0 && std::any_of(read.begin(), read.end(), HasAbsent))
      return false;
    for (size_t axis = 0; axis < read.size(); ++axis) {
      const AxisZeros& zeros = (*inputs_[k])[axis];
      bool all = true;  // where nothing is read, too: a window of padding
      for (int64_t i = 0; all && i < read[axis].size(); ++i) {
        const int64_t p = read[axis][i];
        all = p == kAbsent ? part.moved >= 0 : !zeros.empty() && zeros[static_cast<size_t>(p)];
      }
      if (all) return true;
    }
    return false;
  }

  /// The output is linear in an operand that is zero, a bias aside that is zero, too.
  bool IsLinearZero(const std::vector<bool>& zero) const {
    if (node_.op->name == "BatchNormalization") return zero[1] && zero[2];
    if (node_.op->linear_inputs == nullptr) return false;
    NodeView view = View();
    const bool biased = node_.op->name == "Conv" || node_.op->name == "ConvTranspose";
    if (biased && zero.size() > 2) {
      if (!zero[2]) return false;
      view.inputs = view.inputs.first(2);
    }
    const uint32_t linear = node_.op->linear_inputs(view);
    for (size_t k = 0; k < zero.size() && k < 32; ++k) {
      if (zero[k] && (linear >> k & 1) != 0) return true;
    }
    return false;
  }

  /// The operator at zeros, beside small operands that are known. Positions of a free axis are
  /// computed alike, so that one answer suffices for all of them.
  bool IsEvaluatedZero(const std::vector<bool>& zero, size_t d, int64_t p, bool free) {
    const auto key = std::tuple(d, free ? -1 : p, zero);
    const auto known = answers_.find(key);
    if (known != answers_.end()) return known->second;
    const auto part = PartAt(d, p);
    const bool answer = part.has_value() && part->moved < 0 && EvaluatesToZero(zero, *part);
    answers_[key] = answer;
    return answer;
  }

  bool EvaluatesToZero(const std::vector<bool>& zero, const GridRestriction& part) const {
    if (NumElements(ExtentsOf(part.computed)) > kMaxSlice) return false;
    std::vector<HostValue> values;
    std::vector<TensorType> types;
    for (size_t k = 0; k < zero.size(); ++k) {
      types.push_back({types_[k].dtype, ExtentsOf(part.inputs[k])});
      const int64_t size = NumElements(types.back());
      if (!IsFloat(types[k].dtype)) return false;
      if (zero[k]) {
        if (size > kMaxSlice) return false;
        values.push_back({types[k], std::vector<double>(static_cast<size_t>(size), 0), {}});
      } else {
        const Node& producer = graph_.node(node_.inputs[k].node);
        const bool literal = IsConstant(producer) && SymbolName(producer).empty();
        if (!literal || size > kMaxParameter || types.back().shape != types_[k].shape) return false;
        values.push_back(HostValue::FromTensor(ConstantValue(producer)));
      }
    }
    const auto outputs = node_.op->infer(types, part.attrs);
    if (!outputs.ok()) return false;
    std::vector<const HostValue*> operands;
    for (const HostValue& value : values) operands.push_back(&value);
    const auto results = EvaluateNode(*node_.op, {types, part.attrs, *outputs}, operands);
    const std::vector<double>& scalars = results[static_cast<size_t>(part.output)].scalars;
    return std::all_of(scalars.begin(), scalars.end(), [](double v) { return v == 0; });
  }

  const Graph& graph_;
  const Node& node_;
  std::vector<TensorType> types_;
  std::vector<const Tensor*> stored_;
  int output_;
  std::vector<const ValueZeros*> inputs_;
  std::vector<bool> reads_zero_;  // all that the output reads of input k is zero
  std::map<std::tuple<size_t, int64_t, std::vector<bool>>, bool> answers_;
};

}  // namespace

bool HasKnownZeros(const Graph& graph) {
  const auto known = ZeroElements(graph);
  return std::any_of(known.begin(), known.end(), [](const std::vector<ValueZeros>& outputs) {
    return std::any_of(outputs.begin(), outputs.end(), &HasZeros);
  });
}

std::vector<std::vector<ValueZeros>> ZeroElements(const Graph& graph) {
  std::vector<std::vector<ValueZeros>> known(graph.nodes().size());
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const int32_t id = static_cast<int32_t>(i);
    const Node& node = graph.node(id);
    const auto empty = [](const TensorType& type) { return NumElements(type) == 0; };
    const std::vector<TensorType> types = graph.InputTypes(id);
    const bool has_empty = std::any_of(types.begin(), types.end(), empty);
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      ValueZeros zeros(node.outputs[k].shape.size());
      if (IsConstant(node)) {
        if (SymbolName(node).empty() && IsFloat(node.outputs[k].dtype))
          zeros = ZerosOfLiteral(ConstantValue(node));
      } else if (!IsInput(node) && !has_empty && !empty(node.outputs[k]) &&
                 IsFloat(node.outputs[k].dtype)) {
        zeros = OutputZeros(graph, id, static_cast<int>(k), known).All();
      }
      known[i].push_back(std::move(zeros));
    }
  }
  return known;
}

}  // namespace mendel
