#include "runtime/plan_bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/random.h"
#include "graph/evaluate.h"
#include "graph/text.h"
#include "runtime/bundle_session.h"
#include "runtime/measure.h"
#include "runtime/test_backend.h"
#include "runtime/test_plan.h"

namespace mendel {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<std::byte>;

Bytes Written(const std::vector<Plan>& members) {
  const std::string path = TestPath("written.plan");
  const absl::Status status = WritePlanBundle(members, path);
  EXPECT_TRUE(status.ok()) << status;
  Bytes bytes = FileBytes(path);
  std::filesystem::remove(path);
  return bytes;
}

std::vector<Plan> Certified() {
  std::vector<Plan> members = SmallBundle(kTestBackend);
  for (Plan& member : members) member.certificate_bytes = "certified";
  return members;
}

TEST(PlanBundle, RoundTripsAndStoresWeightsOnce) {
  const std::vector<Plan> members = Certified();
  const Bytes file = Written(members);
  EXPECT_EQ(file, Written(members));
  const auto read = ParsePlans(file, nullptr);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 3u);
  for (size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(PrintGraph((*read)[k].graph, {}), PrintGraph(members[k].graph, {}));
    EXPECT_EQ(PrintGraph((*read)[k].baseline, {}), PrintGraph(members[k].baseline, {}));
    EXPECT_EQ((*read)[k].certificate_bytes, "certified");
    EXPECT_EQ((*read)[k].info.model_name(), "small.onnx");
    EXPECT_EQ(ConstantValue((*read)[k].graph.node(1)).bytes().data(),
              ConstantValue((*read)[0].graph.node(1)).bytes().data());
  }
  const auto entries = DecodeHeader(file, file.size(), kBundleFileVersion);
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ((*entries)[0].size, 8u * 6 * 4 + 6 * 3 * 4);
}

TEST(PlanBundle, ASinglePlanIsABundleOfOne) {
  const std::string path = TestPath("single.plan");
  ASSERT_TRUE(WritePlan(SmallPlan(kTestBackend), path).ok());
  const auto read = ReadPlans(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->size(), 1u);
  EXPECT_FALSE(*IsBundleFile(path));
  EXPECT_FALSE(ReadBundleHeader(path).ok());
  ASSERT_TRUE(WritePlanBundle(SmallBundle(kTestBackend), path).ok());
  EXPECT_TRUE(*IsBundleFile(path));
  EXPECT_THAT(std::string(ReadPlan(path).status().message()),
              HasSubstr("a bundle of plans for several input shapes"));
  EXPECT_THAT(std::string(ReadPlanHeader(path).status().message()),
              HasSubstr("a bundle of plans for several input shapes"));
  std::filesystem::remove(path);
}

TEST(PlanBundle, TheHeaderReportsMembersAndLeavesCertificatesApart) {
  const std::string path = TestPath("header.plan");
  std::vector<Plan> members = Certified();
  ASSERT_TRUE(WritePlanBundle(members, path).ok());
  const auto first = ReadBundleHeader(path);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(first->members.size(), 3u);
  EXPECT_EQ(ShapesText(first->members[2].inputs), "x:16x8");
  members[1].certificate_bytes = "other draws";
  ASSERT_TRUE(WritePlanBundle(members, path).ok());
  EXPECT_EQ(ReadBundleHeader(path)->content_hash, first->content_hash);
  EXPECT_EQ(ReadBundleHeader(path)->members[1].certificate_bytes, "other draws");
  members[1].info.set_mendel_version("other");
  ASSERT_TRUE(WritePlanBundle(members, path).ok());
  EXPECT_NE(ReadBundleHeader(path)->content_hash, first->content_hash);
  std::filesystem::remove(path);
}

TEST(PlanBundle, ChoosesByShapes) {
  const std::vector<NamedShapes> offered = {
      {{"a", {1, 8}}, {"b", {}}}, {{"a", {4, 8}}, {"b", {}}}, {{"a", {4, 8}}, {"b", {2}}}};
  EXPECT_EQ(ShapesText(offered[1]), "a:4x8,b:scalar");
  EXPECT_EQ(*ChooseMember(offered, {{"a", {1, 8}}}), 0u);
  EXPECT_EQ(*ChooseMember(offered, {{"b", {2}}}), 2u);
  EXPECT_EQ(*ChooseMember(offered, {{"b", {}}, {"a", {4, 8}}}), 1u);
  const auto none = ChooseMember(offered, {{"a", {2, 8}}});
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(none.status().message()),
      HasSubstr("no member for a:2x8; it offers a:1x8,b:scalar; a:4x8,b:scalar; a:4x8,b:2"));
  EXPECT_THAT(std::string(ChooseMember(offered, {{"a", {4, 8}}}).status().message()),
              HasSubstr("must choose one"));
  EXPECT_THAT(std::string(ChooseMember(offered, {}).status().message()),
              HasSubstr("must choose one"));
  EXPECT_FALSE(ChooseMember(offered, {{"z", {1, 8}}}).ok());
  const auto other = ChooseMember(std::span(offered).first(1), {{"a", {2, 8}}});
  EXPECT_THAT(std::string(other.status().message()),
              HasSubstr("the plan is for a:1x8,b:scalar, not for a:2x8"));
}

