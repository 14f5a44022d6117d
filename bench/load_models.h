// Small models and the jobs on them, for service_load.
#ifndef MENDEL_BENCH_LOAD_MODELS_H_
#define MENDEL_BENCH_LOAD_MODELS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/service/service_client.h"
#include "mendel/v1/jobs.pb.h"

namespace mendel {

/// Names on the server of a network, of an equivalent one, and of one that differs in a
/// weight.
struct ModelTrio {
  std::string net;
  std::string rewritten;
  std::string wrong;
};

/// Writes `count` trios below `folder` and uploads them.
absl::StatusOr<std::vector<ModelTrio>> UploadTrios(ServiceClient& client, const std::string& folder,
                                                   int count);

/// Job number `index`: three of four compare a pair (every other one a wrong pair), the fourth is a
/// search. No two are the same work.
v1::JobSpec LoadSpec(int index, const std::vector<ModelTrio>& trios);

/// Empty if the job has ended as LoadSpec's work must; else an error message.
std::string WrongEnd(const v1::Job& job, int index);

}  // namespace mendel

#endif  // MENDEL_BENCH_LOAD_MODELS_H_
