#include "kernels/cuda/testing/fake/fake_product.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/status.h"
#include "graph/tensor.h"
#include "kernels/cuda/cublaslt/table.h"
#include "kernels/cuda/testing/fake/tf32.h"

namespace mendel::cuda {
namespace {

uint64_t BytesOf(int type) { return type == cublaslt::kFloat32 ? 4 : 2; }

double LoadElement(int type, uint64_t address) {
  uint16_t half = 0;
  float value = 0;
  if (type == cublaslt::kFloat32) {
    std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
    return value;
  }
  std::memcpy(&half, reinterpret_cast<const void*>(address), sizeof half);
  return type == cublaslt::kFloat16 ? HalfToFloat(half) : BFloat16ToFloat(half);
}

void StoreElement(int type, uint64_t address, float value) {
  if (type == cublaslt::kFloat32) {
    std::memcpy(reinterpret_cast<void*>(address), &value, sizeof value);
    return;
  }
  const uint16_t half = type == cublaslt::kFloat16 ? FloatToHalf(value) : FloatToBFloat16(value);
  std::memcpy(reinterpret_cast<void*>(address), &half, sizeof half);
}

double Activated(uint32_t epilogue, double x) {
  if ((epilogue & cublaslt::kRelu) != 0) return x > 0 ? x : 0;  // 0 for NaN, too
  if ((epilogue & cublaslt::kGeluTanh) == 0) return x;
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

/// One matrix operand in memory.
struct MatrixInMemory {
  const FakeLayout& layout;
  uint64_t address;

  uint64_t At(int64_t batch, uint64_t row, uint64_t column) const {
    const uint64_t element = static_cast<uint64_t>(batch * layout.batch_stride) + row +
                             column * static_cast<uint64_t>(layout.leading);
    return address + element * BytesOf(layout.type);
  }
  bool IsAllocated(FakeDriver::State& state) const {
    const uint64_t end =
        At(layout.batch - 1, layout.rows - 1, layout.columns - 1) + BytesOf(layout.type);
    return state.Find(address, end - address) != nullptr;
  }
};

std::string LayoutKey(const FakeLayout& layout) {
  return Cat(layout.type, ":", layout.rows, "x", layout.columns, "/", layout.leading, "*",
             layout.batch, "+", layout.batch_stride, " ");
}

}  // namespace

int FakeProduct::Check() const {
  using namespace cublaslt;  // NOLINT(google-build-using-namespace): its numbers
  const auto is_half = [](int type) { return type == kFloat16 || type == kBFloat16; };
  const bool is_type = a.type == b.type && c.type == d.type &&
                       (d.type == kFloat32 ? a.type == kFloat32 || is_half(a.type)
                                           : is_half(d.type) && a.type == d.type);
  const bool is_compute = a.type != kFloat32 ? operation.compute == kCompute32F
                                             : operation.compute == kCompute32FPedantic || IsTf32();
  if (!is_type || !is_compute || operation.scale_type != kFloat32) return kNotSupported;
  for (const FakeLayout* layout : {&a, &b, &c, &d}) {
    if (layout->batch != d.batch || layout->batch < 1 || layout->batch_stride < 0)
      return kFakeLtInvalidValue;
    if (layout->rows == 0 || layout->columns == 0 ||
        layout->leading < static_cast<int64_t>(layout->rows))
      return kFakeLtInvalidValue;
  }
  const bool ta = operation.transpose_a == kTransposed, tb = operation.transpose_b == kTransposed;
  const uint64_t m = ta ? a.columns : a.rows, k = ta ? a.rows : a.columns;
  const uint64_t k_of_b = tb ? b.columns : b.rows, n = tb ? b.rows : b.columns;
  const bool fits = k == k_of_b && d.rows == m && d.columns == n && c.rows == m && c.columns == n;
  const uint32_t activation = operation.epilogue & ~static_cast<uint32_t>(kBias);
  const bool known =
      activation == 0 ? operation.epilogue == kBias
                      : activation == kNoEpilogue || activation == kRelu || activation == kGeluTanh;
  const bool lone = activation != kNoEpilogue || operation.epilogue == kNoEpilogue;
  return fits && known && lone ? 0 : kFakeLtInvalidValue;
}

bool FakeProduct::IsTf32() const { return operation.compute == cublaslt::kCompute32FFastTf32; }

bool FakeProduct::Rounds() const { return IsTf32() || a.type != d.type; }

std::string FakeProduct::Key() const {
  return Cat(operation.compute, " ", operation.transpose_a, operation.transpose_b, " ",
             operation.epilogue, " ", LayoutKey(a), LayoutKey(b), LayoutKey(c), LayoutKey(d));
}

int FakeProduct::Compute(FakeDriver::State& state, const Operands& operands) const {
  const MatrixInMemory am{a, operands.a}, bm{b, operands.b}, cm{c, operands.c}, dm{d, operands.d};
  const bool has_bias = (operation.epilogue & cublaslt::kBias) != 0;
  const bool allocated =
      am.IsAllocated(state) && bm.IsAllocated(state) && dm.IsAllocated(state) &&
      (operands.beta == 0 || cm.IsAllocated(state)) &&
      (!has_bias || state.Find(operation.bias, d.rows * BytesOf(d.type)) != nullptr);
  if (!allocated) return kFakeIllegalAddress;
  const bool ta = operation.transpose_a != 0, tb = operation.transpose_b != 0;
  const uint64_t inner = ta ? a.rows : a.columns;
  const auto multiplied = [tf32 = IsTf32()](double x) {
    return tf32 ? RoundedToTf32(static_cast<float>(x)) : x;
  };
  for (int64_t batch = 0; batch < d.batch; ++batch) {
    for (uint64_t column = 0; column < d.columns; ++column) {
      for (uint64_t row = 0; row < d.rows; ++row) {
        double sum = 0;
        for (uint64_t k = 0; k < inner; ++k) {
          sum += multiplied(LoadElement(a.type, ta ? am.At(batch, k, row) : am.At(batch, row, k))) *
                 multiplied(
                     LoadElement(b.type, tb ? bm.At(batch, column, k) : bm.At(batch, k, column)));
        }
        sum *= operands.alpha;
        if (operands.beta != 0)
          sum += operands.beta * LoadElement(c.type, cm.At(batch, row, column));
        if (has_bias) sum += LoadElement(d.type, operation.bias + row * BytesOf(d.type));
        StoreElement(d.type, dm.At(batch, row, column),
                     static_cast<float>(Activated(operation.epilogue, sum)));
      }
    }
  }
  return 0;
}

}  // namespace mendel::cuda
