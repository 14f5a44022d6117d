// Blobs from a server into files, resumably and all or nothing.
#ifndef MENDEL_CLIENT_SERVICE_DOWNLOAD_H_
#define MENDEL_CLIENT_SERVICE_DOWNLOAD_H_

#include <string>

#include "absl/status/status.h"
#include "client/service/channel.h"
#include "client/service/retry.h"
#include "client/service/upload.h"

namespace mendel {

/// Reads blob `blobs/{sha256}/{size}` into `path`. The bytes collect in `path`.{first 12
/// digits}.part beside it, which a later call goes on with; once size and hash are right it is
/// synced and renamed. DataLoss when they are not (the part is removed), Aborted when another
/// process downloads the same, ResourceExhausted on a full disk.
absl::Status DownloadBlob(Channel& channel, Retrier& retrier, const std::string& blob,
                          const std::string& path, const TransferFunction& progress);

}  // namespace mendel

#endif  // MENDEL_CLIENT_SERVICE_DOWNLOAD_H_
