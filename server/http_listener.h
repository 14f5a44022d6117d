// A small HTTP/1.1 server on a port of its own: the Prometheus endpoint and the
// web page. One thread, no keep-alive. A client that takes more than five seconds to ask, or for 64
// KiB of the answer, is dropped; more connections than allowed wait in the kernel's queue.
#ifndef MENDEL_SERVER_HTTP_LISTENER_H_
#define MENDEL_SERVER_HTTP_LISTENER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/http_message.h"

namespace mendel::server {

/// Answers a request. Runs on the listener's thread.
using HttpHandler = std::function<HttpResponse(const HttpRequest& request)>;

class HttpListener {
 public:
  virtual ~HttpListener() = default;
  virtual int port() const = 0;
};

/// `address` is host:port with a numeric host or "localhost"; port 0 chooses one. The handler gets
/// POST requests where `takes_post` is set; they are refused elsewhere.
absl::StatusOr<std::unique_ptr<HttpListener>> StartHttpListener(const std::string& address,
                                                                int64_t max_connections,
                                                                HttpHandler handler,
                                                                bool takes_post = false);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_HTTP_LISTENER_H_
