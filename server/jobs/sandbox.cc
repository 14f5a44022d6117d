#include "server/jobs/sandbox.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/deadline.h"
#include "base/status.h"
#include "server/jobs/job_folder.h"

namespace mendel::server {
namespace {

constexpr double kProbeSeconds = 60;

/// Does `executable --version` run and end well? Its folder is one of a job that no store knows:
/// when this server is killed meanwhile, the next one sweeps it, with the processes that are left.
absl::Status Probe(const Sandbox& sandbox, const std::string& executable,
                   const std::string& scratch) {
  MENDEL_ASSIGN_OR_RETURN(const auto folder,
                          JobFolder::Open(scratch, Cat("jobs/probe-", getpid()), 1));
  const Launch launch{
      executable, {"--version"}, folder->path(), {}, {int64_t{1} << 32, 60, 1 << 20}, true};
  absl::Status status = absl::OkStatus();
  std::string said;
  if (auto child = sandbox.Start(launch); child.ok()) {
    const Deadline deadline = Deadline::After(kProbeSeconds);
    std::optional<ExitState> state = (*child)->Poll();
    for (; !state.has_value() && !deadline.Passed(); state = (*child)->Poll()) {
      char buffer[4096];
      while (::read((*child)->out().get(), buffer, sizeof(buffer)) > 0) {
      }
      const ssize_t count = ::read((*child)->error().get(), buffer, sizeof(buffer));
      if (count > 0 && said.size() < sizeof(buffer))
        said.append(buffer, static_cast<size_t>(count));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (!state.has_value() || state->signal != 0 || state->code != 0) {
      status =
          absl::FailedPreconditionError(Cat(sandbox.Description(), " does not run here: ", said));
    }
  } else {
    status = child.status();
  }
  folder->Clear(false);
  return status;
}

}  // namespace

std::vector<std::pair<int, rlim_t>> ProcessLimits(const WorkerLimits& limits) {
  // RLIMIT_DATA, not RLIMIT_AS: a model that is mapped read-only costs no memory that could run
  // out.
  return {{RLIMIT_DATA, static_cast<rlim_t>(limits.memory_bytes)},
          {RLIMIT_CPU, static_cast<rlim_t>(limits.cpu_seconds)},
          {RLIMIT_FSIZE, static_cast<rlim_t>(limits.file_bytes)},
          {RLIMIT_NOFILE, 1024},
          {RLIMIT_NPROC, 8192},  // of the user: a bound on threads
          {RLIMIT_MSGQUEUE, 0},
          {RLIMIT_CORE, 0}};
}

absl::StatusOr<std::unique_ptr<Sandbox>> ChooseSandbox(const std::string& kind,
                                                       const std::string& executable,
                                                       const std::string& scratch) {
  if (kind != "auto" && kind != "bubblewrap" && kind != "rlimits")
    return InvalidInput("there is no sandbox '", kind, "' (auto, bubblewrap, rlimits)");
  absl::Status status = absl::OkStatus();
  for (const auto& [name, make] :
       {std::pair("bubblewrap", &MakeBubblewrap), std::pair("rlimits", &MakePlainSandbox)}) {
    if (kind != "auto" && kind != name) continue;
    absl::StatusOr<std::unique_ptr<Sandbox>> sandbox = make();
    status = sandbox.ok() ? Probe(**sandbox, executable, scratch) : sandbox.status();
    if (status.ok()) return sandbox;
  }
  return absl::FailedPreconditionError(Cat("no sandbox: ", std::string(status.message())));
}

}  // namespace mendel::server
