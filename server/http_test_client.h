// A client of the small HTTP server, for tests.
#ifndef MENDEL_SERVER_HTTP_TEST_CLIENT_H_
#define MENDEL_SERVER_HTTP_TEST_CLIENT_H_

#include <string>

namespace mendel::server {

/// A socket connected to the port on 127.0.0.1, for the caller to close. Fails the test when nobody
/// listens.
int Connect(int port);
/// Sends the bytes and returns all that comes until the server closes.
std::string Fetch(int port, const std::string& request);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_HTTP_TEST_CLIENT_H_
