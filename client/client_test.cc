#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "client/bundle.h"
#include "client/exit_codes.h"
#include "client/format.h"
#include "client/machine.h"
#include "client/stages.h"
#include "graph/text.h"

namespace mendel {
namespace {

TEST(ExitCodes, AreTheDocumentedOnes) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(absl::FailedPreconditionError("")), 1);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("")), 2);
  EXPECT_EQ(ExitCodeOf(absl::UnimplementedError("")), 2);
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("")), 3);
  EXPECT_EQ(ExitCodeOf(absl::AbortedError("")), 3);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("")), 4);
  EXPECT_EQ(ExitCodeOf(absl::UnknownError("")), 4);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("")), 5);
  EXPECT_EQ(ExitCodeOf(absl::CancelledError("")), 130);
}

TEST(Format, Durations) {
  EXPECT_DOUBLE_EQ(*ParseDuration("3s"), 3);
  EXPECT_DOUBLE_EQ(*ParseDuration("500ms"), 0.5);
  EXPECT_DOUBLE_EQ(*ParseDuration("2m"), 120);
  EXPECT_DOUBLE_EQ(*ParseDuration("1.5"), 1.5);
  for (const char* bad : {"", "s", "3x", "-1s", "0", "nan", "inf", "1 s"})
    EXPECT_FALSE(ParseDuration(bad).ok()) << bad;
}

TEST(Format, AssignmentsAndNames) {
  EXPECT_EQ(*ParseAssignment("a=b=c"), (std::pair<std::string, std::string>("a", "b=c")));
  EXPECT_FALSE(ParseAssignment("ab").ok());
  EXPECT_FALSE(ParseAssignment("=b").ok());
  EXPECT_EQ(FileNameOf("a/b:0"), "a_b_0");
  EXPECT_EQ(FileNameOf("../x"), "_.._x");
  EXPECT_EQ(FileNameOf(""), "_");
  EXPECT_EQ(Decimals(1.005, 1), "1.0");
  EXPECT_EQ(ByteText(1234567), "1.2 MB");
}

TEST(Format, TablesAreAligned) {
  EXPECT_EQ(IndexText({0, 12}), "[0, 12]");
  EXPECT_EQ(IndexText({0, 12}, ","), "[0,12]");
  EXPECT_EQ(IndexText({}), "[]");
  EXPECT_THAT(
      TableLines({{"value", "ms", "note"}, {"x", "12.5", ""}, {"long name", "3", "late"}}, {1}),
      testing::ElementsAre("value        ms  note", "x          12.5  ", "long name     3  late"));
}

TEST(Bundle, HoldsWhatAReportNeeds) {
  const std::string folder = testing::TempDir() + "/bundle-test-" + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/in.txt") << "graph";
  const auto bundle =
      WriteBundle(folder, {"mendel", "step", "x"}, {folder + "/in.txt", folder + "/none"},
                  absl::InternalError("broken step"));
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  std::ifstream report(*bundle + "/report.txt");
  const std::string text((std::istreambuf_iterator<char>(report)),
                         std::istreambuf_iterator<char>());
  for (const char* part : {"mendel 0", "'step' 'x'", "broken step", "in.txt (5 bytes)"})
    EXPECT_THAT(text, testing::HasSubstr(part));
  EXPECT_TRUE(std::filesystem::exists(*bundle + "/in.txt"));
  std::filesystem::remove_all(folder);
}

TEST(Machine, IsKnown) {
  const Machine machine = ThisMachine();
  EXPECT_GE(machine.cpus, machine.cores);
  EXPECT_GE(machine.cores, 1);
  EXPECT_GT(machine.memory_bytes, 0);
}

TEST(Stages, AreSortedAndKeepAGraphValid) {
  const auto graph = ParseGraph(R"(graph "g" {
    %0 = Input() {name = "x", shape = [2]}
    %1 = Relu(%0)
    %2 = Relu(%0)
    %3 = Add(%1, %2)
    return "y" = %3
  })");
  ASSERT_TRUE(graph.ok());
  for (size_t i = 0; i < AllStages().size(); ++i) {
    if (i > 0) {
      EXPECT_LT(AllStages()[i - 1].name, AllStages()[i].name);
    }
    const auto result = AllStages()[i].run(*graph);
    ASSERT_TRUE(result.ok());
    EXPECT_TRUE(CheckGraph(*result).ok());
    EXPECT_EQ(result->nodes().size(), AllStages()[i].name == "deduplicate" ? 3u : 4u);
  }
}

}  // namespace
}  // namespace mendel
