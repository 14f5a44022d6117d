// Products by tensor cores: how operands are rounded, which classes and architectures have them,
// planted faults, real compilers.

#include "kernels/cuda/tiled/tensor_cores.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/rewrite.h"
#include "gtest/gtest.h"
#include "kernels/cuda/nvrtc/compiler.h"
#include "kernels/cuda/nvrtc/expect_compiled.h"
#include "kernels/cuda/testing/device_case.h"
#include "kernels/cuda/testing/fake/fake_driver.h"
#include "kernels/cuda/tiled/async_copies.h"
#include "kernels/cuda/tiled/candidate.h"
#include "kernels/cuda/tiled/library.h"
#include "kernels/cuda/tiled/tiled_graphs.h"
#include "kernels/cuda/tiled/tiled_programs.h"

namespace mendel::cuda {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

const TiledLibrary kHopper(100, 90, true), kTuring(100, 75, true);

DeviceProgram Lowered(const Graph& graph, int32_t node, const std::string& algorithm,
                      Numerics numerics) {
  const CallLibrary* const libraries[] = {&kHopper};
  auto program = LowerToDevice(
      graph, {.numerics = numerics, .algorithms = {{node, algorithm}}, .libraries = libraries});
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *std::move(program) : DeviceProgram();
}

std::string Refusal(const TiledLibrary& library, const Graph& graph, const std::string& algorithm,
                    Numerics numerics) {
  const CallLibrary* const libraries[] = {&library};
  const auto program = LowerToDevice(
      graph, {.numerics = numerics, .algorithms = {{3, algorithm}}, .libraries = libraries});
  return program.ok() ? "" : std::string(program.status().message());
}

/// The results of the node's algorithm for these inputs, in the emulator.
std::vector<double> Results(const Graph& graph, const std::string& algorithm, Numerics numerics,
                            const std::vector<Tensor>& inputs, const std::string& from = "",
                            const std::string& to = "") {
  FakeDriver driver;
  std::atomic<int> changes = 0;
  const auto executable = MakeExecutable(driver.table(), Lowered(graph, 2, algorithm, numerics),
                                         WithReplaced(from, to, changes));
  EXPECT_TRUE(executable.ok()) << executable.status();
  EXPECT_EQ(changes > 0, !from.empty());
  const auto results = RunOnTensors(**executable, graph, inputs);
  EXPECT_TRUE(results.ok()) << results.status();
  return (*results)[0].ToDoubles();
}

struct RoundedNumber {
  double number, tf32, f16, bf16;
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Halves, and numbers beyond a range and below it. TF32 rounds halves away from zero, the other
/// formats round them to even.
constexpr RoundedNumber kNumbers[] = {
    {1, 1, 1, 1},
    {1 + 0x1p-11, 1 + 0x1p-10, 1, 1},
    {-1 - 0x1p-11, -1 - 0x1p-10, -1, -1},
    {1 + 0x1p-11 + 0x1p-20, 1 + 0x1p-10, 1 + 0x1p-10, 1},
    {1 + 0x3p-11, 1 + 0x1p-9, 1 + 0x1p-9, 1},
    {1 + 0x1p-8, 1 + 0x1p-8, 1 + 0x1p-8, 1},
    {1 + 0x3p-8, 1 + 0x3p-8, 1 + 0x3p-8, 1 + 0x1p-6},
    {2 - 0x1p-20, 2, 2, 2},
    {65504, 65504, 65504, 65536},
    {65519, 65504, 65504, 65536},
    {-65520, -65536, -kInfinity, -65536},
    {0x1p100, 0x1p100, kInfinity, 0x1p100},
    {0x1p-24, 0x1p-24, 0x1p-24, 0x1p-24},
    {0x3p-25, 0x3p-25, 0x1p-23, 0x3p-25},
    {0x1p-25, 0x1p-25, 0, 0x1p-25},
    {0, 0, 0, 0},
};

TEST(TensorCores, RoundOperandsAsTheInstructionsDo) {
  constexpr int64_t kCount = std::size(kNumbers);
  const Graph columns = Parsed(Cat("%0 = Input() {name = \"x\", shape = [", kCount, R"(, 1]}
    %1 = Input() {name = "w", shape = [1, 8]}
    %2 = MatMul(%0, %1)
    return "y" = %2)"));
  const Graph rows = Parsed(Cat(R"(%0 = Input() {name = "x", shape = [8, 1]}
    %1 = Input() {name = "w", shape = [1, )",
                                kCount, R"(]}
    %2 = MatMul(%0, %1)
    return "y" = %2)"));
  std::vector<double> numbers;
  for (const RoundedNumber& one : kNumbers) numbers.push_back(one.number);
  const std::vector<double> ones(8, 1);
  const auto tensor = [](const Shape& shape, const std::vector<double>& values) {
    return Tensor::FromDoubles({DType::kF32, shape}, values);
  };
  for (const auto& [numerics, rounded] : {std::pair(Numerics::kTf32, &RoundedNumber::tf32),
                                          std::pair(Numerics::kF16, &RoundedNumber::f16),
                                          std::pair(Numerics::kBf16, &RoundedNumber::bf16)}) {
    const std::string name = Cat("tile-", NumericsName(numerics), ":32x32x16:2x4");
    const auto left =
        Results(columns, name, numerics, {tensor({kCount, 1}, numbers), tensor({1, 8}, ones)});
    const auto right =
        Results(rows, name, numerics, {tensor({8, 1}, ones), tensor({1, kCount}, numbers)});
    for (size_t k = 0; k < kCount; ++k) {
      for (size_t j = 0; j < 8; ++j) {
        EXPECT_EQ(left[k * 8 + j], kNumbers[k].*rounded) << numbers[k] << " on the left, " << name;
        EXPECT_EQ(right[j * kCount + k], kNumbers[k].*rounded)
            << numbers[k] << " on the right, " << name;
      }
    }
  }
  // Tensor cores cut the numbers that the text does not round.
  const auto cut = Results(columns, "tile-tf32:32x32x16:2x4", Numerics::kTf32,
                           {tensor({kCount, 1}, numbers), tensor({1, 8}, ones)},
                           "RoundToTf32(next_left", "(next_left");
  EXPECT_EQ(cut[8], 1);
}

TEST(TensorCores, AreOfTheirClassesAlone) {
  const Graph graph = GatedMlp();
  const CallLibrary* const libraries[] = {&kHopper};
  for (const Numerics numerics : kAllNumerics) {
    const auto names = LibraryAlgorithms(graph, 3, numerics, libraries);
    EXPECT_EQ(kHopper.Multiplies(numerics), FindTensorCores(numerics) != nullptr);
    for (const TensorCores& cores : AllTensorCores()) {
      const std::string kind = Cat("tile-", NumericsName(cores.numerics), ":");
      const auto refusal = Refusal(kHopper, graph, kind + "32x32x16:2x4", numerics);
      if (Allows(numerics, cores.numerics)) {
        EXPECT_THAT(names, Contains(HasSubstr(kind))) << NumericsName(numerics);
        EXPECT_EQ(refusal, "");
      } else {
        EXPECT_THAT(names, Not(Contains(HasSubstr(kind)))) << NumericsName(numerics);
        EXPECT_THAT(refusal, testing::AllOf(HasSubstr("MatMul 3"), HasSubstr(kind),
                                            HasSubstr("does not allow")));
      }
    }
  }
  for (const Numerics numerics : {Numerics::kStrict, Numerics::kDefault, Numerics::kHigh}) {
    EXPECT_THAT(LibraryAlgorithms(graph, 3, numerics, libraries), Not(Contains(HasSubstr("tile-"))))
        << NumericsName(numerics);
  }
}

/// Without cuDNN and cuBLASLt, too, the classes stay what was requested.
TEST(TensorCores, MakeTheirClassesSupported) {
  const CallLibrary* const hopper[] = {&kHopper};
  const CallLibrary* const turing[] = {&kTuring};
  for (const TensorCores& cores : AllTensorCores()) {
    EXPECT_TRUE(LibrariesSupport(cores.numerics, 90, hopper).ok());
    const absl::Status old = LibrariesSupport(cores.numerics, 75, turing);
    EXPECT_EQ(old.ok(), cores.numerics == Numerics::kF16);
    EXPECT_THAT(std::string(old.message()), HasSubstr(old.ok() ? "" : "sm_75 do not multiply in"));
  }
  EXPECT_THAT(std::string(LibrariesSupport(Numerics::kHigh, 90, hopper).message()),
              HasSubstr("class 'high'"));
}

TEST(TensorCores, OlderArchitecturesAreRefusedByName) {
  const Graph graph = GatedMlp();
  const CallLibrary* const libraries[] = {&kTuring};
  EXPECT_EQ(Refusal(kTuring, graph, "tile-f16:32x32x16:2x4", Numerics::kF16), "");
  for (const Numerics numerics : {Numerics::kTf32, Numerics::kBf16}) {
    const std::string name = Cat("tile-", NumericsName(numerics), ":32x32x16:2x4");
    EXPECT_THAT(Refusal(kTuring, graph, name, numerics),
                testing::AllOf(HasSubstr("MatMul 3"), HasSubstr(name), HasSubstr("sm_75"),
                               HasSubstr("sm_80")));
    EXPECT_THAT(LibraryAlgorithms(graph, 3, numerics, libraries),
                Not(Contains(HasSubstr("tile-"))));
  }
}

TEST(TensorCores, AreOfNoDouble) {
  EXPECT_THAT(Refusal(kHopper, GatedMlp("f64"), "tile-tf32:32x32x16:2x4", Numerics::kTf32),
              HasSubstr("multiply f32, f16 and bf16"));
  const CallLibrary* const libraries[] = {&kHopper};
  EXPECT_THAT(LibraryAlgorithms(GatedMlp("f64"), 3, Numerics::kBf16, libraries),
              Not(Contains(HasSubstr("tile-"))));
}

/// In 16 bits operands take half of the memory, or less where they need no padding.
TEST(TensorCores, PairsOfProductsShareAWord) {
  const Graph graph = GatedMlp();
  const auto shared = [&](Numerics numerics) {
    const std::string name = Cat("tile-", NumericsName(numerics), ":32x32x32:2x4");
    const std::vector<bool> constant = ConstantExpressions(graph), claimed(constant.size(), false);
    const auto group = kHopper.Group({graph, constant, claimed}, 3, name, numerics);
    EXPECT_TRUE(group.ok()) << group.status();
    return group.ok() ? group->kernel.launch.shared : 0;
  };
  EXPECT_EQ(shared(Numerics::kTf32), 2u * 4 * 32 * (40 + 40));
  for (const Numerics numerics : {Numerics::kF16, Numerics::kBf16})
    EXPECT_EQ(shared(numerics), 2u * 2 * 32 * (32 + 40));
}

/// Operands that are copied unrounded are rounded as they are read.
TEST(TensorCores, RoundWhatIsCopiedToo) {
  constexpr int64_t kCount = std::size(kNumbers), kDepth = 4;
  const Graph graph =
      Parsed(Cat("%0 = Input() {name = \"x\", shape = [", kCount, ", ", kDepth, R"(]}
    %1 = Input() {name = "w", shape = [4, 8]}
    %2 = MatMul(%0, %1)
    return "y" = %2)"));
  std::vector<double> numbers(static_cast<size_t>(kCount * kDepth)),
      ones(static_cast<size_t>(kDepth * 8));
  for (size_t k = 0; k < kCount; ++k) numbers[k * kDepth] = kNumbers[k].number;
  std::fill_n(ones.begin(), 8, 1);
  const std::vector<Tensor> inputs = {Tensor::FromDoubles({DType::kF32, {kCount, kDepth}}, numbers),
                                      Tensor::FromDoubles({DType::kF32, {kDepth, 8}}, ones)};
  const std::string name = "tile-tf32:32x32x16:2x4:async";
  const auto rounded = Results(graph, name, Numerics::kTf32, inputs);
  for (size_t k = 0; k < kCount; ++k)
    EXPECT_EQ(rounded[k * 8 + 7], kNumbers[k].tf32) << numbers[k * kDepth];
  EXPECT_EQ(Results(graph, name, Numerics::kTf32, inputs, "RoundToTf32(left", "(left")[8], 1);
}

std::string WithFault(const std::string& algorithm, Numerics numerics, const std::string& from,
                      const std::string& to, const Graph& graph = GatedMlp()) {
  return FailureWithFault({"planted", graph, {}, Lowered(graph, 3, algorithm, numerics), numerics},
                          from, to);
}

TEST(TensorCores, PlantedFaultsAreFound) {
  for (const TensorCores& cores : AllTensorCores()) {
    const std::string name = Cat("tile-", NumericsName(cores.numerics), ":32x32x16:2x4:pair"),
                      multiply = Cat(cores.multiply, "(");
    const auto with = [&](const std::string& from, const std::string& to) {
      return WithFault(name, cores.numerics, from, to);
    };
    EXPECT_EQ(with("", ""), "");
    EXPECT_THAT(with(multiply, "if (lane != 5) " + multiply), HasSubstr("divergent warp"));
    EXPECT_THAT(with("e % 2 * 8", "e % 2 * 4"), HasSubstr("element"));
    if (cores.numerics == Numerics::kF16) {  // bf16 has the same text
      const std::string write = Cat("*reinterpret_cast<Pack<", cores.word, ", 2>*>(");
      EXPECT_THAT(with(write, "words.v[1] = words.v[1] << 16 | words.v[1] >> 16; " + write),
                  HasSubstr("element"));
      EXPECT_THAT(with("words.v[j] =", "words.v[j ^ 1] ="), HasSubstr("element"));
      EXPECT_THAT(with("(across % 8)", "(across % 4)"), HasSubstr("element"));
      EXPECT_THAT(with("(buffer ^ 1)", "buffer"), HasSubstr("race"));
    }
    if (cores.numerics != Numerics::kTf32) continue;  // the rest is the same text
    EXPECT_THAT(with("    __syncthreads();\n    buffer ^= 1;", "    buffer ^= 1;"),
                HasSubstr("race"));
    EXPECT_THAT(with("+ lane / 4;", "+ lane / 8;"), HasSubstr("written twice"));
    EXPECT_THAT(with("lane % 4 * 2", "lane % 4"), HasSubstr("misaligned"));
    EXPECT_THAT(with("+ lane / 4 +", "+ (lane / 4 ^ 1) +"), HasSubstr("element"));
    EXPECT_THAT(with("sum0[2 * i + 1][2 * j], sum0[2 * i + 1][2 * j + 1]",
                     "sum0[2 * i + 1][2 * j + 1], sum0[2 * i + 1][2 * j]"),
                HasSubstr("element"));
  }
}

/// The faults are copies that are not awaited, or too late, or that go to the buffer that is
/// multiplied or to a wrong place.
TEST(TensorCores, PlantedFaultsOfCopiesAreFound) {
  const std::string end = "AwaitCopies();\n    }\n    __syncthreads();";
  for (const Numerics numerics : {Numerics::kTf32, Numerics::kF16}) {
    const TensorCores& cores = *FindTensorCores(numerics);
    const Graph graph = GatedMlp(std::string(DTypeName(cores.stored)));
    const std::string name = Cat("tile-", NumericsName(numerics), ":32x32x16:2x4:pair:async");
    const auto with = [&](const std::string& from, const std::string& to) {
      return WithFault(name, numerics, from, to, graph);
    };
    EXPECT_EQ(with("", ""), "");
    EXPECT_THAT(with("AwaitCopies();", ""), HasSubstr("copy under way"));
    EXPECT_THAT(with(end, "}\n    __syncthreads();\n    AwaitCopies();"),
                HasSubstr("copy under way"));
    EXPECT_THAT(with("(&left[((buffer ^ 1)", "(&left[(buffer"), HasSubstr("copy under way"));
    if (numerics == Numerics::kF16) continue;  // the rest is the same text
    EXPECT_THAT(with("(across % 8)", "(across % 4)"), HasSubstr("element"));
    EXPECT_THAT(with("&& k < 24", "&& k < 16"), HasSubstr("element"));
    EXPECT_THAT(with("    __syncthreads();\n", ""), HasSubstr("race"));
  }
}

std::vector<DescribedKernel> TextsOf(const Graph& graph, int32_t node, const TensorCores& cores,
                                     const std::string& fusion) {
  const std::vector<bool> constant = ConstantExpressions(graph), claimed(constant.size(), false);
  std::vector<DescribedKernel> kernels;
  for (const Tile& tile : OfferedTiles(cores.numerics)) {
    const std::string name = CandidateName({tile, TiledFusion::kNone, 1, cores.numerics}) + fusion;
    const auto group = kHopper.Group({graph, constant, claimed}, node, name, cores.numerics);
    if (group.ok()) {
      const bool copies = fusion.find(":async") != std::string::npos;
      const int architecture =
          copies ? std::max(cores.architecture, kAsyncArchitecture) : cores.architecture;
      kernels.push_back({name, group->kernel.name, group->kernel.text, architecture});
      continue;
    }
    // Two products of the largest tiles need more than there is.
    EXPECT_EQ(fusion.substr(0, 5), ":pair");
    EXPECT_THAT(std::string(group.status().message()),
                testing::AnyOf(HasSubstr("registers a thread"), HasSubstr("shared memory")));
  }
  return kernels;
}

TEST(TensorCores, KernelsCompileWithoutSpills) {
  const Compiler* const compiler = FoundCompiler();
  if (compiler == nullptr) return;
  std::vector<DescribedKernel> kernels;
  for (const TensorCores& cores : AllTensorCores()) {
    const Graph stored = GatedMlp(std::string(DTypeName(cores.stored)), 512);
    for (const auto& [graph, node, fusion] :
         {std::tuple(GroupedConvolution(), 4, ""),
          std::tuple(GatedMlp("f32", 512), 3, ":pair:split5"),
          std::tuple(NormalizedProduct("bf16", 256), 6, ":rows"),
          std::tuple(stored, 3, ":async")}) {
      for (DescribedKernel& kernel : TextsOf(graph, node, cores, fusion))
        kernels.push_back(std::move(kernel));
    }
  }
  ExpectCompiled(*compiler, kernels, "tensor_cores");
}

}  // namespace
}  // namespace mendel::cuda
