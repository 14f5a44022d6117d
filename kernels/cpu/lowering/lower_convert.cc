// Cast between any dtypes, and Pow with an exponent of another dtype than the base's. Fused
// elementwise kernels compute only f32 and bool.

#include <cmath>
#include <memory>
#include <utility>

#include "kernels/cpu/kernels/convert.h"
#include "kernels/cpu/kernels/typed.h"
#include "kernels/cpu/lowering/lower.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

template <class From, class To>
class CastKernel : public Kernel {
 public:
  CastKernel(Place from, Place to, int64_t count)
      : from_(std::move(from)), to_(std::move(to)), count_(count) {}

  absl::Status Run(const Bindings& bindings) override {
    const From* from = bindings.At<From>(from_);
    To* to = bindings.At<To>(to_);
    ParallelRange(count_, GrainOf(1), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = ElementOf<To>(ValueOf(from[i]));
    });
    return absl::OkStatus();
  }

 private:
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
  lowering.Emit(
      {id}, "cast",
      WithElement(lowering.type(input).dtype,
                  [&](auto source) {
                    return WithElement(
                        lowering.type({id, 0}).dtype, [&](auto target) -> std::unique_ptr<Kernel> {
                          return std::make_unique<CastKernel<decltype(source), decltype(target)>>(
                              from, to, NumElements(shape));
                        });
                  }),
      {from, to});
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
