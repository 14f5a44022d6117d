// The client behind an address, for limits that apply before authentication.
#ifndef MENDEL_SERVER_CLIENT_ADDRESS_H_
#define MENDEL_SERVER_CLIENT_ADDRESS_H_

#include <sys/socket.h>

#include <string>
#include <string_view>

namespace mendel::server {

/// "192.0.2.7" (also mapped into version 6), or "2001:db8:1:2::/64": a client with one address of
/// version 6 has its whole network. Empty for unix sockets, whose clients their owner chose.
std::string ClientOf(const sockaddr_storage& address);

/// The same for gRPC's ServerContext::peer(): "ipv4:192.0.2.7:1234", "ipv6:%5B::1%5D:1234",
/// "unix:...".
std::string ClientOfPeer(std::string_view peer);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_CLIENT_ADDRESS_H_
