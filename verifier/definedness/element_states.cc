#include "verifier/definedness/element_states.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/status.h"
#include "graph/text.h"
#include "verifier/axioms/signs.h"
#include "verifier/field_evaluator.h"

namespace mendel {
namespace {

/// Multiply-adds and elements of one node that are followed one by one.
constexpr double kMostWork = 3e8;
constexpr int64_t kMostElements = int64_t{1} << 24;
/// Below this a node is computed whole.
constexpr int64_t kFewElements = 1 << 12;

/// Weights have the signs of the stored numbers, also where they are symbols otherwise: new weights
/// are certified anew.
constexpr WeightMode kWeights = WeightMode::kExact;

/// `box` with position `at` alone in dimension `d`.
Box SliceOf(Box box, size_t d, int64_t at) {
  box.begin[d] = at;
  box.end[d] = at + 1;
  return box;
}

/// Elements of masked values that are kept.
constexpr size_t kMostKept = size_t{1} << 21;

}  // namespace

ElementStates::ElementStates(const Numbering& numbering)
    : numbering_(numbering), first_number_(numbering.nodes.size()) {
  for (size_t k = numbering.values.size(); k-- > 0;)
    first_number_[static_cast<size_t>(numbering.values[k].node)] = static_cast<int32_t>(k);
}

absl::Status ElementStates::Compute(std::span<const int32_t> numbers) {
  const auto node_of = [&](int32_t number) {
    return numbering_.values[static_cast<size_t>(number)].node;
  };
  std::set<int32_t> nodes;
  std::vector<int32_t> open;
  const auto want = [&](int32_t number) {
    if (!states_.contains(number) && nodes.insert(node_of(number)).second)
      open.push_back(node_of(number));
  };
  for (const int32_t number : numbers) want(number);
  while (!open.empty()) {
    const NumberedNode& node = numbering_.nodes[static_cast<size_t>(open.back())];
    open.pop_back();
    for (const int32_t input : node.inputs) want(input);
  }
  // Operands have smaller numbers than their readers.
  for (const int32_t node : nodes) MENDEL_RETURN_IF_ERROR(ComputeNode(node));
  if (events_.full())
    return Unsupported("unproven: too many conditions under which elements are undefined");
  return absl::OkStatus();
}

const Extended& ElementStates::At(const ElementState& state, const Shape& shape, int64_t flat) {
  if (state.shape == shape || NumElements(state.shape) == NumElements(shape))
    return state.elements[static_cast<size_t>(flat)];
  int64_t stored = 0;
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0; flat /= shape[d]) {
    if (state.shape[d] != 1) stored += flat % shape[d] * stride;
    stride *= state.shape[d];
  }
  return state.elements[static_cast<size_t>(stored)];
}

absl::Status ElementStates::ComputeNode(int32_t index) {
  const NumberedNode& node = numbering_.nodes[static_cast<size_t>(index)];
  const int32_t first = first_number_[static_cast<size_t>(index)];
  if (IsInput(*node.node)) {
    Store(first, {});
    return absl::OkStatus();
  }
  if (IsConstant(*node.node)) {
    Store(first, ConstantState(first));
    return absl::OkStatus();
  }
  if (!IsPlain(node)) return ComputeElements(index);
  ElementState state;
  state.sign = SignOf(node);
  state.masked = std::any_of(node.inputs.begin(), node.inputs.end(),
                             [&](int32_t input) { return Of(input).masked; });
  for (size_t k = 0; k < node.node->outputs.size(); ++k)
    Store(first + static_cast<int32_t>(k), state);
  return absl::OkStatus();
}

bool ElementStates::IsPlain(const NumberedNode& node) {
  const bool plain_operands = std::all_of(node.inputs.begin(), node.inputs.end(),
                                          [&](int32_t input) { return Of(input).plain; });
  if (!plain_operands) return false;
  return IsIntegral(node.node->outputs[0].dtype) || IsDefined(node);
}

