// A service's client over a channel of the caller's: for tests.
#ifndef MENDEL_CLIENT_SERVICE_MAKE_SERVICE_CLIENT_H_
#define MENDEL_CLIENT_SERVICE_MAKE_SERVICE_CLIENT_H_

#include <memory>

#include "client/service/channel.h"
#include "client/service/retry.h"
#include "client/service/service_client.h"

namespace mendel {

/// `sleep` and `report` as Retrier's, `project` as ServiceOptions'.
std::unique_ptr<ServiceClient> MakeServiceClient(std::unique_ptr<Channel> channel,
                                                 const RetryPolicy& policy, Retrier::Sleep sleep,
                                                 Retrier::Report report, std::string project = "");

}  // namespace mendel

#endif  // MENDEL_CLIENT_SERVICE_MAKE_SERVICE_CLIENT_H_
