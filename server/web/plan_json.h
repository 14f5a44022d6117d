// What a stored plan file tells about itself, for people: its mutants, the boxes they mended, and its certificate.
#ifndef MENDEL_SERVER_WEB_PLAN_JSON_H_
#define MENDEL_SERVER_WEB_PLAN_JSON_H_

#include <string>

#include "mendel/v1/plans.pb.h"
#include "server/store/blob_store.h"

namespace mendel::server {

/// {"mutants": [...], "certificate": {...} or null, "numeric": [...]}, or "null" when the file is gone or is no plan. Reads two
/// sections of at most 16 MiB, whose hashes it checks; the file comes from a worker and may hold anything.
std::string PlanDetailsJson(BlobStore& blobs, const v1::Plan& plan);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_WEB_PLAN_JSON_H_
