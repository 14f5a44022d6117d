#include "kernels/cpu/kernels/typed_elementwise.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>
#include <utility>

#include "kernels/cpu/kernels/typed.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

/// `count` elements; the operands advance by 0 or 1.
using Row = void (*)(std::byte* out, const std::array<const std::byte*, 3>& in,
                     const std::array<int64_t, 3>& steps, int64_t count);

template <class Out, class In, class F>
void UnaryRow(std::byte* out, const std::array<const std::byte*, 3>& in,
              const std::array<int64_t, 3>& steps, int64_t count) {
  Out* const to = reinterpret_cast<Out*>(out);
  const In* const a = reinterpret_cast<const In*>(in[0]);
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<Out>(F()(a[i * steps[0]]));
}

/// One loop for each kind of broadcasting, so that the compiler vectorizes it.
template <class Out, class In, class F>
void BinaryRow(std::byte* out, const std::array<const std::byte*, 3>& in,
               const std::array<int64_t, 3>& steps, int64_t count) {
  Out* const to = reinterpret_cast<Out*>(out);
  const In* const a = reinterpret_cast<const In*>(in[0]);
  const In* const b = reinterpret_cast<const In*>(in[1]);
  if (steps[0] == 0) {
    const In x = a[0];
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<Out>(F()(x, b[i * steps[1]]));
  } else if (steps[1] == 0) {
    const In y = b[0];
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<Out>(F()(a[i], y));
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<Out>(F()(a[i], b[i]));
  }
}

template <class T>
void WhereRow(std::byte* out, const std::array<const std::byte*, 3>& in,
              const std::array<int64_t, 3>& steps, int64_t count) {
  T* const to = reinterpret_cast<T*>(out);
  const uint8_t* const condition = reinterpret_cast<const uint8_t*>(in[0]);
  const T* const yes = reinterpret_cast<const T*>(in[1]);
  const T* const no = reinterpret_cast<const T*>(in[2]);
  for (int64_t i = 0; i < count; ++i)
    to[i] = condition[i * steps[0]] != 0 ? yes[i * steps[1]] : no[i * steps[2]];
}

