#include "verifier/field_evaluator.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/element_stream.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/op_helpers.h"
#include "verifier/axioms/root_of_two.h"
#include "verifier/opaque.h"

namespace mendel {
namespace {

/// The generator that a draw's prime comes from: a function of its key, so that neither can be
/// chosen without the other.
Rng PrimeGenerator(std::array<uint64_t, 2> key) {
  KeyedHash hash(key);
  hash.Add("prime");
  return Rng(hash.Finish().low);
}

Draw DrawFrom(std::array<uint64_t, 2> key) {
  Rng rng = PrimeGenerator(key);
  while (true) {
    const uint64_t prime = PrimeField::RandomCertifying(rng).prime();
    if (HasRootOfTwo(prime)) return {prime, key};
  }
}

std::array<uint64_t, 2> Subkey(std::array<uint64_t, 2> key, std::string_view kind,
                               std::string_view name) {
  KeyedHash hash(key);
  hash.Add(kind);
  hash.Add(name);
  const Hash128 value = hash.Finish();
  return {value.high, value.low};
}

Fp Element(const PrimeField& field, std::array<uint64_t, 2> key, uint64_t position) {
  KeyedHash hash(key);
  hash.Add(position);
  return {ElementOfHash(field, hash.Finish())};
}

/// Elements first, first + 1, ... of the same.
void FillFrom(const PrimeField& field, std::array<uint64_t, 2> key, int64_t first,
              std::span<Fp> out) {
  static_assert(sizeof(Fp) == sizeof(uint64_t));
  FillElements(field, key, static_cast<uint64_t>(first),
               {reinterpret_cast<uint64_t*>(out.data()), out.size()});
}

/// Field elements of finite doubles, the powers of two computed once: for tensors of stored
/// weights.
class Dyadics {
 public:
  explicit Dyadics(const PrimeField& field) : field_(field), powers_(kExponents) {
    powers_[0] = field.FromDouble(0x1p-1074);
    for (size_t e = 1; e < kExponents; ++e) powers_[e] = field.Add(powers_[e - 1], powers_[e - 1]);
  }

  Fp operator()(double value) const {
    const uint64_t bits = std::bit_cast<uint64_t>(value);
    const uint64_t biased = bits >> 52 & 0x7ff;  // value = mantissa 2^(max(biased, 1) - 1075)
    const uint64_t mantissa =
        (bits & ((uint64_t{1} << 52) - 1)) | (biased == 0 ? 0 : uint64_t{1} << 52);
    const uint64_t magnitude =
        field_.Mul(mantissa % field_.prime(), powers_[biased == 0 ? 0 : biased - 1]);
    return {bits >> 63 == 0 ? magnitude : field_.Neg(magnitude)};
  }

