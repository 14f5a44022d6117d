// How many cores a process may really use.
#ifndef MENDEL_RUNTIME_CPU_TOPOLOGY_H_
#define MENDEL_RUNTIME_CPU_TOPOLOGY_H_

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace mendel {

/// Numbers in a list as the kernel writes them, e.g. "0,4-5"; nullopt when it is none.
std::optional<std::set<int>> ParseCpuList(std::string_view text);

/// Cores among `cpus`: CPUs that share one, by `folder`/cpuN/topology/thread_siblings_list, count once; a CPU without such a file
/// is a core.
int CountCores(const std::set<int>& cpus, const std::string& folder);

/// Cores that the process may run on (its affinity mask, e.g. by taskset), at least 1. Linux's sysfs.
int PhysicalCores();

}  // namespace mendel

#endif  // MENDEL_RUNTIME_CPU_TOPOLOGY_H_
