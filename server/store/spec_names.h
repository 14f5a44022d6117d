// Names in a job's spec: models, plans and devices.
#ifndef MENDEL_SERVER_STORE_SPEC_NAMES_H_
#define MENDEL_SERVER_STORE_SPEC_NAMES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mendel/v1/jobs.pb.h"
#include "mendel/v1/plans.pb.h"

namespace mendel::server {

/// `models/...` that a job's spec names.
std::vector<std::string> ModelsOf(const v1::JobSpec& spec);
/// The device that a search's worker must have ("cuda", "cuda:sm_90"); empty: any worker will do,
/// as for other kinds of work.
std::string DeviceOf(const v1::JobSpec& spec);
/// The same for a rebind of `plan`, whose numeric gate runs on the plan's device. An unmeasured
/// plan passed its gate without its device, and the rebind does so again (runtime/offline_device.h
/// names such devices "cuda:sm_90").
std::string RebindDeviceOf(const v1::Plan& plan);
/// `plans/...` likewise.
std::vector<std::string> PlansOf(const v1::JobSpec& spec);
/// The project of everything that the spec names (server/store/project_name.h). InvalidArgument
/// when there are two.
absl::StatusOr<std::string> ProjectOfSpec(const v1::JobSpec& spec);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_SPEC_NAMES_H_
