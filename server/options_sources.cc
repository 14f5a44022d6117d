// Sources of option values, and the checks between values.
#include <algorithm>
#include <cctype>
#include <utility>

#include "base/status.h"
#include "server/options.h"
#include "server/rpc/roles.h"

namespace mendel::server {
namespace {

std::string_view WithoutSpace(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

/// The parts between commas, trimmed, without empty ones.
std::vector<std::string> Parts(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    if (const std::string_view one = WithoutSpace(text.substr(0, comma)); !one.empty())
      parts.emplace_back(one);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return parts;
}

bool IsKey(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return std::islower(static_cast<unsigned char>(c)) != 0 || c == '-';
  });
}

absl::Status CheckRole(std::string_view option, const std::string& role, bool automatic) {
  if ((automatic && role == "auto") || ParseGrants(role)) return absl::OkStatus();
  return InvalidInput(option, ": '", role, "' is not ", automatic ? "auto, " : "",
                      "none, reader, submitter or admin, or such roles by project, as in "
                      "PROJECT:reader,OTHER:submitter");
}

absl::Status CheckTls(const ServerOptions& options) {
  if (options.grpc_use_ssl_mutual && !options.grpc_use_ssl)
    return InvalidInput("grpc-use-ssl-mutual needs grpc-use-ssl");
  if (options.grpc_use_ssl &&
      (options.grpc_server_cert.empty() || options.grpc_server_key.empty())) {
    return InvalidInput("grpc-use-ssl needs grpc-server-cert and grpc-server-key");
  }
  if (options.grpc_use_ssl_mutual && options.grpc_root_cert.empty()) {
    return InvalidInput("grpc-use-ssl-mutual needs grpc-root-cert");
  }
  return absl::OkStatus();
}

constexpr std::string_view kDefaultPagePort = "8472";

bool IsPort(std::string_view text) {
  const bool digits =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits && !text.empty() && text.size() <= 5 && std::stoi(std::string(text)) <= 65535;
}

absl::Status CheckPage(const ServerOptions& options) {
  if (options.http_port != "auto" && options.http_port != "none" && !IsPort(options.http_port)) {
    return InvalidInput("http-port: '", options.http_port, "' is not auto, none or a port");
  }
  const std::string address = PageAddressOf(options).address;
  if (address.empty() || IsLocalAddress(address)) return absl::OkStatus();
  if (!options.insecure_bind) {
    return InvalidInput("http-address: ", address,
                        " can be reached from other machines, without TLS: use insecure-bind");
  }
  if (options.auth_file.empty() && options.anonymous_role == "auto") {
    return InvalidInput("http-address: ", address,
                        " lets everybody in: use auth-file, or name the anonymous-role");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> ParseConfig(std::string_view text) {
  std::map<std::string, std::string> values;
  for (int line_number = 1; !text.empty(); ++line_number) {
    const size_t end = text.find('\n');
    const std::string_view line = WithoutSpace(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    const size_t equals = line.find('=');
    const std::string key(WithoutSpace(line.substr(0, equals)));
    if (equals == std::string_view::npos || !IsKey(key))
      return InvalidInput("line ", line_number, " is not 'key = value'");
    if (!values.emplace(key, WithoutSpace(line.substr(equals + 1))).second)
      return InvalidInput("line ", line_number, ": ", key, " again");
  }
  return values;
}

absl::StatusOr<ServerOptions> ResolveOptions(
    const std::map<std::string, std::string>& flags,
    const std::function<std::optional<std::string>(const std::string&)>& getenv,
    const std::map<std::string, std::string>& file) {
  ServerOptions options;
  std::map<std::string, std::string> left = file;
  for (const OptionSpec& option : OptionTable(options)) {
    const auto flag = flags.find(option.name);
    const auto line = left.extract(option.name);
    if (flag != flags.end()) {
      MENDEL_RETURN_IF_ERROR(Annotate(SetOption(option, flag->second), "option"));
    } else if (const std::optional<std::string> variable = getenv(VariableName(option))) {
      MENDEL_RETURN_IF_ERROR(Annotate(SetOption(option, *variable), VariableName(option)));
    } else if (!line.empty()) {
      MENDEL_RETURN_IF_ERROR(Annotate(SetOption(option, line.mapped()), "configuration file"));
    }
  }
  if (!left.empty())
    return InvalidInput("configuration file: there is no option ", left.begin()->first);
  options.runner.concurrent_jobs = static_cast<int>(options.concurrent_jobs);
  options.runner.max_attempts = static_cast<int>(options.max_attempts);
  options.runner.running_per_client = options.max_running_jobs_per_client;
  options.runner.other_devices = Parts(options.devices);
  options.runner.lease_micros = options.lease_seconds * 1'000'000;
  MENDEL_RETURN_IF_ERROR(CheckOptions(options));
  return options;
}

bool IsLocalAddress(std::string_view address) {
  for (std::string_view prefix : {"unix:", "127.", "localhost:", "[::1]:"}) {
    if (address.substr(0, prefix.size()) == prefix) return true;
  }
  return false;
}

std::vector<std::string> ListenAddresses(const ServerOptions& options) {
  return Parts(options.listen);
}

PageAddress PageAddressOf(const ServerOptions& options) {
  const std::string host = options.http_address.find(':') == std::string::npos
                               ? options.http_address
                               : Cat("[", options.http_address, "]");
  if (options.http_port == "none") return {};
  if (options.http_port != "auto") return {Cat(host, ":", options.http_port), true};
  // The file system controls the access to unix sockets. A port would bypass that control.
  const std::vector<std::string> listen = ListenAddresses(options);
  const auto is_local = [](const std::string& one) { return IsLocalAddress(one); };
  const auto is_unix = [](const std::string& one) { return one.starts_with("unix:"); };
  const bool loopback = std::all_of(listen.begin(), listen.end(), is_local) &&
                        !std::all_of(listen.begin(), listen.end(), is_unix);
  return loopback ? PageAddress{Cat(host, ":", kDefaultPagePort), false} : PageAddress{};
}

absl::Status CheckOptions(const ServerOptions& options) {
  MENDEL_RETURN_IF_ERROR(CheckRole("anonymous-role", options.anonymous_role, true));
  MENDEL_RETURN_IF_ERROR(CheckRole("certificate-role", options.certificate_role, false));
  if (!ParseRole(options.debug_role))
    return InvalidInput("debug-role: '", options.debug_role,
                        "' is not none, reader, submitter or admin");
  MENDEL_RETURN_IF_ERROR(CheckTls(options));
  const std::vector<std::string> addresses = ListenAddresses(options);
  if (addresses.empty()) return InvalidInput("listen: no address");
  for (const std::string& address : addresses) {
    if (IsLocalAddress(address)) continue;
    if (!options.grpc_use_ssl && !options.insecure_bind) {
      return InvalidInput(
          "listen: ", address,
          " can be reached from other machines: use TLS (grpc-use-ssl) or insecure-bind");
    }
    if (options.auth_file.empty() && !options.grpc_use_ssl_mutual &&
        options.anonymous_role == "auto") {
      return InvalidInput(
          "listen: ", address,
          " lets everybody in: use auth-file, grpc-use-ssl-mutual, or name the anonymous-role");
    }
  }
  if (!options.metrics_listen.empty() && !IsLocalAddress(options.metrics_listen) &&
      !options.insecure_bind) {
    return InvalidInput("metrics-listen: ", options.metrics_listen,
                        " can be reached from other machines: use insecure-bind");
  }
  MENDEL_RETURN_IF_ERROR(CheckPage(options));
  if (options.max_chunk_bytes + (64 << 10) > options.max_message_bytes) {
    return InvalidInput("max-chunk-bytes must be less than max-message-bytes by 64 KiB");
  }
  for (std::string_view level : {"debug", "info", "warning", "error"}) {
    if (options.log_level == level) return absl::OkStatus();
  }
  return InvalidInput("log-level: '", options.log_level, "' is not debug, info, warning or error");
}

}  // namespace mendel::server
