#include "kernels/cuda/nvrtc/compiler.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "kernels/cuda/driver_table/driver.h"
#include "kernels/cuda/driver_table/library.h"

namespace mendel::cuda {
namespace {

// NVRTC_ERROR_COMPILATION of nvrtc.h: the text does not compile.
constexpr int kCompilation = 6;
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

absl::StatusOr<Nvrtc> OpenNvrtc() {
  MENDEL_ASSIGN_OR_RETURN(
      const Library library,
      OpenLibraryFor(Driver::VersionHere(),
                     {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"}));
  Nvrtc table;
  table.path = library.path;
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvrtcVersion", table.Version));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvrtcGetErrorString", table.GetErrorString));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvrtcGetNumSupportedArchs", table.GetNumSupportedArchs));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvrtcGetSupportedArchs", table.GetSupportedArchs));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvrtcCreateProgram", table.CreateProgram));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvrtcDestroyProgram", table.DestroyProgram));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvrtcCompileProgram", table.CompileProgram));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvrtcGetProgramLogSize", table.GetProgramLogSize));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvrtcGetProgramLog", table.GetProgramLog));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvrtcGetCUBINSize", table.GetCubinSize));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvrtcGetCUBIN", table.GetCubin));
  return table;
}

absl::StatusOr<const Compiler*> Open() {
  MENDEL_ASSIGN_OR_RETURN(Nvrtc table, OpenNvrtc());
  MENDEL_ASSIGN_OR_RETURN(Compiler compiler, Compiler::Make(std::move(table)));
  return new Compiler(std::move(compiler));
}

}  // namespace

absl::Status Nvrtc::Check(int result, const std::string& what) const {
  if (result == 0) return absl::OkStatus();
  const char* text = GetErrorString(result);
  return absl::UnavailableError(
      Cat("NVRTC: ", what, ": ", text == nullptr ? "unknown error" : text, " (", result, ")"));
}

ResourceUsage ParseUsage(const std::string& log) {
  return {SumBefore(log, " registers"),
          SumBefore(log, " bytes spill stores") + SumBefore(log, " bytes spill loads"),
          SumBefore(log, " bytes stack frame")};
}

std::map<std::string, ResourceUsage> ParseUsageOfEntries(const std::string& log) {
  constexpr std::string_view kEntry = "Compiling entry function '";
  std::map<std::string, ResourceUsage> entries;
  for (size_t at = log.find(kEntry); at != std::string::npos;) {
    at += kEntry.size();
    const size_t next = log.find(kEntry, at);
    entries[log.substr(at, log.find('\'', at) - at)] =
        ParseUsage(log.substr(at, next == std::string::npos ? next : next - at));
    at = next;
  }
  return entries;
}

absl::StatusOr<const Compiler*> Compiler::Get() {
  static const auto* compiler = new absl::StatusOr<const Compiler*>(Open());
  return *compiler;
}

absl::StatusOr<Compiler> Compiler::Make(Nvrtc table) {
  Compiler compiler(std::move(table));
  const Nvrtc& nvrtc = compiler.table_;
  int major = 0, minor = 0, count = 0;
  MENDEL_RETURN_IF_ERROR(nvrtc.Check(nvrtc.Version(&major, &minor), "nvrtcVersion"));
  if (major * 100 + minor < kOldestVersion) {
    return absl::FailedPreconditionError(
        Cat(nvrtc.path, " is version ", major, ".", minor, ", older than 11.4"));
  }
  MENDEL_RETURN_IF_ERROR(
      nvrtc.Check(nvrtc.GetNumSupportedArchs(&count), "nvrtcGetNumSupportedArchs"));
  compiler.architectures_.resize(static_cast<size_t>(count));
  MENDEL_RETURN_IF_ERROR(nvrtc.Check(nvrtc.GetSupportedArchs(compiler.architectures_.data()),
                                     "nvrtcGetSupportedArchs"));
  compiler.version_ = Cat(major, ".", minor);
  return compiler;
}

bool Compiler::Supports(int architecture) const {
  return std::find(architectures_.begin(), architectures_.end(), architecture) !=
         architectures_.end();
}

absl::StatusOr<std::string> Compiler::LogOf(NvrtcProgram* program) const {
  size_t size = 0;
  MENDEL_RETURN_IF_ERROR(
      table_.Check(table_.GetProgramLogSize(program, &size), "nvrtcGetProgramLogSize"));
  std::string log(size, '\0');
  if (size > 0)
    MENDEL_RETURN_IF_ERROR(
        table_.Check(table_.GetProgramLog(program, log.data()), "nvrtcGetProgramLog"));
  return log.substr(0, log.find('\0'));
}

absl::StatusOr<CompiledKernel> Compiler::Compile(const std::string& text, const std::string& name,
                                                 int architecture) const {
  NvrtcProgram* program = nullptr;
  const int made =
      table_.CreateProgram(&program, text.c_str(), (name + ".cu").c_str(), 0, nullptr, nullptr);
  MENDEL_RETURN_IF_ERROR(table_.Check(made, "nvrtcCreateProgram"));
  const auto destroy = [this](NvrtcProgram* one) { table_.DestroyProgram(&one); };
  const std::unique_ptr<NvrtcProgram, decltype(destroy)> owner(program, destroy);
  std::vector<std::string> words = {Cat("--gpu-architecture=sm_", architecture)};
  std::istringstream fixed(options());
  for (std::string word; fixed >> word;) words.push_back(word);
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  const int result =
      table_.CompileProgram(program, static_cast<int>(pointers.size()), pointers.data());
  if (result != 0 && result != kCompilation) return table_.Check(result, "nvrtcCompileProgram");
  MENDEL_ASSIGN_OR_RETURN(const std::string log, LogOf(program));
  if (result != 0) return InvalidInput(name, " for sm_", architecture, ": ", log);
  CompiledKernel kernel;
  kernel.usage = ParseUsage(log);
  kernel.entries = ParseUsageOfEntries(log);
  size_t size = 0;
  MENDEL_RETURN_IF_ERROR(table_.Check(table_.GetCubinSize(program, &size), "nvrtcGetCUBINSize"));
  if (size == 0)
    return absl::UnavailableError(Cat("NVRTC: ", name, " has no cubin for sm_", architecture));
  kernel.cubin.resize(size);
  MENDEL_RETURN_IF_ERROR(
      table_.Check(table_.GetCubin(program, kernel.cubin.data()), "nvrtcGetCUBIN"));
  return kernel;
}

}  // namespace mendel::cuda