/// A partial function is defined for all operands of these signs.
void ElementStates::Refine(int32_t number) {
  const ElementState& state = Of(number);
  const NumberedNode& node = numbering_.NodeOf(number);
  if (!state.plain || !state.masked || !state.elements.empty() || node.inputs.empty()) return;
  if (node.node->outputs.size() != 1 || node.node->op->restrict == nullptr) return;
  for (const int32_t input : node.inputs) Refine(input);
  const Box whole = Box::Whole(node.node->outputs[0].shape);
  std::optional<ElementState> refined = ComputeBySlices(node);
  if (!refined.has_value() && whole.Volume() <= kMostExpanded &&
      CostOf(*node.node->op, View(node)).flops <= kMostWork) {
    refined.emplace();
    refined->shape = whole.end;
    refined->elements = Evaluate(node, 0, whole, WholeReads(node), node.node->attrs);
  }
  const auto finite = [](const Extended& e) { return e.IsFinite(); };
  if (!refined.has_value() ||
      !std::all_of(refined->elements.begin(), refined->elements.end(), finite))
    return;
  refined->plain = false;
  Store(number, *std::move(refined));
}

bool ElementStates::IsDefined(const NumberedNode& node) {
  if (node.node->op->domain.has_value()) Refine(node.inputs[node.node->op->domain->input]);
  std::vector<Sign> signs;
  for (const int32_t input : node.inputs) signs.push_back(Of(input).sign);
  const auto operand = [&](size_t k) -> const Node& {
    return *numbering_.NodeOf(node.inputs[k]).node;
  };
  return IsDefinedEverywhere(View(node), *node.node, signs, operand, kWeights);
}

Sign ElementStates::SignOf(const NumberedNode& node) const {
  std::vector<Sign> signs;
  bool one_operand = !node.inputs.empty();
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    signs.push_back(Of(node.inputs[k]).sign);
    one_operand = one_operand && node.inputs[k] == node.inputs[0] &&
                  node.input_types[k] == node.input_types[0];
  }
  return SignOfNode(*node.node, node.input_types, signs, one_operand, kWeights);
}

ElementState ElementStates::ConstantState(int32_t number) const {
  const Node& node = *numbering_.NodeOf(number).node;
  ElementState state;
  state.sign = SignOfNode(node, {}, {}, false, kWeights);
  const Tensor& tensor = ConstantValue(node);
  if (!IsFloat(tensor.dtype())) return state;
  if (tensor.AllFinite()) return state;
  state.plain = false;
  state.shape = tensor.type().shape;
  const Arithmetic<Extended> arithmetic;
  for (int64_t i = 0; i < tensor.size(); ++i)
    state.elements.push_back(arithmetic.Literal(tensor.DoubleAt(i)));
  return state;
}

void ElementStates::Store(int32_t number, ElementState state) {
  if (!state.plain) {
    state.masked = true;
    Kinds all = 0;
    bool finite = true;
    for (const Extended& element : state.elements) {
      all |= element.kinds;
      finite = finite && element.IsFinite();
    }
    state.plain = finite;
    if (finite && all == kPositiveKind) state.sign = Sign::kPositive;
    if (finite && all != kPositiveKind && (all & kNegativeKind) == 0)
      state.sign = Sign::kNonNegative;
    if (finite && state.elements.size() > kMostKept) state.elements.clear();
  }
  states_[number] = std::move(state);
}

absl::Status ElementStates::ComputeElements(int32_t index) {
  const NumberedNode& node = numbering_.nodes[static_cast<size_t>(index)];
  const OpDefinition& op = *node.node->op;
  std::vector<bool> concrete;
  for (const int32_t input : node.inputs) concrete.push_back(Integers(input) != nullptr);
  if (IsOpaque(op, View(node), concrete)) return ComputeOpaque(index);
  const int32_t first = first_number_[static_cast<size_t>(index)];
  if (std::optional<ElementState> state = ComputeBySlices(node); state.has_value()) {
    Store(first, *std::move(state));
    return absl::OkStatus();
  }
  const double work = CostOf(op, View(node)).flops;
  for (size_t k = 0; k < node.node->outputs.size(); ++k) {
    const Shape& shape = node.node->outputs[k].shape;
    if (work > kMostWork || NumElements(shape) > kMostElements) {
      return Unsupported("unproven: ", op.name, " '", node.node->name,
                         "' has too many elements that may be undefined");
    }
    ElementState state;
    state.plain = false;
    state.shape = shape;
    state.elements =
        Evaluate(node, static_cast<int>(k), Box::Whole(shape), WholeReads(node), node.node->attrs);
    Store(first + static_cast<int32_t>(k), std::move(state));
  }
  return absl::OkStatus();
}

