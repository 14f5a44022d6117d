// CPU topology: the CPUs that a process may use, and the number of their cores.
#ifndef MENDEL_RUNTIME_CPU_TOPOLOGY_H_
#define MENDEL_RUNTIME_CPU_TOPOLOGY_H_

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace mendel {

/// CPU numbers from a list in the kernel's format, e.g. "0,4-5"; nullopt when it is not one.
std::optional<std::set<int>> ParseCpuList(std::string_view text);

/// The first CPU of each core among `cpus`. Those in one
/// `folder`/cpuN/topology/thread_siblings_list share a core; a CPU without such a file is a core.
std::vector<int> OnePerCore(const std::set<int>& cpus, const std::string& folder);
/// The number of cores of these CPUs, at least 1.
int CountCores(const std::set<int>& cpus, const std::string& folder);

/// Cores that the process may run on (its affinity mask, e.g. by taskset), at least 1. Linux's
/// sysfs.
int PhysicalCores();

/// A CPU for each of `threads` (at least 1) threads, by name. "none": no choice (empty). "cores": a
/// core for each, the first of those that the process may run on. A list as ParseCpuList takes: its
/// first CPUs in ascending order. InvalidArgument: neither a name nor a list; a CPU that the
/// process may not run on; fewer CPUs or cores than threads.
absl::StatusOr<std::vector<int>> ChooseCpus(std::string_view affinity, int threads);

}  // namespace mendel

#endif  // MENDEL_RUNTIME_CPU_TOPOLOGY_H_
