// Tiled kernels of random products, convolutions, chains and graphs in the emulator, against the
// graphs' meaning.

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <utility>

#include "base/random.h"
#include "base/status.h"
#include "graph/op_definition.h"
#include "graph/random_graph.h"
#include "graph/rewrite.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/fusion/operator_text.h"
#include "kernels/cuda/testing/convolution_case.h"
#include "kernels/cuda/testing/device_case.h"
#include "kernels/cuda/testing/expect_right.h"
#include "kernels/cuda/testing/product_case.h"
#include "kernels/cuda/tiled/chain.h"
#include "kernels/cuda/tiled/chain_case.h"
#include "kernels/cuda/tiled/library.h"
#include "kernels/cuda/tiled/tensor_cores.h"
#include "runtime/numerics.h"

namespace mendel::cuda {
namespace {

/// One library is for a GPU with so few multiprocessors that small products are offered large
/// tiles, too. The other one is for a large GPU.
const TiledLibrary kSizes[] = {TiledLibrary(1, 90, true), TiledLibrary(1000, 90, true)};

/// Tiles of a warp: odd extents have several blocks, and some of their tails.
const std::vector<std::string> kSmall = {"tile:8x16x4:2x2",  "tile:16x4x8:2x1", "tile:4x32x1:1x4",
                                         "tile:32x8x16:8x1", "tile:8x8x2:1x1",  "tile:1x128x1:1x4"};

/// The same by tensor cores, after "tile-tf32:" and so on: a warp or a few.
const std::vector<std::string> kSmallWarps = {"16x8x16:2x2", "32x16x16:2x4", "16x32x32:2x4",
                                              "64x8x16:8x2", "16x64x16:2x8", "32x32x16:4x4"};

std::string SmallTile(Numerics numerics, uint64_t number) {
  if (FindTensorCores(numerics) == nullptr) return kSmall[number % kSmall.size()];
  return Cat("tile-", NumericsName(numerics), ":", kSmallWarps[number % kSmallWarps.size()]);
}

uint64_t Seeds(uint64_t fewest) {
  const char* text = std::getenv("MENDEL_CUDA_SEEDS");
  return text == nullptr ? fewest : fewest * std::strtoull(text, nullptr, 10) / 3;
}

struct Counted {
  size_t programs = 0, kernels = 0, pairs = 0, rows = 0, vectors = 0, fused = 0, divided = 0,
         by_tensor_cores = 0, copying = 0;
};

/// The cases of `one` by each algorithm of `names`, wherever it can be used; by tensor cores where
/// its class has them.
void AddByAlgorithm(const DeviceCase& one, uint64_t seed, Counted& counted,
                    std::vector<DeviceCase>& cases) {
  const TiledLibrary& library = kSizes[seed % 2];
  const CallLibrary* const libraries[] = {&library};
  std::map<std::string, std::map<int32_t, std::string>> by_name;
  const std::vector<bool> constant = ConstantExpressions(one.graph),
                          claimed(constant.size(), false);
  const GroupingScope scope{one.graph, constant, claimed};
  const bool by_tensor_cores = FindTensorCores(one.numerics) != nullptr;
  for (int32_t node = 0; node < static_cast<int32_t>(one.graph.nodes().size()); ++node) {
    constexpr std::pair<TiledFusion, const char*> kFusions[] = {
        {TiledFusion::kNone, ""}, {TiledFusion::kPair, ":pair"}, {TiledFusion::kRows, ":rows"}};
    const std::string small = SmallTile(one.numerics, seed + static_cast<uint64_t>(node));
    for (const auto& [fusion, name] : kFusions) {
      if (!MatchTiledChain(scope, node, fusion).has_value()) continue;
      // Tensor cores do not multiply f64 and integers.
      if (by_tensor_cores && !library.Group(scope, node, small + name, one.numerics).ok()) continue;
      by_name[Cat("small", name)][node] = small + name;
      if (const std::string copying = Cat(small, name, ":async");
          library.Group(scope, node, copying, one.numerics).ok()) {
        by_name[Cat("copying", name)][node] = copying;
      }
      // A sum has at most as many parts as it has steps of this tile.
      const std::string parts =
          Cat(small, name, ":split",
              2 + (by_tensor_cores ? 0 : (seed + static_cast<uint64_t>(node)) % 4));
      if (seed % 2 == 0 && library.Group(scope, node, parts, one.numerics).ok())
        by_name[Cat("divided", name)][node] = parts;
    }
    std::vector<std::string> offered = LibraryAlgorithms(one.graph, node, one.numerics, libraries);
    if (by_tensor_cores)
      std::erase_if(offered, [](const std::string& each) { return each.rfind("tile-", 0) != 0; });
    if (offered.empty()) continue;
    by_name["first"][node] = offered.front();
    by_name["any"][node] = offered[seed % offered.size()];
  }
  for (const auto& [name, algorithms] : by_name) {
    const auto program = LowerToDevice(one.graph, {.reuse_memory = seed % 2 == 0,
                                                   .numerics = one.numerics,
                                                   .algorithms = algorithms,
                                                   .libraries = libraries});
    ASSERT_TRUE(program.ok()) << name << ": " << program.status() << "\n" << one.description;
    for (const DeviceLaunch& launch : program->launches) {
      if (launch.info.kernel.rfind("tile", 0) != 0) continue;
      counted.by_tensor_cores += launch.info.kernel.rfind("tile-", 0) == 0 ? 1 : 0;
      ++counted.kernels;
      counted.pairs += launch.info.kernel.find(":pair") != std::string::npos ? 1 : 0;
      counted.rows += launch.info.kernel.find(":rows") != std::string::npos ? 1 : 0;
      counted.copying += launch.info.kernel.find(":async") != std::string::npos ? 1 : 0;
      counted.divided += launch.info.kernel.find(":split") != std::string::npos ? 1 : 0;
      counted.fused += launch.info.nodes.size() > 1 ? 1 : 0;
    }
    for (const std::string& text : program->texts)
      counted.vectors += text.find(">*>(p") != std::string::npos ? 1 : 0;
    ++counted.programs;
    cases.push_back(
        {Cat(name, ": ", one.description), one.graph, one.inputs, *program, one.numerics});
  }
}

Counted RunAll(const char* what, uint64_t seeds, const std::function<DeviceCase(uint64_t)>& make) {
  Counted counted;
  std::vector<DeviceCase> cases;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    AddByAlgorithm(make(seed), seed, counted, cases);
    if (testing::Test::HasFatalFailure()) return counted;
  }
  ExpectAllRight(cases);
  std::printf(
      "%s: %zu programs, %zu tiled kernels: %zu of several nodes, %zu pairs, %zu with rows, %zu of "
      "divided sums, %zu by tensor "
      "cores, %zu that copy; %zu kernels by vectors\n",
      what, counted.programs, counted.kernels, counted.fused, counted.pairs, counted.rows,
      counted.divided, counted.by_tensor_cores, counted.copying, counted.vectors);
  EXPECT_GT(counted.divided, 0u);
  return counted;
}

/// The test covers every operator of the registry that has a product text, in every dtype that it
/// is sampled in.
TEST(TiledProducts, MeanWhatSampledOperatorsDo) {
  std::vector<const OpDefinition*> products;
  for (const OpDefinition* op : AllOps()) {
    const OperatorText* text = FindOperatorText(op->name);
    if (op->sample != nullptr && text != nullptr && text->is_product()) products.push_back(op);
  }
  EXPECT_GE(products.size(), 3u);
  const Counted counted = RunAll("operators", products.size() * Seeds(6), [&](uint64_t seed) {
    auto one = SampledCase(*products[seed % products.size()], seed);
    EXPECT_TRUE(one.ok()) << one.status();
    return *std::move(one);
  });
  EXPECT_GT(counted.kernels, 0u);
}

TEST(TiledProducts, MeanWhatMatMulDoes) {
  const Counted counted = RunAll(
      "products", Seeds(16), [](uint64_t seed) { return RandomProduct(seed, Numerics::kDefault); });
  EXPECT_GT(counted.fused, counted.kernels / 3);
  EXPECT_GT(counted.vectors, 0u);
}

TEST(TiledProducts, MeanWhatConvolutionsDo) {
  const Counted counted = RunAll("convolutions", Seeds(16), [](uint64_t seed) {
    return RandomConvolutions(seed, Numerics::kDefault);
  });
  EXPECT_GT(counted.fused, 0u);
}

TEST(TiledProducts, MeanWhatChainsDo) {
  const Counted counted = RunAll(
      "chains", Seeds(16), [](uint64_t seed) { return RandomChain(seed, ChainValues::kFloats); });
  EXPECT_GT(counted.pairs, 0u);
  EXPECT_GT(counted.rows, 0u);
  EXPECT_GT(counted.copying, 0u);
  EXPECT_GT(counted.vectors, 0u);
}

constexpr Numerics kTensorCoreClasses[] = {Numerics::kTf32, Numerics::kF16, Numerics::kBf16};

/// The cases are products, convolutions and chains in turn, for each class of tensor cores.
TEST(TiledProducts, TensorCoresStayWithinTheirClass) {
  const Counted counted = RunAll("tensor cores", Seeds(36), [](uint64_t seed) {
    const Numerics numerics = kTensorCoreClasses[seed % 3];
    if (seed / 3 % 3 == 0) return RandomProduct(seed, numerics);
    if (seed / 3 % 3 == 1) return RandomConvolutions(seed, numerics);
    DeviceCase chain = RandomChain(seed, ChainValues::kFloats);
    chain.numerics = numerics;
    return chain;
  });
  EXPECT_EQ(counted.by_tensor_cores, counted.kernels);
  EXPECT_GT(counted.copying, 0u);
  EXPECT_GT(counted.fused, 0u);
  EXPECT_GT(counted.pairs, 0u);
  EXPECT_GT(counted.rows, 0u);
  EXPECT_GT(counted.vectors, 0u);
}

TEST(TiledProducts, MeanWhatRandomGraphsDo) {
  const Counted counted = RunAll("graphs", Seeds(36), [](uint64_t seed) {
    Rng rng(seed);
    DeviceCase one{"", RandomGraph(rng, static_cast<int>(rng.Between(4, 14))), {}, {}};
    one.description = Cat("seed ", seed, "\n", PrintGraph(one.graph));
    for (const HostValue& input : RandomInputs(rng, one.graph))
      one.inputs.push_back(HostValue::FromTensor(input.ToTensor()));
    return one;
  });
  EXPECT_GT(counted.kernels, 0u);
}

}  // namespace
}  // namespace mendel::cuda
