#include "client/onnxruntime/native_session.h"

#include <cstring>
#include <string_view>

#include "base/status.h"
#include "client/onnxruntime/tensor_facts.h"

namespace mendel::ort {
namespace {

/// Values that are released together.
class Values {
 public:
  Values(const RuntimeApi& api, size_t count) : api_(api), list_(count, nullptr) {}
  ~Values() {
    for (Value* value : list_)
      if (value != nullptr) kReleaseValue(api_.main(), value);
  }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;
  std::vector<Value*>& list() { return list_; }

 private:
  const RuntimeApi& api_;
  std::vector<Value*> list_;
};

/// prefix0, prefix1, ..
std::vector<std::string> Numbered(const std::string& prefix, size_t count) {
  std::vector<std::string> names;
  for (size_t k = 0; k < count; ++k) names.push_back(Cat(prefix, k));
  return names;
}

std::vector<const char*> TextsOf(const std::vector<std::string>& names) {
  std::vector<const char*> pointers;
  for (const std::string& name : names) pointers.push_back(name.c_str());
  return pointers;
}

absl::Status CopyOutput(const RuntimeApi& api, const Value* value, int index,
                        const MakeOutput& make_output) {
  MENDEL_ASSIGN_OR_RETURN(const TensorFacts facts, FactsOf(api, value));
  MENDEL_ASSIGN_OR_RETURN(const std::string_view bytes, BytesOf(api, value));
  void* const buffer = make_output(index, facts.shape);
  if (bytes.empty()) return absl::OkStatus();
  if (buffer == nullptr)
    return absl::InternalError(Cat("ONNX Runtime makes no buffer for output ", index));
  std::memcpy(buffer, bytes.data(), bytes.size());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<NativeSession>> NativeSession::Make(const RuntimeApi& api,
                                                                   const std::string& model,
                                                                   int threads, bool spins) {
  std::unique_ptr<NativeSession> session(new NativeSession(api));
  MENDEL_RETURN_IF_ERROR(session->Open(model, threads, spins));
  return session;
}

absl::Status NativeSession::Open(const std::string& model, int threads, bool spins) {
  // A process has one environment; this only counts one more user of it.
  MENDEL_RETURN_IF_ERROR(api_.Take(kCreateEnv(api_.main(), kLogWarning, "mendel", &env_)));
  constexpr int kDeviceAllocator = 0, kDefaultMemory = 0;
  MENDEL_RETURN_IF_ERROR(
      api_.Take(kCreateCpuMemoryInfo(api_.main(), kDeviceAllocator, kDefaultMemory, &memory_)));
  SessionOptions* options = nullptr;
  MENDEL_RETURN_IF_ERROR(api_.Take(kCreateSessionOptions(api_.main(), &options)));
  absl::Status made = api_.Take(kSetIntraOpNumThreads(api_.main(), options, threads));
  if (made.ok()) {
    made = api_.Take(kAddConfigEntry(api_.main(), options, "session.intra_op.allow_spinning",
                                     spins ? "1" : "0"));
  }
  if (made.ok()) {
    made = api_.Take(
        kCreateSessionFromArray(api_.main(), env_, model.data(), model.size(), options, &session_));
  }
  kReleaseSessionOptions(api_.main(), options);
  return made;
}

NativeSession::~NativeSession() {
  if (session_ != nullptr) kReleaseSession(api_.main(), session_);
  if (memory_ != nullptr) kReleaseMemoryInfo(api_.main(), memory_);
  if (env_ != nullptr) kReleaseEnv(api_.main(), env_);
}

absl::Status NativeSession::Run(const PartInputs& inputs, size_t outputs,
                                const MakeOutput& make_output) const {
  const size_t count = inputs.data.size();
  Values read(api_, count), written(api_, outputs);
  for (size_t k = 0; k < count; ++k) {
    // ONNX Runtime only reads the data of inputs.
    MENDEL_RETURN_IF_ERROR(api_.Take(kCreateTensorWithData(
        api_.main(), memory_, const_cast<void*>(inputs.data[k]), BytesOfInput(inputs, k),
        inputs.shapes[k], static_cast<size_t>(inputs.ranks[k]), inputs.types[k], &read.list()[k])));
  }
  const auto in_names = Numbered("in", count), out_names = Numbered("out", outputs);
  const auto in = TextsOf(in_names), out = TextsOf(out_names);
  MENDEL_RETURN_IF_ERROR(
      api_.Take(kRun(api_.main(), session_, nullptr, in.data(), read.list().data(), count,
                     out.data(), outputs, written.list().data())));
  for (size_t k = 0; k < outputs; ++k) {
    MENDEL_RETURN_IF_ERROR(CopyOutput(api_, written.list()[k], static_cast<int>(k), make_output));
  }
  return absl::OkStatus();
}

}  // namespace mendel::ort
