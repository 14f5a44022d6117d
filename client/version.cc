#include "client/version.h"

#include "base/status.h"
#include "client/build_info.h"
#include "runtime/backend.h"

namespace mendel {
namespace {

#if defined(__clang__)
constexpr char kCompiler[] = "clang " __clang_version__;
#else
constexpr char kCompiler[] = "g++ " __VERSION__;
#endif

}  // namespace

Version ProgramVersion() {
  return {build_info::kVersion, build_info::kCommit, kCompiler, build_info::kOneDnn,
          build_info::kNtl};
}

std::string VersionLine() { return Cat(build_info::kVersion, " (", build_info::kCommit, ")"); }

std::string VersionText() {
  const Version version = ProgramVersion();
  std::string text = Cat("mendel ", version.version, "\ncommit: ", version.commit,
                         "\ncompiler: ", version.compiler, "\noneDNN: ", version.onednn,
                         "\nNTL: ", version.ntl, "\n");
  for (const Backend* backend : AllBackends()) {
    const absl::Status probe = backend->Probe();
    text += Cat("backend ", backend->name(), ": ",
                probe.ok() ? backend->Identity() : std::string(probe.message()), "\n");
  }
  return text;
}

}  // namespace mendel
