#include "kernels/cuda/testing/emulator/device.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>
#include <vector>

#include "base/status.h"

extern char** environ;

namespace mendel::cuda {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSharedBytes = 227 * 1024;  // of mendel_shared
constexpr char kLibrary[] = "kernels.so";

absl::Status WriteText(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file ? absl::OkStatus() : absl::UnavailableError(Cat("cannot write ", path.string()));
}

absl::StatusOr<std::string> NewFolder() {
  std::string folder = (fs::temp_directory_path() / "mendel_kernels_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return absl::UnavailableError(Cat("cannot make ", folder));
  return folder;
}

/// Runs a program; its output becomes the message when it fails.
absl::Status RunProgram(std::vector<std::string> words, const fs::path& log) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return absl::NotFoundError(Cat("cannot start ", words[0]));
  int status = 0;
  waitpid(child, &status, 0);
  if (status == 0) return absl::OkStatus();
  std::stringstream output;
  output << std::ifstream(log).rdbuf();
  return InvalidInput(words[0], " failed: ", output.str());
}

/// The text in the parentheses of the entry's `__launch_bounds__`; "" where it has none.
std::string BoundsOf(std::string_view text, const std::string& entry) {
  constexpr std::string_view kBounds = "__launch_bounds__(";
  const size_t name = text.find(Cat(") ", entry, "("));
  const size_t begin = name == std::string_view::npos ? name : text.rfind(kBounds, name);
  if (begin == std::string_view::npos) return "";
  const size_t from = begin + kBounds.size();
  return std::string(text.substr(from, name - from));
}

/// The file around the texts: trampolines that take arguments as cuLaunchKernel does.
std::string Wrapper(std::span<const EmittedKernel> kernels, const std::string& extra) {
  std::string text =
      "#define MENDEL_ENTRY(name, kernel) \\\n"
      "  extern \"C\" void mendel_call_##name(void** arguments) { mendel_shim::Call(&kernel, "
      "arguments); } \\\n"
      "  extern \"C\" int mendel_arity_##name() { return mendel_shim::Arity(&kernel); }\n";
  std::string_view source;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const EmittedKernel& kernel = kernels[k];
    if (!kernel.text.empty()) source = kernel.text;  // later kernels of a text have none
    text += Cat("#include \"kernel", k, ".cu\"\nMENDEL_ENTRY(", kernel.name, ", ",
                kernel.name_space, "::", kernel.name, ")\n");
    const std::string bounds = BoundsOf(source, kernel.name);
    if (bounds.empty()) continue;
    const std::string inside =
        kernel.name_space.empty() ? "" : Cat("using namespace ", kernel.name_space, "; ");
    text += Cat("extern \"C\" int mendel_bound_", kernel.name, "() { ", inside,
                "const int bounds[] = {", bounds, "}; return bounds[0]; }\n");
  }
  return text + extra;
}

struct Image {
  uintptr_t base = 0, low = 0, high = 0;
};

/// The address range of the library in memory.
Image ImageOf(void* library) {
  link_map* map = nullptr;
  Image image;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) return image;
  image.base = map->l_addr;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto* found = static_cast<Image*>(data);
        if (info->dlpi_addr != found->base) return 0;
        for (int k = 0; k < info->dlpi_phnum; ++k) {
          if (info->dlpi_phdr[k].p_type != PT_LOAD) continue;
          const uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[k].p_vaddr;
          if (found->low == 0) found->low = begin;
          found->high =
              std::max(found->high, static_cast<uintptr_t>(begin + info->dlpi_phdr[k].p_memsz));
        }
        return 1;
      },
      &image);
  return image;
}

}  // namespace

