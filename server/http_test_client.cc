#include "server/http_test_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace mendel::server {

int Connect(int port) {
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return client;
}

std::string Fetch(int port, const std::string& request) {
  const int client = Connect(port);
  EXPECT_EQ(send(client, request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string answer;
  char buffer[4096];
  for (ssize_t got = 0; (got = recv(client, buffer, sizeof(buffer), 0)) > 0;)
    answer.append(buffer, static_cast<size_t>(got));
  close(client);
  return answer;
}

}  // namespace mendel::server
