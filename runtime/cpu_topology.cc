#include "runtime/cpu_topology.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>

#include "base/status.h"

namespace mendel {
namespace {

constexpr char kCpuFolder[] = "/sys/devices/system/cpu";

/// The process's affinity mask; empty when the system does not report.
std::set<int> AllowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::set<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.insert(cpu);
  }
  return cpus;
}

}  // namespace

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

std::vector<int> OnePerCore(const std::set<int>& cpus, const std::string& folder) {
  std::set<int> cores;  // each by the first of its CPUs, allowed or not
  std::vector<int> firsts;
  for (const int cpu : cpus) {
    std::ifstream file(folder + "/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    std::string line;
    std::getline(file, line);
    const auto siblings = ParseCpuList(line);
    if (cores.insert(siblings.has_value() && !siblings->empty() ? *siblings->begin() : cpu).second)
      firsts.push_back(cpu);
  }
  return firsts;
}

int CountCores(const std::set<int>& cpus, const std::string& folder) {
  return std::max(1, static_cast<int>(OnePerCore(cpus, folder).size()));
}

int PhysicalCores() { return CountCores(AllowedCpus(), kCpuFolder); }

absl::StatusOr<std::vector<int>> ChooseCpus(std::string_view affinity, int threads) {
  if (affinity == "none") return std::vector<int>();
  const std::set<int> allowed = AllowedCpus();
  std::vector<int> cpus;
  if (affinity == "cores") {
    cpus = OnePerCore(allowed, kCpuFolder);
  } else {
    const auto list = ParseCpuList(affinity);
    if (!list.has_value() || list->empty()) {
      return InvalidInput("affinity is none, cores or a list of CPUs such as 0,2-3, not '",
                          affinity, "'");
    }
    for (const int cpu : *list) {
      if (allowed.count(cpu) == 0)
        return InvalidInput("affinity ", affinity, ": this process may not run on CPU ", cpu);
    }
    cpus.assign(list->begin(), list->end());
  }
  if (cpus.size() < static_cast<size_t>(threads)) {
    return InvalidInput("affinity ", affinity, ": ", threads, " threads need as many ",
                        affinity == "cores" ? "cores" : "CPUs", ", and there are ", cpus.size());
  }
  cpus.resize(static_cast<size_t>(threads));
  return cpus;
}

}  // namespace mendel
