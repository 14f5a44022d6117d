#include "runtime/plan_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/plan.h"
#include "runtime/test_backend.h"
#include "runtime/test_plan.h"

namespace mendel {
namespace {

using testing::HasSubstr;

/// A corrected plan with texts for its node in both layouts.
Plan PlanWithKernels() {
  Plan plan = CorrectedPlan(kTestBackend);
  const int32_t patch = plan.graph.outputs()[0].value.node;
  plan.kernels = {{"cuda", false, "mend_4.cu", patch, "Patch corrected", "// text of the kernel\n"},
                  {"cuda", true, "mend_4.cu", patch, "Patch corrected", "// the other layout's\n"}};
  return plan;
}

class PlanKernels : public testing::Test {
 protected:
  PlanKernels() : path_(testing::TempDir() + "/" + std::to_string(::getpid()) + "-kernels.plan") {}
  ~PlanKernels() override { std::filesystem::remove(path_); }

  std::string Written(const Plan& plan) const {
    EXPECT_TRUE(WritePlan(plan, path_).ok());
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// The plan's bytes with `from` replaced by `to` (of one length) in section `name`, and every
  /// hash of the container made right.
  static std::string Changed(std::string bytes, const std::string& name, const std::string& from,
                             const std::string& to) {
    const auto all = std::as_bytes(std::span(bytes.data(), bytes.size()));
    auto entries = DecodeHeader(all, bytes.size());
    EXPECT_TRUE(entries.ok()) << entries.status();
    for (SectionEntry& entry : *entries) {
      if (entry.name == name) {
        const size_t at = bytes.find(from, entry.offset);
        EXPECT_LT(at, entry.offset + entry.size) << from;
        bytes.replace(at, from.size(), to);
      }
      entry.hash = SectionHash(all.subspan(entry.offset, entry.size));
    }
    const std::vector<std::byte> header = EncodeHeader(*entries);
    std::transform(header.begin(), header.end(), bytes.begin(),
                   [](std::byte b) { return static_cast<char>(b); });
    return bytes;
  }

  absl::StatusOr<Plan> Read(const std::string& bytes) const {
    return ParsePlan(std::as_bytes(std::span(bytes.data(), bytes.size())), nullptr);
  }

  std::string path_;
};

TEST_F(PlanKernels, RoundTripAndSameBytes) {
  const Plan plan = PlanWithKernels();
  const std::string bytes = Written(plan);
  EXPECT_EQ(bytes, Written(plan));
  const auto read = ReadPlan(path_);
  ASSERT_TRUE(read.ok()) << read.status();
  const auto header = ReadPlanHeader(path_);
  ASSERT_TRUE(header.ok()) << header.status();
  for (const std::vector<PlanKernel>& kernels : {read->kernels, header->kernels}) {
    ASSERT_EQ(kernels.size(), 2u);
    for (size_t k = 0; k < 2; ++k) {
      EXPECT_EQ(kernels[k].text, plan.kernels[k].text);
      EXPECT_EQ(kernels[k].file_name, plan.kernels[k].file_name);
      EXPECT_EQ(kernels[k].channels_last, plan.kernels[k].channels_last);
      EXPECT_EQ(kernels[k].node, plan.kernels[k].node);
      EXPECT_EQ(kernels[k].mutant, plan.kernels[k].mutant);
      EXPECT_EQ(kernels[k].language, "cuda");
    }
  }
}

TEST_F(PlanKernels, PlansWithoutTheSectionAreRead) {
  Plan plan = PlanWithKernels();
  const std::string with = Written(plan);
  plan.kernels.clear();
  const std::string without = Written(plan);
  EXPECT_EQ(with.find("mend_4.cu") == std::string::npos, false);
  EXPECT_EQ(without.find("mend_4.cu"), std::string::npos);
  const auto read = Read(without);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->kernels.empty());
}

TEST_F(PlanKernels, AChangedTextIsRefusedByItsHash) {
  const std::string bytes = Written(PlanWithKernels());
  // One character, under right hashes of the file, the table and the section.
  const std::string changed = Changed(bytes, "kernels", "text of the", "text of xhe");
  EXPECT_THAT(std::string(Read(changed).status().message()),
              HasSubstr("the text of kernel mend_4.cu does not have its hash"));
  std::ofstream(path_, std::ios::binary) << changed;
  EXPECT_EQ(ReadPlan(path_).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(ReadPlanHeader(path_).status().message()),
              HasSubstr("does not have its hash"));
  EXPECT_TRUE(Read(Changed(bytes, "kernels", "text of the", "text of the")).ok())
      << "the test's own sealing";
}

TEST_F(PlanKernels, NamesThatLeadElsewhereAreRefused) {
  const std::string bytes = Written(PlanWithKernels());
  for (const char* name : {"/tmp/x.cu", "../../.cu", ".mend_4cu", "mend 4.cu"}) {
    const auto read = Read(Changed(bytes, "kernels", "mend_4.cu", name));
    EXPECT_THAT(std::string(read.status().message()), HasSubstr("a kernel's file name")) << name;
  }
}

TEST_F(PlanKernels, BoxesOutsideTheTensorAreRefused) {
  const std::string bytes = Written(PlanWithKernels());
  ASSERT_NE(bytes.find("[0:1, 0:4, 3:4, 0:8]"), std::string::npos)
      << "how the graph's text says boxes";
  for (const char* box : {"[0:1, 0:4, 8:9, 0:8]", "[0:1, 0:5, 3:4, 0:8]", "[0:1, 0:4, 5:3, 0:8]"}) {
    for (const char* section : {"graph", "baseline"}) {
      const auto read = Read(Changed(bytes, section, "[0:1, 0:4, 3:4, 0:8]", box));
      EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument)
          << box << " in " << section;
      EXPECT_THAT(std::string(read.status().message()), HasSubstr(section)) << box;
    }
  }
}

TEST_F(PlanKernels, WhatFitsNoNodeIsRefused) {
  Plan plan = PlanWithKernels();
  for (const int32_t node : {-1, 0, 99}) {
    plan.kernels[0].node = node;
    EXPECT_THAT(std::string(WritePlan(plan, path_).message()), HasSubstr("corrects nothing"))
        << node;
  }
  plan = PlanWithKernels();
  plan.kernels[1].channels_last = false;
  EXPECT_THAT(std::string(WritePlan(plan, path_).message()), HasSubstr("two kernels are named"));
}

TEST_F(PlanKernels, AnotherVersionIsReportedWithBoth) {
  std::string bytes = SerializeKernels(PlanWithKernels().kernels);
  ASSERT_EQ(bytes[0], 8) << "field 1 of the message";
  bytes[1] = 9;
  const std::string message(ParseKernels(bytes).status().message());
  EXPECT_THAT(message, HasSubstr("version 9"));
  EXPECT_THAT(message, HasSubstr("version 1"));
  EXPECT_EQ(ParseKernels("no message").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mendel
