// A meaning states an operator once for doubles, exact integers, GF(p), bounds,
// balls and abstract elements.
//
// An operator's file defines a struct with one static member template:
//
//   struct AddMeaning {
//     template <class S>
//     static S At(const Reader<S>& in, const NodeView& node, int output, Index i) {
//       return in.Broadcast(0, i) + in.Broadcast(1, i);
//     }
//   };
//
// or, when a whole output is cheaper to compute at once (softmax, convolution):
//
//   template <class S> static void Fill(const Reader<S>& in, const NodeView& node, int output,
//   std::span<S> out);
//
// and registers `.meaning = MeaningOf<AddMeaning>()`. The verifier, the reference backend, constant
// folding and every kernel test use this definition.
#ifndef MENDEL_GRAPH_MEANING_H_
#define MENDEL_GRAPH_MEANING_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "base/parallel.h"
#include "graph/arithmetic.h"
#include "graph/attributes.h"
#include "graph/contraction.h"
#include "graph/types.h"

namespace mendel {

/// Types and attributes of one node: the argument of every property of an operator.
struct NodeView {
  std::span<const TensorType> inputs;
  const Attributes& attrs;
  std::span<const TensorType> outputs;
};

/// One operand's elements, row-major. Integral tensors have `integers`; float tensors have
/// `scalars`. In GF(p) a run-time integral tensor has scalars only: its elements are opaque symbols
/// and cannot be used as indices.
template <class S>
struct Operand {
  const TensorType* type = nullptr;
  const S* scalars = nullptr;
  const int64_t* integers = nullptr;
  const double* exact = nullptr;  ///< of balls, instead of `scalars`: elements that are numbers, in
                                  ///< a sixth of the memory
};

/// Read access to the operands of one node.
template <class S>
class Reader {
 public:
  /// Both arguments must outlive the reader.
  Reader(const Arithmetic<S>& arithmetic, std::span<const Operand<S>> operands)
      : operands_(operands), arithmetic_(arithmetic) {
    for (const Operand<S>& operand : operands)
      strides_.push_back(RowMajorStrides(operand.type->shape));
  }

  int size() const { return static_cast<int>(operands_.size()); }
  const Shape& shape(int input) const { return operands_[static_cast<size_t>(input)].type->shape; }
  const Operand<S>& operand(int input) const { return operands_[static_cast<size_t>(input)]; }

  /// Element at `index` of input `input`.
  S operator()(int input, Index index) const { return Flat(input, Offset(input, index)); }
  /// Element at row-major offset `flat`.
  S Flat(int input, int64_t flat) const {
    const Operand<S>& operand = operands_[static_cast<size_t>(input)];
    if (operand.scalars != nullptr) return operand.scalars[flat];
    if constexpr (std::is_same_v<S, Ball>) {
      if (operand.exact != nullptr) return arithmetic_.Literal(operand.exact[flat]);
    }
    return arithmetic_.FromInteger(operand.integers[flat]);
  }
  /// Element of an integral input as an exact integer (indices). The evaluator guarantees that it
  /// is known.
  int64_t Integer(int input, Index index) const { return IntegerFlat(input, Offset(input, index)); }
  int64_t IntegerFlat(int input, int64_t flat) const {
    MENDEL_CHECK(operands_[static_cast<size_t>(input)].integers != nullptr);
    return operands_[static_cast<size_t>(input)].integers[flat];
  }
  /// True when the integral input's values are known. A condition on them is then decided without
  /// an oracle.
  bool IsConcrete(int input) const {
    return operands_[static_cast<size_t>(input)].integers != nullptr;
  }

  /// Element of input `input` under NumPy broadcasting at output position `i` (rank of `i` at least
  /// the input's).
  S Broadcast(int input, Index i) const { return Flat(input, BroadcastOffset(input, i)); }
  int64_t BroadcastOffset(int input, Index i) const {
    const Shape& extents = shape(input);
    const Shape& strides = strides_[static_cast<size_t>(input)];
    const size_t skip = i.size() - extents.size();
    int64_t flat = 0;
    for (size_t d = 0; d < extents.size(); ++d) {
      if (extents[d] != 1) flat += i[skip + d] * strides[d];
    }
    return flat;
  }
  int64_t Offset(int input, Index index) const {
    const Shape& strides = strides_[static_cast<size_t>(input)];
    int64_t flat = 0;
    for (size_t d = 0; d < strides.size(); ++d) flat += index[d] * strides[d];
    return flat;
  }

