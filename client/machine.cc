#include "client/machine.h"

#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "base/status.h"

namespace mendel {
namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

int64_t GroupLimit() {
  const std::string text = FirstLine("/sys/fs/cgroup/memory.max");
  return text.empty() || text == "max" ? 0 : std::strtoll(text.c_str(), nullptr, 10);
}

}  // namespace

Machine ThisMachine() {
  Machine machine;
  machine.cpu = CpuName();
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    std::set<std::string> cores;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &set)) continue;
      ++machine.cpus;
      const std::string topology = Cat("/sys/devices/system/cpu/cpu", cpu, "/topology/");
      const std::string siblings = FirstLine(topology + "thread_siblings_list");
      cores.insert(siblings.empty() ? std::to_string(cpu) : siblings);
    }
    machine.cores = static_cast<int>(cores.size());
  }
  machine.memory_bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  machine.memory_limit = GroupLimit();
  return machine;
}

}  // namespace mendel
