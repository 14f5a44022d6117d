#include "server/rpc/credentials.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/ssl.h>

#include "base/status.h"
#include "server/rpc/rpc_server.h"

namespace mendel::server {

std::shared_ptr<grpc::ServerCredentials> MakeCredentials(const ServerOptions& options,
                                                         const std::string& address) {
  if (!options.grpc_use_ssl || address.rfind("unix:", 0) == 0)
    return grpc::InsecureServerCredentials();
  const std::string root = options.grpc_use_ssl_mutual ? options.grpc_root_cert : "";
  auto provider = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      options.grpc_server_key, options.grpc_server_cert, root,
      static_cast<unsigned>(options.certificate_refresh_seconds));
  grpc::experimental::TlsServerCredentialsOptions tls(provider);
  tls.watch_identity_key_cert_pairs();
  if (options.grpc_use_ssl_mutual) {
    tls.watch_root_certs();
    tls.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(tls);
}

absl::Status CheckCertificates(const ServerOptions& options) {
  if (!options.grpc_use_ssl) return absl::OkStatus();
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_server_method()),
                                                                  &SSL_CTX_free);
  if (SSL_CTX_use_certificate_chain_file(context.get(), options.grpc_server_cert.c_str()) != 1) {
    return InvalidInput("grpc-server-cert: ", options.grpc_server_cert,
                        " is not a readable PEM certificate chain");
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), options.grpc_server_key.c_str(),
                                  SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return InvalidInput("grpc-server-key: ", options.grpc_server_key,
                        " is not a readable PEM key that fits the certificate");
  }
  if (options.grpc_use_ssl_mutual &&
      SSL_CTX_load_verify_locations(context.get(), options.grpc_root_cert.c_str(), nullptr) != 1) {
    return InvalidInput("grpc-root-cert: ", options.grpc_root_cert,
                        " is not a readable PEM file of certificates");
  }
  return absl::OkStatus();
}

}  // namespace mendel::server
