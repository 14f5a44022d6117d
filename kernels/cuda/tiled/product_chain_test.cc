// Chains of two products: what is matched, offered and refused, and what the kernels compute in the
// emulator.

#include "kernels/cuda/tiled/product_chain.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
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
#include "kernels/cuda/testing/expect_right.h"
#include "kernels/cuda/tiled/candidate.h"
#include "kernels/cuda/tiled/chain_shape.h"
#include "kernels/cuda/tiled/library.h"
#include "kernels/cuda/tiled/product_chain_case.h"
#include "kernels/cuda/tiled/tiled_graphs.h"
#include "kernels/cuda/tiled/tiled_programs.h"

namespace mendel::cuda {
namespace {

using testing::HasSubstr;

/// GELU(x W1 + b) W2 of 40 rows.
Graph Mlp(int64_t inner = 36, const std::string& dtype = "f32") {
  const auto type = [&](const std::string& shape) {
    return Cat("dtype = \"", dtype, "\", shape = [", shape, "]");
  };
  return Parsed(Cat("%0 = Input() {name = \"x\", ", type("40, 24"),
                    "}\n%1 = Input() {name = \"up\", ", type(Cat("24, ", inner)),
                    "}\n%2 = Input() {name = \"down\", ", type(Cat(inner, ", 50")),
                    "}\n%3 = Input() {name = \"b\", ", type(Cat(inner)), R"(}
    %4 = MatMul(%0, %1)
    %5 = Add(%4, %3)
    %6 = Gelu(%5)
    %7 = MatMul(%6, %2)
    %8 = Add(%7, %7)
    return "y" = %8)"));
}

/// softmax(Q K^T / 4 + mask) V of two heads.
Graph Attention(const std::string& dtype = "f32", int64_t positions = 20) {
  const auto type = [&](const std::string& shape) {
    return Cat("dtype = \"", dtype, "\", shape = [", shape, "]");
  };
  const std::string heads = Cat("2, ", positions, ", 16");
  return Parsed(Cat("%0 = Input() {name = \"q\", ", type(heads), "}\n%1 = Input() {name = \"k\", ",
                    type(heads), "}\n%2 = Input() {name = \"v\", ", type(heads),
                    "}\n%3 = Input() {name = \"mask\", ", type(Cat(positions)),
                    "}\n%4 = Constant() {value = ", dtype, R"([]{0.25}}
    %5 = Transpose(%1) {perm = [0, 2, 1]}
    %6 = MatMul(%0, %5)
    %7 = Mul(%6, %4)
    %8 = Add(%7, %3)
    %9 = Softmax(%8) {axis = 2}
    %10 = MatMul(%9, %2)
    return "y" = %10)"));
}

/// A bottleneck's 3 x 3 or 1 x 1 convolution after another one, and the residual.
Graph Bottleneck(int64_t taps, int64_t group = 1, int64_t channels = 12, int64_t extent = 9) {
  const int64_t pad = taps / 2;
  return Parsed(
      Cat("%0 = Input() {name = \"x\", shape = [2, 16, ", extent, ", ", extent,
          "]}\n%1 = Input() {name = \"w\", shape = [", channels,
          ", 16, 1, 1]}\n%2 = Input() {name = \"b\", shape = [", channels,
          "]}\n%3 = Input() {name = \"v\", shape = [24, ", channels / group, ", ", taps, ", ", taps,
          "]}\n%4 = Input() {name = \"residual\", shape = [2, 24, ", extent, ", ", extent, R"(]}
    %5 = Conv(%0, %1, %2) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}
    %6 = Relu(%5)
    %7 = Conv(%6, %3) {dilations = [1, 1], group = )",
          group, ", pads = [", pad, ", ", pad, ", ", pad, ", ", pad, R"(], strides = [1, 1]}
    %8 = Add(%7, %4)
    %9 = Relu(%8)
    return "y" = %9)"));
}

TEST(ProductChain, IsOneLaunch) {
  const std::tuple<Graph, int32_t, std::string, size_t> chains[] = {
      {Mlp(), 4, "tile:16x32x32:1x2:chain", 5},
      {Mlp(), 4, "tile:8x16x4:2x2:chain2", 5},
      {Attention(), 6, "tile:16x32x32:1x2:chain", 6},
      {Bottleneck(1), 5, "tile:32x32x32:2x2:chain", 5},
      {Bottleneck(3), 5, "tile:16x64x32:2x4:chain2", 5},
      {Bottleneck(3, 4), 5, "tile:16x32x16:2x2:chain", 5},
  };
  for (const auto& [graph, node, name, nodes] : chains) {
    const DeviceProgram program = LoweredByTiles(graph, {{node, name}});
    ASSERT_EQ(program.launches.size(), 1u);
    const Step& step = program.launches[0].info;
    EXPECT_EQ(step.nodes[0], node);
    EXPECT_EQ(step.kernel, Cat(name, "_of_", nodes));
    EXPECT_EQ(WithFault(graph, {{node, name}}), "") << name;
  }
}

TEST(ProductChain, TakesNothingThatOthersRead) {
  const std::string inputs = R"(%0 = Input() {name = "x", shape = [16, 16]}
    %1 = Input() {name = "w", shape = [16, 16]}
    %2 = MatMul(%0, %1)
    %3 = Relu(%2)
    %4 = MatMul(%3, %1)
)";
  const std::string name = "tile:16x32x32:1x2:chain";
  EXPECT_EQ(LoweredByTiles(Parsed(inputs + "return \"y\" = %4"), {{2, name}}).launches.size(), 1u);
  const auto offers = [&](bool experiments) {
    const TiledLibrary library(100, 90, experiments);
    const CallLibrary* const libraries[] = {&library};
    const auto names =
        LibraryAlgorithms(Parsed(inputs + "return \"y\" = %4"), 2, Numerics::kDefault, libraries);
    return std::any_of(names.begin(), names.end(), [](const std::string& offered) {
      return offered.find(":chain") != offered.npos;
    });
  };
  EXPECT_TRUE(offers(true));
  EXPECT_FALSE(offers(false));
  const std::string others[] = {
      "return \"y\" = %4, \"kept\" = %3",
      "return \"y\" = %4, \"sum\" = %2",
      "%5 = Add(%4, %3)\nreturn \"y\" = %5",
      "%5 = Softmax(%3) {axis = 0}\n%6 = MatMul(%5, %4)\nreturn \"y\" = %6",
  };
  for (const std::string& other : others) {
    const Graph graph = Parsed(inputs + other);
    EXPECT_THAT(TilesRefusal(graph, 2, name), HasSubstr("no such chain of products here")) << other;
    for (const std::string& offered :
         LibraryAlgorithms(graph, 2, Numerics::kDefault, kTiledAlone)) {
      EXPECT_EQ(offered.find(":chain"), std::string::npos) << other;
    }
  }
  // Both sides of the second product, its right side, and rows that are not the last axis.
  const std::string square = R"(%0 = Input() {name = "x", shape = [16, 16]}
    %1 = MatMul(%0, %0)
    %2 = Relu(%1)
)";
  for (const char* second :
       {"%3 = MatMul(%2, %2)\nreturn \"y\" = %3", "%3 = MatMul(%0, %2)\nreturn \"y\" = %3",
        "%3 = Softmax(%2) {axis = 0}\n%4 = MatMul(%3, %0)\nreturn \"y\" = %4"}) {
    EXPECT_THAT(TilesRefusal(Parsed(square + second), 1, name),
                HasSubstr("no such chain of products here"))
        << second;
  }
}

TEST(ProductChain, RefusesByName) {
  const Graph wide = Mlp(2000), deep = Bottleneck(3, 1, 600, 14);
  EXPECT_THAT(TilesRefusal(wide, 4, "tile:16x32x32:1x2:chain"),
              testing::AllOf(HasSubstr("MatMul 4"), HasSubstr("'tile:16x32x32:1x2:chain'"),
                             HasSubstr("bytes of shared memory")));
  EXPECT_THAT(TilesRefusal(deep, 5, "tile:16x64x32:2x4:chain"),
              testing::AllOf(HasSubstr("Conv 5"), HasSubstr("bytes of shared memory")));
  EXPECT_THAT(TilesRefusal(Mlp(), 4, "tile:16x32x32:1x2:chain4"), HasSubstr("4 parts of 2 tiles"));
  EXPECT_THAT(TilesRefusal(Mlp(), 4, "tile:16x32x32:1x2:chain3"), HasSubstr("a power of two"));
  EXPECT_THAT(TilesRefusal(Mlp(), 4, "tile:16x32x32:1x2:chain1"),
              HasSubstr("no name of a tiled kernel"));
  EXPECT_THAT(TilesRefusal(Mlp(), 4, "tile:16x32x32:1x2:chainx"),
              HasSubstr("no name of a tiled kernel"));
  EXPECT_THAT(TilesRefusal(Mlp(), 7, "tile:16x32x32:1x2:chain"),
              HasSubstr("no such chain of products here"));
  EXPECT_THAT(TilesRefusal(Attention(), 6, "tile:64x8x8:8x2:chain"),
              HasSubstr("32 threads for 64 rows"));
}

TEST(ProductChain, IsOfferedFirstAndFits) {
  for (const auto& [graph, node] :
       {std::pair(Mlp(), 4), std::pair(Attention("f16", 64), 6), std::pair(Bottleneck(3), 5),
        std::pair(Bottleneck(1, 1, 64, 14), 5)}) {
    const std::vector<std::string> offered =
        LibraryAlgorithms(graph, node, Numerics::kStrict, kTiledAlone);
    ASSERT_GT(offered.size(), 1u);
    EXPECT_THAT(offered[0], HasSubstr(":chain"));
    EXPECT_LE(std::count_if(offered.begin(), offered.end(),
                            [](const auto& name) { return name.find(":chain") != name.npos; }),
              2);
    EXPECT_EQ(LoweredByTiles(graph, {{node, offered[0]}}).launches.size(), 1u);
  }
  // The kept part does not fit, or would be computed again and again.
  for (const auto& [graph, node] :
       {std::pair(Mlp(4000), 4), std::pair(Bottleneck(3, 1, 600, 14), 5)}) {
    for (const std::string& name : LibraryAlgorithms(graph, node, Numerics::kStrict, kTiledAlone)) {
      EXPECT_EQ(name.find(":chain"), std::string::npos) << name;
    }
  }
}

TEST(ProductChain, PlantedFaultsAreFound) {
  const Graph mlp = Mlp(), attention = Attention(), images = Bottleneck(3);
  const std::map<int32_t, std::string> by_rows = {{4, "tile:16x32x8:1x2:chain"}},
                                       by_heads = {{6, "tile:16x32x8:1x2:chain"}},
                                       by_boxes = {{5, "tile:16x32x8:2x2:chain"}};
  const auto found = testing::AnyOf(HasSubstr("race"), HasSubstr("uninitialized"));
  EXPECT_THAT(WithFault(attention, by_heads, "  }\n  __syncthreads();\n", "  }\n"), found);
  EXPECT_THAT(WithFault(images, by_boxes, "  }\n  __syncthreads();\n", "  }\n"), found);
  EXPECT_THAT(WithFault(mlp, by_rows, "outer0 += 32", "outer0 += 64"), testing::Not(""));
  EXPECT_THAT(WithFault(mlp, by_rows, " + i] = 0.0f", " + i + 4] = 0.0f"), testing::Not(""));
  EXPECT_THAT(WithFault(mlp, by_rows, "Erfc(", "Tanh("), HasSubstr("element"));
  EXPECT_THAT(
      WithFault(attention, by_heads, "const int own = thread", "const int own = 1 + thread"),
      testing::Not(""));
  EXPECT_THAT(WithFault(attention, by_heads, "SumOf", "MaxOf"), HasSubstr("element"));
  EXPECT_THAT(WithFault(images, by_boxes, "inner < 12", "inner < 11"), HasSubstr("uninitialized"));
  EXPECT_THAT(WithFault(images, by_boxes, "Relu", "Abs"), HasSubstr("element"));
}

/// Tiles of a warp, so that odd extents have several blocks, and some of their tails.
const std::vector<std::string> kSmall = {"tile:8x16x4:2x2", "tile:16x4x8:2x1",
                                         "tile:4x32x1:1x4", "tile:32x8x16:8x1",
                                         "tile:8x8x2:1x1",  "tile:16x16x16:2x2"};

uint64_t Seeds(uint64_t fewest) {
  const char* text = std::getenv("MENDEL_CUDA_SEEDS");
  return text == nullptr ? fewest : fewest * std::strtoull(text, nullptr, 10) / 3;
}

struct Counted {
  size_t kernels = 0, refined = 0, in_place = 0, parts = 0, vectors = 0, refused = 0;
};

/// Each case by a small tile, by several parts of it, and by the first chain that is offered.
Counted RunAll(const char* what, uint64_t seeds, const std::function<DeviceCase(uint64_t)>& make) {
  Counted counted;
  std::vector<DeviceCase> cases;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const DeviceCase one = make(seed);
    const std::vector<bool> constant = ConstantExpressions(one.graph),
                            claimed(constant.size(), false);
    const GroupingScope scope{one.graph, constant, claimed};
    for (int32_t node = 0; node < static_cast<int32_t>(one.graph.nodes().size()); ++node) {
      const auto chain = MatchProductChain(scope, node);
      if (!chain.has_value()) continue;
      std::vector<std::string> names = {kSmall[seed % kSmall.size()] + ":chain",
                                        kSmall[(seed + 1) % kSmall.size()] + ":chain2"};
      const std::vector<std::string> offered =
          LibraryAlgorithms(one.graph, node, Numerics::kDefault, kTiledAlone);
      if (!offered.empty() && offered[0].find(":chain") != std::string::npos)
        names.push_back(offered[0]);
      for (const std::string& name : names) {
        const int64_t bytes = one.graph.type(chain->kept()).dtype == DType::kF64 ? 8 : 4;
        const auto shape = ShapeOfChain(one.graph, *chain, *ParseCandidate(name, bytes));
        counted.refused += shape.ok() ? 0 : 1;
        if (!shape.ok()) continue;
        const auto program = LowerToDevice(one.graph, {.reuse_memory = seed % 2 == 0,
                                                       .algorithms = {{node, name}},
                                                       .libraries = kTiledAlone});
        EXPECT_TRUE(program.ok()) << name << ": " << program.status() << "\n" << one.description;
        if (!program.ok()) return counted;
        ++counted.kernels;
        counted.refined +=
            chain->kept() != one.graph.node(chain->product(1)).inputs[chain->operand] ? 1 : 0;
        counted.in_place += shape->in_place ? 1 : 0;
        counted.parts += shape->parts > 1 ? 1 : 0;
        for (const std::string& text : program->texts)
          counted.vectors += text.find(">*>(p") != std::string::npos ? 1 : 0;
        cases.push_back({Cat(name, ": ", one.description), one.graph, one.inputs, *program});
      }
    }
  }
  ExpectAllRight(cases);
  std::printf(
      "%s: %zu kernels: %zu with more between, %zu in place, %zu of parts, %zu by vectors; %zu "
      "beyond limits\n",
      what, counted.kernels, counted.refined, counted.in_place, counted.parts, counted.vectors,
      counted.refused);
  return counted;
}

TEST(ProductChain, MeansWhatMatricesDo) {
  const Counted counted = RunAll("matrices", Seeds(20), [](uint64_t seed) {
    return RandomMatrixChain(seed, ChainValues::kFloats);
  });
  EXPECT_GT(counted.refined, 0u);
  EXPECT_GT(counted.parts, 0u);
  EXPECT_GT(counted.vectors, 0u);
}

TEST(ProductChain, MeansWhatConvolutionsDo) {
  const Counted counted = RunAll("convolutions", Seeds(24), [](uint64_t seed) {
    return RandomConvolutionChain(seed, ChainValues::kFloats);
  });
  EXPECT_GT(counted.in_place, 0u);
  EXPECT_LT(counted.in_place, counted.kernels);
  EXPECT_GT(counted.parts, 0u);
}

TEST(ProductChain, KernelsCompileWithoutSpills) {
  const Compiler* const compiler = FoundCompiler();
  if (compiler == nullptr) return;
  std::vector<DescribedKernel> kernels;
  for (const auto& [graph, node] :
       {std::pair(Mlp(64), 4), std::pair(Attention("bf16", 64), 6),
        std::pair(Bottleneck(3, 1, 16), 5), std::pair(Bottleneck(1, 1, 16, 14), 5)}) {
    const std::vector<bool> constant = ConstantExpressions(graph), claimed(constant.size(), false);
    for (const Tile& tile : OfferedTiles()) {
      const std::string name = CandidateName({tile, TiledFusion::kChain});
      const auto group = kTiled.Group({graph, constant, claimed}, node, name, Numerics::kDefault);
      if (group.ok()) {
        kernels.push_back(
            {Cat(name, " of text ", kernels.size()), group->kernel.name, group->kernel.text});
      } else {
        EXPECT_THAT(std::string(group.status().message()), HasSubstr("shared memory")) << name;
      }
    }
  }
  EXPECT_GT(kernels.size(), 24u);
  ExpectCompiled(*compiler, kernels, "chains");
}

}  // namespace
}  // namespace mendel::cuda
