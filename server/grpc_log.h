// Lines of gRPC's own log, in the format of the server's.
#ifndef MENDEL_SERVER_GRPC_LOG_H_
#define MENDEL_SERVER_GRPC_LOG_H_

#include "server/log.h"

namespace mendel::server {

/// While it lives, what gRPC reports in this process becomes lines of the log ("grpc", with
/// `message` and `place`); before and after it, gRPC writes to standard error itself. One at a
/// time; made before gRPC's first use. GRPC_VERBOSITY chooses what gRPC reports (errors by
/// default).
class GrpcLog {
 public:
  explicit GrpcLog(Logger& log);
  ~GrpcLog();
  GrpcLog(const GrpcLog&) = delete;
  GrpcLog& operator=(const GrpcLog&) = delete;
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_GRPC_LOG_H_
