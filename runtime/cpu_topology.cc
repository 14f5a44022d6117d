#include "runtime/cpu_topology.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>

namespace mendel {

std::optional<std::set<int>> ParseCpuList(std::string_view text) {
  constexpr int kMost = 1 << 16;
  std::set<int> cpus;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at != end && (end[-1] == '\n' || end[-1] == ' ')) --end;
  const auto number = [&](int& value) {
    const auto [next, error] = std::from_chars(at, end, value);
    at = next;
    return error == std::errc() && value >= 0 && value < kMost;
  };
  while (at != end) {
    int first = 0;
    if (!number(first)) return std::nullopt;
    int last = first;
    if (at != end && *at == '-') {
      ++at;
      if (!number(last) || last < first) return std::nullopt;
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.insert(cpu);
    if (at == end) break;
    if (*at++ != ',' || at == end) return std::nullopt;
  }
  return cpus;
}

int CountCores(const std::set<int>& cpus, const std::string& folder) {
  std::set<int> counted;  // the first CPU of each core
  for (const int cpu : cpus) {
    std::ifstream file(folder + "/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    std::string line;
    std::getline(file, line);
    const auto siblings = ParseCpuList(line);
    counted.insert(siblings.has_value() && !siblings->empty() ? *siblings->begin() : cpu);
  }
  return std::max(1, static_cast<int>(counted.size()));
}

int PhysicalCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  std::set<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.insert(cpu);
  }
  return CountCores(cpus, "/sys/devices/system/cpu");
}

}  // namespace mendel
