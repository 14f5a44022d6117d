// The machine, as the operating system reports it.
#ifndef MENDEL_CLIENT_MACHINE_H_
#define MENDEL_CLIENT_MACHINE_H_

#include <cstdint>
#include <string>

namespace mendel {

struct Machine {
  std::string cpu;           ///< model name; empty when unknown
  int cpus = 0;              ///< logical CPUs this process may run on
  int cores = 0;             ///< physical cores among them
  int64_t memory_bytes = 0;  ///< physical memory
  int64_t memory_limit = 0;  ///< memory limit of the control group; 0: none
};

Machine ThisMachine();

}  // namespace mendel

#endif  // MENDEL_CLIENT_MACHINE_H_
