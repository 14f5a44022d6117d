// mendel doctor: what this machine offers.

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"
#include "client/command.h"
#include "client/format.h"
#include "client/library_path.h"
#include "client/machine.h"
#include "client/version.h"
#include "runtime/backend.h"
#include "runtime/kernel_text.h"

namespace mendel::commands::doctor {
namespace {

using Json = nlohmann::ordered_json;

void ReportMachine(Context& context) {
  const Machine machine = ThisMachine();
  context.Line(Cat("cpu: ", machine.cpu.empty() ? "unknown" : machine.cpu));
  context.Line(Cat("cores: ", machine.cores, " (", machine.cpus, " logical)"));
  context.Line(Cat("memory: ", ByteText(static_cast<double>(machine.memory_bytes)),
                   machine.memory_limit > 0
                       ? Cat(", limited to ", ByteText(static_cast<double>(machine.memory_limit)))
                       : ""));
  context.facts()["machine"] = {{"cpu", machine.cpu},
                                {"cores", machine.cores},
                                {"logical_cpus", machine.cpus},
                                {"memory_bytes", machine.memory_bytes},
                                {"memory_limit", machine.memory_limit}};
}

absl::Status Doctor(Context& context) {
  const Version version = ProgramVersion();
  context.Line(Cat("mendel ", VersionLine(), ", oneDNN ", version.onednn, ", NTL ", version.ntl));
  context.facts()["version"] = {{"version", version.version},
                                {"commit", version.commit},
                                {"compiler", version.compiler},
                                {"onednn", version.onednn},
                                {"ntl", version.ntl}};
  ReportMachine(context);
  Json& backends = context.facts()["backends"] = Json::array();
  bool usable = false;
  for (const Backend* backend : AllBackends()) {
    const absl::Status probe = backend->Probe();
    usable |= probe.ok();
    const std::string description =
        probe.ok() ? backend->Identity() : Cat("not usable: ", std::string(probe.message()));
    context.Line(Cat("backend ", backend->name(), ": ", description));
    backends.push_back({{"name", backend->name()},
                        {"usable", probe.ok()},
                        {probe.ok() ? "identity" : "reason", description}});
  }
  for (const KernelWriter* writer : AllKernelWriters()) {
    for (const std::string& line : writer->Describe()) {
      context.Line(Cat(writer->name(), ": ", line));
      context.facts()[std::string(writer->name())].push_back(line);
    }
  }
  return usable ? absl::OkStatus() : Unsupported("no backend can run on this machine");
}

Action Setup(CLI::App& app) {
  AddLibraryPathOption(app);
  return &Doctor;
}

Command Make() { return {"doctor", "Reports what this machine offers", &Setup}; }

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel::commands::doctor
