// One of the clients of service_load: submits jobs, keeps some of them open, looks at them until
// they have ended.
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
  int window = 8;              ///< jobs open at once
  bool watches = false;        ///< WatchJob, else GetJob and ListJobs in turn
  double stuck_seconds = 600;  ///< without the end of any job: they are stuck
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
