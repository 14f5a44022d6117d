#include "server/jobs/work_key.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/hash.h"
#include "base/status.h"
#include "server/jobs/worker_command.h"

namespace mendel::server {
namespace {

constexpr int kKeyVersion = 1;

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

/// Length first, so that no two lists of texts look alike.
void AddPart(Sha256& hash, std::string_view text) { hash.Update(Cat(text.size(), ":", text, ";")); }

std::string Identity(const std::string& device, const RunnerOptions& options) {
  for (const WorkerDevice& one : options.devices) {
    if (one.name == device) return Cat(one.identity, " ", one.isa);
  }
  return Cat("host ", HostName());
}

}  // namespace

std::string WorkKey(const v1::JobSpec& spec, const RunnerOptions& options) {
  if (!spec.has_optimize()) return "";
  const v1::OptimizeSpec& work = spec.optimize();
  const std::string device = work.device().empty() ? "cpu" : work.device();
  const std::set<std::string> disabled(work.disabled_rules().begin(), work.disabled_rules().end());
  Sha256 hash;
  AddPart(hash, Cat("optimize ", kKeyVersion));
  AddPart(hash, options.version);
  AddPart(hash, work.model());
  AddPart(hash, work.shapes());
  AddPart(hash, device);
  AddPart(hash, Identity(device, options));
  AddPart(hash, Cat(work.threads()));
  AddPart(hash, work.numerics().empty() ? "default" : work.numerics());
  AddPart(hash, Cat(SecondsOr(work.budget().time(),
                              static_cast<double>(options.default_budget_seconds))));
  AddPart(hash, Cat(work.budget().candidates()));
  AddPart(hash, Cat(work.seed()));
  AddPart(hash, Cat(work.target_bound_log2() == 0 ? -80 : work.target_bound_log2()));
  for (const std::string& rule : disabled) AddPart(hash, rule);
  // No rule has such names, and keys of plans without these options stay what they were.
  if (work.weights() == "exact") AddPart(hash, "weights: exact");
  if (work.max_weight_growth_bytes() > 0)
    AddPart(hash, Cat("weight growth: ", work.max_weight_growth_bytes()));
  return hash.HexDigest();
}

}  // namespace mendel::server
