#include "tests/graph_mutations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "graph/text.h"
#include "tests/graph_edit.h"
#include "tests/mutation_place.h"

namespace mendel {
namespace {

using MaybeValue = std::optional<ValueId>;
using Values = MutatedValues;
using Place = MutationPlace;

Values Attribute(const Place& at) { return ChangeAttribute(at, "attribute"); }
Values Axis(const Place& at) { return ChangeAttribute(at, "axis"); }
Values Pad(const Place& at) { return ChangeAttribute(at, "pad"); }
Values Slice(const Place& at) { return ChangeAttribute(at, "slice"); }
Values PatchBox(const Place& at) { return ChangeAttribute(at, "box"); }

/// Another operator of the registry that takes the operands and gives the same types, or no
/// operator at all.
Values OtherOperator(const Place& at) {
  if (IsInput(at.site.node) || IsConstant(at.site.node) || at.site.outputs.size() != 1) return {};
  const TensorType& wanted = at.type(at.site.outputs[0]);
  if (at.rng.Flip(0.15)) {
    const ValueId operand = at.site.inputs[PickIndex(at.rng, at.site.inputs.size())];
    return at.type(operand) == wanted ? Values{operand} : Values();
  }
  std::vector<const OpDefinition*> others;
  const int count = static_cast<int>(at.site.inputs.size());
  for (const OpDefinition* op : AllOps()) {
    const bool own = op == at.site.node.op || op->name == "Input" || op->name == "Constant";
    if (!own && op->min_inputs <= count && count <= op->max_inputs) others.push_back(op);
  }
  const OpDefinition& other = *others[PickIndex(at.rng, others.size())];
  Attributes attrs;
  for (const AttributeSpec& spec : other.attributes) {
    if (!at.site.node.attrs.Has(spec.name)) continue;
    const AttrValue& value = at.site.node.attrs.Get(spec.name);
    if (value.index() == spec.default_value.index()) attrs.Set(spec.name, value);
  }
  const MaybeValue value = at.Add(other.name, at.site.inputs, attrs);
  return value && at.type(*value) == wanted ? Values{*value} : Values();
}

Values SwapOperands(const Place& at) {
  if (at.site.inputs.size() < 2) return {};
  Values operands = at.site.inputs;
  const size_t a = PickIndex(at.rng, operands.size()), b = PickIndex(at.rng, operands.size());
  if (operands[a] == operands[b]) return {};
  std::swap(operands[a], operands[b]);
  return at.Again(operands, at.site.node.attrs);
}

/// The order of what is joined: operands of Concat, pieces of Patch.
Values Seam(const Place& at) {
  if (!at.Is("Concat") && !at.Is("Patch")) return {};
  return SwapOperands(at);
}

/// The last operand left out: a bias, a lower bound, an index.
Values DropOperand(const Place& at) {
  if (static_cast<int>(at.site.inputs.size()) <= at.site.node.op->min_inputs || at.Is("Patch"))
    return {};
  Values operands = at.site.inputs;
  operands.pop_back();
  return at.Again(operands, at.site.node.attrs);
}

/// Another value of the same type in an operand's place.
Values OtherOperand(const Place& at) {
  if (at.site.inputs.empty()) return {};
  const size_t k = PickIndex(at.rng, at.site.inputs.size());
  Values candidates;
  for (int32_t id = 0; id < at.site.outputs[0].node; ++id) {
    const Node& node = at.builder.node(id);
    for (size_t output = 0; output < node.outputs.size(); ++output) {
      const ValueId value{id, static_cast<int32_t>(output)};
      if (value != at.site.inputs[k] && at.type(value) == at.type(at.site.inputs[k]))
        candidates.push_back(value);
    }
  }
  if (candidates.empty()) return {};
  return at.WithOperand(k, candidates[PickIndex(at.rng, candidates.size())]);
}

/// Operand and dimension of at least `extent` positions, or none.
std::optional<std::pair<size_t, size_t>> OperandAndDim(const Place& at, int64_t extent) {
  if (at.site.inputs.empty()) return std::nullopt;
  const size_t k = PickIndex(at.rng, at.site.inputs.size());
  const Shape& shape = at.type(at.site.inputs[k]).shape;
  if (shape.empty()) return std::nullopt;
  const size_t d = PickIndex(at.rng, shape.size());
  if (shape[d] < extent) return std::nullopt;
  return std::pair(k, d);
}

/// An operand mirrored along one dimension: a kernel turned round.
Values FlipOperand(const Place& at) {
  const auto where = OperandAndDim(at, 2);
  if (!where.has_value()) return {};
  const auto [k, d] = *where;
  const ValueId x = at.site.inputs[k];
  return at.WithOperand(k, SliceOf(at.builder, x, d, at.type(x).shape[d] - 1, -1, -1));
}

/// An operand with two equal dimensions exchanged: a square matrix transposed.
Values TransposeOperand(const Place& at) {
  const auto where = OperandAndDim(at, 2);
  if (!where.has_value()) return {};
  const auto [k, d] = *where;
  const Shape& shape = at.type(at.site.inputs[k]).shape;
  const size_t e = PickIndex(at.rng, shape.size());
  if (d == e || shape[d] != shape[e]) return {};
  Ints perm(shape.size());
  for (size_t j = 0; j < perm.size(); ++j) perm[j] = static_cast<int64_t>(j);
  std::swap(perm[d], perm[e]);
  return at.WithOperand(k, at.Add("Transpose", {at.site.inputs[k]}, {{"perm", perm}}));
}

MaybeValue Rotated(const Place& at, ValueId x, size_t d) {
  const int64_t extent = at.type(x).shape[d];
  const MaybeValue head = SliceOf(at.builder, x, d, 0, 1),
                   tail = SliceOf(at.builder, x, d, 1, extent);
  return head && tail ? at.Add("Concat", {*tail, *head}, {{"axis", static_cast<int64_t>(d)}})
                      : std::nullopt;
}

/// An operand moved by one position: off by one everywhere.
Values ShiftOperand(const Place& at) {
  const auto where = OperandAndDim(at, 2);
  if (!where.has_value()) return {};
  return at.WithOperand(where->first, Rotated(at, at.site.inputs[where->first], where->second));
}

/// Channels that reach the wrong group of a grouped convolution; without groups, one taken for
/// many.
Values WrongGroup(const Place& at) {
  if (!at.site.node.attrs.Has("group")) return {};
  const size_t k = PickIndex(at.rng, std::min<size_t>(2, at.site.inputs.size()));
  const size_t d = k == 0 ? 1 : 0;
  const Shape& shape = at.type(at.site.inputs[k]).shape;
  if (at.site.node.attrs.Int("group") < 2 || shape[d] < 2) return {};
  return at.WithOperand(k, Rotated(at, at.site.inputs[k], d));
}

/// One element of the result wrong: another element put over it.
Values OneElement(const Place& at) {
  if (at.site.outputs.size() != 1 || IsConstant(at.site.node)) return {};
  const ValueId x = at.site.outputs[0];
  const Shape& shape = at.type(x).shape;
  if (NumElements(shape) < 2) return {};
  Box target = Box::Whole(shape), source = target;
  for (size_t d = 0; d < shape.size(); ++d) {
    target.begin[d] = at.rng.Between(0, shape[d] - 1);
    target.end[d] = target.begin[d] + 1;
    source.begin[d] = at.rng.Flip(0.7) ? target.begin[d] : at.rng.Between(0, shape[d] - 1);
    source.end[d] = source.begin[d] + 1;
  }
  if (source == target) return {};
  const MaybeValue piece =
      at.Add("Slice", {x},
             {{"starts", source.begin}, {"ends", source.end}, {"steps", Ints(shape.size(), 1)}});
  const MaybeValue wrong =
      piece ? at.Add("Patch", {x, *piece}, {{"boxes", Boxes{target}}}) : std::nullopt;
  return wrong ? Values{*wrong} : Values();
}

/// A result scaled by a number close to one, or shifted by a small one.
Values SlightlyOff(const Place& at) {
  if (at.site.outputs.size() != 1 || IsConstant(at.site.node)) return {};
  const ValueId x = at.site.outputs[0];
  if (!IsFloat(at.type(x).dtype)) return {};
  const bool scaled = at.rng.Flip();
  const MaybeValue wrong =
      at.Add(scaled ? "Mul" : "Add", {x, ScalarLike(at.builder, x, scaled ? 1.0078125 : 0.0625)});
  return wrong ? Values{*wrong} : Values();
}

using Fault = Values (*)(const Place&);
struct Kind {
  std::string_view name;
  Fault apply;
};
constexpr std::array<Kind, 19> kKinds = {{{"attribute", &Attribute},
                                          {"axis", &Axis},
                                          {"bias", &DropOperand},
                                          {"box", &PatchBox},
                                          {"coefficient", &Coefficient},
                                          {"element", &OneElement},
                                          {"flip", &FlipOperand},
                                          {"group", &WrongGroup},
                                          {"index", &StoredIndex},
                                          {"operand", &OtherOperand},
                                          {"operator", &OtherOperator},
                                          {"pad", &Pad},
                                          {"seam", &Seam},
                                          {"shift", &ShiftOperand},
                                          {"slice", &Slice},
                                          {"slightly off", &SlightlyOff},
                                          {"swap", &SwapOperands},
                                          {"transpose", &TransposeOperand},
                                          {"weight", &OtherWeight}}};

/// Equal as texts, stored tensors included.
bool SameText(const Graph& a, const Graph& b) {
  std::vector<Tensor> tensors_a, tensors_b;
  return PrintGraph(a, {.tensors = &tensors_a}) == PrintGraph(b, {.tensors = &tensors_b}) &&
         tensors_a == tensors_b;
}

}  // namespace

std::span<const std::string_view> MutationKinds() {
  static const std::array<std::string_view, kKinds.size()> kNames = [] {
    std::array<std::string_view, kKinds.size()> names;
    std::transform(kKinds.begin(), kKinds.end(), names.begin(),
                   [](const Kind& kind) { return kind.name; });
    return names;
  }();
  return kNames;
}

std::optional<Graph> Mutate(const Graph& graph, const Mutation& mutation) {
  const auto kind = std::find_if(kKinds.begin(), kKinds.end(),
                                 [&](const Kind& k) { return k.name == mutation.kind; });
  MENDEL_CHECK(kind != kKinds.end());
  bool applied = false;
  const auto edit = [&](GraphBuilder& builder, const NodeSite& site) -> Values {
    if (site.id != mutation.node || IsInput(site.node)) return {};
    Rng rng(mutation.seed);
    Values values = kind->apply({rng, builder, site});
    applied = !values.empty();
    return values;
  };
  auto mutant = EditGraph(graph, edit);
  if (!mutant.ok() || !applied || SameText(*mutant, graph)) return std::nullopt;
  return *std::move(mutant);
}

std::optional<Graph> RandomMutation(Rng& rng, const Graph& graph, std::string_view kind,
                                    Mutation& mutation) {
  for (int attempt = 0; attempt < 24; ++attempt) {
    mutation = {kind, static_cast<int32_t>(PickIndex(rng, graph.nodes().size())), rng.Next()};
    if (auto mutant = Mutate(graph, mutation)) return mutant;
  }
  return std::nullopt;
}

}  // namespace mendel
