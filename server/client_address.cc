#include "server/client_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace mendel::server {
namespace {

constexpr std::string_view kVersion4 = "ipv4:";
constexpr std::string_view kVersion6 = "ipv6:";
constexpr size_t kNetworkBytes = 8;

std::string TextOf(int family, const void* bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return inet_ntop(family, bytes, text.data(), text.size()) == nullptr ? "" : text.data();
}

std::string ClientOfVersion6(in6_addr address) {
  if (IN6_IS_ADDR_V4MAPPED(&address)) return TextOf(AF_INET, address.s6_addr + 12);
  if (IN6_IS_ADDR_LOOPBACK(&address)) return "::1";
  std::fill(address.s6_addr + kNetworkBytes, address.s6_addr + sizeof(address.s6_addr), uint8_t{0});
  return TextOf(AF_INET6, &address) + "/64";
}

}  // namespace

std::string ClientOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET)
    return TextOf(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr);
  if (address.ss_family != AF_INET6) return "";
  return ClientOfVersion6(reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

std::string ClientOfPeer(std::string_view peer) {
  std::string host(peer.substr(0, peer.rfind(':')));
  if (host.starts_with(kVersion4)) return host.substr(kVersion4.size());
  if (!host.starts_with(kVersion6)) return "";
  host.erase(0, kVersion6.size());
  for (const std::string_view bracket : {"%5B", "%5D", "[", "]"}) {
    if (const size_t at = host.find(bracket); at != std::string::npos)
      host.erase(at, bracket.size());
  }
  // The rest is the interface of a link-local address.
  host = host.substr(0, host.find('%'));
  in6_addr address{};
  return inet_pton(AF_INET6, host.c_str(), &address) == 1 ? ClientOfVersion6(address) : "";
}

}  // namespace mendel::server
