// Reads and computes elements: boxes of operands, leaves, known integers.

#include <algorithm>

#include "graph/op_helpers.h"
#include "verifier/definedness/element_states.h"
#include "verifier/definedness/zero_signs.h"
#include "verifier/field_evaluator.h"

namespace mendel {
namespace {

Kinds KindsOf(Sign sign) {
  if (sign == Sign::kPositive) return kPositiveKind;
  return sign == Sign::kNonNegative ? kNotNegativeKinds : kFiniteKinds;
}

/// The elements of `from`, of shape `shape`, in `box`.
template <class T>
std::vector<T> Cut(const std::vector<T>& from, const Shape& shape, const Box& box) {
  if (box == Box::Whole(shape)) return from;
  std::vector<T> result;
  result.reserve(static_cast<size_t>(box.Volume()));
  const Shape extents = box.Extents();
  Shape at(shape.size(), 0);
  if (box.Volume() == 0) return result;
  do {
    Shape index = box.begin;
    for (size_t d = 0; d < at.size(); ++d) index[d] += at[d];
    result.push_back(from[static_cast<size_t>(FlatIndex(shape, index))]);
  } while (NextIndex(extents, at));
  return result;
}

/// Element `flat` of a value of which one slice is kept. Other slices are alike in their classes,
/// but their elements are other numbers.
Extended OfSlice(Extended element, int32_t number, int64_t flat) {
  if (element.id == 0 && element.kinds == kZeroKind) return element;
  const std::array<uint64_t, 3> words = {Token(element), static_cast<uint64_t>(number),
                                         static_cast<uint64_t>(flat)};
  element.id = ExtendedId("of slice", words);
  element.scale = 1;
  const bool known = element.zero_sign == Extended::kPlus || element.zero_sign == Extended::kMinus;
  if (!known) element.zero_sign = Extended::kSignOfId;
  return element;
}

bool IsElementwise(const OpDefinition& op) { return op.restrict == &RestrictElementwise; }

}  // namespace

std::vector<Box> ElementStates::WholeReads(const NumberedNode& node) {
  std::vector<Box> reads;
  for (const TensorType& type : node.input_types) reads.push_back(Box::Whole(type.shape));
  return reads;
}

std::vector<Extended> ElementStates::Evaluate(const NumberedNode& node, int output, const Box& box,
                                              const std::vector<Box>& reads,
                                              const Attributes& attrs) {
  std::vector<TensorType> types = node.input_types;
  std::vector<std::vector<Extended>> values(node.inputs.size());
  std::vector<std::vector<int64_t>> integers(node.inputs.size());
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    types[k].shape = reads[k].Extents();
    if (const std::vector<int64_t>* known = Integers(node.inputs[k]); known != nullptr) {
      integers[k] = Cut(*known, node.input_types[k].shape, reads[k]);
    } else {
      values[k] = Read(node, k, reads[k]);
    }
  }
  std::vector<TensorType> outputs = node.node->outputs;
  outputs[static_cast<size_t>(output)].shape = box.Extents();
  std::vector<Operand<Extended>> operands;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    const bool known = Integers(node.inputs[k]) != nullptr;
    operands.push_back(
        {&types[k], known ? nullptr : values[k].data(), known ? integers[k].data() : nullptr});
  }
  const ExtendedScope scope(events_);
  const Arithmetic<Extended> arithmetic;
  const Reader<Extended> reader(arithmetic, operands);
  std::vector<Extended> result(static_cast<size_t>(box.Volume()));
  node.node->op->meaning.extended(reader, {types, attrs, outputs}, output, result);
  return result;
}

std::vector<Extended> ElementStates::Read(const NumberedNode& node, size_t k, const Box& box) {
  const int32_t number = node.inputs[k];
  const Shape& shape = node.input_types[k].shape;
  const ElementState& state = Of(number);
  const bool leaf = state.elements.empty();
  if (leaf && NumElements(shape) <= kMostExpanded) return Cut(PlainElements(number), shape, box);
  std::vector<Extended> result;
  result.reserve(static_cast<size_t>(box.Volume()));
  if (box.Volume() == 0) return result;
  // A view reads the elements of the value in its own shape.
  const Shape& own = numbering_.TypeOf(number).shape;
  const bool slice = !leaf && static_cast<int64_t>(state.elements.size()) != NumElements(own);
  const Shape extents = box.Extents();
  Shape at(shape.size(), 0);
  do {
    Shape index = box.begin;
    for (size_t d = 0; d < at.size(); ++d) index[d] += at[d];
    const int64_t flat = FlatIndex(shape, index);
    result.push_back(leaf    ? Leaf(number, flat)
                     : slice ? OfSlice(At(state, own, flat), number, flat)
                             : At(state, own, flat));
  } while (NextIndex(extents, at));
  return result;
}

