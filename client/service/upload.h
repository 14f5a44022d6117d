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

/// `projects/{project}/` and the rest; the rest alone where the project is empty.
std::string NameIn(const std::string& project, const std::string& rest);

/// Sends the file at `path` to the project (empty: "default"), whose digest it is, from the size
/// that the server has committed. `progress` is reported the blob's bytes in place. When another
/// client keeps writing under that name (Aborted, several times), the upload goes on under its own.
absl::Status UploadBlob(Channel& channel, Retrier& retrier, const std::string& path,
                        const v1::Digest& digest, const TransferFunction& progress,
                        const std::string& project = "");

}  // namespace mendel

#endif  // MENDEL_CLIENT_SERVICE_UPLOAD_H_