TEST(PlanBundle, EveryMemberRuns) {
  const std::vector<Plan> members = SmallBundle(kTestBackend);
  const auto bundle = BundleSession::Create(members, {});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  for (const Plan& plan : members) {
    const Tensor x = RandomInputs(plan.graph, 5)[0];
    const auto number = (*bundle)->Choose({{"x", x.shape()}});
    ASSERT_TRUE(number.ok()) << number.status();
    const auto session = (*bundle)->Member(*number);
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_EQ(*session, *(*bundle)->Member(*number));  // compiled once
    const auto y = (*session)->Run({{"x", x}});
    ASSERT_TRUE(y.ok()) << y.status();
    const auto expected = Evaluate(plan.graph, std::vector<HostValue>{HostValue::FromTensor(x)});
    ASSERT_TRUE(expected.ok());
    EXPECT_EQ((*y)[0], (*expected)[0].ToTensor());
  }
  EXPECT_FALSE((*bundle)->Choose({{"x", {3, 8}}}).ok());
}

TEST(PlanBundle, RefusesMembersThatDoNotGoTogether) {
  const std::string path = TestPath("bad-bundle.plan");
  const auto refusal = [&](const std::vector<Plan>& members) {
    const absl::Status status = WritePlanBundle(members, path);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  std::vector<Plan> members = SmallBundle(kTestBackend);
  members[2] = SmallPlan(kTestBackend, 4);
  EXPECT_THAT(refusal(members),
              HasSubstr("members 1 and 2 of the bundle have the same input shapes (x:4x8)"));
  EXPECT_THAT(refusal({members[0], SmallPlan(kTestBackend, 4), Plan()}),
              HasSubstr("member 2 of the bundle has other inputs"));
  members = SmallBundle(kTestBackend);
  members[1].info.set_model_hash("another");
  EXPECT_THAT(refusal(members), HasSubstr("member 1 of the bundle is of another model"));
  members = SmallBundle(kTestBackend);
  members[1].info.mutable_target()->set_threads(0);
  EXPECT_THAT(refusal(members), HasSubstr("member 1"));
  EXPECT_THAT(refusal({}), HasSubstr("not 0"));
  std::vector<Plan> many;
  for (int64_t rows = 1; rows <= 65; ++rows) many.push_back(SmallPlan(kTestBackend, rows));
  EXPECT_THAT(refusal(many), HasSubstr("1 to 64 members, not 65"));
  many.pop_back();
  EXPECT_EQ(ParsePlans(Written(many), nullptr)->size(), 64u);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(HostileBundle, EveryTruncationIsRefused) {
  const Bytes file = Written(Certified());
  for (size_t size = 0; size < file.size(); size += size < 400 ? 1 : 7) {
    const auto plans = ParsePlans(std::span(file).first(size), nullptr);
    ASSERT_EQ(plans.status().code(), absl::StatusCode::kInvalidArgument)
        << size << " " << plans.status();
  }
}

TEST(HostileBundle, EveryFlippedBitIsRefusedOrInPadding) {
  Bytes file = Written(Certified());
  const auto entries = DecodeHeader(file, file.size(), kBundleFileVersion);
  ASSERT_TRUE(entries.ok());
  Rng rng(3);
  for (size_t i = 0; i < file.size(); i += i < 400 ? 1 : 3) {
    const std::byte flip = static_cast<std::byte>(1u << rng.Below(8));
    file[i] ^= flip;
    const bool read = ParsePlans(file, nullptr).ok();
    file[i] ^= flip;
    bool covered = i < 48 + entries->size() * 64;
    for (const SectionEntry& entry : *entries)
      covered |= i >= entry.offset && i < entry.offset + entry.size;
    ASSERT_EQ(read, !covered) << "byte " << i;
  }
}

/// Damaged members under right hashes, those of the member's own sections included: an error or
/// plans that hold together.
TEST(HostileBundle, HostileMembersAreRefused) {
  const Bytes original = Written(Certified());
  const auto entries = DecodeHeader(original, original.size(), kBundleFileVersion);
  ASSERT_TRUE(entries.ok());
  const uint64_t seed = 12;
  Rng rng(seed);
  int refused = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    Bytes file = original;
    const SectionEntry& member = (*entries)[1 + rng.Below(3)];
    Bytes inner(file.begin() + static_cast<std::ptrdiff_t>(member.offset),
                file.begin() + static_cast<std::ptrdiff_t>(member.offset + member.size));
    const auto sections = DecodeHeader(inner, inner.size());
    ASSERT_TRUE(sections.ok()) << sections.status();
    const bool in_section = rng.Below(8) != 0;
    const SectionEntry& entry = (*sections)[rng.Below(sections->size())];
    for (uint64_t k = 0; k <= rng.Below(4); ++k) {
      const uint64_t place =
          in_section ? entry.offset + rng.Below(entry.size) : rng.Below(inner.size());
      inner[place] = static_cast<std::byte>(rng.Below(256));
    }
    if (in_section) Seal(inner, *sections);
    std::copy(inner.begin(), inner.end(),
              file.begin() + static_cast<std::ptrdiff_t>(member.offset));
    Seal(file, *entries, kBundleFileVersion);
    const auto plans = ParsePlans(file, nullptr);
    if (plans.ok()) continue;
    ++refused;
    ASSERT_THAT(plans.status().code(), testing::AnyOf(absl::StatusCode::kInvalidArgument,
                                                      absl::StatusCode::kUnimplemented))
        << plans.status() << " seed " << seed << " trial " << trial;
  }
  EXPECT_GT(refused, 300);
}

/// The bytes of a bundle of these sections, whatever they are called.
Bytes BundleOf(const std::vector<std::pair<std::string, Bytes>>& sections) {
  std::vector<SectionEntry> entries;
  for (const auto& [name, bytes] : sections)
    entries.push_back({name, 0, bytes.size(), SectionHash(bytes)});
  Bytes file = EncodeHeader(entries, kBundleFileVersion);
  for (size_t k = 0; k < sections.size(); ++k) {
    file.resize(entries[k].offset);
    file.insert(file.end(), sections[k].second.begin(), sections[k].second.end());
  }
  return file;
}

std::string Refusal(const Bytes& file) {
  const auto plans = ParsePlans(file, nullptr);
  EXPECT_EQ(plans.status().code(), absl::StatusCode::kInvalidArgument) << plans.status();
  return std::string(plans.status().message());
}

TEST(HostileBundle, WrongTablesAreRefused) {
  const Bytes file = Written(Certified());
  const auto entries = DecodeHeader(file, file.size(), kBundleFileVersion);
  ASSERT_TRUE(entries.ok());
  std::vector<Bytes> parts;
  for (const SectionEntry& entry : *entries) {
    const auto begin = file.begin() + static_cast<std::ptrdiff_t>(entry.offset);
    parts.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(entry.size));
  }
  EXPECT_TRUE(
      ParsePlans(BundleOf({{"weights", parts[0]}, {"member.0", parts[1]}, {"member.1", parts[2]}}),
                 nullptr)
          .ok());
  EXPECT_THAT(
      Refusal(BundleOf({{"weights", parts[0]}, {"member.0", parts[1]}, {"member.1", parts[1]}})),
      HasSubstr("members 0 and 1 of the bundle have the same input shapes"));
  EXPECT_THAT(
      Refusal(BundleOf({{"weights", parts[0]}, {"member.0", parts[1]}, {"member.2", parts[2]}})),
      HasSubstr("section 'member.2' of a bundle where 'member.1' must be"));
  EXPECT_THAT(Refusal(BundleOf({{"member.0", parts[1]}, {"weights", parts[0]}})),
              HasSubstr("where 'weights' must be"));
  EXPECT_THAT(Refusal(BundleOf({{"weights", parts[0]}})), HasSubstr("a bundle without members"));
  EXPECT_THAT(Refusal(BundleOf({{"weights", {}}, {"member.0", parts[1]}})),
              HasSubstr("outside the weights"));
  EXPECT_THAT(Refusal(BundleOf({{"weights", parts[0]}, {"member.0", file}})),
              HasSubstr("where a single plan is expected"));
  const std::string path = TestPath("own-weights.plan");
  ASSERT_TRUE(WritePlan(SmallPlan(kTestBackend), path).ok());
  EXPECT_THAT(Refusal(BundleOf({{"weights", parts[0]}, {"member.0", FileBytes(path)}})),
              HasSubstr("weights of its own"));
  std::filesystem::remove(path);
}

