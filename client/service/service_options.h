// Service options: the address of a server and the way to talk to it.
#ifndef MENDEL_CLIENT_SERVICE_SERVICE_OPTIONS_H_
#define MENDEL_CLIENT_SERVICE_SERVICE_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string>

namespace mendel {

/// Bytes in place so far, of all bytes of a transfer.
using TransferFunction = std::function<void(int64_t done, int64_t total)>;

/// The TLS members are named as in Triton's clients. Files are PEM.
struct ServiceOptions {
  /// "host:port", "unix:/path/of/socket", or any other name that gRPC resolves.
  std::string address = "localhost:8470";
  bool use_ssl = false;
  /// Certificates to trust; empty: the system's.
  std::string root_certifications_file;
  /// The client's own, for mutual TLS: both or none.
  std::string private_key_file;
  std::string certificate_chain_file;
  /// Bearer token: the first line of this file, else `token`. It is sent unencrypted to this
  /// machine only.
  std::string token_file;
  std::string token;
  /// Project of uploads, and of lists; empty: "default". Names state theirs
  /// (`projects/x/jobs/...`).
  std::string project;
  /// Longest time for one unary call.
  double call_seconds = 30;
  /// Time without progress after which the client gives up an unreachable or full server. 0: no
  /// retries.
  double retry_seconds = 60;
  /// Called with a message before every retry. May be empty.
  std::function<void(const std::string& message)> on_retry;
};

}  // namespace mendel

#endif  // MENDEL_CLIENT_SERVICE_SERVICE_OPTIONS_H_
