// A small HTTP/1.1 server for read-only pages on a port of its own: the Prometheus endpoint. One thread, no keep-alive; a client
// that is slow to ask or to read is dropped after five seconds, and more connections than allowed wait in the kernel's queue.
#ifndef MENDEL_SERVER_HTTP_LISTENER_H_
#define MENDEL_SERVER_HTTP_LISTENER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace mendel::server {

struct HttpResponse {
  int code = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

/// Answers GET (and HEAD) of a path with its query. Runs on the listener's thread.
using HttpHandler = std::function<HttpResponse(const std::string& path)>;

class HttpListener {
 public:
  virtual ~HttpListener() = default;
  virtual int port() const = 0;
};

/// `address` is host:port with a numeric host or "localhost"; port 0 chooses one.
absl::StatusOr<std::unique_ptr<HttpListener>> StartHttpListener(const std::string& address, int64_t max_connections,
                                                                HttpHandler handler);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_HTTP_LISTENER_H_