/// Integers wrap around.
template <template <class> class F>
struct Wrapped {
  template <class T>
  T operator()(T a, T b) const {
    // Words of 16 bits would become int, whose products overflow.
    using Word = std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>;
    return static_cast<T>(F<Word>()(static_cast<Word>(a), static_cast<Word>(b)));
  }
};
struct Larger {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct Smaller {
  template <class T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};

/// A shift by the width or more leaves the bits that come in; so does one by a negative number.
struct ShiftLeft {
  template <class T>
  T operator()(T a, T b) const {
    constexpr uint64_t kWidth = 8 * sizeof(T);
    const uint64_t places = static_cast<uint64_t>(b);
    return places < kWidth ? static_cast<T>(static_cast<uint64_t>(a) << places) : T{0};
  }
};
struct ShiftRight {
  template <class T>
  T operator()(T a, T b) const {
    constexpr uint64_t kWidth = 8 * sizeof(T);
    const uint64_t places = static_cast<uint64_t>(b);
    if (places >= kWidth) return a < T{0} ? static_cast<T>(-1) : T{0};
    return static_cast<T>(a >> places);
  }
};

template <class T>
Row ComparisonOf(std::string_view op) {
  if (op == "Equal") return &BinaryRow<uint8_t, T, std::equal_to<T>>;
  if (op == "Less") return &BinaryRow<uint8_t, T, std::less<T>>;
  if (op == "LessOrEqual") return &BinaryRow<uint8_t, T, std::less_equal<T>>;
  if (op == "Greater") return &BinaryRow<uint8_t, T, std::greater<T>>;
  return op == "GreaterOrEqual" ? &BinaryRow<uint8_t, T, std::greater_equal<T>> : nullptr;
}

template <class T>
Row ArithmeticOf(std::string_view op) {
  if (op == "Add") return &BinaryRow<T, T, Wrapped<std::plus>>;
  if (op == "Sub") return &BinaryRow<T, T, Wrapped<std::minus>>;
  if (op == "Mul") return &BinaryRow<T, T, Wrapped<std::multiplies>>;
  if (op == "BitwiseAnd") return &BinaryRow<T, T, std::bit_and<T>>;
  if (op == "BitwiseOr") return &BinaryRow<T, T, std::bit_or<T>>;
  if (op == "BitwiseXor") return &BinaryRow<T, T, std::bit_xor<T>>;
  if (op == "BitShift.LEFT") return &BinaryRow<T, T, ShiftLeft>;
  if (op == "BitShift.RIGHT") return &BinaryRow<T, T, ShiftRight>;
  if (op == "Max") return &BinaryRow<T, T, Larger>;
  return op == "Min" ? &BinaryRow<T, T, Smaller> : nullptr;
}

template <class T>
Row IntegersOf(std::string_view op) {
  const Row arithmetic = ArithmeticOf<T>(op);
  return arithmetic != nullptr ? arithmetic : ComparisonOf<T>(op);
}

Row LogicOf(std::string_view op) {
  if (op == "And") return &BinaryRow<uint8_t, uint8_t, std::bit_and<uint8_t>>;
  if (op == "Or") return &BinaryRow<uint8_t, uint8_t, std::bit_or<uint8_t>>;
  if (op == "Xor") return &BinaryRow<uint8_t, uint8_t, std::bit_xor<uint8_t>>;
  return op == "Not" ? &UnaryRow<uint8_t, uint8_t, std::logical_not<uint8_t>> : nullptr;
}

Row RowOf(std::string_view op, DType dtype) {
  if (op == "Where")
    return WithWord(DTypeSize(dtype), [](auto word) -> Row { return &WhereRow<decltype(word)>; });
  switch (dtype) {
    case DType::kBool: {
      const Row logic = LogicOf(op);
      return logic != nullptr || op != "Equal" ? logic : ComparisonOf<uint8_t>(op);
    }
    case DType::kF64:
      return ComparisonOf<double>(op);
    case DType::kU8:
      return IntegersOf<uint8_t>(op);
    case DType::kI8:
      return IntegersOf<int8_t>(op);
    case DType::kI16:
      return IntegersOf<int16_t>(op);
    case DType::kU16:
      return IntegersOf<uint16_t>(op);
    case DType::kI32:
      return IntegersOf<int32_t>(op);
    case DType::kU32:
      return IntegersOf<uint32_t>(op);
    case DType::kI64:
      return IntegersOf<int64_t>(op);
    case DType::kU64:
      return IntegersOf<uint64_t>(op);
    default:
      return nullptr;
  }
}

class TypedElementwiseKernel : public Kernel {
 public:
  TypedElementwiseKernel(TypedProblem problem, Row row) : problem_(std::move(problem)), row_(row) {
    if (problem_.extents.empty()) {
      problem_.extents = {1};
      for (TypedOperand& operand : problem_.operands) operand.strides = {0};
    }
    output_bytes_ = row_bytes_ = DTypeSize(problem_.dtype);
    if (IsComparison()) output_bytes_ = 1;
    outer_.assign(problem_.extents.begin(), problem_.extents.end() - 1);
  }

  absl::Status Run(const Bindings& bindings) override {
    const int64_t inner = problem_.extents.back();
    const int64_t rows = inner == 0 ? 0 : NumElements(problem_.extents) / inner;
    ParallelRange(rows, GrainOf(inner), [&](int64_t begin, int64_t end) {
      std::array<const std::byte*, 3> in{};
      std::array<int64_t, 3> steps{};
      for (int64_t at = begin; at < end; ++at) {
        for (size_t k = 0; k < problem_.operands.size(); ++k) {
          const TypedOperand& operand = problem_.operands[k];
          const int64_t bytes = problem_.op == "Where" && k == 0 ? 1 : row_bytes_;
          in[k] = bindings.Address(operand.place) + OffsetOf(outer_, operand.strides, at) * bytes;
          steps[k] = operand.strides.back();
        }
        row_(bindings.Address(problem_.output) + at * inner * output_bytes_, in, steps, inner);
      }
    });
    return absl::OkStatus();
  }

 private:
  bool IsComparison() const { return ComparisonOf<uint8_t>(problem_.op) != nullptr; }

  TypedProblem problem_;
  const Row row_;
  Shape outer_;  ///< all extents but the last
  int64_t row_bytes_ = 1, output_bytes_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> MakeTypedElementwiseKernel(TypedProblem problem) {
  const Row row = RowOf(problem.op, problem.dtype);
  const size_t most = problem.op == "Where" ? 3 : problem.op == "Not" ? 1 : 2;
  if (row == nullptr || problem.operands.size() != most) return nullptr;
  return std::make_unique<TypedElementwiseKernel>(std::move(problem), row);
}

}  // namespace mendel::cpu
