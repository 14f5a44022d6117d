// All options of the server in one table. The flags of `mendel serve`, MENDEL_* variables
// and the keys of the configuration file are made from it; docs/limits.md is checked against
// it.
#ifndef MENDEL_SERVER_OPTIONS_H_
#define MENDEL_SERVER_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/jobs/job_runner.h"

namespace mendel::server {

struct ServerOptions {
  std::string listen = "127.0.0.1:8470";
  bool insecure_bind = false;
  std::string data = "mendel-data";
  std::string store;
  std::string devices;
  std::string metrics_listen = "127.0.0.1:8471";
  std::string http_port = "auto";
  std::string http_address = "127.0.0.1";
  std::string log_level = "info";
  std::string trace_file;

  bool grpc_use_ssl = false;
  bool grpc_use_ssl_mutual = false;
  std::string grpc_server_cert;
  std::string grpc_server_key;
  std::string grpc_root_cert;
  int64_t certificate_refresh_seconds = 10;
  std::string auth_file;
  std::string anonymous_role = "auto";
  std::string certificate_role = "submitter";
  std::string debug_role = "admin";

  int64_t drain_seconds = 30;
  int64_t finish_seconds = 0;  ///< running jobs may go on for so long after SIGTERM
  int64_t max_message_bytes = int64_t{8} << 20;
  int64_t max_metadata_bytes = 16 << 10;
  int64_t max_queued_rpcs = 1024;
  int64_t rpc_threads = 8;
  int64_t max_connections = 4096;
  int64_t max_connections_per_address = 1024;
  int64_t max_failed_logins_per_minute_per_address = 60;
  int64_t max_streams_per_connection = 256;
  int64_t max_rpcs_per_second_per_client = 2000;
  int64_t max_watchers = 2048;
  int64_t max_watchers_per_client = 512;
  int64_t max_transfers = 16;
  int64_t max_transfers_per_client = 8;
  int64_t max_chunk_bytes = int64_t{2} << 20;
  int64_t transfer_idle_seconds = 60;
  int64_t min_transfer_bytes_per_second = 1024;
  int64_t rpc_memory_bytes = int64_t{48} << 20;
  int64_t keepalive_seconds = 60;
  int64_t handshake_seconds = 10;
  int64_t max_http_connections = 16;

  int64_t max_blob_bytes = int64_t{64} << 30;
  int64_t max_store_bytes = 0;
  int64_t max_stored_bytes_per_client = 0;
  int64_t min_free_bytes = int64_t{1} << 30;
  int64_t target_bytes = 0;
  int64_t max_model_files = 10'000;
  int64_t max_model_bytes = int64_t{64} << 30;
  int64_t max_path_bytes = 1024;
  int64_t max_digests = 10'000;
  int64_t max_page_size = 1000;
  int64_t max_request_id_bytes = 128;
  int64_t max_pending_jobs = 10'000;
  int64_t max_pending_jobs_per_client = 2500;
  int64_t retain_jobs_hours = 720;
  int64_t retain_blobs_hours = 24;

  RunnerOptions runner;  ///< its numbers are options too
  int64_t concurrent_jobs = 1;
  int64_t max_running_jobs_per_client = 0;
  int64_t max_attempts = 5;
  int64_t lease_seconds = 30;
};

struct OptionSpec {
  std::string name;  ///< the flag without "--"
  std::string help;
  std::variant<std::string*, bool*, int64_t*> value;
  bool limit = false;   ///< stands in docs/limits.md
  bool bytes = false;   ///< takes KiB, MiB, GiB, TiB
  int64_t minimum = 0;  ///< of numbers
};

/// The table, pointing into `options`.
std::vector<OptionSpec> OptionTable(ServerOptions& options);

/// The URL with `***` for its password, in its user part or its query; other texts are unchanged.
std::string WithoutPassword(std::string url);
/// "8 MiB", "30", "false" or the text without a URL's password, as the documentation prints it.
std::string ValueText(const OptionSpec& option);
/// InvalidArgument names the option.
absl::Status SetOption(const OptionSpec& option, std::string_view text);
/// MENDEL_MAX_BLOB_BYTES for max-blob-bytes.
std::string VariableName(const OptionSpec& option);

/// "key = value" lines; '#' begins a comment. InvalidArgument names the line.
absl::StatusOr<std::map<std::string, std::string>> ParseConfig(std::string_view text);

/// Flags override variables, variables the file, the file the defaults. Unknown keys are errors
/// in the file; unknown MENDEL_ variables are ignored. `getenv` returns nullopt for unset
/// variables.
absl::StatusOr<ServerOptions> ResolveOptions(
    const std::map<std::string, std::string>& flags,
    const std::function<std::optional<std::string>(const std::string&)>& getenv,
    const std::map<std::string, std::string>& file);

/// True if only this machine can reach the address ("host:port", "unix:path").
bool IsLocalAddress(std::string_view address);
std::vector<std::string> ListenAddresses(const ServerOptions& options);

/// Address of the web page, "host:port"; empty: there is no page. `must`: the server does not start
/// when it cannot listen there (with "auto" the page is left out).
struct PageAddress {
  std::string address;
  bool must = true;
};
PageAddress PageAddressOf(const ServerOptions& options);

/// Checks that involve several values: open addresses without TLS, TLS without files, unknown
/// roles. InvalidArgument.
absl::Status CheckOptions(const ServerOptions& options);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_OPTIONS_H_
