#include "kernels/cuda/testing/fake/fake_nvrtc.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/check.h"
#include "kernels/cuda/testing/fake/fake_image.h"

namespace mendel::cuda {
namespace {

// The results are those of nvrtc.h.
enum NvrtcResult : int {
  kNvrtcSuccess = 0,
  kNvrtcInvalidInput = 3,
  kNvrtcInvalidProgram = 4,
  kNvrtcInvalidOption = 5,
  kNvrtcCompilation = 6,
  kNvrtcInternal = 11
};

constexpr std::array<int, 7> kNvrtcArchitectures = {75, 80, 86, 89, 90, 100, 120};
constexpr char kNvrtcUsage[] = "ptxas info    : Used 32 registers, used 1 barriers\n";

}  // namespace

struct FakeNvrtc::State {
  struct Program {
    std::string text, log;
    std::vector<char> image;
  };
  mutable std::mutex mutex;
  int major = 13, minor = 99;
  int64_t calls = 0, fail_at = 0;
  std::string failed_call;
  std::map<NvrtcProgram*, Program> programs;
  uintptr_t made = 0;

  static inline State* current = nullptr;
};

namespace {

using NvrtcState = FakeNvrtc::State;

/// Locks the state for one call; `code` is the error that is injected into it.
struct NvrtcCall {
  explicit NvrtcCall(const char* entry) : state(*NvrtcState::current), lock(state.mutex) {
    if (++state.calls != state.fail_at) return;
    state.failed_call = entry;
    code = kNvrtcInternal;
  }
  NvrtcState::Program* Find(NvrtcProgram* program) const {
    const auto found = state.programs.find(program);
    return found == state.programs.end() ? nullptr : &found->second;
  }
  NvrtcState& state;
  std::unique_lock<std::mutex> lock;
  int code = kNvrtcSuccess;
};

const char* NvrtcErrorString(int result) {
  return result == kNvrtcCompilation
             ? "NVRTC_ERROR_COMPILATION"
             : (result == kNvrtcInternal ? "NVRTC_ERROR_INTERNAL_ERROR" : "refused");
}

int NvrtcCreate(NvrtcProgram** program, const char* text, const char*, int headers,
                const char* const*, const char* const*) {
  NvrtcCall call("nvrtcCreateProgram");
  if (call.code != kNvrtcSuccess) return call.code;
  if (text == nullptr || headers != 0) return kNvrtcInvalidInput;
  *program = reinterpret_cast<NvrtcProgram*>(++call.state.made * 16);
  call.state.programs[*program].text = text;
  return kNvrtcSuccess;
}

int NvrtcDestroy(NvrtcProgram** program) {
  NvrtcCall call("nvrtcDestroyProgram");
  return call.state.programs.erase(*program) == 1 ? call.code
                                                  : static_cast<int>(kNvrtcInvalidProgram);
}

/// The architecture that the options name; 0 if they are not the options of Compiler.
int NvrtcArchitecture(int count, const char* const* options) {
  constexpr std::string_view kTarget = "--gpu-architecture=sm_";
  int architecture = 0;
  for (int k = 0; k < count; ++k) {
    const std::string_view option = options[k];
    if (option.starts_with(kTarget)) {
      architecture = std::atoi(option.data() + kTarget.size());
    } else if (option != "--std=c++17" && option != "--ptxas-options=-v") {
      return 0;
    }
  }
  return std::find(kNvrtcArchitectures.begin(), kNvrtcArchitectures.end(), architecture) ==
                 kNvrtcArchitectures.end()
             ? 0
             : architecture;
}

/// The state is not locked during a compilation, so that several threads can compile at once.
int NvrtcCompile(NvrtcProgram* program, int count, const char* const* options) {
  std::string text;
  const int architecture = NvrtcArchitecture(count, options);
  {
    NvrtcCall call("nvrtcCompileProgram");
    if (call.code != kNvrtcSuccess) return call.code;
    if (call.Find(program) == nullptr) return kNvrtcInvalidProgram;
    if (architecture == 0) return kNvrtcInvalidOption;
    text = call.Find(program)->text;
  }
  auto image = BuildFakeImage(text, architecture);
  const std::lock_guard lock(NvrtcState::current->mutex);
  NvrtcState::Program& compiled = NvrtcState::current->programs.at(program);
  compiled.log = image.ok() ? kNvrtcUsage : std::string(image.status().message());
  if (!image.ok())
    return absl::IsInvalidArgument(image.status()) ? kNvrtcCompilation : kNvrtcInternal;
  compiled.image = *std::move(image);
  return kNvrtcSuccess;
}

/// Sizes of logs count the zero at the end.
template <class Give>
int QueryNvrtc(const char* entry, NvrtcProgram* program, Give give) {
  NvrtcCall call(entry);
  if (call.code != kNvrtcSuccess) return call.code;
  const NvrtcState::Program* const found = call.Find(program);
  return found == nullptr ? static_cast<int>(kNvrtcInvalidProgram) : give(*found);
}

int NvrtcGetLogSize(NvrtcProgram* program, size_t* size) {
  return QueryNvrtc("nvrtcGetProgramLogSize", program, [size](const NvrtcState::Program& one) {
    *size = one.log.size() + 1;
    return kNvrtcSuccess;
  });
}
int NvrtcGetLog(NvrtcProgram* program, char* log) {
  return QueryNvrtc("nvrtcGetProgramLog", program, [log](const NvrtcState::Program& one) {
    std::memcpy(log, one.log.c_str(), one.log.size() + 1);
    return kNvrtcSuccess;
  });
}
int NvrtcGetCubinSize(NvrtcProgram* program, size_t* size) {
  return QueryNvrtc("nvrtcGetCUBINSize", program, [size](const NvrtcState::Program& one) {
    *size = one.image.size();
    return kNvrtcSuccess;
  });
}
int NvrtcGetCubin(NvrtcProgram* program, char* cubin) {
  return QueryNvrtc("nvrtcGetCUBIN", program, [cubin](const NvrtcState::Program& one) {
    std::copy(one.image.begin(), one.image.end(), cubin);
    return one.image.empty() ? kNvrtcInvalidProgram : kNvrtcSuccess;
  });
}

}  // namespace

FakeNvrtc::FakeNvrtc() : state_(std::make_unique<State>()) {
  MENDEL_CHECK(State::current == nullptr);
  State::current = state_.get();
  table_.path = "made up";
  table_.Version = [](int* major, int* minor) {
    const NvrtcCall call("nvrtcVersion");
    *major = call.state.major;
    *minor = call.state.minor;
    return call.code;
  };
  table_.GetErrorString = &NvrtcErrorString;
  table_.GetNumSupportedArchs = [](int* count) {
    *count = static_cast<int>(kNvrtcArchitectures.size());
    return NvrtcCall("nvrtcGetNumSupportedArchs").code;
  };
  table_.GetSupportedArchs = [](int* architectures) {
    std::copy(kNvrtcArchitectures.begin(), kNvrtcArchitectures.end(), architectures);
    return NvrtcCall("nvrtcGetSupportedArchs").code;
  };
  table_.CreateProgram = &NvrtcCreate;
  table_.DestroyProgram = &NvrtcDestroy;
  table_.CompileProgram = &NvrtcCompile;
  table_.GetProgramLogSize = &NvrtcGetLogSize;
  table_.GetProgramLog = &NvrtcGetLog;
  table_.GetCubinSize = &NvrtcGetCubinSize;
  table_.GetCubin = &NvrtcGetCubin;
}

FakeNvrtc::~FakeNvrtc() { State::current = nullptr; }

void FakeNvrtc::SetVersion(int major, int minor) {
  state_->major = major;
  state_->minor = minor;
}

void FakeNvrtc::FailAt(int64_t call) {
  state_->calls = 0;
  state_->fail_at = call;
  state_->failed_call.clear();
}

std::string FakeNvrtc::FailedCall() const { return state_->failed_call; }
size_t FakeNvrtc::Programs() const { return state_->programs.size(); }

}  // namespace mendel::cuda
