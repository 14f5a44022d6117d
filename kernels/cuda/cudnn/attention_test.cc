// Tests of attention by cuDNN's interface, executed by a fake of it, against the graphs' meaning.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/backend/partition.h"
#include "kernels/cuda/cublaslt/library.h"
#include "kernels/cuda/cudnn/attention_library.h"
#include "kernels/cuda/cudnn/library_case.h"
#include "kernels/cuda/testing/device_case.h"
#include "kernels/cuda/testing/fake/fake_cublaslt.h"
#include "kernels/cuda/testing/fake/fake_cudnn.h"
#include "kernels/cuda/testing/fake/fake_driver.h"
#include "kernels/cuda/testing/product_case.h"
#include "kernels/cuda/tiled/library.h"

namespace mendel::cuda {
namespace {

using cudnn_case::kDevice;
using cudnn_case::kWorkspace;
using cudnn_case::Parsed;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct AttentionRig {
  FakeDriver driver;
  FakeCudnn fake;
  CompiledEngines compiled{600, {}};
  CudnnAttentionLibrary library{fake.table(), kDevice, kWorkspace, compiled};
  const CallLibrary* libraries[1] = {&library};
};

/// Heads beside positions before and after, as exporters write them; %9 is the first product.
constexpr char kHeads[] = R"(%0 = Input() {name = "q", shape = [2, 6, 16]}
    %1 = Input() {name = "k", shape = [2, 6, 16]}
    %2 = Input() {name = "v", shape = [2, 6, 16]}
    %3 = Reshape(%0) {shape = [2, 6, 2, 8]}
    %4 = Reshape(%1) {shape = [2, 6, 2, 8]}
    %5 = Reshape(%2) {shape = [2, 6, 2, 8]}
    %6 = Transpose(%3) {perm = [0, 2, 1, 3]}
    %7 = Transpose(%4) {perm = [0, 2, 3, 1]}
    %8 = Transpose(%5) {perm = [0, 2, 1, 3]}
    %9 = MatMul(%6, %7)
    %10 = Constant() {value = f32[]{0.25}}
    %11 = Mul(%9, %10)
)";
constexpr char kRest[] = R"(%12 = Softmax(%11) {axis = 3}
    %13 = MatMul(%12, %8)
    %14 = Transpose(%13) {perm = [0, 2, 1, 3]}
    %15 = Reshape(%14) {shape = [2, 6, 16]}
    return "y" = %15)";

TEST(CudnnAttention, IsOneCallWithItsHeads) {
  AttentionRig rig;
  const Graph graph = Parsed(std::string(kHeads) + kRest);
  EXPECT_THAT(LibraryAlgorithms(graph, 9, Numerics::kF16, rig.libraries),
              ElementsAre("attention-f16"));
  EXPECT_THAT(LibraryAlgorithms(graph, 9, Numerics::kBf16, rig.libraries),
              ElementsAre("attention-bf16"));
  EXPECT_THAT(LibraryAlgorithms(graph, 9, Numerics::kTf32, rig.libraries), IsEmpty());
  EXPECT_THAT(LibraryAlgorithms(graph, 13, Numerics::kF16, rig.libraries), IsEmpty())
      << "it is the first's";
  const auto program = LowerToDevice(graph, {.numerics = Numerics::kF16,
                                             .algorithms = {{9, "attention-f16"}},
                                             .libraries = rig.libraries});
  ASSERT_TRUE(program.ok()) << program.status();
  size_t calls = 0;
  for (const DeviceLaunch& launch : program->launches) {
    if (launch.call == nullptr) continue;
    ++calls;
    EXPECT_EQ(launch.call->name(), "attention-f16 engine 12");
    // Six views of operands, both products, the scale, Softmax and a Transpose.
    EXPECT_EQ(launch.info.nodes.size(), 11u);
  }
  EXPECT_EQ(calls, 1u);
}

