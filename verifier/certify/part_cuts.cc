#include "verifier/certify/part_cuts.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "base/random.h"
#include "base/status.h"
#include "graph/emitter.h"
#include "verifier/field_evaluator.h"

namespace mendel {
namespace {

/// Occurrences of one element in the original that are looked at.
constexpr size_t kOccurrences = 64;

/// The elements along the axes through a value's first element: those of axis d are
/// lines[d][0], lines[d][1], ..
struct AxisLines {
  ValueId value;
  Shape shape;
  std::vector<std::vector<uint64_t>> lines;
};

/// An element of the original.
struct Occurrence {
  ValueId value;
  int64_t flat = 0;
};
using Occurrences = std::unordered_map<uint64_t, std::vector<Occurrence>>;

/// Parts of cut values need no cuts of their own.
bool IsComputedFloat(const Graph& graph, ValueId value) {
  const Node& node = graph.node(value.node);
  const TensorType& type = graph.type(value);
  return !IsInput(node) && !IsConstant(node) && !SelectsElements(*node.op) && IsFloat(type.dtype) &&
         !type.shape.empty() && NumElements(type) > 0;
}

AxisLines LinesOf(ValueId id, const Shape& shape, const FieldValue& value) {
  AxisLines found{id, shape, {}};
  const std::vector<int64_t> strides = RowMajorStrides(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<uint64_t>& line = found.lines.emplace_back();
    for (int64_t i = 0; i < shape[d]; ++i) line.push_back(value.At(i * strides[d]).value);
  }
  return found;
}

/// The positions along axis `d` of `v`, through element `first`, at which the elements of `line`
/// are; nullopt when one is at none or at several.
std::optional<Positions> PositionsOf(const std::vector<uint64_t>& line, const Occurrences& found,
                                     ValueId v, const Shape& shape, size_t d, int64_t first) {
  const int64_t stride = RowMajorStrides(shape)[d];
  const int64_t begin = first - first / stride % shape[d] * stride;
  std::vector<int64_t> list;
  for (uint64_t element : line) {
    std::set<int64_t> at;
    for (const Occurrence& one : found.at(element)) {
      const int64_t offset = one.flat - begin;
      if (one.value == v && offset >= 0 && offset % stride == 0 && offset / stride < shape[d])
        at.insert(offset / stride);
    }
    if (at.size() != 1) return std::nullopt;
    list.push_back(*at.begin());
  }
  if (std::set<int64_t>(list.begin(), list.end()).size() < list.size()) return std::nullopt;
  return Positions::List(std::move(list));
}

/// The last value of the original that has these lines, which its readers are closest to.
std::optional<PartCut> CutAt(const AxisLines& lines, const Occurrences& found,
                             const Graph& original) {
  std::vector<Occurrence> places = found.at(lines.lines[0][0]);
  std::sort(places.begin(), places.end(),
            [](const Occurrence& a, const Occurrence& b) { return b.value < a.value; });
  for (const Occurrence& first : places) {
    const Shape& shape = original.type(first.value).shape;
    if (shape.size() != lines.shape.size()) continue;
    PartCut cut{first.value, lines.value, {}};
    for (size_t d = 0; d < shape.size(); ++d) {
      const auto positions = PositionsOf(lines.lines[d], found, first.value, shape, d, first.flat);
      if (!positions.has_value()) break;
      cut.grid.push_back(*positions);
    }
    if (cut.grid.size() == shape.size()) return cut;
  }
  return std::nullopt;
}

/// Leaves out cuts of values of the original of which no proper part is computed, and all but the
/// last of equal parts, which may be computed of one another.
void KeepParts(const Graph& original, std::vector<PartCut>& cuts) {
  for (size_t k = cuts.size(); k-- > 0;) {
    const auto equal = [&](const PartCut& later) {
      return later.original == cuts[k].original && later.grid == cuts[k].grid;
    };
    const auto after = cuts.begin() + static_cast<std::ptrdiff_t>(k) + 1;
    if (std::any_of(after, cuts.end(), equal)) cuts.erase(after - 1);
  }
  std::set<ValueId> in_part;
  for (const PartCut& cut : cuts) {
    if (!IsWhole(cut.grid, original.type(cut.original).shape)) in_part.insert(cut.original);
  }
  std::erase_if(cuts, [&](const PartCut& cut) { return in_part.count(cut.original) == 0; });
}

ValueId SelectGrid(Emitter& e, ValueId x, const Grid& grid) {
  for (size_t d = 0; d < grid.size(); ++d) {
    const int64_t axis = static_cast<int64_t>(d);
    const Positions& positions = grid[d];
    if (positions.IsWhole(e.shape(x)[d])) continue;
    if (positions.IsRange() && (positions.step() > 0 || positions.size() == 1)) {
      const int64_t step = std::max<int64_t>(positions.step(), 1);
      x = e.Slice(x, axis, positions[0], positions[positions.size() - 1] + 1, step);
    } else {
      const TensorType type{DType::kI64, {positions.size()}};
      x = e.Op("Gather", {x, e.Constant(Tensor::FromInts(type, positions.ToList()))},
               {{"axis", axis}});
    }
  }
  return x;
}

/// A copy of `graph` with further inputs, in which `stand_in` may give the readers of a value
/// another one: it is called with each value and its copy.
class Copy {
 public:
  Copy(const Graph& graph, const std::vector<TensorType>& tensors) : graph_(graph) {
    const std::vector<ValueId> inputs = e_.InputsOf(graph);
    std::set<std::string> names;
    for (size_t k = 0; k < inputs.size(); ++k) {
      read_[{graph.inputs()[k], 0}] = inputs[k];
      names.insert(InputName(graph.node(graph.inputs()[k])));
    }
    for (size_t k = 0; k < tensors.size(); ++k) {
      std::string name = Cat("part cut ", k);
      while (names.count(name) > 0) name += "'";
      fresh_.push_back(e_.Input(name, tensors[k]));
    }
  }

