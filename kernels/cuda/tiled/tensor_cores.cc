#include "kernels/cuda/tiled/tensor_cores.h"

#include <string>

#include "base/status.h"

namespace mendel::cuda {
namespace {

// asm is volatile where it needs the whole warp. Reads of shared memory before it are done: their values are its operands.
constexpr std::string_view kTf32Text = R"(#ifndef MENDEL_TF32_PRODUCTS
#define MENDEL_TF32_PRODUCTS
namespace mendel_text {
MENDEL_HERE float RoundToTf32(float v) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
  return __uint_as_float(bits);
}
MENDEL_HERE void MultiplyTf32(float& c0, float& c1, float& c2, float& c3, const float (&a)[4], const float (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
               : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
                 "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}
}  // namespace mendel_text
#endif
)";

constexpr std::string_view kF16Text = R"(#ifndef MENDEL_F16_PRODUCTS
#define MENDEL_F16_PRODUCTS
namespace mendel_text {
MENDEL_HERE unsigned PackF16(float low, float high) {
  unsigned bits;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
#else
  asm("{.reg .b16 l, h; cvt.rn.f16.f32 l, %1; cvt.rn.f16.f32 h, %2; mov.b32 %0, {l, h};}" : "=r"(bits) : "f"(low), "f"(high));
#endif
  return bits;
}
MENDEL_HERE void MultiplyF16(float& c0, float& c1, float& c2, float& c3, const float (&a)[8], const float (&b)[4]) {
  const unsigned a0 = PackF16(a[0], a[2]), a1 = PackF16(a[1], a[3]), a2 = PackF16(a[4], a[6]), a3 = PackF16(a[5], a[7]);
  const unsigned b0 = PackF16(b[0], b[1]), b1 = PackF16(b[2], b[3]);
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#else
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
               : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
               : "r"(a0), "r"(a1), "r"(b0));
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
               : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
               : "r"(a2), "r"(a3), "r"(b1));
#endif
}
}  // namespace mendel_text
#endif
)";

constexpr std::string_view kBf16Text = R"(#ifndef MENDEL_BF16_PRODUCTS
#define MENDEL_BF16_PRODUCTS
namespace mendel_text {
MENDEL_HERE unsigned PackBf16(float low, float high) {
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}
MENDEL_HERE void MultiplyBf16(float& c0, float& c1, float& c2, float& c3, const float (&a)[8], const float (&b)[4]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
               : "r"(PackBf16(a[0], a[2])), "r"(PackBf16(a[1], a[3])), "r"(PackBf16(a[4], a[6])), "r"(PackBf16(a[5], a[7])),
                 "r"(PackBf16(b[0], b[1])), "r"(PackBf16(b[2], b[3])));
}
}  // namespace mendel_text
#endif
)";

// Products a cycle: NVIDIA, "A100 Tensor Core GPU Architecture", dense, of a multiprocessor.
constexpr TensorCores kAll[] = {
    {Numerics::kTf32, 80, 8, 512, "MultiplyTf32", "RoundToTf32", kTf32Text},
    {Numerics::kF16, 75, 16, 1024, "MultiplyF16", "", kF16Text},
    {Numerics::kBf16, 80, 16, 1024, "MultiplyBf16", "", kBf16Text},
};

class ProductsWriter {
 public:
  ProductsWriter(KernelCode& code, const Tile& tile, const TensorCores& cores, std::string_view real)
      : code_(code), tile_(tile), cores_(cores), real_(real), own_(cores.depth / 4), tops_(tile.thread_rows / 2) {}

  void Write(const SharedOperand& left, std::span<const RightProduct> rights) {
    Unrolled(Cat("for (int k = 0; k < ", tile_.depth, "; k += ", cores_.depth, ")"));
    Factors("a", 2 * own_, tops_, left, "e / 2 * 4", "thread_row + i * 16 + e % 2 * 8");
    for (size_t p = 0; p < rights.size(); ++p) {
      const std::string b = Cat("b", p), &sum = rights[p].sum;
      Factors(b, own_, tile_.thread_columns / 2, rights[p].right, "e * 4", "warp_column + lane / 4 + i * 8");
      Unrolled(Cat("for (int i = 0; i < ", tops_, "; ++i)"));
      Unrolled(Cat("for (int j = 0; j < ", tile_.thread_columns / 2, "; ++j)"));
      code_.Line(Cat(cores_.multiply, "(", sum, "[2 * i][2 * j], ", sum, "[2 * i][2 * j + 1], ", sum, "[2 * i + 1][2 * j], ", sum,
                     "[2 * i + 1][2 * j + 1], a[i], ", b, "[j]);"));
      code_.Close();
      code_.Close();
    }
    code_.Close();
  }

 private:
  void Unrolled(const std::string& header) {
    code_.Line("#pragma unroll");
    code_.Open(header);
  }

  /// `count` times what one product takes of an operand: element e is product k + lane % 4 + `further` of the row or column `at`.
  void Factors(const std::string& name, int elements, int count, const SharedOperand& operand, const std::string& further,
               const std::string& at) {
    code_.Line(Cat(real_, " ", name, "[", count, "][", elements, "];"));
    Unrolled(Cat("for (int i = 0; i < ", count, "; ++i)"));
    Unrolled(Cat("for (int e = 0; e < ", elements, "; ++e)"));
    code_.Line(Cat(name, "[i][e] = ", operand.name, "[(buffer * ", tile_.depth, " + k + lane % 4 + ", further, ") * ",
                   operand.pitch, " + ", at, "];"));
    code_.Close();
    code_.Close();
  }

  KernelCode& code_;
  const Tile& tile_;
  const TensorCores& cores_;
  const std::string real_;
  const int own_;   // products of a thread, of one row or column
  const int tops_;  // products of 16 rows, one above the other
};

}  // namespace

std::span<const TensorCores> AllTensorCores() { return kAll; }

const TensorCores* FindTensorCores(Numerics numerics) {
  for (const TensorCores& cores : kAll) {
    if (cores.numerics == numerics) return &cores;
  }
  return nullptr;
}

std::optional<Numerics> TensorCoresOf(std::string_view algorithm) {
  for (const TensorCores& cores : kAll) {
    if (algorithm.substr(0, algorithm.find(':')) == Cat("tile-", NumericsName(cores.numerics))) return cores.numerics;
  }
  return std::nullopt;
}

void WriteWarpPlaces(KernelCode& code, const Tile& tile) {
  const int across = tile.columns / (kWarpColumns * tile.thread_columns);
  code.Line(Cat("const int warp = thread / ", kWarpThreads, ", lane = thread % ", kWarpThreads, ";"));
  code.Line(Cat("const int warp_column = warp % ", across, " * ", kWarpColumns * tile.thread_columns, ";"));
  code.Line(Cat("const int thread_row = warp / ", across, " * ", kWarpRows * tile.thread_rows, " + lane / 4;"));
  code.Line("const int thread_column = warp_column + lane % 4 * 2;");
}

void WriteProducts(KernelCode& code, const Tile& tile, const TensorCores& cores, std::string_view real, const SharedOperand& left,
                   std::span<const RightProduct> rights) {
  ProductsWriter(code, tile, cores, real).Write(left, rights);
}

}  // namespace mendel::cuda
