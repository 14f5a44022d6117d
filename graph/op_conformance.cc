#include "graph/op_conformance.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace mendel {
namespace {

template <class S>
std::vector<Operand<S>> OperandsOf(const SampledNode& node,
                                   const std::vector<std::vector<S>>& scalars,
                                   const std::vector<std::vector<int64_t>>& integers) {
  std::vector<Operand<S>> operands;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    const bool known = scalars[k].empty();
    operands.push_back({&node.inputs[k], known ? nullptr : scalars[k].data(),
                        known ? integers[k].data() : nullptr});
  }
  return operands;
}

Shape IndexAt(const Shape& shape, int64_t flat) {
  Shape index(shape.size());
  for (size_t d = shape.size(); d-- > 0; flat /= shape[d]) index[d] = flat % shape[d];
  return index;
}

/// True where `access` states that output element `out` reads element `in`.
bool Covers(const InputAccess& access, const Shape& out, const Shape& in) {
  for (size_t d = 0; d < in.size(); ++d) {
    const DimAccess& dim = access.dims[d];
    if (dim.whole) continue;
    int64_t base = dim.offset;
    for (size_t j = 0; j < dim.coefficients.size(); ++j) base += dim.coefficients[j] * out[j];
    bool found = false;
    for (int64_t r = 0; r < dim.count && !found; ++r) found = base + dim.step * r == in[d];
    if (!found) return false;
  }
  return true;
}

}  // namespace

std::vector<HostValue> EvaluateReal(const SampledNode& node, const std::vector<HostValue>& inputs) {
  std::vector<const HostValue*> operands;
  for (const HostValue& input : inputs) operands.push_back(&input);
  return EvaluateNode(*node.op, node.view(), operands);
}

bool IsIndexInput(const OpDefinition& op, size_t input) {
  return input < 32 && (op.index_inputs >> input & 1) != 0;
}

FieldResult EvaluateField(const SampledNode& node, const std::vector<FieldOperand>& inputs,
                          std::array<uint64_t, 2> key) {
  std::vector<std::vector<Fp>> scalars;
  std::vector<std::vector<int64_t>> integers;
  for (const FieldOperand& input : inputs) {
    scalars.push_back(input.scalars);
    integers.push_back(input.integers);
  }
  const std::vector<Operand<Fp>> operands = OperandsOf(node, scalars, integers);
  const Arithmetic<Fp> arithmetic(key);
  const Reader<Fp> reader(arithmetic, operands);
  FieldResult result;
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    std::vector<Fp> output(static_cast<size_t>(NumElements(node.outputs[k])));
    node.op->meaning.field(reader, node.view(), static_cast<int>(k), output);
    result.outputs.push_back(std::move(output));
  }
  result.zero_denominator = arithmetic.zero_denominator();
  return result;
}

std::vector<FieldOperand> FieldImages(const SampledNode& node, const std::vector<HostValue>& inputs,
                                      bool known) {
  std::vector<FieldOperand> operands(inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    for (double value : inputs[k].scalars)
      operands[k].scalars.push_back({FieldScope::Current().FromDouble(value)});
    operands[k].integers = inputs[k].integers;
    if (known || IsIndexInput(*node.op, k)) continue;
    for (int64_t value : inputs[k].integers)
      operands[k].scalars.push_back({FieldScope::Current().FromInt(value)});
  }
  return operands;
}

std::vector<FieldOperand> RandomField(const SampledNode& node, const std::vector<HostValue>& inputs,
                                      Rng& rng) {
  std::vector<FieldOperand> operands = FieldImages(node, inputs, false);
  for (FieldOperand& operand : operands) {
    for (Fp& element : operand.scalars) element.value = FieldScope::Current().RandomElement(rng);
  }
  return operands;
}

BoundResult EvaluateBound(const SampledNode& node, const std::vector<HostValue>& inputs,
                          int output) {
  const Arithmetic<Bound> arithmetic;
  std::vector<std::vector<Bound>> symbols;
  std::vector<std::vector<int64_t>> integers;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const bool known = IsIndexInput(*node.op, k);
    symbols.emplace_back(known ? 0 : static_cast<size_t>(NumElements(node.inputs[k])),
                         Bound::Symbol());
    integers.push_back(inputs[k].integers);
  }
  const std::vector<Bound> worst(inputs.size(), Bound::Symbol());
  if (node.op->bound != nullptr) {
    return {node.op->bound(node.view(), worst, output, arithmetic), arithmetic.operand_count()};
  }
  const std::vector<Operand<Bound>> operands = OperandsOf(node, symbols, integers);
  return {node.op->meaning.bound(Reader<Bound>(arithmetic, operands), node.view(), output),
          arithmetic.operand_count()};
}

bool Same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }
bool Near(double a, double b) {
  return Same(a, b) || std::abs(a - b) <= 1e-12 * std::max({1.0, std::abs(a), std::abs(b)});
}

int64_t CountOf(const HostValue& value) {
  return static_cast<int64_t>(value.scalars.size() + value.integers.size());
}

HostValue Cut(const HostValue& value, const Box& box) {
  HostValue cut{{value.type.dtype, box.Extents()}, {}, {}};
  std::array<int64_t, kMaxRank> offset{};
  std::array<int64_t, kMaxRank> storage{};
  const size_t rank = box.begin.size();
  for (int64_t k = box.Volume(); k > 0; --k) {
    for (size_t d = 0; d < rank; ++d) storage[d] = box.begin[d] + offset[d];
    const size_t flat =
        static_cast<size_t>(FlatIndex(value.type.shape, Index(storage.data(), rank)));
    if (IsFloat(value.type.dtype)) {
      cut.scalars.push_back(value.scalars[flat]);
    } else {
      cut.integers.push_back(value.integers[flat]);
    }
    NextIndex(cut.type.shape, std::span<int64_t>(offset.data(), rank));
  }
  return cut;
}

Box RandomBox(Rng& rng, const Shape& shape) {
  Box box = Box::Whole(shape);
  const bool single = rng.Flip(0.4);
  for (size_t d = 0; d < shape.size(); ++d) {
    box.begin[d] = rng.Between(0, shape[d] - 1);
    box.end[d] = single ? box.begin[d] + 1 : rng.Between(box.begin[d] + 1, shape[d]);
  }
  return box;
}

bool Covers(const AccessPattern& pattern, const SampledNode& node, size_t input, int64_t out_flat,
            int64_t in_flat) {
  if (pattern.combine == AccessPattern::Combine::kReshape) return input == 0 && out_flat == in_flat;
  const Shape out = IndexAt(node.outputs[0].shape, out_flat);
  if (pattern.selecting_dim >= 0) {
    const size_t dim = static_cast<size_t>(pattern.selecting_dim);
    size_t block = 0;
    while (block < pattern.breaks[dim].size() && out[dim] >= pattern.breaks[dim][block]) ++block;
    if (pattern.selected_input[block] != static_cast<int>(input)) return false;
  }
  return Covers(pattern.inputs[input], out, IndexAt(node.inputs[input].shape, in_flat));
}

}  // namespace mendel
