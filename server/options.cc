#include "server/options.h"

#include <algorithm>
#include <cctype>

#include "base/status.h"
#include "server/rpc/roles.h"

namespace mendel::server {
namespace {

OptionSpec Setting(std::string name, std::string help,
                   std::variant<std::string*, bool*, int64_t*> value) {
  return {std::move(name), std::move(help), value};
}

OptionSpec Limit(std::string name, std::string help, int64_t* value, int64_t minimum = 1) {
  return {std::move(name), std::move(help), value, true, false, minimum};
}

OptionSpec Bytes(std::string name, std::string help, int64_t* value, int64_t minimum = 1) {
  return {std::move(name), std::move(help), value, true, true, minimum};
}

std::vector<OptionSpec> Settings(ServerOptions& o) {
  return {
      Setting("listen", "Addresses, separated by commas: host:port or unix:/path", &o.listen),
      Setting("insecure-bind", "Allow addresses beyond this machine without TLS", &o.insecure_bind),
      Setting("data", "Folder of the store", &o.data),
      Setting("work",
              "Folder of running jobs and of measurements, on a disk of this machine; empty: work "
              "in the data folder",
              &o.runner.work_folder),
      Setting("store", "Other store than the one in the data folder (postgresql://...)", &o.store),
      Setting("metrics-listen", "Address of the Prometheus endpoint; empty: none",
              &o.metrics_listen),
      Setting("http-port",
              "Port of the web page: auto (8472 where every address of listen is loopback), none, "
              "or a number",
              &o.http_port),
      Setting("http-address", "Numeric address that the web page is served on", &o.http_address),
      Setting("log-level", "debug, info, warning or error", &o.log_level),
      Setting("trace-file", "File that spans are appended to as OTLP/JSON; empty: none",
              &o.trace_file),
      Setting("grpc-use-ssl", "Serve TLS", &o.grpc_use_ssl),
      Setting("grpc-use-ssl-mutual", "Demand client certificates too", &o.grpc_use_ssl_mutual),
      Setting("grpc-server-cert", "PEM file of the server's certificate chain",
              &o.grpc_server_cert),
      Setting("grpc-server-key", "PEM file of the server's key", &o.grpc_server_key),
      Setting("grpc-root-cert", "PEM file of the authorities that sign client certificates",
              &o.grpc_root_cert),
      Setting("auth-file", "File of names, roles and hashed tokens", &o.auth_file),
      Setting("anonymous-role",
              "Role of callers without token and certificate: auto, none, reader, submitter, admin",
              &o.anonymous_role),
      Setting("certificate-role", "Role of client certificates that the auth file does not name",
              &o.certificate_role),
      Setting("debug-role", "Role that reflection and channelz need", &o.debug_role),
      Setting("executable", "The mendel command that runs jobs; empty: this one",
              &o.runner.executable),
      Setting("devices",
              "Devices of other servers of the store that jobs may request, separated by commas",
              &o.devices),
      Setting("sandbox", "auto, bubblewrap or rlimits", &o.runner.sandbox),
  };
}

std::vector<OptionSpec> TransportLimits(ServerOptions& o) {
  return {
      Limit("certificate-refresh-seconds", "Seconds between looks at certificate and auth files",
            &o.certificate_refresh_seconds),
      Limit("drain-seconds", "Seconds that a stopping server waits for jobs and calls",
            &o.drain_seconds, 0),
      Limit("finish-seconds",
            "Seconds that running jobs may go on after SIGTERM before they go back to the queue",
            &o.finish_seconds, 0),
      Bytes("max-message-bytes", "Longest message in either direction", &o.max_message_bytes,
            64 << 10),
      Bytes("max-metadata-bytes", "Longest headers of a call", &o.max_metadata_bytes, 1 << 10),
      Limit("max-queued-rpcs", "Calls that may wait for a thread", &o.max_queued_rpcs),
      Limit("rpc-threads", "Threads that answer calls", &o.rpc_threads),
      Limit("max-connections", "Connections at once", &o.max_connections),
      Limit("max-connections-per-address", "The same from one client address",
            &o.max_connections_per_address),
      Limit("max-failed-logins-per-minute-per-address",
            "Unknown tokens a minute from one client address",
            &o.max_failed_logins_per_minute_per_address),
      Limit("max-streams-per-connection", "Calls at once on one connection",
            &o.max_streams_per_connection),
      Limit("max-rpcs-per-second-per-client", "Calls a second of one client",
            &o.max_rpcs_per_second_per_client),
      Limit("max-watchers", "Calls that wait for jobs", &o.max_watchers),
      Limit("max-watchers-per-client", "The same of one client", &o.max_watchers_per_client),
      Limit("max-transfers", "Uploads and downloads at once", &o.max_transfers),
      Limit("max-transfers-per-client", "The same of one client", &o.max_transfers_per_client),
      Bytes("max-chunk-bytes", "Most bytes in one message of an upload", &o.max_chunk_bytes,
            1 << 10),
      Limit("transfer-idle-seconds", "Seconds after which a transfer that does not move is ended",
            &o.transfer_idle_seconds),
      Bytes("min-transfer-bytes-per-second",
            "Slower transfers are ended; 0: those that do not move at all",
            &o.min_transfer_bytes_per_second, 0),
      Bytes("rpc-memory-bytes", "Memory that gRPC may take for messages under way",
            &o.rpc_memory_bytes, 16 << 20),
      Limit("keepalive-seconds", "Seconds of silence after which a connection is probed",
            &o.keepalive_seconds),
      Limit("handshake-seconds", "Seconds that a new connection has for its handshake",
            &o.handshake_seconds),
      Limit("max-http-connections", "Connections to the Prometheus endpoint, and to the web page",
            &o.max_http_connections),
  };
}

std::vector<OptionSpec> WorkLimits(ServerOptions& o) {
  return {
      Bytes("max-blob-bytes", "Longest file", &o.max_blob_bytes),
      Bytes("max-store-bytes", "Bytes of all files; 0: what the disk holds", &o.max_store_bytes, 0),
      Bytes("max-stored-bytes-per-client",
            "Bytes of the files that one client uploaded; 0: no quota",
            &o.max_stored_bytes_per_client, 0),
      Bytes("min-free-bytes",
            "Room on the disk that uploads leave free; at most a tenth of the disk counts",
            &o.min_free_bytes, 0),
      Bytes("target-bytes",
            "Above so many bytes unused files go after an hour; 0: never for their size",
            &o.target_bytes, 0),
      Limit("max-model-files", "Files of one model", &o.max_model_files),
      Bytes("max-model-bytes", "Bytes of one model", &o.max_model_bytes),
      Limit("max-path-bytes", "Longest path within a model", &o.max_path_bytes),
      Limit("max-digests", "Digests in one FindMissingBlobs", &o.max_digests),
      Limit("max-page-size", "Most entries of a page", &o.max_page_size),
      Limit("max-request-id-bytes", "Longest request id", &o.max_request_id_bytes, 36),
      Limit("max-pending-jobs", "Jobs in the queue", &o.max_pending_jobs),
      Limit("max-pending-jobs-per-client", "Jobs of one client in the queue",
            &o.max_pending_jobs_per_client),
      Limit("retain-jobs-hours", "Hours that an ended job is kept", &o.retain_jobs_hours),
      Limit("retain-blobs-hours", "Hours that an unused file or upload is kept",
            &o.retain_blobs_hours),
      Limit("concurrent-jobs", "Jobs that this machine runs side by side", &o.concurrent_jobs, 0),
      Limit("max-running-jobs-per-client",
            "Running jobs of one client on all machines; 0: no limit",
            &o.max_running_jobs_per_client, 0),
      Limit("max-attempts",
            "Attempts at a job whose worker or server is killed; then it has failed",
            &o.max_attempts),
      Limit("lease-seconds",
            "Seconds without a sign of life after which a server loses its job to another",
            &o.lease_seconds, 3),
      Limit("default-budget-seconds", "Search time of a job that names none",
            &o.runner.default_budget_seconds),
      Limit("max-budget-seconds", "Longest search time", &o.runner.max_budget_seconds),
      Limit("max-wall-seconds", "Longest time of a whole job", &o.runner.max_wall_seconds),
      Bytes("max-job-memory-bytes", "Memory of a job; 0: half of the machine's",
            &o.runner.max_memory_bytes, 0),
      Bytes("max-job-output-bytes", "Bytes that a job may write", &o.runner.max_output_bytes),
      Bytes("max-job-log-bytes", "Bytes of a job's messages that are kept",
            &o.runner.max_log_bytes),
  };
}

constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};

absl::StatusOr<int64_t> ParseNumber(const OptionSpec& option, std::string_view text) {
  int64_t value = 0;
  size_t i = 0;
  for (; i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])); ++i) {
    if (value > (int64_t{1} << 53)) return InvalidInput(option.name, ": ", text, " is too large");
    value = value * 10 + (text[i] - '0');
  }
  if (i == 0) return InvalidInput(option.name, ": '", text, "' is not a number");
  while (i < text.size() && text[i] == ' ') ++i;
  const std::string_view unit = text.substr(i);
  if (unit.empty()) return value;
  for (int k = 0; option.bytes && k < 5; ++k) {
    if (unit != kUnits[k]) continue;
    if (value > (int64_t{1} << (60 - 10 * k)))
      return InvalidInput(option.name, ": ", text, " is too large");
    return value << (10 * k);
  }
  return InvalidInput(option.name, ": '", text, "' is not a number",
                      option.bytes ? " of bytes (8388608, 8MiB)" : "");
}

}  // namespace

