#include "runtime/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/parallel.h"
#include "base/random.h"
#include "graph/text.h"
#include "runtime/backend.h"
#include "runtime/plan_file.h"
#include "runtime/test_backend.h"
#include "runtime/test_plan.h"

namespace mendel {
namespace {

using testing::HasSubstr;

std::vector<std::byte> SmallFile() {
  const std::string path = TestPath("small.plan");
  Plan plan = SmallPlan(kTestBackend);
  plan.certificate_bytes = "certified";
  EXPECT_TRUE(WritePlan(plan, path).ok());
  std::vector<std::byte> bytes = FileBytes(path);
  std::filesystem::remove(path);
  return bytes;
}

TEST(Plan, RoundTripsAndSharesTensors) {
  const std::string path = TestPath("roundtrip.plan");
  Plan plan = SmallPlan(kTestBackend);
  plan.certificate_bytes = "certified";
  (*plan.info.mutable_algorithms())[2] = "winograd";
  plan::AppliedMutant& mutant = *plan.info.add_mutants();
  mutant.set_rule("stack");
  (*mutant.mutable_choices())["axis"] = 2;
  ASSERT_TRUE(WritePlan(plan, path).ok());
  const auto read = ReadPlan(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(PrintGraph(read->graph, {}), PrintGraph(plan.graph, {}));
  EXPECT_EQ(PrintGraph(read->baseline, {}), PrintGraph(plan.baseline, {}));
  EXPECT_EQ(read->certificate_bytes, "certified");
  EXPECT_EQ(read->info.mutants(0).choices().at("axis"), 2);
  EXPECT_EQ(read->info.algorithms().at(2), "winograd");
  // Both graphs' weights are the same bytes of the mapping.
  EXPECT_EQ(ConstantValue(read->graph.node(1)).bytes().data(),
            ConstantValue(read->baseline.node(1)).bytes().data());
  std::filesystem::remove(path);
}

TEST(Plan, KeepsItsNumericsClass) {
  const std::string path = TestPath("numerics.plan");
  for (const Numerics numerics : kAllNumerics) {
    Plan plan = SmallPlan(kTestBackend);
    plan.info.mutable_target()->set_numerics(std::string(NumericsName(numerics)));
    ASSERT_TRUE(WritePlan(plan, path).ok());
    const auto read = ReadPlan(path);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*ParseNumerics(read->info.target().numerics()), numerics);
  }
  std::filesystem::remove(path);
}

TEST(Plan, SamePlanSameBytesAndTheCertificateIsApart) {
  const std::string path = TestPath("same.plan");
  Plan plan = SmallPlan(kTestBackend);
  for (const char* rule : {"b", "a", "c"}) (*plan.info.add_mutants()->mutable_choices())[rule] = 1;
  for (int32_t node : {3, 0, 2, 1}) (*plan.info.mutable_algorithms())[node] = "x";
  ASSERT_TRUE(WritePlan(plan, path).ok());
  const std::vector<std::byte> first = FileBytes(path);
  const auto first_header = ReadPlanHeader(path);
  ASSERT_TRUE(WritePlan(plan, path).ok());
  EXPECT_EQ(first, FileBytes(path));
  plan.certificate_bytes = "other draws";
  ASSERT_TRUE(WritePlan(plan, path).ok());
  const auto second_header = ReadPlanHeader(path);
  ASSERT_TRUE(first_header.ok() && second_header.ok());
  EXPECT_EQ(first_header->content_hash, second_header->content_hash);
  EXPECT_EQ(second_header->certificate_bytes, "other draws");
  std::filesystem::remove(path);
}

TEST(Plan, WritingIsAtomic) {
  const std::string folder = TestPath("atomic");
  std::filesystem::create_directory(folder);
  const std::string path = folder + "/m.plan";
  Plan plan = SmallPlan(kTestBackend);
  ASSERT_TRUE(WritePlan(plan, path).ok());
  plan.info.mutable_target()->set_threads(0);
  EXPECT_EQ(WritePlan(plan, path).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(ReadPlan(path).ok());
  EXPECT_EQ(WritePlan(SmallPlan(kTestBackend), folder + "/none/m.plan").code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder),
                          std::filesystem::directory_iterator()),
            1);
  std::filesystem::remove_all(folder);
}

TEST(Plan, MissingFilesAndFoldersAreRefused) {
  EXPECT_EQ(ReadPlan(TestPath("absent")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadPlan(testing::TempDir()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadPlan("/dev/null").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Plan, EveryTruncationIsRefused) {
  const std::vector<std::byte> file = SmallFile();
  for (size_t size = 0; size < file.size(); ++size) {
    const auto plan = ParsePlan(std::span(file).first(size), nullptr);
    ASSERT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument)
        << size << " " << plan.status();
  }
}

TEST(Plan, EveryFlippedBitIsRefusedOrInPadding) {
  std::vector<std::byte> file = SmallFile();
  const auto entries = DecodeHeader(file, file.size());
  ASSERT_TRUE(entries.ok());
  Rng rng(3);
  for (size_t i = 0; i < file.size(); ++i) {
    const std::byte flip = static_cast<std::byte>(1u << rng.Below(8));
    file[i] ^= flip;
    const bool read = ParsePlan(file, nullptr).ok();
    file[i] ^= flip;
    bool covered = i < 48 + entries->size() * 64;
    for (const SectionEntry& entry : *entries)
      covered |= i >= entry.offset && i < entry.offset + entry.size;
    ASSERT_EQ(read, !covered) << "byte " << i;
  }
}

/// Damaged sections under right hashes: an error or a plan that holds together, never a crash.
TEST(Plan, HostileSectionsAreRefused) {
  const std::vector<std::byte> original = SmallFile();
  const auto entries = DecodeHeader(original, original.size());
  ASSERT_TRUE(entries.ok());
  const uint64_t seed = 11;
  Rng rng(seed);
  int refused = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::vector<std::byte> file = original;
    const SectionEntry& entry = (*entries)[rng.Below(entries->size())];
    for (uint64_t k = 0; k <= rng.Below(4); ++k) {
      file[entry.offset + rng.Below(entry.size)] = static_cast<std::byte>(rng.Below(256));
    }
    Seal(file, *entries);
    const auto plan = ParsePlan(file, nullptr);
    if (plan.ok()) continue;
    ++refused;
    ASSERT_THAT(plan.status().code(), testing::AnyOf(absl::StatusCode::kInvalidArgument,
                                                     absl::StatusCode::kUnimplemented))
        << plan.status() << " seed " << seed << " trial " << trial;
  }
  EXPECT_GT(refused, 1000);
}

TEST(Plan, RefusesOtherVersions) {
  std::vector<std::byte> file = SmallFile();
  const uint32_t version = 3;
  std::memcpy(file.data() + 8, &version, 4);
  EXPECT_THAT(std::string(ParsePlan(file, nullptr).status().message()),
              HasSubstr("version 3 is not supported"));
}

TEST(Plan, RefusesWhatDoesNotFitTogether) {
  const std::string path = TestPath("bad.plan");
  Plan plan = SmallPlan(kTestBackend);
  (*plan.info.mutable_algorithms())[99] = "x";
  EXPECT_THAT(std::string(WritePlan(plan, path).message()), HasSubstr("node 99"));
  plan = SmallPlan(kTestBackend);
  plan.info.mutable_target()->set_numerics("sloppy");
  EXPECT_EQ(WritePlan(plan, path).code(), absl::StatusCode::kInvalidArgument);
  plan = SmallPlan(kTestBackend);
  const auto other =
      ParseGraph("graph \"g\" { %0 = Input() {name = \"z\", shape = [1]}\n return \"y\" = %0 }");
  ASSERT_TRUE(other.ok());
  plan.baseline = *other;
  EXPECT_THAT(std::string(WritePlan(plan, path).message()), HasSubstr("other inputs or outputs"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Plan, LargeSectionsAreHashedInChunks) {
  std::vector<std::byte> bytes((size_t{9} << 20) + 5);
  Rng rng(1);
  for (std::byte& b : bytes) b = static_cast<std::byte>(rng.Below(256));
  const std::string path = TestPath("chunks");
  const std::span<const std::byte> all(bytes);
  ASSERT_TRUE(
      WriteSections({{"a", {all.first(100), all.subspan(100, 0), all.subspan(100)}}, {"empty", {}}},
                    path)
          .ok());
  const auto file = MapPlanFile(path);
  ASSERT_TRUE(file.ok());
  const auto entries = DecodeHeader(file->bytes, file->bytes.size());
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ((*entries)[0].hash, SectionHash(bytes));
  EXPECT_TRUE(
      CheckSection((*entries)[0], file->bytes.subspan((*entries)[0].offset, (*entries)[0].size))
          .ok());
  EXPECT_TRUE(CheckSection((*entries)[1], {}).ok());
  bytes.back() ^= std::byte{1};
  EXPECT_FALSE(CheckSection((*entries)[0], bytes).ok());
  std::filesystem::remove(path);
}

TEST(CheckTarget, NamesBothMachines) {
  const Backend* backend = FindBackend(kTestBackend);
  ASSERT_NE(backend, nullptr);
  Plan plan = SmallPlan(kTestBackend);
  EXPECT_TRUE(CheckTarget(plan.info, *backend).ok());
  plan.info.mutable_target()->set_identity("another machine");
  const absl::Status status = CheckTarget(plan.info, *backend);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const char* part : {"another machine", kTestIdentity, "--retune"})
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}

/// However many chunks are hashed side by side.
TEST(SectionHash, IsTheHashOfTheDigestsOfItsChunks) {
  constexpr size_t kChunk = size_t{4} << 20;
  std::vector<std::byte> bytes(5 * kChunk + 100);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31 + (i >> 20));
  const int before = Parallelism();
  SetParallelism(2);
  for (const size_t size :
       {size_t{100}, kChunk, 2 * kChunk, 4 * kChunk, 5 * kChunk, bytes.size()}) {
    Sha256 root;
    for (size_t at = 0; at < size; at += kChunk) {
      const std::string hex = Sha256Hex(std::span(bytes).subspan(at, std::min(kChunk, size - at)));
      std::vector<std::byte> digest;
      for (size_t k = 0; k < hex.size(); k += 2)
        digest.push_back(static_cast<std::byte>(std::stoi(hex.substr(k, 2), nullptr, 16)));
      root.Update(std::span<const std::byte>(digest));
    }
    EXPECT_EQ(DigestHex(SectionHash(std::span(bytes).first(size))), root.HexDigest()) << size;
  }
  SetParallelism(before);
}

}  // namespace
}  // namespace mendel
