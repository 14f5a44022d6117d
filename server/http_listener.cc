#include "server/http_listener.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "server/client_address.h"
#include "server/clock.h"

namespace mendel::server {
namespace {

constexpr size_t kMaxRequestBytes = 16 << 10;
constexpr size_t kPieceBytes = 64 << 10;
constexpr int64_t kTimeoutMicros = 5'000'000;
constexpr int kTickMillis = 200;

struct Connection {
  int socket = -1;
  std::string client;
  int64_t until_micros = 0;
  std::string request;
  std::string out;  ///< what is being sent: the head with the body, or a piece of the stream
  size_t sent = 0;  ///< of `out`
  size_t since_renewal = 0;
  std::shared_ptr<HttpBody> stream;
  int64_t offset = 0;  ///< in the stream
};

void Begin(Connection& connection, HttpResponse response, bool with_body) {
  connection.out = HttpHead(response);
  if (!with_body) return;
  connection.out += response.body;
  connection.stream = std::move(response.stream);
}

/// The handler of a listener, and whether it takes POST requests.
struct Answerer {
  HttpHandler handler;
  bool takes_post = false;
};

void Answer(Connection& connection, const Answerer& answerer) {
  absl::StatusOr<HttpRequest> request = ParseHttpRequest(connection.request);
  if (request.ok() && request->post && !answerer.takes_post)
    request = absl::UnimplementedError("only GET and HEAD");
  if (request.ok()) request->client = connection.client;
  if (request.ok()) return Begin(connection, answerer.handler(*request), !request->head);
  const bool method = absl::IsUnimplemented(request.status());
  HttpResponse refusal{method ? 405 : 400, "text/plain; charset=utf-8",
                       Cat(request.status().message(), "\n")};
  if (method) refusal.headers = {{"Allow", answerer.takes_post ? "GET, HEAD, POST" : "GET, HEAD"}};
  Begin(connection, std::move(refusal), true);
}

/// Reads what has come; false when the connection has ended.
bool Receive(Connection& connection, const Answerer& answerer) {
  char buffer[2048];
  while (connection.out.empty()) {
    const ssize_t got = recv(connection.socket, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    connection.request.append(buffer, static_cast<size_t>(got));
    if (connection.request.find("\r\n\r\n") != std::string::npos) {
      Answer(connection, answerer);
      connection.until_micros = SystemClock().SteadyMicros() + kTimeoutMicros;
    } else if (connection.request.size() > kMaxRequestBytes) {
      Begin(connection, {400, "text/plain; charset=utf-8", "request too long\n"}, true);
    }
  }
  return true;
}

/// The next piece of the stream; false at its end or when it cannot be read: then the length that
/// was reported reports the client.
bool Refill(Connection& connection) {
  if (connection.stream == nullptr || connection.offset >= connection.stream->size()) return false;
  connection.out.resize(kPieceBytes);
  const absl::StatusOr<int64_t> got =
      connection.stream->Read(connection.offset, connection.out.data(), kPieceBytes);
  if (!got.ok() || *got <= 0) return false;
  connection.out.resize(static_cast<size_t>(*got));
  connection.offset += *got;
  connection.sent = 0;
  return true;
}

/// Reads and writes what goes without blocking, a piece at most: others have their turn. False when
/// the connection has ended.
bool Advance(Connection& connection, const Answerer& answerer) {
  if (connection.out.empty() && !Receive(connection, answerer)) return false;
  if (connection.out.empty()) return true;
  if (connection.sent == connection.out.size() && !Refill(connection)) {
    shutdown(connection.socket, SHUT_WR);
    return false;
  }
  const size_t left = std::min(connection.out.size() - connection.sent, kPieceBytes);
  const ssize_t put = send(connection.socket, connection.out.data() + connection.sent, left,
                           MSG_DONTWAIT | MSG_NOSIGNAL);
  if (put < 0) return errno == EAGAIN || errno == EINTR;
  connection.sent += static_cast<size_t>(put);
  connection.since_renewal += static_cast<size_t>(put);
  if (connection.since_renewal >= kPieceBytes) {
    connection.since_renewal = 0;
    connection.until_micros = SystemClock().SteadyMicros() + kTimeoutMicros;
  }
  return true;
}

class Listener final : public HttpListener {
 public:
  Listener(int socket, int port, int64_t max_connections, Answerer answerer)
      : socket_(socket),
        port_(port),
        max_connections_(static_cast<size_t>(max_connections)),
        answerer_(std::move(answerer)),
        thread_([this] { Run(); }) {}
  ~Listener() override {
    stopping_ = true;
    thread_.join();
    for (Connection& connection : connections_) close(connection.socket);
    close(socket_);
  }
  int port() const override { return port_; }

 private:
  void Run() {
    while (!stopping_) {
      std::vector<pollfd> events;
      for (const Connection& connection : connections_) {
        const int what = connection.out.empty() ? POLLIN : POLLOUT;
        events.push_back({connection.socket, static_cast<int16_t>(what), 0});
      }
      if (connections_.size() < max_connections_) events.push_back({socket_, POLLIN, 0});
      poll(events.data(), events.size(), kTickMillis);
      if (connections_.size() < max_connections_ && (events.back().revents & POLLIN) != 0) Accept();
      const int64_t now = SystemClock().SteadyMicros();
      connections_.remove_if([&](Connection& connection) {
        if (now < connection.until_micros && Advance(connection, answerer_)) return false;
        close(connection.socket);
        return true;
      });
    }
  }
  void Accept() {
    sockaddr_storage peer{};
    socklen_t length = sizeof(peer);
    const int socket =
        accept4(socket_, reinterpret_cast<sockaddr*>(&peer), &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) return;
    connections_.push_back({socket,
                            ClientOf(peer),
                            SystemClock().SteadyMicros() + kTimeoutMicros,
                            {},
                            {},
                            0,
                            0,
                            {},
                            0});
  }

  const int socket_;
  const int port_;
  const size_t max_connections_;
  const Answerer answerer_;
  std::list<Connection> connections_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

/// The port that the socket got.
int PortOf(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  char port[16] = "0";
  getnameinfo(reinterpret_cast<sockaddr*>(&address), length, nullptr, 0, port, sizeof(port),
              NI_NUMERICSERV);
  return std::atoi(port);
}

absl::StatusOr<int> Bind(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return InvalidInput("'", address, "' is not host:port");
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.empty() ? nullptr : host.c_str(), address.c_str() + colon + 1, &hints,
                  &found) != 0 ||
      found == nullptr) {
    return InvalidInput("'", address, "' is not an address of this machine");
  }
  const int result = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  setsockopt(result, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const bool bound = result >= 0 && bind(result, found->ai_addr, found->ai_addrlen) == 0 &&
                     listen(result, SOMAXCONN) == 0;
  const int error = errno;
  freeaddrinfo(found);
  if (bound) return result;
  if (result >= 0) close(result);
  return absl::UnavailableError(Cat("cannot listen on ", address, ": ", std::strerror(error)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpListener>> StartHttpListener(const std::string& address,
                                                                int64_t max_connections,
                                                                HttpHandler handler,
                                                                bool takes_post) {
  MENDEL_ASSIGN_OR_RETURN(const int socket, Bind(address));
  return std::unique_ptr<HttpListener>(std::make_unique<Listener>(
      socket, PortOf(socket), max_connections, Answerer{std::move(handler), takes_post}));
}

}  // namespace mendel::server