std::vector<OptionSpec> OptionTable(ServerOptions& options) {
  std::vector<OptionSpec> table = Settings(options);
  for (auto* part : {&TransportLimits, &WorkLimits}) {
    for (OptionSpec& option : (*part)(options)) table.push_back(std::move(option));
  }
  return table;
}

std::string WithoutPassword(std::string url) {
  const size_t scheme = url.find("://");
  if (scheme == std::string::npos) return url;
  const size_t begin = scheme + 3, end = std::min(url.find_first_of("/?", begin), url.size());
  const size_t at = url.substr(0, end).rfind('@'), colon = url.find(':', begin);
  if (at != std::string::npos && at >= begin && colon < at)
    url.replace(colon + 1, at - colon - 1, "***");
  const size_t query = url.find('?');
  for (size_t k = query; k != std::string::npos && k < url.size(); k = url.find('&', k + 1)) {
    const size_t name = k + 1, value = url.find('=', name);
    if (value == std::string::npos) break;
    if (url.substr(name, value - name) != "password") continue;
    url.replace(value + 1, std::min(url.find('&', value), url.size()) - value - 1, "***");
  }
  return url;
}

std::string ValueText(const OptionSpec& option) {
  if (auto* const* text = std::get_if<std::string*>(&option.value)) return WithoutPassword(**text);
  if (auto* const* flag = std::get_if<bool*>(&option.value)) return **flag ? "true" : "false";
  int64_t value = *std::get<int64_t*>(option.value);
  int unit = 0;
  while (option.bytes && value != 0 && value % 1024 == 0 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? Cat(value) : Cat(value, " ", kUnits[unit]);
}

absl::Status SetOption(const OptionSpec& option, std::string_view text) {
  if (auto* const* target = std::get_if<std::string*>(&option.value)) {
    **target = std::string(text);
    return absl::OkStatus();
  }
  if (auto* const* target = std::get_if<bool*>(&option.value)) {
    if (text != "true" && text != "false")
      return InvalidInput(option.name, ": '", text, "' is neither true nor false");
    **target = text == "true";
    return absl::OkStatus();
  }
  MENDEL_ASSIGN_OR_RETURN(const int64_t value, ParseNumber(option, text));
  if (value < option.minimum)
    return InvalidInput(option.name, ": ", value, " is less than ", option.minimum);
  *std::get<int64_t*>(option.value) = value;
  return absl::OkStatus();
}

std::string VariableName(const OptionSpec& option) {
  std::string name = Cat("MENDEL_", option.name);
  for (char& c : name)
    c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

}  // namespace mendel::server