 private:
  static constexpr size_t kExponents = 2046;
  const PrimeField& field_;
  std::vector<uint64_t> powers_;
};

/// fill(begin, end) over [0, count) on several threads.
template <class Fill>
void ParallelRanges(int64_t count, Fill fill) {
  constexpr int64_t kRange = 1 << 14;
  ParallelFor((count + kRange - 1) / kRange,
              [&](int64_t k) { fill(k * kRange, std::min(count, (k + 1) * kRange)); });
}

bool HasInteger(std::span<const TensorType> types) {
  return std::any_of(types.begin(), types.end(), [](const TensorType& type) {
    return IsIntegral(type.dtype) && type.dtype != DType::kBool;
  });
}

}  // namespace

Draw FreshDraw() { return DrawFrom(FreshEntropy()); }

Draw SeededDraw(Rng& rng) {
  const uint64_t high = rng.Next();
  const uint64_t low = rng.Next();
  return DrawFrom({high, low});
}

bool FollowsFromKey(const Draw& draw) { return DrawFrom(draw.key) == draw; }

Draw SelectionDraw(std::array<uint64_t, 2> key) {
  constexpr uint64_t kLow = uint64_t{1} << 19;
  Rng rng = PrimeGenerator(key);
  uint64_t prime = 0;
  while (!HasRootOfTwo(prime) || !IsPrime(prime)) prime = kLow + rng.Below(kLow);
  return {prime, key};
}

bool SelectsElements(const OpDefinition& op) { return op.is_view || op.bound == &BoundOfSelection; }

bool MovesElements(const OpDefinition& op, const Attributes& attrs) {
  if (op.name != "Pad") return SelectsElements(op);
  return attrs.Str("mode") != "constant" || attrs.Float("value") == 0;
}

bool IsConcrete(const NodeView& node, const std::vector<bool>& concrete) {
  const auto integral = [](const TensorType& type) { return IsIntegral(type.dtype); };
  return std::all_of(node.outputs.begin(), node.outputs.end(), integral) &&
         std::all_of(node.inputs.begin(), node.inputs.end(), integral) &&
         std::find(concrete.begin(), concrete.end(), false) == concrete.end();
}

bool IsOpaque(const OpDefinition& op, const NodeView& node, const std::vector<bool>& concrete) {
  if (op.opaque) return true;
  for (size_t k = 0; k < concrete.size() && k < 32; ++k) {
    if ((op.index_inputs >> k & 1) != 0 && !concrete[k]) return true;
  }
  return HasInteger(node.outputs) && !MovesElements(op, node.attrs);
}

FieldEvaluator::FieldEvaluator(const Draw& draw, WeightMode weights)
    : field_(draw.prime), weights_(weights), arithmetic_(draw.key) {}

FieldValue FieldEvaluator::Symbol(std::string_view kind, std::string_view name,
                                  int64_t count) const {
  FieldValue value;
  value.scalars.resize(static_cast<size_t>(count));
  const std::array<uint64_t, 2> key = Subkey(arithmetic_.key(), kind, name);
  ParallelRanges(count, [&](int64_t begin, int64_t end) {
    FillFrom(field_, key, begin,
             std::span(value.scalars)
                 .subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
  });
  return value;
}

FieldValue FieldEvaluator::Input(const Node& node) const {
  return Symbol("input", InputName(node), NumElements(node.outputs[0]));
}

FieldValue FieldEvaluator::Constant(const Node& node) const {
  const Tensor& tensor = ConstantValue(node);
  const std::string& symbol = SymbolName(node);
  FieldValue value;
  if (IsIntegral(tensor.dtype())) {
    value.integers = tensor.ToInts();
    value.concrete = true;
    return value;
  }
  if (weights_ == WeightMode::kSymbolic && !symbol.empty()) {
    return Symbol("weight " + TypeString(tensor.type()), symbol, tensor.size());
  }
  value.scalars.resize(static_cast<size_t>(tensor.size()));
  const auto fill = [&](const auto& finite) {
    ParallelRanges(tensor.size(), [&](int64_t begin, int64_t end) {
      const FieldScope scope(field_);
      for (int64_t i = begin; i < end; ++i) {
        const double exact = tensor.DoubleAt(i);
        value.scalars[static_cast<size_t>(i)] =
            std::isfinite(exact) ? finite(exact) : arithmetic_.NonFinite(exact);
      }
    });
  };
  constexpr int64_t kWorthATable = 256;
  if (tensor.size() < kWorthATable) {
    fill([&](double exact) { return Fp{field_.FromDouble(exact)}; });
  } else {
    fill(Dyadics(field_));
  }
  return value;
}

FieldValue FieldEvaluator::SymbolAt(std::string_view kind, std::string_view name,
                                    std::span<const int64_t> positions) const {
  FieldValue value;
  const std::array<uint64_t, 2> key = Subkey(arithmetic_.key(), kind, name);
  for (int64_t i : positions)
    value.scalars.push_back(Element(field_, key, static_cast<uint64_t>(i)));
  return value;
}

FieldValue FieldEvaluator::ConstantAt(const Node& node, std::span<const int64_t> positions) const {
  const Tensor& tensor = ConstantValue(node);
  const std::string& symbol = SymbolName(node);
  MENDEL_CHECK(IsFloat(tensor.dtype()));
  if (weights_ == WeightMode::kSymbolic && !symbol.empty()) {
    return SymbolAt("weight " + TypeString(tensor.type()), symbol, positions);
  }
  FieldValue value;
  const FieldScope scope(field_);
  for (int64_t i : positions) value.scalars.push_back(arithmetic_.Literal(tensor.DoubleAt(i)));
  return value;
}

void FieldEvaluator::PinRootOfTwo(const FieldValue& operand, FieldValue& root) const {
  if (!HasRootOfTwo(field_.prime())) return;
  const auto is_two = [](Fp element) { return element.value == 2; };
  if (std::none_of(operand.scalars.begin(), operand.scalars.end(), is_two)) return;
  const Fp value = {RootOfTwo(field_, (arithmetic_.key()[0] & 1) != 0)};
  for (size_t i = 0; i < root.scalars.size(); ++i) {
    if (is_two(operand.scalars[i])) root.scalars[i] = value;
  }
}

FieldValue FieldEvaluator::Apply(const OpDefinition& op, const NodeView& node,
                                 std::span<const FieldValue* const> inputs, int output) const {
  MENDEL_CHECK(inputs.size() == node.inputs.size());
  std::vector<bool> concrete;
  std::vector<Operand<Fp>> operands;
  for (size_t k = 0; k < inputs.size(); ++k) {
    MENDEL_CHECK(inputs[k]->size() == NumElements(node.inputs[k]));
    concrete.push_back(inputs[k]->concrete);
    operands.push_back({&node.inputs[k], inputs[k]->concrete ? nullptr : inputs[k]->scalars.data(),
                        inputs[k]->concrete ? inputs[k]->integers.data() : nullptr});
  }
  if (IsConcrete(node, concrete)) {
    std::vector<HostValue> host;
    for (size_t k = 0; k < inputs.size(); ++k)
      host.push_back({node.inputs[k], {}, inputs[k]->integers});
    std::vector<const HostValue*> pointers;
    for (const HostValue& value : host) pointers.push_back(&value);
    FieldValue result;
    result.integers =
        std::move(EvaluateNode(op, node, pointers)[static_cast<size_t>(output)].integers);
    result.concrete = true;
    return result;
  }
  const FieldScope scope(field_);
  const Reader<Fp> in(arithmetic_, operands);
  FieldValue result;
  result.scalars.resize(
      static_cast<size_t>(NumElements(node.outputs[static_cast<size_t>(output)])));
  if (IsOpaque(op, node, concrete)) {
    FillOpaque(arithmetic_.key(), op, node, in, output, result.scalars);
    return result;
  }
  MENDEL_CHECK(op.meaning.field != nullptr);
  op.meaning.field(in, node, output, result.scalars);
  if (IsSquareRoot(op)) PinRootOfTwo(*inputs[0], result);
  return result;
}

}  // namespace mendel
