#include "server/rpc/acceptor.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/status.h"
#include "server/client_address.h"
#include "server/rpc/open_connections.h"

namespace mendel::server {
namespace {

/// Descriptors reserved for files, databases and workers.
constexpr int64_t kReserved = 256;
constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kAbstract = "unix-abstract:";

struct Listening {
  int socket = -1;
  size_t address = 0;
};

absl::Status CannotListen(const std::string& address) {
  return absl::UnavailableError(Cat("cannot listen on ", address, ": ", std::strerror(errno)));
}

/// A listening socket; -1 with errno. `alone`: on version 6 only.
int Listen(const sockaddr* address, socklen_t length, bool alone) {
  const int result = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  if (result < 0) return -1;
  if (address->sa_family != AF_UNIX) setsockopt(result, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address->sa_family == AF_INET6 && alone)
    setsockopt(result, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  if (bind(result, address, length) == 0 && listen(result, SOMAXCONN) == 0) return result;
  const int error = errno;
  close(result);
  errno = error;
  return -1;
}

int PortOf(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  if (address.ss_family == AF_INET)
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  if (address.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return 1;
}

void SetPort(sockaddr& address, int port) {
  const auto number = htons(static_cast<uint16_t>(port));
  if (address.sa_family == AF_INET) reinterpret_cast<sockaddr_in&>(address).sin_port = number;
  if (address.sa_family == AF_INET6) reinterpret_cast<sockaddr_in6&>(address).sin6_port = number;
}

/// Number of open descriptors, from the lowest free one.
int64_t OpenDescriptors() {
  const int probe = eventfd(0, EFD_CLOEXEC);
  if (probe >= 0) close(probe);
  return std::max(probe, 0);
}

/// Raises the process's limit of descriptors as far as allowed, so that connections and files fit.
/// Returns the new limit.
int64_t RaiseDescriptorLimit(int64_t max_connections) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 2 * kReserved;
  const auto wanted = static_cast<rlim_t>(max_connections + 2 * kReserved);
  if (limit.rlim_cur < wanted) {
    limit.rlim_cur = std::min(limit.rlim_max, wanted);
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
  }
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, 1U << 30U));
}

class RealAcceptor final : public Acceptor {
 public:
  RealAcceptor(std::vector<AcceptorAddress> addresses, int64_t per_address,
               std::function<void()> refused)
      : addresses_(std::move(addresses)),
        refused_(std::move(refused)),
        wake_(eventfd(0, EFD_CLOEXEC)),
        open_(per_address) {}
  ~RealAcceptor() override {
    Stop();
    for (const Listening& one : listening_) close(one.socket);
    close(wake_);
  }

  absl::Status Start(int64_t max_connections) {
    for (size_t i = 0; i < addresses_.size(); ++i) {
      const std::string& address = addresses_[i].address;
      const bool local = address.starts_with(kUnix) || address.starts_with(kAbstract);
      MENDEL_RETURN_IF_ERROR(local ? ListenUnix(i) : ListenHost(i));
      ports_.push_back(PortOf(listening_.back().socket));
    }
    const int64_t most = RaiseDescriptorLimit(max_connections);
    const int64_t room = std::max(most - kReserved, most / 2);
    most_ = static_cast<int>(std::min(OpenDescriptors() + max_connections, room));
    thread_ = std::thread([this] { Run(); });
    return absl::OkStatus();
  }

  void Stop() override {
    stopping_ = true;
    const uint64_t one = 1;
    if (write(wake_, &one, sizeof(one)) == sizeof(one) && thread_.joinable()) thread_.join();
    for (const std::string& path : std::exchange(paths_, {})) unlink(path.c_str());
  }
  const std::vector<int>& ports() const override { return ports_; }