EmulatedModule::~EmulatedModule() {
  if (library_ != nullptr) dlclose(library_);
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

absl::StatusOr<std::unique_ptr<EmulatedModule>> EmulatedModule::Compile(
    std::span<const EmittedKernel> kernels, const std::string& extra) {
  MENDEL_ASSIGN_OR_RETURN(std::string folder, NewFolder());
  std::unique_ptr<EmulatedModule> module(new EmulatedModule(std::move(folder)));
  MENDEL_RETURN_IF_ERROR(module->BuildHere(kernels, extra));
  MENDEL_RETURN_IF_ERROR(module->OpenHere());
  return module;
}

absl::StatusOr<std::vector<char>> EmulatedModule::Build(std::span<const EmittedKernel> kernels,
                                                        const std::string& extra) {
  MENDEL_ASSIGN_OR_RETURN(std::string folder, NewFolder());
  const EmulatedModule module(std::move(folder));
  MENDEL_RETURN_IF_ERROR(module.BuildHere(kernels, extra));
  std::ifstream file(fs::path(module.folder_) / kLibrary, std::ios::binary);
  std::vector<char> library{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (library.empty())
    return absl::UnavailableError(Cat("cannot read what was built in ", module.folder_));
  return library;
}

absl::StatusOr<std::unique_ptr<EmulatedModule>> EmulatedModule::Open(
    std::span<const char> library) {
  MENDEL_ASSIGN_OR_RETURN(std::string folder, NewFolder());
  std::unique_ptr<EmulatedModule> module(new EmulatedModule(std::move(folder)));
  MENDEL_RETURN_IF_ERROR(
      WriteText(fs::path(module->folder_) / kLibrary, {library.data(), library.size()}));
  MENDEL_RETURN_IF_ERROR(module->OpenHere());
  return module;
}

absl::Status EmulatedModule::BuildHere(std::span<const EmittedKernel> kernels,
                                       const std::string& extra) const {
  const fs::path root = folder_;
  for (size_t k = 0; k < kernels.size(); ++k)
    MENDEL_RETURN_IF_ERROR(WriteText(root / Cat("kernel", k, ".cu"), kernels[k].text));
  MENDEL_RETURN_IF_ERROR(WriteText(root / "kernels.cc", Wrapper(kernels, extra)));
  // Two steps: the shim defines the instrumentation's calls, so its library must not be linked.
  const std::string object = root / "kernels.o";
  MENDEL_RETURN_IF_ERROR(RunProgram({MENDEL_HOST_COMPILER, "-std=c++17", "-O1", "-fPIC", "-w",
                                     "-fno-strict-aliasing", "-fsanitize=thread", "-include",
                                     MENDEL_EMULATOR_SHIM, "-c", root / "kernels.cc", "-o", object},
                                    root / "log"));
  return RunProgram(
      {MENDEL_HOST_COMPILER, "-shared", "-Wl,-Bsymbolic", object, "-o", root / kLibrary},
      root / "log");
}

absl::Status EmulatedModule::OpenHere() {
  library_ = dlopen((fs::path(folder_) / kLibrary).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) return InternalError("emulator: ", dlerror());
  const Image image = ImageOf(library_);
  image_low_ = image.low;
  image_high_ = image.high;
  return absl::OkStatus();
}

void* EmulatedModule::Symbol(const std::string& name) const {
  return dlsym(library_, name.c_str());
}

int EmulatedModule::Arity(const std::string& name) const {
  const auto arity = reinterpret_cast<int (*)()>(Symbol("mendel_arity_" + name));
  return arity == nullptr ? -1 : arity();
}

int EmulatedModule::MostThreads(const std::string& name) const {
  constexpr int kMost = 1024, kWithoutBounds = 256;
  const auto bound = reinterpret_cast<int (*)()>(Symbol("mendel_bound_" + name));
  return bound == nullptr ? kWithoutBounds : std::min(kMost, bound());
}

absl::Status EmulatedModule::Launch(const std::string& name, const LaunchShape& launch,
                                    std::span<const Argument> arguments) {
  EmulatedKernel kernel;
  kernel.call = reinterpret_cast<void (*)(void**)>(Symbol("mendel_call_" + name));
  if (kernel.call == nullptr) return absl::NotFoundError(Cat("no kernel ", name));
  kernel.state = Symbol("mendel_emulator");
  kernel.shared = static_cast<unsigned char*>(Symbol("mendel_shared"));
  kernel.shared_bytes = kSharedBytes;
  kernel.image_low = image_low_;
  kernel.image_high = image_high_;
  if (launch.shared > kSharedBytes || launch.block > static_cast<unsigned>(MostThreads(name)))
    return InvalidInput(name, ": the launch is larger than the GPU or the kernel's bounds allow");
  std::vector<void*> pointers;
  std::vector<GlobalBuffer> buffers;
  for (const Argument& argument : arguments) {
    pointers.push_back(argument.bytes.data() + argument.offset);
    const auto same = std::find_if(buffers.begin(), buffers.end(), [&](const GlobalBuffer& buffer) {
      return buffer.bytes.data() == argument.bytes.data();
    });
    if (same == buffers.end()) {
      buffers.push_back({argument.name, argument.bytes, argument.writable, argument.granule});
    } else {
      same->writable |= argument.writable;
    }
  }
  std::vector<void*> parameters;
  for (void*& pointer : pointers) parameters.push_back(&pointer);
  return Annotate(Emulate(kernel, launch, parameters, buffers), name);
}

bool SeesAlignmentOfObjects() { return MENDEL_HOST_COMPILER_IS_GNU != 0; }

std::string EmulatorDevice::Identity() const {
  return Cat("emulator (", MENDEL_HOST_COMPILER, ")");
}

absl::StatusOr<std::unique_ptr<Module>> EmulatorDevice::Load(
    std::span<const EmittedKernel> kernels) const {
  MENDEL_ASSIGN_OR_RETURN(std::unique_ptr<EmulatedModule> module, EmulatedModule::Compile(kernels));
  return std::unique_ptr<Module>(std::move(module));
}

}  // namespace mendel::cuda
