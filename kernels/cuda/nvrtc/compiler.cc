#include "kernels/cuda/nvrtc/compiler.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string_view>

#include "base/status.h"
#include "kernels/cuda/driver_table/driver.h"
#include "kernels/cuda/driver_table/library.h"

namespace mendel::cuda {

struct NvrtcProgram;

namespace {

// As in nvrtc.h, which is not needed: the interface of these functions has not changed since 11.4.
constexpr int kSuccess = 0;
constexpr int kOldestVersion = 1104;

/// The number before `after`, summed over all its places.
int SumBefore(const std::string& text, const std::string& after) {
  int sum = 0;
  for (size_t at = text.find(after); at != std::string::npos; at = text.find(after, at + 1)) {
    size_t begin = at;
    while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
    sum += std::atoi(text.substr(begin, at - begin).c_str());
  }
  return sum;
}

}  // namespace

struct Compiler::Table {
  int (*version)(int* major, int* minor) = nullptr;
  int (*supported_count)(int* count) = nullptr;
  int (*supported)(int* architectures) = nullptr;
  int (*create)(NvrtcProgram** program, const char* text, const char* name, int headers, const char* const*,
                const char* const*) = nullptr;
  int (*destroy)(NvrtcProgram** program) = nullptr;
  int (*compile)(NvrtcProgram* program, int count, const char* const* options) = nullptr;
  int (*log_size)(NvrtcProgram* program, size_t* size) = nullptr;
  int (*log)(NvrtcProgram* program, char* log) = nullptr;
  int (*cubin_size)(NvrtcProgram* program, size_t* size) = nullptr;
  int (*cubin)(NvrtcProgram* program, char* cubin) = nullptr;
};

ResourceUsage ParseUsage(const std::string& log) {
  return {SumBefore(log, " registers"), SumBefore(log, " bytes spill stores") + SumBefore(log, " bytes spill loads"),
          SumBefore(log, " bytes stack frame")};
}

std::map<std::string, ResourceUsage> ParseUsageOfEntries(const std::string& log) {
  constexpr std::string_view kEntry = "Compiling entry function '";
  std::map<std::string, ResourceUsage> entries;
  for (size_t at = log.find(kEntry); at != std::string::npos;) {
    at += kEntry.size();
    const size_t next = log.find(kEntry, at);
    entries[log.substr(at, log.find('\'', at) - at)] = ParseUsage(log.substr(at, next == std::string::npos ? next : next - at));
    at = next;
  }
  return entries;
}

absl::StatusOr<const Compiler*> Compiler::Get() {
  static const auto* compiler = new absl::StatusOr<const Compiler*>(Open());
  return *compiler;
}

absl::StatusOr<const Compiler*> Compiler::Open() {
  MENDEL_ASSIGN_OR_RETURN(const Library library, OpenLibraryFor(Driver::VersionHere(), {"libnvrtc.so.13", "libnvrtc.so.12",
                                                                                        "libnvrtc.so.11.2", "libnvrtc.so"}));
  auto table = std::make_unique<Table>();
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvrtcVersion", table->version));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvrtcGetNumSupportedArchs", table->supported_count));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvrtcGetSupportedArchs", table->supported));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvrtcCreateProgram", table->create));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvrtcDestroyProgram", table->destroy));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvrtcCompileProgram", table->compile));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvrtcGetProgramLogSize", table->log_size));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvrtcGetProgramLog", table->log));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvrtcGetCUBINSize", table->cubin_size));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvrtcGetCUBIN", table->cubin));
  int major = 0, minor = 0, count = 0;
  if (table->version(&major, &minor) != kSuccess || major * 100 + minor < kOldestVersion) {
    return absl::FailedPreconditionError(Cat(library.path, " is version ", major, ".", minor, ", older than 11.4"));
  }
  auto compiler = std::make_unique<Compiler>();
  if (table->supported_count(&count) != kSuccess) return absl::UnavailableError(Cat(library.path, " tells no architectures"));
  compiler->architectures_.resize(static_cast<size_t>(count));
  table->supported(compiler->architectures_.data());
  compiler->version_ = Cat(major, ".", minor);
  compiler->path_ = library.path;
  compiler->table_ = table.release();
  return compiler.release();
}

bool Compiler::Supports(int architecture) const {
  return std::find(architectures_.begin(), architectures_.end(), architecture) != architectures_.end();
}

absl::StatusOr<CompiledKernel> Compiler::Compile(const std::string& text, const std::string& name, int architecture) const {
  NvrtcProgram* program = nullptr;
  if (table_->create(&program, text.c_str(), (name + ".cu").c_str(), 0, nullptr, nullptr) != kSuccess) {
    return absl::UnavailableError("NVRTC makes no program");
  }
  const auto destroy = [this](NvrtcProgram* made) { table_->destroy(&made); };
  const std::unique_ptr<NvrtcProgram, decltype(destroy)> owner(program, destroy);
  const std::string target = Cat("--gpu-architecture=sm_", architecture);
  std::vector<std::string> words = {target};
  std::istringstream fixed(options());
  for (std::string word; fixed >> word;) words.push_back(word);
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  const int result = table_->compile(program, static_cast<int>(pointers.size()), pointers.data());
  size_t size = 0;
  table_->log_size(program, &size);
  std::string log(size, '\0');
  if (size > 0) table_->log(program, log.data());
  if (result != kSuccess) return InvalidInput(name, " for sm_", architecture, ": ", log);
  CompiledKernel kernel;
  kernel.usage = ParseUsage(log);
  kernel.entries = ParseUsageOfEntries(log);
  size = 0;
  table_->cubin_size(program, &size);
  kernel.cubin.resize(size);
  if (size == 0 || table_->cubin(program, kernel.cubin.data()) != kSuccess) return absl::UnavailableError(Cat(name, ": no cubin"));
  return kernel;
}

}  // namespace mendel::cuda
