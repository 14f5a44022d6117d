// One request and one answer of the small HTTP/1.1 server: what is read out of a request's head,
// and what an answer's head says.
#ifndef MENDEL_SERVER_HTTP_MESSAGE_H_
#define MENDEL_SERVER_HTTP_MESSAGE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace mendel::server {

/// A GET, HEAD or POST request. Bodies are not read: a POST with one is refused.
struct HttpRequest {
  bool head = false;  ///< HEAD: nobody reads the body
  bool post = false;
  std::string path;                          ///< as it was sent, before the '?'; nothing is decoded
  std::map<std::string, std::string> query;  ///< decoded; the last of several
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string client;  ///< who asks (client_address.h); the listener fills it in

  /// The header or parameter, or nothing.
  std::string_view Header(const std::string& name) const;
  std::string_view Parameter(const std::string& name) const;
};

/// Reads the head of a request (up to the empty line). InvalidArgument: not HTTP/1, a line that is
/// none, a header that counts once and comes twice, a POST with a body. Unimplemented: another
/// method.
absl::StatusOr<HttpRequest> ParseHttpRequest(std::string_view head);

/// A body that is read piece by piece while it is sent.
class HttpBody {
 public:
  virtual ~HttpBody() = default;
  virtual int64_t size() const = 0;
  /// Reads at most `capacity` bytes at `offset`; 0 or an error ends the connection.
  virtual absl::StatusOr<int64_t> Read(int64_t offset, char* buffer, int64_t capacity) = 0;
};

struct HttpResponse {
  int code = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  /// More than those that every answer has; no line breaks.
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::shared_ptr<HttpBody> stream = nullptr;  ///< instead of `body`
};

/// The answer up to its body. Every answer closes its connection, forbids guessing of its type, and
/// may be shown by no other page.
std::string HttpHead(const HttpResponse& response);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_HTTP_MESSAGE_H_
