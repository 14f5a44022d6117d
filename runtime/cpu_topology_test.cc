#include "runtime/cpu_topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace mendel {
namespace {

using testing::HasSubstr;

TEST(CpuTopology, ParsesKernelLists) {
  EXPECT_EQ(ParseCpuList("0,4-6\n"), (std::set<int>{0, 4, 5, 6}));
  EXPECT_EQ(ParseCpuList("3"), std::set<int>{3});
  EXPECT_EQ(ParseCpuList(""), std::set<int>{});
  for (const char* bad : {"a", "1,", "2-1", "1;2", "-1", "1-", "99999999"})
    EXPECT_FALSE(ParseCpuList(bad).has_value()) << bad;
}

TEST(CpuTopology, SiblingsCountOnce) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "cpu_topology_test";
  std::filesystem::remove_all(folder);
  const auto write = [&](int cpu, const char* siblings) {
    const auto place = folder / ("cpu" + std::to_string(cpu)) / "topology";
    std::filesystem::create_directories(place);
    std::ofstream(place / "thread_siblings_list") << siblings << "\n";
  };
  write(0, "0,2");
  write(2, "0,2");
  write(1, "1,3");
  write(3, "1,3");
  EXPECT_EQ(CountCores({0, 1, 2, 3}, folder.string()), 2);
  EXPECT_EQ(CountCores({2}, folder.string()), 1);        // the mask leaves one thread of a core
  EXPECT_EQ(CountCores({2, 3, 7}, folder.string()), 3);  // no file: a core of its own
  EXPECT_EQ(CountCores({}, folder.string()), 1);
  EXPECT_EQ(OnePerCore({0, 1, 2, 3}, folder.string()), (std::vector<int>{0, 1}));
  EXPECT_EQ(OnePerCore({2, 3, 7}, folder.string()), (std::vector<int>{2, 3, 7}));
}

TEST(CpuTopology, ThisMachineHasACore) { EXPECT_GE(PhysicalCores(), 1); }

TEST(CpuTopology, AffinityNamesACpuAThread) {
  EXPECT_EQ(*ChooseCpus("none", 4), std::vector<int>());
  const std::vector<int> cores = *ChooseCpus("cores", PhysicalCores());
  EXPECT_EQ(cores.size(), static_cast<size_t>(PhysicalCores()));
  EXPECT_EQ(*ChooseCpus("cores", 1), std::vector<int>{cores[0]});
  EXPECT_EQ(*ChooseCpus(std::to_string(cores.back()), 1), std::vector<int>{cores.back()});
  std::string all;
  for (const int cpu : cores) all += (all.empty() ? "" : ",") + std::to_string(cpu);
  EXPECT_EQ(*ChooseCpus(all, static_cast<int>(cores.size())), cores);
  EXPECT_EQ(*ChooseCpus(all, 1), std::vector<int>{cores[0]});
}

TEST(CpuTopology, BadAffinitiesAreNamed) {
  const auto refusal = [](const std::string& affinity, int threads) {
    const absl::Status status = ChooseCpus(affinity, threads).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << affinity;
    return std::string(status.message());
  };
  for (const char* bad : {"", "all", "0,", "1-0", "0 1", "-1", "0x1"})
    EXPECT_THAT(refusal(bad, 1), HasSubstr("none, cores or a list"));
  EXPECT_THAT(refusal("65000", 1), HasSubstr("may not run on CPU 65000"));
  EXPECT_THAT(refusal("cores", 5000), HasSubstr("5000 threads need as many cores"));
  EXPECT_THAT(refusal(std::to_string((*ChooseCpus("cores", 1))[0]), 2),
              HasSubstr("2 threads need as many CPUs, and there are 1"));
}

}  // namespace
}  // namespace mendel