absl::Status ElementStates::ComputeOpaque(int32_t index) {
  const NumberedNode& node = numbering_.nodes[static_cast<size_t>(index)];
  std::vector<uint64_t> words;
  bool reads_sign = false, reads_nan = false;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    if (NumElements(node.input_types[k]) > kMostElements)
      return Unsupported("unproven: ", node.node->op->name, " '", node.node->name,
                         "' reads too many elements that may be undefined");
    for (const Extended& element : Read(node, k, Box::Whole(node.input_types[k].shape))) {
      words.push_back(Token(element));
      words.push_back(element.infinity_sign);
      reads_sign = reads_sign || element.infinity_sign != Extended::kPlus;
      reads_nan = reads_nan || (element.kinds & kNaNKind) != 0;
    }
  }
  if (reads_sign) events_.NoteSignOfZero();
  events_.NoteAbsorbed();
  if (reads_nan) events_.NoteAbsorbedNaN();
  const uint64_t all =
      ExtendedId(Cat(node.node->op->name, PrintAttributes(node.node->attrs)), words);
  for (size_t k = 0; k < node.node->outputs.size(); ++k) {
    ElementState state;
    state.plain = false;
    state.shape = node.node->outputs[k].shape;
    for (int64_t i = 0; i < NumElements(state.shape); ++i) {
      const std::array<uint64_t, 3> element = {all, k, static_cast<uint64_t>(i)};
      const uint64_t id = ExtendedId("opaque", element);
      state.elements.push_back({id, 1, events_.Event(id), kFiniteKinds});
      state.elements.back().to_infinity = true;
    }
    Store(first_number_[static_cast<size_t>(index)] + static_cast<int32_t>(k), std::move(state));
  }
  return absl::OkStatus();
}

std::optional<ElementState> ElementStates::ComputeBySlices(const NumberedNode& node) {
  const Shape& shape = node.node->outputs[0].shape;
  if (node.node->op->restrict == nullptr || node.node->outputs.size() != 1 ||
      NumElements(shape) < kFewElements)
    return std::nullopt;
  const auto restricted = [&](const Box& box) { return node.node->op->restrict(View(node), box); };
  Box box = Box::Whole(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    const std::optional<Restriction> first = restricted(SliceOf(box, d, 0));
    if (!first.has_value() || first->inputs.size() != node.inputs.size()) continue;
    bool alike = shape[d] > 1;
    for (int64_t at = 1; alike && at < shape[d]; ++at) {
      const std::optional<Restriction> other = restricted(SliceOf(box, d, at));
      alike = other.has_value() && other->attrs == first->attrs &&
              AreAlike(node, first->inputs, other->inputs);
    }
    if (alike) box = SliceOf(box, d, 0);
  }
  const std::optional<Restriction> reads = restricted(box);
  if (box == Box::Whole(shape) || !reads.has_value() || reads->inputs.size() != node.inputs.size())
    return std::nullopt;
  double work = CostOf(*node.node->op, View(node)).flops;
  work *= static_cast<double>(box.Volume()) / static_cast<double>(NumElements(shape));
  if (work > kMostWork || box.Volume() > kMostElements) return std::nullopt;
  ElementState state;
  state.plain = false;
  state.shape = box.Extents();
  state.elements = Evaluate(node, 0, box, reads->inputs, reads->attrs);
  const bool depends = std::any_of(state.elements.begin(), state.elements.end(),
                                   [](const Extended& e) { return e.events != 0; });
  if (depends) return std::nullopt;
  return state;
}

bool ElementStates::AreAlike(const NumberedNode& node, const std::vector<Box>& a,
                             const std::vector<Box>& b) {
  for (size_t k = 0; k < a.size(); ++k) {
    if (a[k].Extents() != b[k].Extents()) return false;
    const ElementState& state = Of(node.inputs[k]);
    const Shape& shape = node.input_types[k].shape;
    // Elements of a large plain value are alike: no more is known than its sign.
    const bool leaves = state.elements.empty() && NumElements(shape) > kMostExpanded;
    if (a[k] == b[k] || leaves) continue;
    const auto same_where_it_differs = [&] {
      if (state.shape.size() != shape.size()) return false;
      for (size_t d = 0; d < shape.size(); ++d) {
        if (a[k].begin[d] != b[k].begin[d] && state.shape[d] != 1) return false;
      }
      return true;
    };
    if (same_where_it_differs()) continue;
    const std::vector<Extended> x = Read(node, k, a[k]), y = Read(node, k, b[k]);
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i].kinds != y[i].kinds || x[i].infinity_sign != y[i].infinity_sign ||
          x[i].events != 0 || y[i].events != 0)
        return false;
    }
  }
  return true;
}

}  // namespace mendel
