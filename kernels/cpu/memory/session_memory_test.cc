// Tests that a session on this backend keeps the packed form of its plan's weights, and not the
// stored form in addition.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/cpu/program.h"
#include "runtime/measure.h"
#include "runtime/session.h"
#include "runtime/test_plan.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kChannels = 512;
constexpr int kLayers = 4;
constexpr int64_t kWeightBytes = kLayers * kChannels * kChannels * 9 * 4;  // 36 MiB

/// Small elements that differ from layer to layer, so that no two layers share stored or packed
/// bytes.
Tensor Pattern(Shape shape, int number) {
  std::vector<float> values(static_cast<size_t>(NumElements(shape)));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] =
        (static_cast<float>((i * 37 + static_cast<size_t>(number) * 11) % 199) - 99.0f) * 1e-4f;
  }
  const auto owner = std::make_shared<const std::vector<float>>(std::move(values));
  return Tensor({DType::kF32, std::move(shape)}, std::as_bytes(std::span(*owner)), owner);
}

/// Convolutions, whose weights are packed, and a product with an elementwise constant that is read
/// as it is stored.
Plan LargePlan() {
  GraphBuilder builder("large");
  ValueId value = builder.Input("x", {DType::kF32, {1, kChannels, 3, 3}});
  const Attributes attrs = {
      {"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}};
  for (int layer = 0; layer < kLayers; ++layer) {
    const ValueId weights =
        builder.Constant(Pattern({kChannels, kChannels, 3, 3}, layer), "w" + std::to_string(layer));
    value = *builder.Add("Conv", {value, weights}, attrs);
  }
  builder.Output("y", value);
  const ValueId z = builder.Input("z", {DType::kF32, {64, 65}});
  builder.Output("u", *builder.Add("Mul", {z, builder.Constant(Pattern({64, 65}, kLayers), "c")}));
  absl::StatusOr<Graph> graph = builder.Build();
  MENDEL_CHECK(graph.ok());
  Plan plan;
  plan.graph = *graph;
  plan::Target& target = *plan.info.mutable_target();
  target.set_backend("cpu");
  target.set_identity(FindBackend("cpu")->Identity());
  target.set_threads(2);
  target.set_numerics("default");
  return plan;
}

std::vector<Tensor> Outputs(Session& session, const std::vector<Tensor>& inputs) {
  const auto results = session.Run({{"x", inputs[0]}, {"z", inputs[1]}});
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? *results : std::vector<Tensor>();
}

/// Bytes of the mappings of `path` that are in memory.
int64_t ResidentOf(const std::string& path) {
  std::ifstream maps("/proc/self/smaps");
  int64_t kilobytes = 0;
  bool within = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ')) within = line.find(path) != std::string::npos;
    if (within && line.rfind("Rss:", 0) == 0) kilobytes += std::atoll(line.c_str() + 4);
  }
  return kilobytes << 10;
}

/// Bytes of the process that no file backs.
int64_t AnonymousBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("RssAnon:", 0) == 0) return int64_t{std::atoll(line.c_str() + 8)} << 10;
  }
  return -1;
}

class SessionMemory : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  const std::string path_ = TestPath("large");
};

TEST_F(SessionMemory, PagesOfAFileAreGivenBackOncePacked) {
  const std::vector<Tensor> inputs = RandomInputs(LargePlan().graph, 1);
  std::vector<Tensor> expected;
  {
    const Plan plan = LargePlan();
    ASSERT_TRUE(WritePlan(plan, path_).ok());
    const auto session = Session::Create(plan, {});
    ASSERT_TRUE(session.ok()) << session.status();
    expected = Outputs(**session, inputs);
  }
  auto plan = ReadPlan(path_);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_GE(ResidentOf(path_), kWeightBytes) << "reading checks every page, and this must be seen";
  [[maybe_unused]] const int64_t before = AnonymousBytes();
  auto session = Session::Create(*plan, {});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(Outputs(**session, inputs), expected);
  const MemoryReport memory = (*session)->executable().memory();
  EXPECT_GE(memory.weight_bytes, kWeightBytes);
  EXPECT_LE(ResidentOf(path_), kWeightBytes / 8);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they keep what is freed
  EXPECT_LE(AnonymousBytes() - before,
            memory.weight_bytes + memory.arena_bytes + memory.scratch_bytes + kWeightBytes / 2);
#endif
  *plan = Plan();  // the session alone contains what it reads in place
  EXPECT_EQ(Outputs(**session, inputs), expected);
}

TEST_F(SessionMemory, APlanInMemoryIsFreedOncePacked) {
  ASSERT_TRUE(WritePlan(LargePlan(), path_).ok());
  const std::vector<std::byte> file = FileBytes(path_);
  auto bytes = std::make_shared<AlignedBytes>(static_cast<int64_t>(file.size()));
  std::copy(file.begin(), file.end(), bytes->data());
  const std::weak_ptr<const AlignedBytes> alive = bytes;
  auto plan = ParsePlan({bytes->data(), file.size()}, bytes);
  bytes.reset();
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::vector<Tensor> inputs = RandomInputs(plan->graph, 1);
  auto session = Session::Create(*plan, {});
  ASSERT_TRUE(session.ok()) << session.status();
  const std::vector<Tensor> expected = Outputs(**session, inputs);
  *plan = Plan();
  EXPECT_TRUE(alive.expired());
  EXPECT_EQ(Outputs(**session, inputs), expected);
}

}  // namespace
}  // namespace mendel::cpu
