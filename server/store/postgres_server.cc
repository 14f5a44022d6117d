#include "server/store/postgres_server.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/status.h"
#include "server/store/postgres_module.h"

namespace mendel::server {
namespace {

/// The newest /usr/lib/postgresql/*/bin with initdb; empty when there is none.
std::string FindPrograms() {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& version : std::filesystem::directory_iterator("/usr/lib/postgresql", error)) {
    if (std::filesystem::exists(version.path() / "bin/initdb", error))
      found.push_back((version.path() / "bin").string());
  }
  return found.empty() ? "" : *std::max_element(found.begin(), found.end());
}

/// The parent of a process; 0 when it has ended.
int ParentOf(int pid) {
  std::ifstream stat(Cat("/proc/", pid, "/stat"));
  std::string text;
  std::getline(stat, text);
  // pid (name, which may hold anything) state parent ...
  const size_t end = text.rfind(')');
  return end == std::string::npos || end + 4 > text.size() ? 0 : std::atoi(text.c_str() + end + 4);
}

/// PostgreSQL refuses to run as root.
uid_t UserOfServer() { return geteuid() == 0 ? 65534 : geteuid(); }

/// Starts a program in a process group of its own, as the server's user, its output into a file.
int Spawn(const std::vector<std::string>& words, const std::string& folder) {
  return InChild([&]() -> int {
    setsid();
    const std::string log = folder + "/log";
    const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (geteuid() == 0 && (setgid(UserOfServer()) != 0 || setuid(UserOfServer()) != 0)) return 126;
    // A test that is killed takes its server along.
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    dup2(out, 1);
    dup2(out, 2);
    if (chdir(folder.c_str()) != 0) return 126;
    std::vector<char*> arguments;
    for (const std::string& word : words)
      arguments.push_back(const_cast<char*>(word.c_str()));  // NOLINT: execv's old signature
    arguments.push_back(nullptr);
    execv(arguments.front(), arguments.data());
    return 127;
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<PostgresServer>> PostgresServer::Start() {
  std::unique_ptr<PostgresServer> server(new PostgresServer);
  server->programs_ = FindPrograms();
  if (server->programs_.empty())
    return absl::UnavailableError("there is no initdb (Debian's package postgresql)");
  const std::string& folder = server->folder_.path();
  if (geteuid() == 0 && chown(folder.c_str(), UserOfServer(), UserOfServer()) != 0)
    return InternalError("chown");
  // Its user may be another.
  if (chmod(folder.c_str(), 0755) != 0) return InternalError("chmod");
  const int made =
      WaitForChild(Spawn({server->programs_ + "/initdb", "-D", folder + "/data", "-A", "trust",
                          "-U", "mendel", "--no-sync", "--locale=C", "-E", "UTF8"},
                         folder));
  if (made != 0) return InternalError("initdb failed (", made, "), see ", folder, "/log");
  MENDEL_RETURN_IF_ERROR(server->Run());
  return server;
}

absl::Status PostgresServer::Run() {
  const std::string& folder = folder_.path();
  // Killed processes lose nothing that the system has; without fsync the test is quick.
  pid_ = Spawn({programs_ + "/postgres", "-D", folder + "/data", "-k", folder, "-c",
                "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=60", "-c",
                "dynamic_shared_memory_type=mmap", "-c", "shared_buffers=16MB"},
               folder);
  absl::Status status;
  for (int i = 0; i < 600; ++i) {
    const auto database = OpenPostgresDatabase(Url("public"), MENDEL_POSTGRES_MODULE);
    status = database.status();
    if (!absl::IsUnavailable(status)) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return status;
}

PostgresServer::~PostgresServer() { Kill(); }

std::string PostgresServer::Url(const std::string& schema) const {
  std::string path;
  for (const char c : folder_.path()) path += c == '/' ? std::string("%2F") : std::string(1, c);
  return Cat("postgresql://mendel@", path, "/postgres?options=-csearch_path%3D", schema);
}

absl::StatusOr<std::string> PostgresServer::Schema() {
  MENDEL_ASSIGN_OR_RETURN(const auto database,
                          OpenPostgresDatabase(Url("public"), MENDEL_POSTGRES_MODULE));
  const std::string name = Cat("t", ++schemas_);
  MENDEL_RETURN_IF_ERROR(database->Write(
      [&](SqlConnection& sql) { return sql.Run(Cat("CREATE SCHEMA ", name), {}).status(); }));
  return name;
}

void PostgresServer::Kill() {
  if (pid_ <= 0) return;
  // Stopped first, so that it starts no more processes while they are looked for.
  kill(pid_, SIGSTOP);
  std::error_code error;
  for (const auto& process : std::filesystem::directory_iterator("/proc", error)) {
    const int other = std::atoi(process.path().filename().c_str());
    if (other > 0 && ParentOf(other) == pid_) kill(other, SIGKILL);
  }
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

absl::Status PostgresServer::Restart() { return Run(); }

}  // namespace mendel::server
