#include "kernels/cuda/tiled/tensor_cores.h"

#include <string>

#include "base/status.h"

namespace mendel::cuda {
namespace {

// asm is volatile where it needs the whole warp. Reads of shared memory before it are done: their
// values are its operands.
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
typedef unsigned F16Pair;
MENDEL_HERE F16Pair RoundToF16(float first, float second) {
  F16Pair pair;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
#else
  asm("{.reg .b16 l, h; cvt.rn.f16.f32 l, %1; cvt.rn.f16.f32 h, %2; mov.b32 %0, {l, h};}" : "=r"(pair) : "f"(first), "f"(second));
#endif
  return pair;
}
MENDEL_HERE void MultiplyF16(float& c0, float& c1, float& c2, float& c3, const F16Pair (&a)[4], const F16Pair (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
               : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
               : "r"(a[0]), "r"(a[1]), "r"(b[0]));
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
               : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
               : "r"(a[2]), "r"(a[3]), "r"(b[1]));
#endif
}
}  // namespace mendel_text
#endif
)";

constexpr std::string_view kBf16Text = R"(#ifndef MENDEL_BF16_PRODUCTS
#define MENDEL_BF16_PRODUCTS
namespace mendel_text {
typedef unsigned Bf16Pair;
MENDEL_HERE Bf16Pair RoundToBf16(float first, float second) {
  Bf16Pair pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}
MENDEL_HERE void MultiplyBf16(float& c0, float& c1, float& c2, float& c3, const Bf16Pair (&a)[4], const Bf16Pair (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
}  // namespace mendel_text
#endif
)";

// Products a cycle: NVIDIA, "A100 Tensor Core GPU Architecture", dense, of a multiprocessor.
constexpr TensorCores kAll[] = {
    {Numerics::kTf32, DType::kF32, 80, 8, 512, "float", 1, "RoundToTf32", "MultiplyTf32",
     kTf32Text},
    {Numerics::kF16, DType::kF16, 75, 16, 1024, "F16Pair", 2, "RoundToF16", "MultiplyF16",
     kF16Text},
    {Numerics::kBf16, DType::kBF16, 80, 16, 1024, "Bf16Pair", 2, "RoundToBf16", "MultiplyBf16",
     kBf16Text},
};

class ProductsWriter {
 public:
  ProductsWriter(KernelCode& code, const Tile& tile, const TensorCores& cores)
      : code_(code),
        tile_(tile),
        cores_(cores),
        own_(cores.words() / 4),
        tops_(tile.thread_rows / 2) {}

  void Write(const SharedFactors& left, std::span<const RightProduct> rights) {
    Unrolled(Cat("for (int w = 0; w < ", left.tile.words, "; w += ", cores_.words(), ")"));
    Factors("a", 2 * own_, tops_, left, "e / 2 * 4", "thread_row + i * 16 + e % 2 * 8");
    for (size_t p = 0; p < rights.size(); ++p) {
      const std::string b = Cat("b", p), &sum = rights[p].sum;
      Factors(b, own_, tile_.thread_columns / 2, rights[p].right, "e * 4",
              "warp_column + lane / 4 + i * 8");
      Unrolled(Cat("for (int i = 0; i < ", tops_, "; ++i)"));
      Unrolled(Cat("for (int j = 0; j < ", tile_.thread_columns / 2, "; ++j)"));
      code_.Line(Cat(cores_.multiply, "(", sum, "[2 * i][2 * j], ", sum, "[2 * i][2 * j + 1], ",
                     sum, "[2 * i + 1][2 * j], ", sum, "[2 * i + 1][2 * j + 1], a[i], ", b,
                     "[j]);"));
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

  /// `count` times what one product takes of an operand: element e is word w + lane % 4 + `further`
  /// of the row or column `at`.
  void Factors(const std::string& name, int elements, int count, const SharedFactors& operand,
               const std::string& further, const std::string& at) {
    code_.Line(Cat(cores_.word, " ", name, "[", count, "][", elements, "];"));
    Unrolled(Cat("for (int i = 0; i < ", count, "; ++i)"));
    Unrolled(Cat("for (int e = 0; e < ", elements, "; ++e)"));
    const std::string word =
        operand.tile.At("buffer", Cat("w + lane % 4 + ", further), at, "(lane / 4)");
    code_.Line(
        Cat(name, "[i][e] = ", operand.rounds ? Cat(cores_.round, "(", word, ")") : word, ";"));
    code_.Close();
    code_.Close();
  }

  KernelCode& code_;
  const Tile& tile_;
  const TensorCores& cores_;
  const int own_;   // words of a thread, of one row or column
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
    if (algorithm.substr(0, algorithm.find(':')) == Cat("tile-", NumericsName(cores.numerics)))
      return cores.numerics;
  }
  return std::nullopt;
}

void WriteWarpPlaces(KernelCode& code, const Tile& tile) {
  const int across = tile.columns / (kWarpColumns * tile.thread_columns);
  code.Line(
      Cat("const int warp = thread / ", kWarpThreads, ", lane = thread % ", kWarpThreads, ";"));
  code.Line(Cat("const int warp_column = warp % ", across, " * ",
                kWarpColumns * tile.thread_columns, ";"));
  code.Line(Cat("const int thread_row = warp / ", across, " * ", kWarpRows * tile.thread_rows,
                " + lane / 4;"));
  code.Line("const int thread_column = warp_column + lane % 4 * 2;");
}

void WriteProducts(KernelCode& code, const Tile& tile, const TensorCores& cores,
                   const SharedFactors& left, std::span<const RightProduct> rights) {
  ProductsWriter(code, tile, cores).Write(left, rights);
}

}  // namespace mendel::cuda
