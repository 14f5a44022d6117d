#include "graph/elementwise.h"

#include <array>
#include <utility>

#include "base/status.h"

namespace mendel {
namespace {

absl::Status RefuseBool(const TensorType& type) {
  return type.dtype == DType::kBool ? InvalidInput("expected numbers, not ", TypeString(type))
                                    : absl::OkStatus();
}

DType SampleFloatDType(Rng& rng) {
  constexpr std::array<DType, 3> kOthers = {DType::kF16, DType::kBF16, DType::kF64};
  return rng.Flip(0.7) ? DType::kF32 : kOthers[rng.Below(kOthers.size())];
}

DType SampleNumericDType(Rng& rng) {
  constexpr std::array<DType, 7> kIntegers = {DType::kI64, DType::kI32, DType::kI8, DType::kU8,
                                              DType::kI16, DType::kU16, DType::kU32};
  return rng.Flip(0.6) ? SampleFloatDType(rng) : kIntegers[rng.Below(kIntegers.size())];
}

/// `shapes(rng)` with all operands of a dtype of the family. The dtype is drawn first, whatever the
/// compiler.
OpSample Sampled(Rng& rng, DType (*family)(Rng&), OpSample (*shapes)(Rng&)) {
  const DType dtype = family(rng);
  OpSample sample = shapes(rng);
  for (TensorType& type : sample.inputs) type.dtype = dtype;
  return sample;
}

}  // namespace

TypesOr InferBroadcastNumeric(std::span<const TensorType> inputs, const Attributes& attrs) {
  MENDEL_RETURN_IF_ERROR(RefuseBool(inputs[0]));
  return InferBroadcast(inputs, attrs);
}

TypesOr InferBroadcastNumericToBool(std::span<const TensorType> inputs, const Attributes& attrs) {
  MENDEL_RETURN_IF_ERROR(RefuseBool(inputs[0]));
  return InferBroadcastToBool(inputs, attrs);
}

TypesOr InferBroadcastBool(std::span<const TensorType> inputs, const Attributes& attrs) {
  if (inputs[0].dtype != DType::kBool)
    return InvalidInput("expected Booleans, not ", TypeString(inputs[0]));
  return InferBroadcast(inputs, attrs);
}

TypesOr InferSameNumeric(std::span<const TensorType> inputs, const Attributes& attrs) {
  MENDEL_RETURN_IF_ERROR(RefuseBool(inputs[0]));
  return InferSame(inputs, attrs);
}

TypesOr InferSameFloatToBool(std::span<const TensorType> inputs, const Attributes& attrs) {
  MENDEL_ASSIGN_OR_RETURN(std::vector<TensorType> types, InferSameFloat(inputs, attrs));
  types[0].dtype = DType::kBool;
  return types;
}

OpSample SampleUnaryFloat(Rng& rng) { return Sampled(rng, &SampleFloatDType, &SampleUnary); }
OpSample SampleUnaryNumeric(Rng& rng) { return Sampled(rng, &SampleNumericDType, &SampleUnary); }
OpSample SampleBinaryNumeric(Rng& rng) { return Sampled(rng, &SampleNumericDType, &SampleBinary); }
OpSample SampleBinaryBool(Rng& rng) {
  const auto boolean = [](Rng&) { return DType::kBool; };
  return Sampled(rng, boolean, &SampleBinary);
}

OpSample SampleUnaryIn(Rng& rng, double low, double high) {
  OpSample sample = SampleUnaryFloat(rng);
  sample.ranges.push_back({0, {low, high}});
  return sample;
}

OpDefinition ElementwiseOp(std::string_view name, int inputs) {
  OpDefinition op;
  op.name = name;
  op.min_inputs = op.max_inputs = inputs;
  op.restrict = &RestrictElementwise;
  op.access = &AccessElementwiseOracle;
  return op;
}

Bound BoundOfCall(const NodeView&, std::span<const Bound> inputs, int,
                  const Arithmetic<Bound>& arithmetic) {
  constexpr ScalarFunction kAny = {"", nullptr};
  return arithmetic.Call(kAny, inputs);
}

template <class S>
void FillCalls(const Reader<S>& in, const ScalarFunction& f, const Parameters& parameters,
               std::span<S> out) {
  ForRanges<S>(static_cast<int64_t>(out.size()), std::is_same_v<S, Ball> ? 64 : 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t k = begin; k < end; ++k)
                   out[static_cast<size_t>(k)] = in.Call(f, {in.Flat(0, k)}, parameters);
               });
}

template void FillCalls(const Reader<double>&, const ScalarFunction&, const Parameters&,
                        std::span<double>);
template void FillCalls(const Reader<int64_t>&, const ScalarFunction&, const Parameters&,
                        std::span<int64_t>);
template void FillCalls(const Reader<Fp>&, const ScalarFunction&, const Parameters&, std::span<Fp>);
template void FillCalls(const Reader<Ball>&, const ScalarFunction&, const Parameters&,
                        std::span<Ball>);
template void FillCalls(const Reader<Extended>&, const ScalarFunction&, const Parameters&,
                        std::span<Extended>);

}  // namespace mendel
