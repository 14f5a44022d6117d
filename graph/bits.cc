#include "graph/bits.h"

#include <array>

#include "base/status.h"

namespace mendel {
TypesOr InferBits(std::span<const TensorType> inputs, const Attributes& attrs) {
  if (IsFloat(inputs[0].dtype) || inputs[0].dtype == DType::kBool)
    return InvalidInput("expected integers, not ", TypeString(inputs[0]));
  return InferBroadcast(inputs, attrs);
}

OpSample SampleBits(Rng& rng) {
  constexpr std::array<DType, 8> kIntegers = {DType::kI64, DType::kI32, DType::kI16, DType::kI8,
                                              DType::kU64, DType::kU32, DType::kU16, DType::kU8};
  const DType dtype = kIntegers[rng.Below(kIntegers.size())];
  OpSample sample = SampleBinary(rng);
  for (int k = 0; k < 2; ++k) {
    sample.inputs[static_cast<size_t>(k)].dtype = dtype;
    // Negative numbers of u64 are those with the highest bit.
    const bool negative = !IsUnsigned(dtype) || dtype == DType::kU64;
    sample.ranges.push_back({k, {negative ? -100.0 : 0.0, 100.0}});
  }
  return sample;
}

OpDefinition BitsOp(std::string_view name) {
  OpDefinition op = ElementwiseOp(name, 2);
  op.infer = &InferBits;
  op.storage = StorageTypes::kU64;
  op.sample = &SampleBits;
  return op;
}

}  // namespace mendel