TEST(CudnnAttention, OtherGraphsHaveNone) {
  AttentionRig rig;
  const auto names = [&](const std::string& rest) {
    return LibraryAlgorithms(Parsed(std::string(kHeads) + rest), 9, Numerics::kF16, rig.libraries);
  };
  EXPECT_THAT(names(kRest), ElementsAre("attention-f16"));
  EXPECT_THAT(names(R"(%12 = Softmax(%11) {axis = 2}
      %13 = MatMul(%12, %8)
      return "y" = %13)"),
              IsEmpty())
      << "over the queries";
  EXPECT_THAT(names(R"(%12 = Softmax(%11) {axis = 3}
      %13 = MatMul(%12, %8)
      return "y" = %13, "z" = %12)"),
              IsEmpty())
      << "others read the weights";
  EXPECT_THAT(names(R"(%12 = Constant() {symbol = "m", value = f32[6, 1]{0, 0, 0, 0, -1, -1}}
      %13 = Add(%11, %12)
      %14 = Softmax(%13) {axis = 3}
      %15 = MatMul(%14, %8)
      return "y" = %15)"),
              IsEmpty())
      << "one number for all keys of a query";
  EXPECT_THAT(names(R"(%12 = Softmax(%11) {axis = 3}
      %13 = MatMul(%7, %12)
      return "y" = %13)"),
              IsEmpty())
      << "the weights are the right side";
}

/// Factors of the queries, the keys and the scores are one scale.
TEST(CudnnAttention, ScalesAreMultipliedAndPositive) {
  const auto scale = [](const char* second) {
    const Graph graph =
        Parsed(std::string(R"(%0 = Input() {dtype = "f16", name = "q", shape = [6, 8]}
      %1 = Input() {dtype = "f16", name = "k", shape = [6, 8]}
      %2 = Constant() {value = f16[]{0.5}}
      %3 = Constant() {value = f16[]{)") +
               second + R"(}}
      %4 = Mul(%2, %0)
      %5 = Transpose(%1) {perm = [1, 0]}
      %6 = Div(%5, %3)
      %7 = MatMul(%4, %6)
      %8 = Mul(%7, %2)
      %9 = Softmax(%8) {axis = 1}
      %10 = MatMul(%9, %1)
      return "y" = %10)");
    const std::vector<bool> none(graph.nodes().size(), false);
    const auto matches = MatchAttention({graph, none, none}, 7, std::nullopt);
    return matches.empty() ? 0.0F : matches[0].attention.scale;
  };
  EXPECT_EQ(scale("4"), 0.0625F);
  EXPECT_EQ(scale("-4"), 0.0F);
  EXPECT_EQ(scale("0"), 0.0F);
}

TEST(CudnnAttention, MasksArePartOfTheCall) {
  AttentionRig rig;
  const Graph graph = Parsed(std::string(kHeads) + R"(
      %12 = Constant() {symbol = "m", value = f32[1, 1, 1, 6]{0, 0, -3.4028235e38, 0, -3.4028235e38, 0}}
      %13 = Add(%12, %11)
      %14 = Softmax(%13) {axis = 3}
      %15 = MatMul(%14, %8)
      %16 = Transpose(%15) {perm = [0, 2, 1, 3]}
      return "y" = %16)");
  EXPECT_THAT(LibraryAlgorithms(graph, 9, Numerics::kF16, rig.libraries),
              ElementsAre("attention-f16"));
  const std::vector<bool> none(graph.nodes().size(), false);
  const auto matches = MatchAttention({graph, none, none}, 9, DType::kF16);
  ASSERT_EQ(matches.size(), 2u);
  EXPECT_EQ(matches[0].attention.mask_dtype, DType::kF32) << "its largest numbers stay finite";
  EXPECT_EQ(matches[0].group.operands[2].dtype, DType::kF32);
  EXPECT_TRUE(matches[0].group.forms[2].IsOwn());
  auto program = LowerToDevice(graph, {.numerics = Numerics::kF16,
                                       .algorithms = {{9, "attention-f16"}},
                                       .libraries = rig.libraries});
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(std::any_of(program->launches.begin(), program->launches.end(),
                          [](const DeviceLaunch& launch) {
                            return launch.call != nullptr && launch.info.nodes.size() == 12;
                          }));
  DeviceCase one{"masked", graph, {}, *std::move(program), Numerics::kF16};
  for (int input = 0; input < 3; ++input) {
    std::vector<double> values;
    for (int k = 0; k < 192; ++k) values.push_back((k * (2 * input + 3) % 11 - 5) / 8.0);
    one.inputs.push_back(
        HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, {2, 6, 16}}, values)));
  }
  ASSERT_TRUE(rig.driver.Prepare(one.program.ModuleText()).ok());
  EXPECT_EQ(FailureOn(rig.driver.table(), &TextImage, one), "");
}

