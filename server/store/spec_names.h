// What a job's spec names.
#ifndef MENDEL_SERVER_STORE_SPEC_NAMES_H_
#define MENDEL_SERVER_STORE_SPEC_NAMES_H_

#include <string>
#include <vector>

#include "mendel/v1/jobs.pb.h"

namespace mendel::server {

/// `models/...` that a job's spec names.
std::vector<std::string> ModelsOf(const v1::JobSpec& spec);
/// What its worker must have ("cuda", "cuda:sm_90"); empty: nothing that not all have.
std::string DeviceOf(const v1::JobSpec& spec);
/// `plans/...` likewise.
std::vector<std::string> PlansOf(const v1::JobSpec& spec);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_SPEC_NAMES_H_