 private:
  absl::Status ListenUnix(size_t index) {
    const std::string& address = addresses_[index].address;
    const bool abstract = address.starts_with(kAbstract);
    const std::string path = address.substr(abstract ? kAbstract.size() : kUnix.size());
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    if (path.empty() || path.size() + 1 >= sizeof(name.sun_path)) {
      return InvalidInput("listen: '", address, "': a socket's path has 1 to ",
                          sizeof(name.sun_path) - 2, " bytes");
    }
    std::copy(path.begin(), path.end(), name.sun_path + (abstract ? 1 : 0));
    // The socket is left from a killed predecessor.
    struct stat status {};
    if (!abstract && lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode))
      unlink(path.c_str());
    const size_t length = offsetof(sockaddr_un, sun_path) + path.size() + 1;
    listening_.push_back(
        {Listen(reinterpret_cast<const sockaddr*>(&name), static_cast<socklen_t>(length), false),
         index});
    if (listening_.back().socket < 0) return CannotListen(address);
    if (!abstract) paths_.push_back(path);
    return absl::OkStatus();
  }

  absl::Status ListenHost(size_t index) {
    const std::string& address = addresses_[index].address;
    const size_t colon = address.rfind(':');
    if (colon == std::string::npos) return InvalidInput("listen: '", address, "' is not host:port");
    std::string host = address.substr(0, colon);
    const std::string port = address.substr(colon + 1);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']')
      host = host.substr(1, host.size() - 2);
    // Every address of the machine, also of version 6 if it has one.
    const bool every = host.empty() || host == "0.0.0.0";
    if (every && ListenAll(index, "::", port).ok()) return absl::OkStatus();
    return ListenAll(index, every ? "0.0.0.0" : host, port);
  }

  absl::Status ListenAll(size_t index, const std::string& host, const std::string& service) {
    const std::string& address = addresses_[index].address;
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* first = nullptr;
    if (getaddrinfo(host.c_str(), service.c_str(), &hints, &first) != 0 || first == nullptr) {
      return InvalidInput("listen: '", address, "' is not an address of this machine");
    }
    const size_t before = listening_.size();
    // Port 0 is chosen once: the host's other addresses get the same.
    int port = 0;
    for (addrinfo* one = first; one != nullptr; one = one->ai_next) {
      if (port != 0) SetPort(*one->ai_addr, port);
      const int socket = Listen(one->ai_addr, one->ai_addrlen, first->ai_next != nullptr);
      if (socket < 0) continue;  // "localhost" may name a version 6 that this machine lacks
      listening_.push_back({socket, index});
      port = PortOf(socket);
    }
    const absl::Status status =
        listening_.size() > before ? absl::OkStatus() : CannotListen(address);
    freeaddrinfo(first);
    return status;
  }

  void Run() {
    std::vector<pollfd> events = {{wake_, POLLIN, 0}};
    for (const Listening& one : listening_) events.push_back({one.socket, POLLIN, 0});
    while (!stopping_) {
      poll(events.data(), events.size(), -1);
      for (size_t i = 0; i < listening_.size() && !stopping_; ++i) {
        if (events[i + 1].revents != 0) Accept(listening_[i]);
      }
    }
  }

  void Accept(const Listening& from) {
    sockaddr_storage peer{};
    socklen_t length = sizeof(peer);
    const int socket = accept4(from.socket, reinterpret_cast<sockaddr*>(&peer), &length,
                               SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) {
      // The whole system is out of descriptors or memory; other errors are gone at the next poll.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
      return;
    }
    // A new descriptor is the lowest free one: its number shows how many are open.
    if (socket >= most_ || !open_.Add(ClientOf(peer), socket)) {
      close(socket);
      refused_();
      return;
    }
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    addresses_[from.address].take(socket);
  }

  const std::vector<AcceptorAddress> addresses_;
  const std::function<void()> refused_;
  const int wake_;
  std::vector<Listening> listening_;
  std::vector<std::string> paths_;
  std::vector<int> ports_;
  int most_ = 0;
  OpenConnections open_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Acceptor>> StartAcceptor(std::vector<AcceptorAddress> addresses,
                                                        const AcceptorLimits& limits,
                                                        std::function<void()> refused) {
  auto acceptor = std::make_unique<RealAcceptor>(
      std::move(addresses), limits.connections_per_address, std::move(refused));
  MENDEL_RETURN_IF_ERROR(acceptor->Start(limits.connections));
  return std::unique_ptr<Acceptor>(std::move(acceptor));
}

}  // namespace mendel::server