/// Masks that are not stored may leave a row no key, as may stored ones.
TEST(CudnnAttention, MasksLeaveKeys) {
  AttentionRig rig;
  const auto names = [&](const std::string& mask) {
    return LibraryAlgorithms(Parsed(std::string(kHeads) + "%12 = " + mask + R"(
      %13 = Add(%11, %12)
      %14 = Softmax(%13) {axis = 3}
      %15 = MatMul(%14, %8)
      return "y" = %15)"),
                             9, Numerics::kF16, rig.libraries);
  };
  const std::string stored = "Constant() {symbol = \"m\", value = f32[2, 1, 1, 6]{";
  EXPECT_THAT(names(stored + "0, 0, 0, 0, 0, 0, -1e9, -1e38, -3e38, -1e38, -1e38, -1e38}}"),
              ElementsAre("attention-f16"));
  EXPECT_THAT(names(stored + "0, 0, 0, 0, 0, 0, -1e38, -1e38, -3e38, -1e38, -1e38, -1e38}}"),
              IsEmpty());
  EXPECT_THAT(names("Input() {name = \"m\", shape = [2, 1, 1, 6]}"), IsEmpty());
}

/// The first attention reads its values through a view that the second one writes.
TEST(CudnnAttention, ValuesAreStored) {
  AttentionRig rig;
  const Graph graph = Parsed(R"(%0 = Input() {dtype = "f16", name = "q", shape = [2, 2, 6, 8]}
    %1 = Input() {dtype = "f16", name = "k", shape = [2, 2, 6, 8]}
    %2 = Transpose(%1) {perm = [0, 1, 3, 2]}
    %3 = MatMul(%0, %2)
    %4 = Softmax(%3) {axis = 3}
    %5 = Neg(%0)
    %6 = MatMul(%5, %2)
    %7 = Softmax(%6) {axis = 3}
    %8 = Input() {dtype = "f16", name = "b", shape = [2, 2, 6, 8]}
    %9 = MatMul(%7, %8)
    %10 = Transpose(%9) {perm = [1, 0, 2, 3]}
    %11 = MatMul(%4, %10)
    return "y" = %11, "t" = %10)");
  auto program = LowerToDevice(
      graph, {.algorithms = {{3, "attention"}, {6, "attention"}}, .libraries = rig.libraries});
  ASSERT_TRUE(program.ok()) << program.status();
  DeviceCase one{"two", graph, {}, *std::move(program)};
  for (int input = 0; input < 3; ++input) {
    std::vector<double> values;
    for (int k = 0; k < 192; ++k) values.push_back((k * (2 * input + 3) % 11 - 5) / 8.0);
    one.inputs.push_back(
        HostValue::FromTensor(Tensor::FromDoubles({DType::kF16, {2, 2, 6, 8}}, values)));
  }
  ASSERT_TRUE(rig.driver.Prepare(one.program.ModuleText()).ok());
  EXPECT_EQ(FailureOn(rig.driver.table(), &TextImage, one), "");
}

/// Another process finds an engine by its mask, too.
TEST(CudnnAttention, KeptEnginesDifferByTheirMasks) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / Cat("mendel_attention_", ::getpid());
  std::filesystem::remove_all(folder);
  FakeDriver driver;
  FakeCudnn fake;
  const auto offered = [&](double seconds, const std::string& mask, int64_t workspace) {
    CompiledEngines compiled(seconds, {.folder = folder.string()});
    const CudnnAttentionLibrary library(fake.table(), kDevice, workspace, compiled);
    const CallLibrary* const libraries[] = {&library};
    const Graph graph = Parsed(std::string(kHeads) + mask + R"(
      %14 = Softmax(%13) {axis = 3}
      %15 = MatMul(%14, %8)
      return "y" = %15)");
    return LibraryAlgorithms(graph, 9, Numerics::kF16, libraries).size();
  };
  const std::string none = "%12 = Constant() {value = f32[]{1}}\n%13 = Mul(%11, %12)";
  const std::string mask =
      "%12 = Constant() {symbol = \"m\", value = f32[6]{0, 0, 0, 0, 0, 1}}\n%13 = Add(%11, %12)";
  EXPECT_EQ(offered(60, mask, kWorkspace), 1u);
  EXPECT_EQ(offered(0, mask, kWorkspace), 1u);
  EXPECT_EQ(offered(0, mask, kWorkspace / 2), 0u);
  EXPECT_EQ(offered(0, none, kWorkspace), 0u);
  EXPECT_EQ(offered(60, mask, 64), 0u) << "no room for the sums";
  std::filesystem::remove_all(folder);
}

