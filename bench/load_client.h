// A client of the benchmark service_load. It submits jobs, keeps `window` of them open, and watches
// each until it ends.
#ifndef MENDEL_BENCH_LOAD_CLIENT_H_
#define MENDEL_BENCH_LOAD_CLIENT_H_

#include <map>
#include <string>
#include <vector>

#include "bench/load_models.h"
#include "client/service/service_client.h"

namespace mendel {

struct LoadShare {
  int first = 0;  ///< numbers of the jobs: first, first + 1, ...
  int count = 0;
  int window = 8;  ///< jobs open at once
  bool watches =
      false;  ///< True: the client calls WatchJob. False: it calls GetJob and ListJobs in turn.
  double stuck_seconds =
      600;  ///< If no job ends for this many seconds, the client reports that its jobs are stuck.
};

struct LoadResult {
  std::map<std::string, std::vector<double>> seconds;  ///< seconds of calls, by name
  std::map<std::string, int> acknowledged;             ///< job name -> number
  std::vector<std::string> errors;
};

/// Blocks until all jobs have ended, or the first error.
LoadResult RunLoadClient(ServiceClient& client, const std::vector<ModelTrio>& trios,
                         const LoadShare& share);

}  // namespace mendel

#endif  // MENDEL_BENCH_LOAD_CLIENT_H_