  absl::StatusOr<Graph> Run(const std::function<ValueId(ValueId value, ValueId copy)>& stand_in) {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.nodes()[i];
      if (IsInput(node)) continue;
      const std::vector<ValueId> outputs = CopyNode(node);
      for (size_t k = 0; k < outputs.size(); ++k) {
        const ValueId value{static_cast<int32_t>(i), static_cast<int32_t>(k)};
        read_[value] = stand_in(value, outputs[k]);
      }
    }
    std::set<std::string> names;
    for (const GraphOutput& output : graph_.outputs()) {
      e_.Output(output.name, read_[output.value]);
      names.insert(output.name);
    }
    for (const auto& [cut, part] : parts_) {
      std::string name = Cat("part cut ", cut);
      while (names.count(name) > 0) name += "'";
      e_.Output(name, part);
    }
    return e_.Finish();
  }

  Emitter& emitter() { return e_; }
  ValueId fresh(size_t tensor) const { return fresh_[tensor]; }
  /// The part of cut number `cut`: one more output.
  void AddPart(size_t cut, ValueId part) { parts_[cut] = part; }

 private:
  std::vector<ValueId> CopyNode(const Node& node) {
    if (IsConstant(node)) return {e_.Constant(ConstantValue(node), SymbolName(node))};
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(read_[input]);
    return e_.Ops(node.op->name, std::move(inputs), node.outputs.size(), node.attrs);
  }

  const Graph& graph_;
  Emitter e_;
  std::vector<ValueId> fresh_;
  std::map<ValueId, ValueId> read_;  ///< by value of `graph_`: what its readers read
  std::map<size_t, ValueId> parts_;
};

/// The lines of all values of the plan, and where their elements occur in the original.
absl::Status Evaluate(const Graph& original, const Graph& plan, const VerifierOptions& options,
                      std::vector<AxisLines>& lines, Occurrences& found) {
  Rng rng(1);
  const Draw draw = SeededDraw(rng);
  MENDEL_RETURN_IF_ERROR(EvaluateValues(plan, draw, options.weights, InputNaming::kByName,
                                        options.deadline, [&](ValueId id, const FieldValue& value) {
                                          if (!IsComputedFloat(plan, id)) return;
                                          lines.push_back(LinesOf(id, plan.type(id).shape, value));
                                          for (const auto& line : lines.back().lines) {
                                            for (uint64_t element : line) found[element];
                                          }
                                        }));
  return EvaluateValues(original, draw, options.weights, InputNaming::kByName, options.deadline,
                        [&](ValueId id, const FieldValue& value) {
                          if (!IsComputedFloat(original, id)) return;
                          for (int64_t i = 0; i < value.size(); ++i) {
                            const auto place = found.find(value.At(i).value);
                            if (place != found.end() && place->second.size() < kOccurrences)
                              place->second.push_back({id, i});
                          }
                        });
}

}  // namespace

absl::StatusOr<std::vector<PartCut>> FindPartCuts(const Graph& original, const Graph& plan,
                                                  const VerifierOptions& options) {
  std::vector<AxisLines> lines;
  Occurrences found;
  MENDEL_RETURN_IF_ERROR(Evaluate(original, plan, options, lines, found));
  std::sort(lines.begin(), lines.end(),
            [](const AxisLines& a, const AxisLines& b) { return a.value < b.value; });
  std::vector<PartCut> cuts;
  for (const AxisLines& one : lines) {
    if (auto cut = CutAt(one, found, original)) cuts.push_back(*std::move(cut));
  }
  KeepParts(original, cuts);
  return cuts;
}

absl::StatusOr<std::pair<Graph, Graph>> WithPartCuts(const Graph& original, const Graph& plan,
                                                     const std::vector<PartCut>& cuts) {
  std::vector<TensorType> tensors;
  std::map<ValueId, size_t> tensor_of;                 // by value of the original
  std::map<ValueId, std::vector<size_t>> of_original;  // cuts by value
  std::map<ValueId, size_t> of_plan;
  for (size_t k = 0; k < cuts.size(); ++k) {
    const auto [place, fresh] = tensor_of.try_emplace(cuts[k].original, tensors.size());
    if (fresh) tensors.push_back(original.type(cuts[k].original));
    of_original[cuts[k].original].push_back(k);
    of_plan[cuts[k].plan] = k;
  }
  Copy whole(original, tensors), parts(plan, tensors);
  MENDEL_ASSIGN_OR_RETURN(Graph a, whole.Run([&](ValueId value, ValueId copy) {
    const auto found = of_original.find(value);
    if (found == of_original.end()) return copy;
    for (size_t cut : found->second)
      whole.AddPart(cut, SelectGrid(whole.emitter(), copy, cuts[cut].grid));
    return whole.fresh(tensor_of.at(value));
  }));
  MENDEL_ASSIGN_OR_RETURN(Graph b, parts.Run([&](ValueId value, ValueId copy) {
    const auto found = of_plan.find(value);
    if (found == of_plan.end()) return copy;
    const PartCut& cut = cuts[found->second];
    parts.AddPart(found->second, copy);
    return SelectGrid(parts.emitter(), parts.fresh(tensor_of.at(cut.original)), cut.grid);
  }));
  return std::make_pair(std::move(a), std::move(b));
}

}  // namespace mendel