/// Keys and values that heads share are read as Expand has written them.
TEST(CudnnAttention, NoOperandRepeatsElements) {
  const Graph graph = Parsed(R"(%0 = Input() {dtype = "f16", name = "q", shape = [1, 4, 6, 8]}
    %1 = Input() {dtype = "f16", name = "k", shape = [1, 1, 6, 8]}
    %2 = Expand(%1) {shape = [1, 4, 6, 8]}
    %3 = Transpose(%2) {perm = [0, 1, 3, 2]}
    %4 = MatMul(%0, %3)
    %5 = Softmax(%4) {axis = 3}
    %6 = MatMul(%5, %2)
    return "y" = %6)");
  const std::vector<bool> none(graph.nodes().size(), false);
  const auto matches = MatchAttention({graph, none, none}, 4, std::nullopt);
  ASSERT_EQ(matches.size(), 1u);
  const CudnnAttention& attention = matches[0].attention;
  EXPECT_THAT(attention.k.strides, ElementsAre(192, 48, 8, 1));
  EXPECT_EQ(matches[0].group.operands[1].value, (ValueId{2, 0}));
  EXPECT_EQ(matches[0].group.operands[2].value, (ValueId{2, 0}));
}

TEST(CudnnAttention, PlansThatNameAnotherAreRefused) {
  AttentionRig rig;
  const Graph graph = Parsed(std::string(kHeads) + kRest);
  const auto refusal = [&](int32_t node, const char* algorithm, Numerics numerics) {
    return LowerToDevice(graph, {.numerics = numerics,
                                 .algorithms = {{node, algorithm}},
                                 .libraries = rig.libraries})
        .status()
        .ToString();
  };
  EXPECT_EQ(refusal(9, "attention-f16", Numerics::kF16), "OK");
  EXPECT_THAT(refusal(9, "attention-f16", Numerics::kTf32), HasSubstr("under numerics tf32"));
  EXPECT_THAT(refusal(9, "attention-f8", Numerics::kF16), HasSubstr("no algorithm 'attention-f8'"));
  EXPECT_THAT(refusal(13, "attention-f16", Numerics::kF16), HasSubstr("no attention that cuDNN"));
  EXPECT_THAT(refusal(9, "attention", Numerics::kF16), HasSubstr("no attention that cuDNN"))
      << "it is f32";
}

TEST(CudnnAttention, SearchesKeepToTheTimeForCompilations) {
  FakeDriver driver;
  FakeCudnn fake;
  CompiledEngines none(0, {});
  const CudnnAttentionLibrary library(fake.table(), kDevice, kWorkspace, none);
  const CallLibrary* const libraries[] = {&library};
  const Graph graph = Parsed(std::string(kHeads) + kRest);
  EXPECT_THAT(LibraryAlgorithms(graph, 9, Numerics::kF16, libraries), IsEmpty());
  EXPECT_TRUE(LowerToDevice(graph, {.numerics = Numerics::kF16,
                                    .algorithms = {{9, "attention-f16"}},
                                    .libraries = libraries})
                  .ok());
  EXPECT_THAT(LibraryAlgorithms(graph, 9, Numerics::kF16, libraries), ElementsAre("attention-f16"));
}

/// A call that fails costs the engine, or the program with its text; nothing stays behind.
TEST(CudnnAttention, EveryCallMayFail) {
  FakeDriver driver;
  FakeCudnn fake;
  DeviceCase one{"",
                 Parsed(R"(%0 = Input() {dtype = "f16", name = "q", shape = [6, 8]}
    %1 = Input() {dtype = "f16", name = "k", shape = [6, 8]}
    %2 = Transpose(%1) {perm = [1, 0]}
    %3 = MatMul(%0, %2)
    %4 = Softmax(%3) {axis = 1}
    %5 = MatMul(%4, %1)
    return "y" = %5)"),
                 {},
                 {}};
  for (int input = 0; input < 2; ++input) {
    std::vector<double> values;
    for (int k = 0; k < 48; ++k) values.push_back((k * (input + 3) % 7 - 3) / 4.0);
    one.inputs.push_back(HostValue::FromTensor(Tensor::FromDoubles({DType::kF16, {6, 8}}, values)));
  }
  const auto run = [&]() -> std::string {
    CompiledEngines compiled(60, {});
    const CudnnAttentionLibrary library(fake.table(), kDevice, kWorkspace, compiled);
    const CallLibrary* const libraries[] = {&library};
    auto program =
        LowerToDevice(one.graph, {.algorithms = {{3, "attention"}}, .libraries = libraries});
    if (!program.ok()) return std::string(program.status().message());
    one.program = *std::move(program);
    return FailureOn(driver.table(), &TextImage, one);
  };
  ASSERT_EQ(run(), "");
  fake.FailAt(0);
  ASSERT_EQ(run(), "");
  const int64_t calls = fake.Calls();
  int failures = 0;
  for (int64_t call = 1; call <= calls; ++call) {
    fake.FailAt(call);
    const std::string failure = run();
    failures += failure.empty() ? 0 : 1;
    EXPECT_THAT(failure, HasSubstr(failure.empty() ? "" : "injected (4000)"));
    EXPECT_EQ(fake.Leaks() + driver.Leaks(), "") << call << " " << fake.FailedCall();
  }
  EXPECT_GT(failures, calls / 4);
  std::printf("%lld calls, of which %d cost the program\n", static_cast<long long>(calls),
              failures);
}

