// A session of ONNX Runtime for one part, on ONNX Runtime's own nodes for the CPU.
#ifndef MENDEL_CLIENT_ONNXRUNTIME_NATIVE_SESSION_H_
#define MENDEL_CLIENT_ONNXRUNTIME_NATIVE_SESSION_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/onnxruntime/part_inputs.h"
#include "client/onnxruntime/runtime_api.h"

namespace mendel::ort {

/// Threads may share a session. `api` must outlive it.
class NativeSession {
 public:
  /// `model` has the inputs in0, in1, .. and the outputs out0, out1, .. (PartModel); it is copied.
  /// With `spins`, idle threads of the session spin for a while, as in ONNX Runtime by default.
  static absl::StatusOr<std::unique_ptr<NativeSession>> Make(const RuntimeApi& api,
                                                             const std::string& model, int threads,
                                                             bool spins);
  ~NativeSession();
  NativeSession(const NativeSession&) = delete;
  NativeSession& operator=(const NativeSession&) = delete;

  /// The outputs are copied to the buffers of `make_output`.
  absl::Status Run(const PartInputs& inputs, size_t outputs, const MakeOutput& make_output) const;

 private:
  explicit NativeSession(const RuntimeApi& api) : api_(api) {}
  absl::Status Open(const std::string& model, int threads, bool spins);

  const RuntimeApi& api_;
  Env* env_ = nullptr;
  MemoryInfo* memory_ = nullptr;
  Session* session_ = nullptr;
};

}  // namespace mendel::ort

#endif  // MENDEL_CLIENT_ONNXRUNTIME_NATIVE_SESSION_H_
