// Blobs to a server, resumably.
#ifndef MENDEL_CLIENT_SERVICE_UPLOAD_H_
#define MENDEL_CLIENT_SERVICE_UPLOAD_H_

#include <string>

#include "absl/status/status.h"
#include "client/service/channel.h"
#include "client/service/retry.h"
#include "client/service/service_options.h"
#include "mendel/v1/models.pb.h"

namespace mendel {

/// The upload's name for a blob: the same for the same blob, user and machine, so that a client
/// that was killed finds its own unfinished upload again without having written anything down.
std::string UploadUuid(const v1::Digest& digest);

/// Sends the file at `path`, whose digest it is, from the size that the server has committed.
/// `progress` is reported the blob's bytes in place. When another client keeps writing under that
/// name (Aborted, several times), the upload goes on under its own.
absl::Status UploadBlob(Channel& channel, Retrier& retrier, const std::string& path,
                        const v1::Digest& digest, const TransferFunction& progress);

}  // namespace mendel

#endif  // MENDEL_CLIENT_SERVICE_UPLOAD_H_
