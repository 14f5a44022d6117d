// Authentication of callers. The auth file names callers, one a line:
//
//   # name      roles       credential
//   pipeline    submitter   sha256:<64 hexadecimal digits: the hash of a token>
//   dashboard   reader      cert:<common name or alternative name of a client certificate>
//   vision-ci   vision:submitter,shared:reader   sha256:...
//
// ParseGrants (server/rpc/roles.h) reads the roles: by project, or of the project "default".
// Tokens come as "authorization: Bearer TOKEN". The file is read again when it changes; one that
// cannot be read or has a bad line changes nothing and is logged.
#ifndef MENDEL_SERVER_RPC_AUTHENTICATOR_H_
#define MENDEL_SERVER_RPC_AUTHENTICATOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/log.h"
#include "server/options.h"
#include "server/rpc/roles.h"

namespace mendel::server {

/// Credentials of a call.
struct Credentials {
  std::string authorization;  ///< the header; empty: none
  std::vector<std::string>
      certificate_names;     ///< of a client certificate that the TLS handshake checked
  std::string address = {};  ///< server/client_address.h; empty: a unix socket, or this process
  std::string trace_parent = {};  ///< the header of the call
};

/// The parsed file: credential ("sha256:..." or "cert:...") to principal.
using AuthTable = std::map<std::string, Principal>;
/// InvalidArgument names the line (never its content).
absl::StatusOr<AuthTable> ParseAuthFile(std::string_view text);

/// Identifies callers by the tokens of the authentication file. Thread-safe.
class Authenticator {
 public:
  /// Reads the file. The logger outlives it.
  static absl::StatusOr<std::unique_ptr<Authenticator>> Create(const ServerOptions& options,
                                                               Logger& log);
  /// Unauthenticated for a token that is not known. Callers without credentials are "anonymous".
  absl::StatusOr<Principal> Identify(const Credentials& credentials) const;
  /// The names of all projects in the file, sorted. The first is "", the project "default".
  std::vector<std::string> Projects() const;
  /// Reads the file again if it changed since the last check.
  void Refresh();

 private:
  Authenticator(const ServerOptions& options, Logger& log);
  absl::Status Load();

  const std::string path_;
  Logger& log_;
  Principal anonymous_;
  Grants certificate_grants_;
  std::string fingerprint_;  ///< fingerprint of the file that was read last, good or bad
  mutable std::mutex mutex_;
  AuthTable table_;
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_AUTHENTICATOR_H_
