// Cast(x) to dtype `to`: floats round to nearest even, floats to integers truncate, integers wrap,
// anything to bool is x != 0.
//
// Widening a float is the identity. So is a Boolean as a float. Every other cast of a value known
// only at run time is an oracle: it rounds, or it leads out of the integers of one width, whose
// sums wrap where those of the wider type would not.
//
// Numbers of u64 are carried modulo 2^64. There is no saturation: the importer spells that as Clip.
//
// `exact` states that the operand is computed of numbers of the target's precision alone. Such a
// cast rounds no more than every operator of the narrow dtype does, so it is the identity for the
// exact scalars. Doubles round in either case. The verifier sets it (verifier/exact_casts.h).

#include <cmath>
#include <type_traits>
#include <utility>

#include "base/status.h"
#include "graph/elementwise.h"

namespace mendel::ops::cast {
namespace {

DType Target(const Attributes& attrs) { return *ParseDType(attrs.Str("to")); }

bool IsIdentity(DType from, DType to) {
  if (from == to || (from == DType::kBool && IsFloat(to))) return true;
  if (!IsFloat(from) || !IsFloat(to)) return false;
  return to == DType::kF64 || (to == DType::kF32 && from != DType::kF64);
}

int64_t Wrapped(DType to, int64_t value) {
  if (to == DType::kI32) return static_cast<int32_t>(value);
  if (to == DType::kI8) return static_cast<int8_t>(value);
  if (to == DType::kU8) return static_cast<uint8_t>(value);
  if (to == DType::kI16) return static_cast<int16_t>(value);
  if (to == DType::kU16) return static_cast<uint16_t>(value);
  if (to == DType::kU32) return static_cast<uint32_t>(value);
  if (to == DType::kBool) return value != 0;
  return value;
}

bool IsIdentityOverReals(const NodeView& node) {
  const DType from = node.inputs[0].dtype, to = Target(node.attrs);
  return IsIdentity(from, to) || (node.attrs.Int("exact") != 0 && IsFloat(from) && IsFloat(to));
}

/// A known integer as a float. By way of float, since double would round a large one twice.
double RoundedInteger(DType to, int64_t value, bool is_unsigned) {
  const auto rounded = [to](auto number) {
    return to == DType::kF64 ? static_cast<double>(number)
                             : RoundTo(to, static_cast<double>(static_cast<float>(number)));
  };
  return is_unsigned ? rounded(static_cast<uint64_t>(value)) : rounded(value);
}

/// Parameters: the target and the integral source, or -1 (a function of real numbers whatever their
/// float dtype).
constexpr ScalarFunction kCast = {
    .name = "Cast",
    .real = [](std::span<const double> x,
               std::span<const double> p) { return RoundTo(static_cast<DType>(p[0]), x[0]); },
    .integer = [](std::span<const int64_t> x,
                  std::span<const double> p) { return Wrapped(static_cast<DType>(p[0]), x[0]); },
    .zero_at_zero = true};

/// The same to an 8-bit float, by a name of its own: beyond the largest number, which is not far,
/// the result is no number.
constexpr ScalarFunction kCastToFloat8 = {
    .name = "CastToFloat8", .real = kCast.real, .zero_at_zero = true};

Parameters ParametersOf(const NodeView& node) {
  const DType from = node.inputs[0].dtype;
  return {static_cast<double>(Target(node.attrs)),
          IsIntegral(from) ? static_cast<double>(from) : -1.0};
}

struct CastMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    const DType to = Target(node.attrs);
    const Parameters parameters = ParametersOf(node);
    const bool identity = std::is_same_v<S, double> ? IsIdentity(node.inputs[0].dtype, to)
                                                    : IsIdentityOverReals(node);
    for (size_t k = 0; k < out.size(); ++k) {
      const int64_t flat = static_cast<int64_t>(k);
      out[k] =
          identity ? in.Flat(0, flat) : Convert(in, flat, node.inputs[0].dtype, to, parameters);
    }
  }

  template <class S>
  static S Convert(const Reader<S>& in, int64_t flat, DType from, DType to,
                   const Parameters& parameters) {
    if (in.IsConcrete(0)) {
      const int64_t value = in.IntegerFlat(0, flat);
      if (IsIntegral(to)) return in.FromInteger(Wrapped(to, value));
      const double rounded = RoundedInteger(to, value, from == DType::kU64);
      if (std::isfinite(rounded) || std::is_same_v<S, double>) return in.Literal(rounded);
    }
    return in.Call(IsFloat8(to) ? kCastToFloat8 : kCast, {in.Flat(0, flat)}, parameters);
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const std::optional<DType> to = ParseDType(attrs.Str("to"));
  if (!to.has_value()) return InvalidInput("unknown dtype '", attrs.Str("to"), "'");
  return std::vector<TensorType>{{*to, inputs[0].shape}};
}

/// Known integers become literals at most one bit above what they were.
Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  const DType from = node.inputs[0].dtype;
  if (IsIdentityOverReals(node)) return inputs[0];
  Bound literal = inputs[0];
  literal.log2_num += 1;
  const Bound call = arithmetic.Call(kCast, inputs);
  return IsIntegral(from) ? Either(call, literal) : call;
}

OpSample Sample(Rng& rng) {
  const auto any = [&] { return static_cast<DType>(rng.Below(kDTypes)); };
  OpSample sample = SampleUnary(rng);
  sample.inputs[0].dtype = any();
  sample.attrs.Set("to", std::string(DTypeName(any())));
  return sample;
}

OpDefinition Make() {
  OpDefinition op = ElementwiseOp("Cast", 1);
  op.attributes = {{"exact", int64_t{0}}, {"to", std::string(), true}};
  op.infer = &Infer;
  op.meaning = MeaningOf<CastMeaning>();
  op.linear_inputs = [](const NodeView& node) { return IsIdentityOverReals(node) ? 1u : 0u; };
  op.bound = &BoundOf;
  op.access = [](const NodeView& node) {
    return IsIdentityOverReals(node) ? AccessElementwiseSum(node) : AccessElementwiseOracle(node);
  };
  op.sample = &Sample;
  op.storage = StorageTypes::kAll;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::cast