TEST(HostileBundle, CountsAndPlacesAreChecked) {
  const Bytes file = Written(Certified());
  Bytes many = file;
  const uint32_t count = 0xFFFFFFFF;
  std::memcpy(many.data() + 12, &count, 4);
  EXPECT_THAT(Refusal(many), HasSubstr("4294967295 sections"));
  // Sections over one another, a section beyond the end, one longer than all numbers: the table's
  // hash is right each time.
  const auto with_field = [&](size_t section, size_t field, uint64_t value) {
    Bytes damaged = file;
    std::memcpy(damaged.data() + 48 + section * 64 + 16 + field * 8, &value, 8);
    const Digest hash = SectionHash(std::span(damaged).subspan(48, 4 * 64));
    std::copy(hash.begin(), hash.end(), damaged.begin() + 16);
    return damaged;
  };
  const auto entries = DecodeHeader(file, file.size(), kBundleFileVersion);
  ASSERT_TRUE(entries.ok());
  EXPECT_THAT(Refusal(with_field(2, 0, (*entries)[1].offset)), HasSubstr("section 2 is misplaced"));
  EXPECT_THAT(Refusal(with_field(3, 1, (*entries)[3].size + 64)),
              HasSubstr("section 3 is misplaced or cut off"));
  EXPECT_THAT(Refusal(with_field(1, 1, ~uint64_t{0})),
              HasSubstr("section 1 is misplaced or cut off"));
}

}  // namespace
}  // namespace mendel