/// Every product has an algorithm of one of `libraries`, those of attention first.
std::map<int32_t, std::string> ChosenOf(const Graph& graph, Numerics numerics, uint64_t seed,
                                        std::span<const CallLibrary* const> libraries) {
  std::map<int32_t, std::string> algorithms;
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
    std::vector<std::string> names = LibraryAlgorithms(graph, node, numerics, libraries);
    const bool attends = !names.empty() && names[0].starts_with("attention");
    if (attends && seed % 3 != 0)
      std::erase_if(names, [](const std::string& name) { return !name.starts_with("attention"); });
    if (!names.empty())
      algorithms[node] = names[(seed + static_cast<uint64_t>(node)) % names.size()];
  }
  return algorithms;
}

/// `with_others`: the products that are left are by cuBLASLt and tiled kernels.
void RunAttentions(Numerics numerics, uint64_t seeds, bool with_others = false) {
  AttentionRig rig;
  FakeCublasLt lt;
  const CublasLtLibrary products(lt.table(), rig.driver.table(), kWorkspace, 1);
  const TiledLibrary tiles(100, 90, false);
  std::vector<const CallLibrary*> libraries = {&rig.library};
  if (with_others) libraries.insert(libraries.end(), {&products, &tiles});
  const char* more = std::getenv("MENDEL_CUDA_SEEDS");
  if (more != nullptr) seeds = 25 * std::strtoull(more, nullptr, 10);
  std::vector<DeviceCase> cases;
  size_t calls = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    DeviceCase one = RandomAttention(seed, numerics);
    const std::map<int32_t, std::string> algorithms =
        ChosenOf(one.graph, numerics, seed, libraries);
    auto program = LowerToDevice(one.graph, {.reuse_memory = seed % 2 == 0,
                                             .numerics = numerics,
                                             .algorithms = algorithms,
                                             .libraries = libraries});
    ASSERT_TRUE(program.ok()) << one.description << program.status();
    calls +=
        static_cast<size_t>(std::count_if(algorithms.begin(), algorithms.end(), [](const auto& it) {
          return it.second.starts_with("attention");
        }));
    one.program = *std::move(program);
    cases.push_back(std::move(one));
  }
  const absl::Status prepared = rig.driver.Prepare(ModuleOf(cases));
  ASSERT_TRUE(prepared.ok()) << std::string(prepared.message()).substr(0, 4000);
  for (const DeviceCase& one : cases)
    EXPECT_EQ(FailureOn(rig.driver.table(), &TextImage, one), "") << one.description;
  // cuBLASLt keeps its handle and the context until it ends.
  EXPECT_EQ((with_others ? "" : rig.driver.Leaks()) + rig.fake.Leaks(), "");
  EXPECT_GT(calls, cases.size() / 4);
  std::printf("%zu graphs, %zu calls\n", cases.size(), calls);
}

TEST(CudnnAttention, OtherProductsMeanTheirGraphs) {
  for (const Numerics numerics : {Numerics::kDefault, Numerics::kF16})
    RunAttentions(numerics, 30, true);
}
TEST(CudnnAttention, StoredHalvesMeanTheirGraphs) { RunAttentions(Numerics::kDefault, 40); }
TEST(CudnnAttention, FloatsRoundedToF16MeanTheirGraphs) { RunAttentions(Numerics::kF16, 40); }
TEST(CudnnAttention, FloatsRoundedToBf16MeanTheirGraphs) { RunAttentions(Numerics::kBf16, 40); }

}  // namespace
}  // namespace mendel::cuda
