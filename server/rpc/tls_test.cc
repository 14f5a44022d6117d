// TLS, mutual TLS, and certificates that are replaced while the server runs.
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <thread>

#include "base/status.h"
#include "mendel/v1/jobs.grpc.pb.h"
#include "server/rpc/test_server.h"

namespace mendel::server {
namespace {

struct Identity {
  EVP_PKEY* key = nullptr;
  X509* certificate = nullptr;
  Identity() = default;
  Identity(const Identity&) = delete;
  Identity& operator=(const Identity&) = delete;
  ~Identity() {
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
};

/// Signed by `issuer`, or by itself; it expires after these seconds.
std::unique_ptr<Identity> MakeIdentity(const std::string& name, const Identity* issuer,
                                       int64_t seconds = 3600) {
  auto result = std::make_unique<Identity>();
  result->key = EVP_EC_gen("P-256");
  result->certificate = X509_new();
  X509* certificate = result->certificate;
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), std::rand() + 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), seconds);
  X509_set_pubkey(certificate, result->key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(
      certificate, X509_get_subject_name(issuer == nullptr ? certificate : issuer->certificate));
  const std::string value = issuer == nullptr ? "critical,CA:TRUE" : "DNS:" + name;
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(
      nullptr, nullptr, issuer == nullptr ? NID_basic_constraints : NID_subject_alt_name,
      value.c_str());
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
  X509_sign(certificate, issuer == nullptr ? result->key : issuer->key, EVP_sha256());
  return result;
}

std::string CertificateText(const Identity& identity) {
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, identity.certificate);
  char* data = nullptr;
  const int64_t size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<size_t>(size));
  BIO_free(bio);
  return text;
}

std::string KeyText(const Identity& identity) {
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(bio, identity.key, nullptr, nullptr, 0, nullptr, nullptr);
  char* data = nullptr;
  const int64_t size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<size_t>(size));
  BIO_free(bio);
  return text;
}

void Replace(const std::string& path, const std::string& text) {
  std::ofstream(path + ".new") << text;
  ASSERT_EQ(std::rename((path + ".new").c_str(), path.c_str()), 0);
}

class Tls : public ::testing::Test {
 protected:
  void StartServer(bool mutual) {
    server_ = std::make_unique<TestServer>([&](ServerOptions& options) {
      const std::string base = options.listen.substr(5);
      options.grpc_use_ssl = true;
      options.grpc_use_ssl_mutual = mutual;
      options.certificate_refresh_seconds = 1;
      options.listen = "127.0.0.1:0";
      options.grpc_server_cert = certificate_ = base + ".cert";
      options.grpc_server_key = key_ = base + ".key";
      options.grpc_root_cert = base + ".root";
      options.auth_file = base + ".auth";
      Replace(options.auth_file, "alice admin cert:alice\n");
      Replace(options.grpc_root_cert, CertificateText(*authority_));
      WriteServer(*authority_);
    });
  }
  void WriteServer(const Identity& authority, int64_t seconds = 3600) {
    const auto identity = MakeIdentity("mendel.test", &authority, seconds);
    Replace(key_, KeyText(*identity));
    Replace(certificate_, CertificateText(*identity));
  }
  /// Status of a call of the client, who trusts `authority`; null: shows no certificate.
  grpc::StatusCode List(const Identity& authority, const Identity* client) {
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = CertificateText(authority);
    if (client != nullptr) {
      tls.pem_private_key = KeyText(*client);
      tls.pem_cert_chain = CertificateText(*client);
    }
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("mendel.test");
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    v1::Jobs::Stub jobs(grpc::CreateCustomChannel(Cat("127.0.0.1:", server_->rpc().ports()[0]),
                                                  grpc::SslCredentials(tls), arguments));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    v1::ListJobsResponse response;
    return jobs.ListJobs(&context, v1::ListJobsRequest(), &response).error_code();
  }

  /// The code once it is another than `old`, or that after a while.
  grpc::StatusCode AwaitOther(grpc::StatusCode old, const Identity& authority,
                              const Identity* client) {
    grpc::StatusCode code = old;
    for (int attempt = 0; attempt < 600 && code == old; ++attempt) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      code = List(authority, client);
    }
    return code;
  }

  const std::unique_ptr<Identity> authority_ = MakeIdentity("authority", nullptr);
  std::string certificate_;
  std::string key_;
  std::unique_ptr<TestServer> server_;
};

TEST_F(Tls, MutualReportsWhoCalls) {
  StartServer(true);
  const auto alice = MakeIdentity("alice", authority_.get());
  const auto stranger = MakeIdentity("authority", nullptr);
  const auto mallory = MakeIdentity("alice", stranger.get());
  EXPECT_EQ(List(*authority_, alice.get()), grpc::OK);
  EXPECT_EQ(List(*authority_, nullptr), grpc::UNAVAILABLE);
  EXPECT_EQ(List(*authority_, mallory.get()), grpc::UNAVAILABLE);
  EXPECT_EQ(List(*stranger, alice.get()), grpc::UNAVAILABLE);
}

TEST_F(Tls, CertificatesAreReplacedWithoutRestart) {
  StartServer(false);
  const auto next = MakeIdentity("next", nullptr);
  EXPECT_EQ(List(*authority_, nullptr),
            grpc::UNAUTHENTICATED);  // the connection stands; there is no token
  EXPECT_EQ(List(*next, nullptr), grpc::UNAVAILABLE);
  WriteServer(*next);
  EXPECT_EQ(AwaitOther(grpc::UNAVAILABLE, *next, nullptr), grpc::UNAUTHENTICATED);
}

TEST_F(Tls, ExpiredCertificatesAreRefusedUntilTheyAreReplaced) {
  StartServer(true);
  constexpr int64_t kExpired = -30;
  const auto alice = MakeIdentity("alice", authority_.get());
  const auto late = MakeIdentity("alice", authority_.get(), kExpired);
  EXPECT_EQ(List(*authority_, alice.get()), grpc::OK);
  EXPECT_EQ(List(*authority_, late.get()), grpc::UNAVAILABLE);
  WriteServer(*authority_, kExpired);
  EXPECT_EQ(AwaitOther(grpc::OK, *authority_, alice.get()), grpc::UNAVAILABLE)
      << "clients see that it has expired";
  WriteServer(*authority_);
  EXPECT_EQ(AwaitOther(grpc::UNAVAILABLE, *authority_, alice.get()), grpc::OK);
}

}  // namespace
}  // namespace mendel::server
