// The contents of a stored plan file, for people: its mutants, the boxes they corrected, and its
// certificate.
#ifndef MENDEL_SERVER_WEB_PLAN_JSON_H_
#define MENDEL_SERVER_WEB_PLAN_JSON_H_

#include <string>

#include "mendel/v1/plans.pb.h"
#include "server/store/blob_store.h"

namespace mendel::server {

/// {"mutants": [...], "certificate": {...} or null, "numeric": [...], "candidates": [...] (those
/// that lost), "search": {...}}, or "null" when the file is missing or is no plan. Reads two
/// sections of at most 16 MiB and checks their hashes. The file comes from a worker and may contain
/// anything.
std::string PlanDetailsJson(BlobStore& blobs, const v1::Plan& plan);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_WEB_PLAN_JSON_H_
