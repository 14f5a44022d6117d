#include "runtime/cpu_topology.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace mendel {
namespace {

TEST(CpuTopology, ParsesKernelLists) {
  EXPECT_EQ(ParseCpuList("0,4-6\n"), (std::set<int>{0, 4, 5, 6}));
  EXPECT_EQ(ParseCpuList("3"), std::set<int>{3});
  EXPECT_EQ(ParseCpuList(""), std::set<int>{});
  for (const char* bad : {"a", "1,", "2-1", "1;2", "-1", "1-", "99999999"}) EXPECT_FALSE(ParseCpuList(bad).has_value()) << bad;
}

TEST(CpuTopology, SiblingsCountOnce) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "cpu_topology_test";
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
}

TEST(CpuTopology, ThisMachineHasACore) { EXPECT_GE(PhysicalCores(), 1); }

}  // namespace
}  // namespace mendel
