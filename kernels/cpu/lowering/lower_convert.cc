// Cast between any dtypes, and Pow with an exponent of another dtype than the base's. Fused
// elementwise kernels compute only f32 and bool.

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "kernels/cpu/kernels/convert.h"
#include "kernels/cpu/kernels/typed.h"
#include "kernels/cpu/lowering/lower.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

/// Elements that are converted at a time; they stay in the nearest cache.
constexpr int64_t kChunk = 512;

using Convert = void (*)(const std::byte* from, std::byte* to, int64_t count);

template <class From>
using CarrierOf = decltype(ValueOf(From{}));

template <class From>
void Load(const std::byte* from, std::byte* to, int64_t count) {
  const From* const elements = reinterpret_cast<const From*>(from);
  auto* const values = reinterpret_cast<CarrierOf<From>*>(to);
  for (int64_t i = 0; i < count; ++i) values[i] = ValueOf(elements[i]);
}

template <class V, class To>
void StoreAs(const std::byte* from, std::byte* to, int64_t count) {
  const V* const values = reinterpret_cast<const V*>(from);
  To* const elements = reinterpret_cast<To*>(to);
  for (int64_t i = 0; i < count; ++i) elements[i] = ElementOf<To>(values[i]);
}

/// Two loops with values between them: a loop for each pair of dtypes would take minutes to
/// compile.
struct Conversion {
  Convert load, store;
  int64_t from_bytes, to_bytes;
};

Conversion ConversionOf(DType from, DType to) {
  Conversion both{};
  both.from_bytes = DTypeSize(from);
  both.to_bytes = DTypeSize(to);
  both.load = WithElement(from, [](auto x) -> Convert { return &Load<decltype(x)>; });
  const auto store = [&]<class V>(V) {
    both.store = WithElement(to, [](auto y) -> Convert { return &StoreAs<V, decltype(y)>; });
  };
  if (from == DType::kF64) {
    store(double{});
  } else if (IsFloat(from)) {
    store(float{});
  } else if (from == DType::kU64) {
    store(uint64_t{});
  } else {
    store(int64_t{});
  }
  return both;
}

class CastKernel : public Kernel {
 public:
  CastKernel(Conversion conversion, Place from, Place to, int64_t count)
      : conversion_(conversion), from_(std::move(from)), to_(std::move(to)), count_(count) {}

  absl::Status Run(const Bindings& bindings) override {
    const std::byte* from = bindings.Address(from_);
    std::byte* to = bindings.Address(to_);
    ParallelRange(count_, GrainOf(1), [&](int64_t begin, int64_t end) {
      alignas(64) std::array<std::byte, 8 * kChunk> values;
      for (int64_t i = begin; i < end; i += kChunk) {
        const int64_t count = std::min(kChunk, end - i);
        conversion_.load(from + i * conversion_.from_bytes, values.data(), count);
        conversion_.store(values.data(), to + i * conversion_.to_bytes, count);
      }
    });
    return absl::OkStatus();
  }

 private:
  Conversion conversion_;
  Place from_, to_;
  int64_t count_;
};

/// A row-major operand that is broadcast to the result.
struct BroadcastOperand {
  Place place;
  Shape strides;  ///< one a dimension of the result
};

BroadcastOperand OperandOf(Lowering& lowering, ValueId value, const Shape& result) {
  BroadcastOperand operand{lowering.Plain(value), Shape(result.size(), 0)};
  const Shape& shape = lowering.shape(value);
  const Shape own = RowMajorStrides(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1) operand.strides[result.size() - shape.size() + d] = own[d];
  }
  return operand;
}

using ReadElement = double (*)(const std::byte* elements, int64_t at);

template <class T>
double ReadAs(const std::byte* elements, int64_t at) {
  return static_cast<double>(ValueOf(reinterpret_cast<const T*>(elements)[at]));
}

/// PowKernel computes in double. Powers of integers are truncated. It reads exponents through a
/// pointer: a kernel for each pair of dtypes would take seconds to compile.
template <class Base>
class PowKernel : public Kernel {
 public:
  PowKernel(BroadcastOperand base, BroadcastOperand exponent, ReadElement read, Shape shape,
            Place to)
      : base_(std::move(base)),
        exponent_(std::move(exponent)),
        read_(read),
        shape_(std::move(shape)),
        to_(std::move(to)) {}

  absl::Status Run(const Bindings& bindings) override {
    const Base* base = bindings.At<Base>(base_.place);
    const std::byte* exponent = bindings.At<std::byte>(exponent_.place);
    Base* to = bindings.At<Base>(to_);
    ParallelRange(NumElements(shape_), GrainOf(16), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto x = ValueOf(base[OffsetOf(shape_, base_.strides, i)]);
        const double y = read_(exponent, OffsetOf(shape_, exponent_.strides, i));
        to[i] = ElementOf<Base>(std::pow(static_cast<double>(x), y));
      }
    });
    return absl::OkStatus();
  }

 private:
  BroadcastOperand base_, exponent_;
  ReadElement read_;
  Shape shape_;
  Place to_;
};

}  // namespace

absl::StatusOr<bool> LowerCast(Lowering& lowering, int32_t id) {
  const ValueId input = lowering.graph().node(id).inputs[0];
  const Shape& shape = lowering.shape(input);
  Place from = lowering.Unblocked(input);
  if (!IsDense(from.layout, shape)) from = lowering.Plain(input);
  const Place to = lowering.Allocate({id, 0}, from.layout);
  const Conversion conversion =
      ConversionOf(lowering.type(input).dtype, lowering.type({id, 0}).dtype);
  lowering.Emit({id}, "cast",
                std::make_unique<CastKernel>(conversion, from, to, NumElements(shape)), {from, to});
  return true;
}

absl::StatusOr<bool> LowerPow(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const DType base = lowering.type(node.inputs[0]).dtype;
  const DType exponent = lowering.type(node.inputs[1]).dtype;
  // Powers of integers by integers are exact and wrap.
  if (IsIntegral(base) && IsIntegral(exponent)) return false;
  const Shape& shape = node.outputs[0].shape;
  const BroadcastOperand left = OperandOf(lowering, node.inputs[0], shape);
  const BroadcastOperand right = OperandOf(lowering, node.inputs[1], shape);
  const Place to = lowering.Allocate({id, 0}, PlainLayout(shape));
  const ReadElement read =
      WithElement(exponent, [](auto e) -> ReadElement { return ReadAs<decltype(e)>; });
  lowering.Emit({id}, "power",
                WithElement(base,
                            [&](auto b) -> std::unique_ptr<Kernel> {
                              return std::make_unique<PowKernel<decltype(b)>>(left, right, read,
                                                                              shape, to);
                            }),
                {left.place, right.place, to});
  return true;
}

}  // namespace mendel::cpu