Extended ElementStates::Leaf(int32_t number, int64_t flat) const {
  const std::array<uint64_t, 2> words = {static_cast<uint64_t>(number),
                                         static_cast<uint64_t>(flat)};
  const bool is_bool = numbering_.TypeOf(number).dtype == DType::kBool;
  Extended leaf{ExtendedId("leaf", words), 1, 0,
                is_bool ? kNotNegativeKinds : KindsOf(Of(number).sign)};
  const bool plus = IsNeverNegativeZero(*numbering_.NodeOf(number).node, Of(number).sign);
  leaf.zero_sign = plus ? Extended::kPlus : leaf.id;
  return leaf;
}

const std::vector<Extended>& ElementStates::PlainElements(int32_t number) {
  const auto [it, is_new] = plain_elements_.try_emplace(number);
  if (!is_new) return it->second;
  const NumberedNode& node = numbering_.NodeOf(number);
  const int32_t output = numbering_.values[static_cast<size_t>(number)].output;
  const int64_t count = NumElements(numbering_.TypeOf(number));
  std::vector<Extended> elements;
  const bool small =
      std::all_of(node.input_types.begin(), node.input_types.end(),
                  [](const TensorType& type) { return NumElements(type) <= kMostExpanded; });
  if (const std::vector<int64_t>* known = Integers(number); known != nullptr) {
    for (const int64_t value : *known) elements.push_back(ExtendedInteger(value));
  } else if (IsConstant(*node.node)) {
    const Arithmetic<Extended> arithmetic;
    for (int64_t i = 0; i < count; ++i)
      elements.push_back(arithmetic.Literal(ConstantValue(*node.node).DoubleAt(i)));
  } else if (small && !node.inputs.empty() && IsFloat(numbering_.TypeOf(number).dtype) &&
             (IsElementwise(*node.node->op) || SelectsElements(*node.node->op)) &&
             std::all_of(node.inputs.begin(), node.inputs.end(),
                         [&](int32_t input) { return states_.contains(input); })) {
    const Box whole = Box::Whole(node.node->outputs[static_cast<size_t>(output)].shape);
    elements = Evaluate(node, output, whole, WholeReads(node), node.node->attrs);
    for (Extended& element : elements) {
      element.events = 0;
      element.kinds &= KindsOf(Of(number).sign);
      if (element.kinds == 0) element.kinds = KindsOf(Of(number).sign);
    }
  } else {
    for (int64_t i = 0; i < count; ++i) elements.push_back(Leaf(number, i));
  }
  return plain_elements_[number] = std::move(elements);
}

const std::vector<int64_t>* ElementStates::Integers(int32_t number) {
  const auto [it, is_new] = integers_.try_emplace(number);
  if (is_new) {
    const NumberedNode& node = numbering_.NodeOf(number);
    if (IsConstant(*node.node) && IsIntegral(numbering_.TypeOf(number).dtype)) {
      it->second = HostValue::FromTensor(ConstantValue(*node.node));
    } else if (!node.inputs.empty()) {
      std::vector<bool> concrete;
      for (const int32_t input : node.inputs) concrete.push_back(Integers(input) != nullptr);
      if (IsConcrete(View(node), concrete)) {
        std::vector<HostValue> values;
        for (size_t k = 0; k < node.inputs.size(); ++k)
          values.push_back({node.input_types[k], {}, *Integers(node.inputs[k])});
        std::vector<const HostValue*> pointers;
        for (const HostValue& value : values) pointers.push_back(&value);
        const size_t output =
            static_cast<size_t>(numbering_.values[static_cast<size_t>(number)].output);
        integers_[number] = std::move(EvaluateNode(*node.node->op, View(node), pointers)[output]);
      }
    }
  }
  const std::optional<HostValue>& value = integers_[number];
  return value.has_value() ? &value->integers : nullptr;
}

}  // namespace mendel
