// What a job's spec names.
#ifndef MENDEL_SERVER_STORE_SPEC_NAMES_H_
#define MENDEL_SERVER_STORE_SPEC_NAMES_H_

#include <string>
#include <vector>

#include "mendel/v1/jobs.pb.h"
#include "mendel/v1/plans.pb.h"

namespace mendel::server {

/// `models/...` that a job's spec names.
std::vector<std::string> ModelsOf(const v1::JobSpec& spec);
/// What the worker of a search must have ("cuda", "cuda:sm_90"); empty: nothing that not all have, as for other kinds of work.
std::string DeviceOf(const v1::JobSpec& spec);
/// The same of a refit of `plan`, whose numeric gate runs on what the plan is for. An unmeasured plan was gated without its device,
/// and is so again (runtime/offline_device.h names such devices "cuda:sm_90").
std::string RefitDeviceOf(const v1::Plan& plan);
/// `plans/...` likewise.
std::vector<std::string> PlansOf(const v1::JobSpec& spec);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_SPEC_NAMES_H_