  S Literal(double exact) const { return arithmetic_.Literal(exact); }
  S FromInteger(int64_t value) const { return arithmetic_.FromInteger(value); }
  S Divide(S a, S b) const { return arithmetic_.Divide(a, b); }
  S Call(const ScalarFunction& f, std::initializer_list<S> arguments,
         std::span<const double> parameters = {}) const {
    return arithmetic_.Call(f, std::span<const S>(arguments.begin(), arguments.size()), parameters);
  }
  S Call(const ScalarFunction& f, std::span<const S> arguments,
         std::span<const double> parameters = {}) const {
    return arithmetic_.Call(f, arguments, parameters);
  }
  S Select(S condition, S yes, S no) const { return arithmetic_.Select(condition, yes, no); }
  const Arithmetic<S>& arithmetic() const { return arithmetic_; }

 private:
  std::span<const Operand<S>> operands_;
  const Arithmetic<S>& arithmetic_;
  std::vector<Shape> strides_;
};

template <class S>
using FillFunction = void (*)(const Reader<S>& in, const NodeView& node, int output,
                              std::span<S> out);

/// Function pointers to the six instantiations of an operator's meaning.
struct Meaning {
  FillFunction<double> real = nullptr;
  FillFunction<int64_t> integer = nullptr;
  FillFunction<Fp> field = nullptr;
  /// Bound of one output element (its first), for operators that compute all elements alike. Null
  /// for Fill meanings, which state their bound themselves.
  Bound (*bound)(const Reader<Bound>& in, const NodeView& node, int output) = nullptr;
  FillFunction<Ball> ball = nullptr;
  FillFunction<Extended> extended = nullptr;
};

namespace internal {

template <class M, class S>
concept HasFill = requires(const Reader<S>& in, const NodeView& node, std::span<S> out) {
  M::template Fill<S>(in, node, 0, out);
};

/// The elements of an At meaning from row-major position `begin` on.
template <class M, class S>
void FillFrom(const Reader<S>& in, const NodeView& node, int output, int64_t begin,
              std::span<S> out) {
  const Shape& shape = node.outputs[static_cast<size_t>(output)].shape;
  std::array<int64_t, kMaxRank> storage{};
  const std::span<int64_t> index(storage.data(), shape.size());
  for (size_t d = shape.size(); begin != 0 && d-- > 0; begin /= shape[d])
    index[d] = begin % shape[d];
  for (S& element : out) {
    element = M::template At<S>(in, node, output, index);
    NextIndex(shape, index);
  }
}

/// Elements that make a thread worth starting.
inline constexpr int64_t kParallelElements = 1 << 15;

template <class M, class S>
void FillWith(const Reader<S>& in, const NodeView& node, int output, std::span<S> out) {
  if constexpr (HasFill<M, S>) {
    M::template Fill<S>(in, node, output, out);
  } else if (const int64_t count = static_cast<int64_t>(out.size()); count <= kParallelElements) {
    FillFrom<M, S>(in, node, output, 0, out);
  } else {
    auto* const context = ScalarScope<S>::Current();
    ParallelChunks(count, kParallelElements, [&](int64_t begin, int64_t end) {
      const ScalarScope<S> scope(context);
      FillFrom<M, S>(in, node, output, begin,
                     out.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
    });
  }
}

template <class M>
Bound BoundAtFirst(const Reader<Bound>& in, const NodeView& node, int output) {
  const std::array<int64_t, kMaxRank> first{};
  return M::template At<Bound>(
      in, node, output,
      Index(first.data(), node.outputs[static_cast<size_t>(output)].shape.size()));
}

}  // namespace internal

template <class M>
constexpr Meaning MeaningOf() {
  Meaning meaning{&internal::FillWith<M, double>, &internal::FillWith<M, int64_t>,
                  &internal::FillWith<M, Fp>,     nullptr,
                  &internal::FillWith<M, Ball>,   &internal::FillWith<M, Extended>};
  if constexpr (!internal::HasFill<M, double>) meaning.bound = &internal::BoundAtFirst<M>;
  return meaning;
}

}  // namespace mendel

#endif  // MENDEL_GRAPH_MEANING_H_
