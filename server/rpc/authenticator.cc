#include "server/rpc/authenticator.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <set>
#include <sstream>

#include "base/hash.h"
#include "base/status.h"
#include "server/rpc/errors.h"
#include "server/store/blob_store.h"
#include "server/store/project_name.h"

namespace mendel::server {
namespace {

constexpr std::string_view kBearer = "Bearer ";
constexpr size_t kMaxFileBytes = 1 << 20;

bool IsCallerName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-' ||
           c == '@';
  });
}

bool IsCredential(std::string_view text) {
  return (text.substr(0, 7) == "sha256:" && IsSha256(text.substr(7))) ||
         (text.substr(0, 5) == "cert:" && text.size() > 5);
}

/// Changes when the file is replaced or written to.
std::string Fingerprint(const std::string& path) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0) return "";
  return Cat(facts.st_ino, " ", facts.st_size, " ", facts.st_mtim.tv_sec, " ",
             facts.st_mtim.tv_nsec);
}

/// Names of certificates are free text; in quotas and listings they are callers' names.
std::string CallerNameOf(std::string_view certificate_name) {
  std::string name = Cat("cert.", certificate_name.substr(0, 59));
  for (char& c : name) {
    if (!IsCallerName(std::string_view(&c, 1))) c = '_';
  }
  return name;
}

Principal AnonymousOf(const ServerOptions& options) {
  if (options.anonymous_role != "auto")
    return {"anonymous", ParseGrants(options.anonymous_role).value_or(Grants{})};
  const std::vector<std::string> addresses = ListenAddresses(options);
  const bool open = options.auth_file.empty() && !options.grpc_use_ssl_mutual &&
                    std::all_of(addresses.begin(), addresses.end(),
                                [](const std::string& one) { return IsLocalAddress(one); });
  return {"anonymous", {open ? Role::kAdmin : Role::kNobody}};
}

}  // namespace

absl::StatusOr<AuthTable> ParseAuthFile(std::string_view text) {
  AuthTable table;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    std::string name;
    std::string roles;
    std::string credential;
    if (!(words >> name) || name.front() == '#') continue;
    words >> roles >> std::ws;
    std::getline(words, credential);
    while (!credential.empty() && std::isspace(static_cast<unsigned char>(credential.back())))
      credential.pop_back();
    const std::optional<Grants> grants = ParseGrants(roles);
    if (!IsCallerName(name) || !grants || !IsCredential(credential)) {
      return InvalidInput("auth file: line ", number,
                          " is not 'NAME ROLES sha256:HASH' or 'NAME ROLES cert:NAME', with ROLES "
                          "as in 'submitter' or 'PROJECT:submitter,OTHER:reader'");
    }
    if (!table.emplace(credential, Principal{name, *grants}).second) {
      return InvalidInput("auth file: line ", number, " repeats a credential");
    }
  }
  return table;
}

Authenticator::Authenticator(const ServerOptions& options, Logger& log)
    : path_(options.auth_file),
      log_(log),
      anonymous_(AnonymousOf(options)),
      certificate_grants_(ParseGrants(options.certificate_role).value_or(Grants{})) {}

absl::StatusOr<std::unique_ptr<Authenticator>> Authenticator::Create(const ServerOptions& options,
                                                                     Logger& log) {
  std::unique_ptr<Authenticator> result(new Authenticator(options, log));
  MENDEL_RETURN_IF_ERROR(result->Load());
  return result;
}

absl::Status Authenticator::Load() {
  if (path_.empty()) return absl::OkStatus();
  fingerprint_ = Fingerprint(path_);
  std::ifstream file(path_, std::ios::binary);
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (fingerprint_.empty() || file.bad())
    return absl::NotFoundError(Cat("auth file: cannot read ", path_));
  if (text.size() > kMaxFileBytes) return InvalidInput("auth file: longer than 1 MiB");
  MENDEL_ASSIGN_OR_RETURN(AuthTable table, ParseAuthFile(text));
  const std::lock_guard<std::mutex> lock(mutex_);
  table_ = std::move(table);
  return absl::OkStatus();
}

void Authenticator::Refresh() {
  if (path_.empty() || Fingerprint(path_) == fingerprint_) return;
  if (const absl::Status status = Load(); !status.ok()) {
    log_.Log(LogLevel::kError, "auth file not reloaded",
             {{"error", std::string(status.message())}});
  } else {
    log_.Log(LogLevel::kInfo, "auth file reloaded",
             {{"credentials", static_cast<int64_t>(table_.size())}});
  }
}

std::vector<std::string> Authenticator::Projects() const {
  std::set<std::string> projects = {""};
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [credential, principal] : table_) {
    for (const auto& [project, role] : principal.grants.by_project) projects.insert(project);
  }
  return {projects.begin(), projects.end()};
}

absl::StatusOr<Principal> Authenticator::Identify(const Credentials& credentials) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!credentials.authorization.empty()) {
    // Hashed before it is looked up: the time of the search reports nothing about tokens.
    const std::string_view header = credentials.authorization;
    const bool bearer = header.substr(0, kBearer.size()) == kBearer;
    const auto found = bearer
                           ? table_.find(Cat("sha256:", Sha256Hex(header.substr(kBearer.size()))))
                           : table_.end();
    if (found != table_.end()) return found->second;
    return WithReason(absl::UnauthenticatedError("the token is not known"), "BAD_TOKEN");
  }
  for (const std::string& name : credentials.certificate_names) {
    if (const auto found = table_.find(Cat("cert:", name)); found != table_.end())
      return found->second;
  }
  if (!credentials.certificate_names.empty())
    return Principal{CallerNameOf(credentials.certificate_names.front()), certificate_grants_};
  return anonymous_;
}

}  // namespace mendel::server
