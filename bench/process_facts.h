// Resource use of a running server: memory and CPU, from /proc and its Prometheus endpoint.
#ifndef MENDEL_BENCH_PROCESS_FACTS_H_
#define MENDEL_BENCH_PROCESS_FACTS_H_

#include <cstdint>

namespace mendel {

/// A field is 0 where it cannot be read.
struct ProcessFacts {
  int64_t resident_kib = 0;
  int64_t anonymous_kib = 0;
  int64_t threads = 0;
  double cpu_seconds = 0;  ///< cpu seconds of the process itself, without its children
  double heap_bytes = 0;   ///< allocated and not freed (metric process_heap_bytes)
};

ProcessFacts FactsOf(int pid, int metrics_port);

}  // namespace mendel

#endif  // MENDEL_BENCH_PROCESS_FACTS_H_
