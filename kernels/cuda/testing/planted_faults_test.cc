// Faults planted into correct kernels, one of each kind: every one is caught, and by name. All
// variants are one compilation.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>

#include "base/status.h"
#include "kernels/cuda/testing/correction_case.h"
#include "kernels/cuda/testing/emulator/device.h"

namespace mendel::cuda {
namespace {

using ::testing::HasSubstr;

struct Fault {
  std::string name;
  /// The message that reports the fault contains this text.
  std::string caught;
  std::function<void(Correction&)> in_correction;
  std::function<void(std::string&)> in_text;
  bool misaligned = false;
};

/// Replaces the `which`-th occurrence, which must exist.
void ReplaceIn(std::string& text, const std::string& from, const std::string& to,
               size_t which = 0) {
  size_t at = text.find(from);
  for (; which > 0 && at != std::string::npos; --which) at = text.find(from, at + 1);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
}

std::function<void(std::string&)> Replace(const std::string& from, const std::string& to,
                                          size_t which = 0) {
  return [=](std::string& text) { ReplaceIn(text, from, to, which); };
}

size_t Count(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

/// 72 products a sum, five steps; three boxes of several tiles each.
Graph Subject() {
  return CorrectedConv({.x = {2, 8, 13, 12},
                        .w = {20, 8, 3, 3},
                        .strides = {1, 1},
                        .dilations = {1, 1},
                        .pads = {1, 1, 1, 1}},
                       {{{0, 0, 3, 0}, {2, 20, 5, 12}},
                        {{0, 0, 8, 2}, {2, 20, 13, 9}},
                        {{1, 0, 0, 1}, {2, 20, 2, 5}}});
}

std::vector<Fault> Faults(size_t barriers) {
  std::vector<Fault> faults = {
      {"none", "", nullptr, nullptr},
      {"off-by-one box: a row too many", "wrong result",
       [](Correction& c) { ++c.boxes[0].extents[2]; }, nullptr},
      {"off-by-one box: a row too few", "wrong result",
       [](Correction& c) { --c.boxes[0].extents[2]; }, nullptr},
      {"off-by-one box: input one column aside", "wrong result",
       [](Correction& c) { ++c.boxes[2].x_origin[1]; }, nullptr},
      {"off-by-one box: input one row too long", "out of bounds",
       [](Correction& c) {
         for (CorrectionBox& box : c.boxes) ++box.x_extents[0];
       },
       nullptr},
      {"wrong epilogue order", "wrong result",
       [](Correction& c) { std::swap(c.epilogue[1], c.epilogue[2]); }, nullptr},
      {"unaligned vector load of x", "misaligned", nullptr,
       Replace("&& IsAligned<Stored, 4>(x)", ""), true},
      {"unaligned vector load of w", "misaligned", nullptr,
       Replace("IsAligned<Stored, 4>(w)", "true"), true},
      {"unaligned vector store", "misaligned", nullptr,
       Replace("&& IsAligned<Stored, kThreadColumns>(out)", ""), true},
      {"wrong prefix sum: a tile too many", "", nullptr, nullptr},
      {"wrong prefix sum: a tile too few", "", nullptr, nullptr},
      {"stale shared memory: the second tile stays", "stale shared memory", nullptr,
       Replace("if (more) loader.Stage(buffer ^ 1);",
               "if (more && k0 == 0) loader.Stage(buffer ^ 1);")},
      {"stale shared memory: a buffer never written", "uninitialized shared memory", nullptr,
       Replace("buffer = 0;", "buffer = 1;")},
      {"one buffer for two tiles", "race", nullptr, Replace("Stage(buffer ^ 1)", "Stage(buffer)")},
      {"divergent barrier", "divergent barrier", nullptr,
       Replace("__syncthreads();",
               "if (thread < 32)\n __syncthreads();\n else\n __syncthreads();")},
      {"rows beyond the box are written", "", nullptr, Replace("if (row >= rows) continue;", "")},
      {"shared memory too small", "out of bounds", nullptr, nullptr},
  };
  for (size_t k = 0; k < barriers; ++k) {
    faults.push_back(
        {Cat("missing barrier ", k), "race", nullptr, Replace("__syncthreads();", "", k)});
  }
  return faults;
}

/// The table's entries begin with the prefix sum.
void MovePrefixSum(std::string& text, int by) {
  const size_t table = text.find("kBoxes[kBoxCount] = {");
  const size_t entry = text.find('{', text.find("},", table));
  const size_t comma = text.find(',', entry);
  const int sum = std::atoi(text.substr(entry + 1, comma - entry - 1).c_str());
  ASSERT_GT(sum, 1);
  text.replace(entry + 1, comma - entry - 1, std::to_string(sum + by));
}

TEST(PlantedFaults, EachIsCaughtByName) {
  const Graph graph = Subject();
  auto plain = MakeCase(graph, Layout::kNhwc, "plain_", &Tiles()[2]);
  ASSERT_TRUE(plain.ok()) << plain.status();
  ASSERT_EQ(plain->kernels.size(), 1u) << "one launch a mutant";
  const size_t barriers = Count(plain->kernels[0].text, "__syncthreads()");
  ASSERT_EQ(barriers, 2u);
  const std::vector<Fault> faults = Faults(barriers);
  std::vector<CorrectionCase> cases;
  std::vector<EmittedKernel> texts;
  for (size_t k = 0; k < faults.size(); ++k) {
    auto one = MakeCase(graph, Layout::kNhwc, Cat("f", k, "_"), &Tiles()[2]);
    ASSERT_TRUE(one.ok()) << one.status();
    Correction& correction = one->patch_kernels.kernels[0].correction;
    if (faults[k].in_correction != nullptr) {
      faults[k].in_correction(correction);
      auto kernel = EmitKernel(correction, Tiles()[2]);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      one->kernels[0] = *std::move(kernel);
    }
    if (faults[k].in_text != nullptr) faults[k].in_text(one->kernels[0].text);
    if (faults[k].name == "wrong prefix sum: a tile too many")
      MovePrefixSum(one->kernels[0].text, 1);
    if (faults[k].name == "wrong prefix sum: a tile too few")
      MovePrefixSum(one->kernels[0].text, -1);
    if (faults[k].name == "shared memory too small") one->kernels[0].launch.shared -= 64;
    texts.push_back(one->kernels[0]);
    cases.push_back(*std::move(one));
  }
  const auto module = EmulatorDevice().Load(texts);
  ASSERT_TRUE(module.ok()) << module.status();
  for (size_t k = 0; k < faults.size(); ++k) {
    if (faults[k].misaligned && !SeesAlignmentOfObjects()) {
      std::printf("%-45s not seen with this compiler\n", faults[k].name.c_str());
      continue;
    }
    const absl::Status status = RunCase(cases[k], **module, faults[k].misaligned);
    EXPECT_EQ(status.ok(), faults[k].name == "none") << faults[k].name << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(faults[k].caught)) << faults[k].name;
    std::printf("%-45s %s\n", faults[k].name.c_str(),
                status.ok() ? "runs" : std::string(status.message()).substr(0, 110).c_str());
  }
}

TEST(PlantedFaults, OfDividedSumsAreCaught) {
  const auto replaced = [](const std::string& from, const std::string& to) {
    return Fault{from, "", nullptr, Replace(from, to)};
  };
  std::vector<Fault> faults = {{"none", "", nullptr, nullptr}};
  faults.push_back(
      replaced("+ part * kSumsOfPart", "+ 0 * kSumsOfPart"));  // all parts at one place
  faults.push_back(
      replaced("steps * part / kParts", "steps * part / kParts / 2"));  // overlapping parts
  faults.push_back(replaced("steps * (part + 1) / kParts",
                            "(steps * (part + 1) - 1) / kParts"));  // a step left out
  faults.push_back(replaced("part < kParts; ++part) value",
                            "part + 1 < kParts; ++part) value"));  // a part left out
  faults.push_back(replaced("block /= kThreadRows;", ""));
  faults[1].caught = "written twice";
  std::vector<CorrectionCase> cases;
  std::vector<EmittedKernel> texts;
  for (size_t k = 0; k < faults.size(); ++k) {
    auto one = MakeCase(Subject(), Layout::kNchw, "");
    ASSERT_TRUE(one.ok()) << one.status();
    cases.push_back(WithDividedSums(*std::move(one), 3, Cat("d", k, "_")));
    ASSERT_EQ(cases.back().kernels.size(), 2u);
    const bool in_parts = cases.back().kernels[0].text.find(faults[k].name) != std::string::npos;
    if (faults[k].in_text != nullptr)
      faults[k].in_text(cases.back().kernels[in_parts ? 0 : 1].text);
    texts.insert(texts.end(), cases.back().kernels.begin(), cases.back().kernels.end());
  }
  const auto module = EmulatorDevice().Load(texts);
  ASSERT_TRUE(module.ok()) << module.status();
  for (size_t k = 0; k < faults.size(); ++k) {
    const absl::Status status = RunCase(cases[k], **module);
    EXPECT_EQ(status.ok(), k == 0) << faults[k].name << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(faults[k].caught)) << faults[k].name;
  }
}

}  // namespace
}  // namespace mendel::cuda
