// Which client an address stands for, in limits that count before anybody has said who he is.
#ifndef MENDEL_SERVER_CLIENT_ADDRESS_H_
#define MENDEL_SERVER_CLIENT_ADDRESS_H_

#include <sys/socket.h>

#include <string>
#include <string_view>

namespace mendel::server {

/// "192.0.2.7" (within version 6 too), or "2001:db8:1:2::/64": who has one address of version 6 has all of its network. Empty for
/// unix sockets, whose clients their owner chose.
std::string ClientOf(const sockaddr_storage& address);

/// The same of gRPC's ServerContext::peer(): "ipv4:192.0.2.7:1234", "ipv6:%5B::1%5D:1234", "unix:...".
std::string ClientOfPeer(std::string_view peer);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_CLIENT_ADDRESS_H_
