// Finds and loads the module of PostgreSQL.
#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "base/status.h"
#include "server/store/postgres_module.h"
#include "server/store/sql_store.h"

namespace mendel::server {
namespace {

/// The module's file, or empty. Only places that belong to the program: a module is code.
std::string FindModule() {
  std::error_code error;
  const std::filesystem::path folder =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const std::filesystem::path& place : {folder, folder / "../lib"}) {
    const std::filesystem::path file = place / "libmendel_postgres.so";
    if (std::filesystem::exists(file, error)) return file.string();
  }
  return "";
}

template <class Function>
Function* Symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqlDatabase>> OpenPostgresDatabase(const std::string& url,
                                                                  const std::string& module) {
  const std::string file = module.empty() ? FindModule() : module;
  if (file.empty())
    return Unsupported(
        "no libmendel_postgres.so stands beside the program or in ../lib; the package has it, and "
        "`scripts/build release mendel` makes it where libpq-dev is installed");
  // Never closed: its threads and its memory live as long as the program.
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Unsupported("the module for PostgreSQL cannot be loaded: ",
                       dlerror());  // NOLINT(concurrency-mt-unsafe)
  auto* const version = Symbol<decltype(MendelPostgresVersion)>(library, "MendelPostgresVersion");
  auto* const open = Symbol<decltype(MendelOpenPostgres)>(library, "MendelOpenPostgres");
  if (version == nullptr || open == nullptr)
    return Unsupported(file, " is no module for PostgreSQL");
  if (std::string(version()) != MENDEL_MODULE_VERSION) {
    return absl::FailedPreconditionError(Cat("the module for PostgreSQL is of version ", version(),
                                             ", not ", MENDEL_MODULE_VERSION));
  }
  absl::Status status;
  std::unique_ptr<SqlDatabase> database(open(url.c_str(), &status));
  if (database == nullptr) return status;
  return database;
}

absl::StatusOr<std::unique_ptr<JobStore>> OpenPostgresStore(const std::string& url,
                                                            const Clock& clock,
                                                            const std::string& module) {
  MENDEL_ASSIGN_OR_RETURN(std::unique_ptr<SqlDatabase> database, OpenPostgresDatabase(url, module));
  return SqlStore::Open(std::move(database), clock);
}

}  // namespace mendel::server
