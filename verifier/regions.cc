#include "verifier/regions.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "base/status.h"
#include "graph/view_cut.h"
#include "verifier/field_evaluator.h"

namespace mendel {
namespace {

constexpr size_t kMaxClasses = 48;

using Step = std::vector<int64_t>;  // displacement in a source's dimensions; empty is zero
using Columns = std::vector<Step>;

void AddScaled(Step& sum, int64_t factor, const Step& step) {
  sum.resize(std::max(sum.size(), step.size()), 0);
  for (size_t s = 0; s < step.size(); ++s) sum[s] += factor * step[s];
}

/// The one form of zero, so that equal displacements compare equal.
void Canonicalise(Step& step) {
  if (std::all_of(step.begin(), step.end(), [](int64_t s) { return s == 0; })) step.clear();
}

int64_t FloorDiv(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
int64_t CeilDiv(int64_t a, int64_t b) { return -FloorDiv(-a, b); }

void SortUnique(std::vector<int64_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

ValueStructure Empty(const Shape& shape) {
  ValueStructure structure;
  structure.shape = shape;
  structure.breaks.resize(shape.size());
  return structure;
}

void BreakEverywhere(ValueStructure& structure, size_t dim, std::string reason) {
  if (structure.Dense(dim)) return;
  structure.unknown.insert(std::move(reason));
  structure.breaks[dim].resize(static_cast<size_t>(structure.shape[dim] - 1));
  std::iota(structure.breaks[dim].begin(), structure.breaks[dim].end(), 1);
}

/// Adds what the reasons of `inputs` were.
void InheritReasons(ValueStructure& structure, const std::vector<const ValueStructure*>& inputs) {
  for (const ValueStructure* input : inputs) structure.unknown.insert(input->unknown.begin(), input->unknown.end());
}

/// Every position its own box; no source moves (downstream operators may read one element of it from many positions).
ValueStructure Unknown(const Shape& shape, const std::vector<const ValueStructure*>& inputs, const std::string& reason) {
  ValueStructure structure = Empty(shape);
  InheritReasons(structure, inputs);
  structure.unknown.insert(reason);
  for (size_t d = 0; d < shape.size(); ++d) BreakEverywhere(structure, d, reason);
  DisplacementClass still;
  for (const ValueStructure* input : inputs) {
    for (const DisplacementClass& one : input->classes) {
      for (const auto& [source, columns] : one) still[source] = Columns(shape.size());
    }
  }
  structure.classes = {still};
  return structure;
}

ValueStructure Source(int32_t node, const Shape& shape) {
  ValueStructure structure = Empty(shape);
  Columns identity(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    identity[d].assign(shape.size(), 0);
    identity[d][d] = 1;
  }
  structure.classes = {{{node, identity}}};
  return structure;
}

/// A literal is a constant coefficient where it does not vary.
ValueStructure Literal(const Tensor& tensor) {
  ValueStructure structure = Empty(tensor.shape());
  structure.classes = {{}};
  const Shape strides = RowMajorStrides(tensor.shape());
  const size_t size = static_cast<size_t>(DTypeSize(tensor.dtype()));
  const auto bytes = tensor.bytes();
  const auto same = [&](int64_t a, int64_t b) {
    return std::equal(bytes.begin() + a * static_cast<int64_t>(size), bytes.begin() + (a + 1) * static_cast<int64_t>(size),
                      bytes.begin() + b * static_cast<int64_t>(size));
  };
  for (size_t d = 0; d < strides.size(); ++d) {
    for (int64_t flat = 0; flat < tensor.size(); ++flat) {
      const bool last = flat / strides[d] % tensor.shape()[d] == tensor.shape()[d] - 1;
      if (last || same(flat, flat + strides[d])) continue;
      BreakEverywhere(structure, d, "a literal tensor varies");
      break;
    }
  }
  return structure;
}

/// Classes of input `input` as the output moves. Columns of dense output dimensions are cleared later.
std::vector<DisplacementClass> Mapped(const ValueStructure& input, const InputAccess& access, size_t rank) {
  std::vector<DisplacementClass> result;
  for (const DisplacementClass& one : input.classes) {
    DisplacementClass mapped;
    for (const auto& [source, columns] : one) {
      Columns moved(rank);
      for (size_t d = 0; d < access.dims.size(); ++d) {
        const DimAccess& dim = access.dims[d];
        for (size_t j = 0; !dim.whole && j < dim.coefficients.size(); ++j) AddScaled(moved[j], dim.coefficients[j], columns[d]);
      }
      for (Step& step : moved) Canonicalise(step);
      mapped[source] = std::move(moved);
    }
    result.push_back(std::move(mapped));
  }
  return result;
}

/// Breaks of the output where the positions that it reads along one input dimension cross a break or the border.
void PullBreaks(const DimAccess& access, const std::vector<int64_t>& input_breaks, int64_t extent, ValueStructure& out) {
  if (access.whole) return;
  std::vector<size_t> moving;
  int64_t low = access.offset + std::min<int64_t>(0, access.step * (access.count - 1));
  int64_t high = access.offset + std::max<int64_t>(0, access.step * (access.count - 1));
  for (size_t j = 0; j < access.coefficients.size(); ++j) {
    if (access.coefficients[j] == 0 || out.shape[j] <= 1) continue;
    moving.push_back(j);
    const int64_t reach = access.coefficients[j] * (out.shape[j] - 1);
    (reach < 0 ? low : high) += reach;
  }
  if (moving.empty()) return;
  const bool inside = low >= 0 && high < extent;
  if (inside && input_breaks.empty()) return;
  if (moving.size() > 1) {
    for (size_t j : moving) BreakEverywhere(out, j, "positions are read diagonally across a break");
    return;
  }
  const size_t j = moving[0];
  const int64_t step = access.coefficients[j];
  std::vector<int64_t>& breaks = out.breaks[j];
  const auto pull = [&](int64_t border) {
    for (int64_t tap = 0; tap < access.count; ++tap) {
      const int64_t first = access.offset + access.step * tap;
      const int64_t at = step > 0 ? CeilDiv(border - first, step) : FloorDiv(first - border, -step) + 1;
      if (at > 0 && at < out.shape[j]) breaks.push_back(at);
    }
  };
  for (int64_t border : input_breaks) pull(border);
  pull(0);
  pull(extent);
  SortUnique(breaks);
}

/// Merges `b` into `a`; output dimensions along which a common source moves differently are added to `conflicts`.
void MergeInto(DisplacementClass& a, const DisplacementClass& b, std::set<size_t>& conflicts) {
  for (const auto& [source, columns] : b) {
    const auto [it, fresh] = a.emplace(source, columns);
    if (fresh) continue;
    for (size_t j = 0; j < columns.size(); ++j) {
      if (it->second[j] != columns[j]) conflicts.insert(j);
    }
  }
}

/// All classes as one (the arguments of a function, a denominator).
DisplacementClass Joint(const std::vector<DisplacementClass>& classes, std::set<size_t>& conflicts) {
  DisplacementClass joint;
  for (const DisplacementClass& one : classes) MergeInto(joint, one, conflicts);
  return joint;
}

/// Clears the columns of dense dimensions, drops repetitions.
void Normalise(ValueStructure& structure) {
  std::set<DisplacementClass> classes;
  for (DisplacementClass one : structure.classes) {
    for (auto& [source, columns] : one) {
      for (size_t j = 0; j < columns.size(); ++j) {
        if (structure.Dense(j)) columns[j].clear();
      }
    }
    classes.insert(std::move(one));
  }
  structure.classes = std::move(classes);
}

/// Classes of the products of one term; condition (b): factors that read one source move alike.
std::optional<std::vector<DisplacementClass>> Products(const AccessPattern& pattern,
                                                       const std::vector<std::vector<DisplacementClass>>& mapped,
                                                       const std::vector<int>& term, std::set<size_t>& conflicts) {
  std::vector<DisplacementClass> products = {{}};
  for (int input : term) {
    const size_t k = static_cast<size_t>(input);
    const bool divided = k < 32 && (pattern.divided_inputs >> k & 1) != 0;  // condition (d)
    const std::vector<DisplacementClass> factors =
        divided ? std::vector<DisplacementClass>{Joint(mapped[k], conflicts)} : mapped[k];
    std::set<DisplacementClass> next;
    for (const DisplacementClass& product : products) {
      for (const DisplacementClass& factor : factors) {
        DisplacementClass merged = product;
        MergeInto(merged, factor, conflicts);
        next.insert(std::move(merged));
        if (next.size() > kMaxClasses) return std::nullopt;
      }
    }
    products.assign(next.begin(), next.end());
  }
  return products;
}

ValueStructure Apply(const AccessPattern& pattern, const std::string& op, const Shape& shape,
                     const std::vector<const ValueStructure*>& inputs) {
  ValueStructure out = Empty(shape);
  InheritReasons(out, inputs);
  for (size_t j = 0; j < std::min(shape.size(), pattern.breaks.size()); ++j) {
    for (int64_t at : pattern.breaks[j]) {
      if (at > 0 && at < shape[j]) out.breaks[j].push_back(at);
    }
    SortUnique(out.breaks[j]);
  }
  std::vector<std::vector<DisplacementClass>> mapped;
  for (size_t k = 0; k < inputs.size(); ++k) {
    for (size_t d = 0; d < pattern.inputs[k].dims.size(); ++d) {
      PullBreaks(pattern.inputs[k].dims[d], inputs[k]->breaks[d], inputs[k]->shape[d], out);
    }
    mapped.push_back(Mapped(*inputs[k], pattern.inputs[k], shape.size()));
  }
  std::set<size_t> conflicts;
  std::vector<DisplacementClass> classes;
  if (pattern.combine == AccessPattern::Combine::kProduct) {
    std::vector<std::vector<int>> terms = pattern.terms;
    if (terms.empty()) {
      terms.emplace_back(inputs.size());
      std::iota(terms[0].begin(), terms[0].end(), 0);
    }
    for (const std::vector<int>& term : terms) {
      const auto products = Products(pattern, mapped, term, conflicts);
      if (!products.has_value()) return Unknown(shape, inputs, Cat(op, ": too many displacement classes"));
      classes.insert(classes.end(), products->begin(), products->end());
    }
  } else {
    for (const auto& list : mapped) classes.insert(classes.end(), list.begin(), list.end());
    if (pattern.combine == AccessPattern::Combine::kOracle) classes = {Joint(classes, conflicts)};  // condition (c)
  }
  for (size_t j : conflicts) BreakEverywhere(out, j, Cat(op, ": its operands move differently over one source"));
  out.classes = {classes.begin(), classes.end()};
  Normalise(out);
  if (out.classes.size() > kMaxClasses) return Unknown(shape, inputs, Cat(op, ": too many displacement classes"));
  return out;
}

/// One dimension while a view regroups: its breaks and the displacement of every class and source.
struct Axis {
  int64_t extent = 1;
  std::vector<int64_t> breaks;
  std::vector<Step> steps;  // over all (class, source)
};

/// Is a step along `outer` the same as inner.extent steps along `inner`, for every source of every class?
bool Scaled(const Axis& outer, const Axis& inner) {
  for (size_t k = 0; k < outer.steps.size(); ++k) {
    Step scaled;
    AddScaled(scaled, inner.extent, inner.steps[k]);
    if (scaled != outer.steps[k]) return false;
  }
  return true;
}

/// Positions (i, j) as i * inner.extent + j. A step inside a row moves as `inner` does; rows join without a break only where
/// nothing changes at their ends.
Axis Merge(const Axis& outer, const Axis& inner) {
  if (outer.extent == 1) return inner;
  if (inner.extent == 1) return outer;
  Axis merged{outer.extent * inner.extent, {}, inner.steps};
  if (inner.breaks.empty() && Scaled(outer, inner)) {
    for (int64_t at : outer.breaks) merged.breaks.push_back(at * inner.extent);
    return merged;
  }
  for (int64_t row = 0; row < outer.extent; ++row) {
    if (row > 0) merged.breaks.push_back(row * inner.extent);
    for (int64_t at : inner.breaks) merged.breaks.push_back(row * inner.extent + at);
  }
  return merged;
}

/// One dimension as the factors [first, last), outermost first.
std::vector<Axis> SplitAxis(const Axis& axis, const std::vector<int64_t>& factors, size_t first, size_t last) {
  std::vector<Axis> parts(last - first);
  int64_t inner = axis.extent;
  for (size_t k = 0; k < parts.size(); ++k) {
    parts[k].extent = factors[first + k];
    inner /= parts[k].extent;
    parts[k].steps = axis.steps;
    for (auto& step : parts[k].steps) {
      for (int64_t& s : step) s *= inner;
    }
  }
  for (int64_t at : axis.breaks) {
    // The border before `at` cuts the innermost factor whose digit is not zero; the digits outside it are isolated rows.
    int64_t rest = at;
    int64_t size = axis.extent;
    for (Axis& part : parts) {
      size /= part.extent;
      const int64_t digit = rest / size;
      rest %= size;
      part.breaks.push_back(digit);
      if (rest == 0) break;
      part.breaks.push_back(digit + 1);
    }
  }
  for (Axis& part : parts) {
    SortUnique(part.breaks);
    std::erase_if(part.breaks, [&](int64_t at) { return at <= 0 || at >= part.extent; });
  }
  return parts;
}

/// The dimensions of a view made of those of what it views; those that cannot be derived break everywhere.
std::vector<Axis> RegroupAxes(const std::vector<Axis>& axes, const Shape& from, ValueStructure& out) {
  std::vector<Axis> result;
  for (const ViewGroup& group : GroupView(from, out.shape)) {
    if (!group.refined) {
      for (size_t d = group.to_begin; d < group.to_end; ++d) {
        BreakEverywhere(out, d, "a view regroups dimensions without common factors");
        result.push_back({out.shape[d], out.breaks[d], {}});
      }
      continue;
    }
    std::vector<Axis> parts(group.factors.size());
    for (size_t d = 0; d < group.from_runs.size(); ++d) {
      const auto [first, last] = group.from_runs[d];
      const std::vector<Axis> split = SplitAxis(axes[group.from_begin + d], group.factors, first, last);
      std::copy(split.begin(), split.end(), parts.begin() + static_cast<int64_t>(first));
    }
    for (const auto& [first, last] : group.to_runs) {
      Axis merged;
      for (size_t k = last; k-- > first;) merged = Merge(parts[k], merged);
      result.push_back(std::move(merged));
    }
  }
  return result;
}

ValueStructure ApplyView(const Shape& shape, const ValueStructure& input) {
  ValueStructure out = Empty(shape);
  InheritReasons(out, {&input});
  out.classes = {{}};
  if (NumElements(shape) == 0) return out;
  std::vector<Axis> axes(input.shape.size());
  for (size_t d = 0; d < axes.size(); ++d) {
    axes[d] = {input.shape[d], input.breaks[d], {}};
    for (const DisplacementClass& one : input.classes) {
      for (const auto& [source, columns] : one) axes[d].steps.push_back(columns[d]);
    }
  }
  const std::vector<Axis> result = RegroupAxes(axes, input.shape, out);
  for (size_t d = 0; d < shape.size(); ++d) out.breaks[d] = result[d].breaks;
  out.classes.clear();
  size_t slot = 0;
  for (const DisplacementClass& one : input.classes) {
    DisplacementClass moved;
    for (const auto& [source, columns] : one) {
      Columns& list = moved[source] = Columns(shape.size());
      for (size_t d = 0; d < shape.size(); ++d) {
        if (slot < result[d].steps.size()) list[d] = result[d].steps[slot];
      }
      ++slot;
    }
    out.classes.insert(std::move(moved));
  }
  Normalise(out);
  return out;
}

/// Why the structure of a node cannot be derived; empty when it can.
std::string Obstacle(const Graph& graph, const Node& node) {
  const std::string op(node.op->name);
  if (node.outputs.size() != 1) return Cat(op, ": several outputs");
  if (node.op->access == nullptr || node.op->opaque) return Cat(op, ": no access pattern");
  for (size_t k = 0; k < node.inputs.size() && k < 32; ++k) {
    if ((node.op->index_inputs >> k & 1) != 0 && !IsConstant(graph.node(node.inputs[k].node))) return Cat(op, ": indices are data");
  }
  // The judge takes arithmetic on run-time integers for one oracle of whole tensors.
  const bool integer = IsIntegral(node.outputs[0].dtype) && node.outputs[0].dtype != DType::kBool;
  if (integer && !SelectsElements(*node.op)) return Cat(op, ": integer arithmetic");
  return "";
}

}  // namespace

double RegionGrid::Boxes() const {
  double boxes = 1;
  for (const auto& dim : begins) boxes *= static_cast<double>(dim.size());
  return boxes;
}

std::vector<std::vector<ValueStructure>> AnalyseStructure(const Graph& graph, WeightMode weights) {
  std::vector<std::vector<ValueStructure>> result(graph.nodes().size());
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    const int32_t id = static_cast<int32_t>(i);
    if (IsConstant(node)) {
      const bool symbol = weights == WeightMode::kSymbolic && !SymbolName(node).empty();
      result[i] = {symbol ? Source(id, node.outputs[0].shape) : Literal(ConstantValue(node))};
      continue;
    }
    if (IsInput(node)) {
      result[i] = {Source(id, node.outputs[0].shape)};
      continue;
    }
    std::vector<const ValueStructure*> inputs;
    for (ValueId value : node.inputs) {
      inputs.push_back(&result[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)]);
    }
    std::string obstacle = Obstacle(graph, node);
    std::optional<AccessPattern> pattern;
    if (obstacle.empty()) {
      pattern = WithView(graph, id, node.op->access);
      if (!pattern.has_value()) obstacle = Cat(node.op->name, ": no access pattern");
    }
    if (!pattern.has_value()) {
      for (const TensorType& type : node.outputs) result[i].push_back(Unknown(type.shape, inputs, obstacle));
    } else if (pattern->combine == AccessPattern::Combine::kReshape) {
      result[i] = {ApplyView(node.outputs[0].shape, *inputs[0])};
    } else {
      result[i] = {Apply(*pattern, std::string(node.op->name), node.outputs[0].shape, inputs)};
    }
  }
  return result;
}

RegionGrid CompareStructures(const ValueStructure& f, const ValueStructure& g) {
  RegionGrid grid;
  grid.unknown = f.unknown;
  grid.unknown.insert(g.unknown.begin(), g.unknown.end());
  for (size_t j = 0; j < f.shape.size(); ++j) {
    std::vector<int64_t> begins = {0};
    begins.insert(begins.end(), f.breaks[j].begin(), f.breaks[j].end());
    begins.insert(begins.end(), g.breaks[j].begin(), g.breaks[j].end());
    SortUnique(begins);
    const bool dense = static_cast<int64_t>(begins.size()) >= f.shape[j];
    grid.begins.push_back(std::move(begins));
    // Terms without common sources never cancel, so classes that agree on their common sources count once.
    std::vector<std::map<int32_t, Step>> moves;
    for (const ValueStructure* side : {&f, &g}) {
      for (const DisplacementClass& one : side->classes) {
        std::map<int32_t, Step> move;
        for (const auto& [source, columns] : one) move[source] = columns[j];
        moves.push_back(std::move(move));
      }
    }
    std::stable_sort(moves.begin(), moves.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
    std::vector<std::map<int32_t, Step>> merged;
    for (const auto& move : moves) {
      const auto agrees = [&](const auto& other) {
        return std::all_of(move.begin(), move.end(), [&](const auto& entry) {
          const auto it = other.find(entry.first);
          return it == other.end() || it->second == entry.second;
        });
      };
      const auto it = std::find_if(merged.begin(), merged.end(), agrees);
      if (it == merged.end()) {
        merged.push_back(move);
      } else {
        it->insert(move.begin(), move.end());
      }
    }
    grid.classes.push_back(dense ? 1 : std::max<int64_t>(1, static_cast<int64_t>(merged.size())));
  }
  return grid;
}

}  // namespace mendel
